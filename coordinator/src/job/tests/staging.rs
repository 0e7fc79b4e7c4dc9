//! The job with storage tiers: planned, staged, flushed, durable. Also a restart from an epoch that was only staged.

use stillpoint_ids::Epoch;
use stillpoint_multilevel::placement::Rules;
use stillpoint_protocol::tier::{Announced, Assignment, Gathered, Moved, Rates, Sized};

use super::*;

const MB: u64 = 1_000_000;

fn tiered() -> World {
    let mut settings = World::settings(None);
    settings.staging = Some(Rules::default());
    let mut world = World::of(settings);
    world.connect_all();
    for rank in 0..RANKS {
        world.agent(
            rank,
            FromAgent::Tier(Announced {
                host: format!("h{rank}"),
                directory: "/fast".into(),
                capacity: 40 * MB,
                address: format!("h{rank}:1"),
                problem: None,
            }),
        );
    }
    world
}

fn measured(world: &mut World) {
    for rank in 0..RANKS {
        let rates = Rates {
            fast: Some(1000 * MB),
            slow: Some(20 * MB),
            peers: Some(60 * MB),
        };
        let problem = None;
        world.agent(rank, FromAgent::Measured { rates, problem });
    }
}

/// Rank 0 has 120 MB, the others have nothing. Every node takes 40 MB.
fn sized(world: &mut World, attempt: u64) {
    for rank in 0..RANKS {
        let sized = Sized {
            bytes: if rank == 0 { 120 * MB } else { 0 },
            fast_room: 40 * MB,
            slow_room: 1000 * MB,
        };
        world.say(rank, attempt, Progress::Sized(sized));
    }
}

fn assignments(world: &World) -> Vec<&Assignment> {
    let sent = world.outputs.iter().filter_map(|output| match output {
        Output::Send {
            message:
                ToAgent::Checkpoint {
                    order: Order::Stage(assignment),
                    ..
                },
            ..
        } => Some(assignment),
        _ => None,
    });
    sent.collect()
}

/// Runs the job until the application runs again and the flush has begun.
fn staged() -> World {
    let mut world = tiered();
    measured(&mut world);
    world.ask(1, false);
    world.up_to_seal(1);
    sized(&mut world, 1);
    world.all_say(1, Progress::Staged(written(), Moved::default()));
    world.input(Input::Committed {
        attempt: 1,
        result: Ok("/d/epoch-000005.staged".into()),
    });
    world.all_say(1, Progress::Released);
    world
}

fn flushed(world: &mut World, ranks: impl IntoIterator<Item = u32>) {
    for rank in ranks {
        let problem = None;
        world.agent(
            rank,
            FromAgent::Flushed {
                epoch: Epoch(5),
                problem,
            },
        );
    }
}

#[test]
fn a_remainder_goes_to_peers_and_the_slow_tier_as_the_plan_says() {
    let mut world = tiered();
    world.ask(1, false);
    world.up_to_seal(1);
    assert!(world.orders().contains(&&Order::Size));
    sized(&mut world, 1);
    assert!(
        assignments(&world).is_empty(),
        "planned without knowing the ways"
    );
    measured(&mut world);
    let orders = assignments(&world);
    assert_eq!(orders.len(), RANKS as usize);
    assert_eq!(
        *orders[0],
        Assignment {
            local: 40 * MB,
            peers: orders[0].peers.clone(),
            slow: 20 * MB,
            partners: vec![]
        }
    );
    assert_eq!(
        orders[0].peers.iter().map(|(_, bytes)| bytes).sum::<u64>(),
        60 * MB
    );
    assert!(!world.orders().contains(&&Order::Write));
}

#[test]
fn an_epoch_is_committed_when_it_is_durable_and_not_when_it_is_staged() {
    let mut world = staged();
    let directory = "/d/epoch-000005.staged".to_owned();
    let flush = ToAgent::Flush {
        epoch: Epoch(5),
        directory,
    };
    assert!(world.has(&Output::Broadcast(flush)));
    assert!(world.told(1).is_empty());
    let status = world.job.status(world.now);
    assert_eq!(
        (status.epoch, status.staged, status.committed),
        (Some(Epoch(4)), Some(Epoch(5)), 0)
    );
    flushed(&mut world, 0..RANKS - 1);
    assert!(!world.has(&Output::Secure { epoch: Epoch(5) }));
    flushed(&mut world, [RANKS - 1]);
    assert!(world.has(&Output::Secure { epoch: Epoch(5) }));
    world.input(Input::Durable {
        epoch: Epoch(5),
        result: Ok("/d/epoch-000005".into()),
    });
    let status = world.job.status(world.now);
    assert_eq!(
        (status.epoch, status.staged, status.committed),
        (Some(Epoch(5)), None, 1)
    );
    let [ToCommand::Committed(outcome)] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert_eq!(
        (outcome.epoch, outcome.directory.as_str()),
        (Epoch(5), "/d/epoch-000005")
    );
    assert!(outcome.phases.iter().any(|(phase, _)| phase == "flush"));
    assert_eq!(outcome.staging.map(|staging| staging.predicted), Some(1.0));
}

#[test]
fn the_next_checkpoint_waits_for_the_flush() {
    let mut world = staged();
    world.ask(2, true);
    assert!(!world.has(&Output::Prepare {
        attempt: 2,
        epoch: Epoch(6)
    }));
    assert_eq!(
        world.job.deadline(),
        None,
        "nothing is due while the flush takes its time"
    );
    flushed(&mut world, 0..RANKS);
    world.input(Input::Durable {
        epoch: Epoch(5),
        result: Ok("/d/epoch-000005".into()),
    });
    assert!(world.has(&Output::Prepare {
        attempt: 2,
        epoch: Epoch(6)
    }));
    // A suspend goes to the slow tier at once.
    world.up_to_write(2);
    assert!(world.orders().contains(&&Order::Write));
}

#[test]
fn a_suspend_does_not_join_an_epoch_that_is_being_staged() {
    let mut world = tiered();
    measured(&mut world);
    world.ask(1, false);
    world.up_to_seal(1);
    world.ask(2, true);
    sized(&mut world, 1);
    assert_eq!(assignments(&world).len(), RANKS as usize);
    assert!(!world.orders().contains(&&Order::Write));
}

#[test]
fn a_rank_that_dies_before_the_flush_leaves_the_epoch_staged() {
    let mut world = staged();
    flushed(&mut world, [0]);
    world.input(Input::Disconnected { rank: Rank(1) });
    let [ToCommand::Aborted { reason, .. }] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert!(
        reason.details().contains("staged, but not durable") && reason.details().contains("rank 1"),
        "{reason}"
    );
    flushed(&mut world, 1..RANKS);
    assert!(!world.has(&Output::Secure { epoch: Epoch(5) }));
    assert_eq!(world.job.status(world.now).epoch, Some(Epoch(4)));
}

#[test]
fn a_flush_that_fails_is_told_and_the_job_goes_on() {
    let mut world = staged();
    let problem = Some("disk full".to_owned());
    world.agent(
        2,
        FromAgent::Flushed {
            epoch: Epoch(5),
            problem,
        },
    );
    assert!(matches!(world.told(1)[..], [ToCommand::Aborted { .. }]));
    world.ask(2, false);
    assert!(world.has(&Output::Prepare {
        attempt: 2,
        epoch: Epoch(6)
    }));
}

#[test]
fn what_fits_nowhere_ends_the_attempt_with_a_reason() {
    let mut world = tiered();
    measured(&mut world);
    world.ask(1, false);
    world.up_to_seal(1);
    let sized = Sized {
        bytes: 50 * MB,
        fast_room: 40 * MB,
        slow_room: 100 * MB,
    };
    world.all_say(1, Progress::Sized(sized));
    let [ToCommand::Aborted { reason, .. }] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert!(
        reason
            .details()
            .contains("the slow tier has room for 100 MB"),
        "{reason}"
    );
}

fn recovering(newest_epoch: Option<Epoch>) -> World {
    let mut settings = World::settings(None);
    settings.next_epoch = Epoch(6);
    settings.newest_epoch = newest_epoch;
    settings.recovers = Some(Epoch(5));
    let mut world = World::of(settings);
    world.connect_all();
    world
}

fn recovered(world: &mut World, problems: [Option<&str>; RANKS as usize]) {
    for (rank, problem) in (0..).zip(problems) {
        let problem = problem.map(str::to_owned);
        let gathered = Gathered {
            near: 100,
            peers: 10,
            slow: 1,
        };
        world.agent(
            rank,
            FromAgent::Recovered {
                epoch: Epoch(5),
                gathered,
                problem,
            },
        );
    }
}

fn carried_on(world: &World) -> Option<(Option<Epoch>, String)> {
    world.outputs.iter().find_map(|output| match output {
        Output::Broadcast(ToAgent::CarryOn { epoch, reason }) => Some((*epoch, reason.clone())),
        _ => None,
    })
}

#[test]
fn a_staged_epoch_that_is_whole_again_is_restarted_from() {
    let mut world = recovering(Some(Epoch(4)));
    recovered(&mut world, [None; 3]);
    assert!(world.has(&Output::Secure { epoch: Epoch(5) }));
    assert_eq!(carried_on(&world), None, "before it has its name");
    world.input(Input::Durable {
        epoch: Epoch(5),
        result: Ok("/d/epoch-000005".into()),
    });
    assert_eq!(carried_on(&world), Some((Some(Epoch(5)), String::new())));
    assert_eq!(world.job.fate().newest_epoch, Some(Epoch(5)));
    assert_eq!(world.job.fate().restarted_from, Some(Epoch(5)));
}

#[test]
fn a_staged_epoch_that_is_lost_is_replaced_by_the_newest_durable_one() {
    let mut world = recovering(Some(Epoch(4)));
    recovered(&mut world, [None, Some("a block is lost"), None]);
    let (epoch, reason) = carried_on(&world).expect("no word");
    assert_eq!(epoch, Some(Epoch(4)));
    assert!(
        reason.contains("rank 1: a block is lost") && reason.contains("back to epoch 4"),
        "{reason}"
    );
    assert!(world.has(&Output::DiscardStaged { epoch: Epoch(5) }));
}

#[test]
fn a_durable_epoch_is_restarted_from_whatever_could_be_gathered_of_it() {
    let mut world = recovering(Some(Epoch(5)));
    recovered(&mut world, [None, Some("a table is broken"), None]);
    assert_eq!(carried_on(&world), Some((Some(Epoch(5)), String::new())));
    assert!(!world.has(&Output::Secure { epoch: Epoch(5) }));
    let log = "epoch 5: 300 bytes are on the ranks' own hosts, 30 came from peers, 3 are on the slow tier only";
    assert!(world.has(&Output::Log(log.to_owned())));
}

#[test]
fn without_a_durable_epoch_what_is_left_of_a_staged_one_is_kept() {
    let mut world = recovering(None);
    recovered(&mut world, [Some("a block is lost"); 3]);
    let (epoch, reason) = carried_on(&world).expect("no word");
    assert_eq!(epoch, None);
    assert!(reason.contains("no durable epoch"), "{reason}");
    assert!(!world.has(&Output::DiscardStaged { epoch: Epoch(5) }));
}

#[test]
fn no_checkpoint_begins_while_ranks_gather_their_blocks() {
    let mut settings = World::settings(None);
    settings.recovers = Some(Epoch(5));
    let mut world = World::of(settings);
    let begun = |world: &World| {
        world.outputs.iter().any(|output| {
            let Output::Send { message, .. } = output else {
                return false;
            };
            matches!(
                message,
                ToAgent::Checkpoint {
                    order: Order::Begin(_),
                    ..
                }
            )
        })
    };
    let admit = |world: &mut World, restarted_from| {
        for rank in 0..RANKS {
            let hello = Hello {
                restarted_from,
                ..hello(rank)
            };
            let outputs = world.job.admit(hello, world.now).unwrap();
            world.outputs.extend(outputs);
        }
    };
    admit(&mut world, None);
    world.ask(1, false);
    recovered(&mut world, [None; 3]);
    for rank in 0..RANKS {
        world.input(Input::Disconnected { rank: Rank(rank) });
    }
    assert!(!begun(&world));
    admit(&mut world, Some(Epoch(5)));
    assert!(begun(&world));
}
