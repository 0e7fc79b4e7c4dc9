//! Ranks whose hosts are silent: they may come back, or are lost when no other rank is left.

use super::*;
use stillpoint_ids::Epoch;

fn returning(rank: u32) -> Hello {
    Hello {
        returns: true,
        ..hello(rank)
    }
}

fn patient(watcher: u64, seconds: u64) -> Input {
    Input::Checkpoint {
        watcher,
        suspend: false,
        timeout: Some(Duration::from_secs(seconds).into()),
        waits: true,
        asked: None,
    }
}

#[test]
fn a_silent_host_ends_a_checkpoint_which_is_tried_again_when_it_answers() {
    let mut world = World::running();
    world.input(patient(1, 600));
    world.up_to_write(1);
    world.input(Input::Unreachable { rank: Rank(2) });
    let [ToCommand::Hindered { reasons }] = &world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert_eq!(
        reasons[..],
        [refusal!(RankUnreachable, "rank 2 on h cannot be reached")]
    );
    for rank in [0, 1] {
        world.say(rank, 1, Progress::Released);
    }
    assert!(world.has(&Output::Discard { epoch: Epoch(5) }));
    assert_eq!(world.job.fate().reason, None);
    assert_eq!(world.job.status(world.now).ranks[2].state, "unreachable");
    // No attempt begins without it, however long it takes.
    for _ in 0..50 {
        world.sleep();
    }
    assert!(world.now > Duration::from_secs(30));
    assert!(!world.has(&Output::Ended));
    assert_eq!(world.epoch_under_way(), Epoch(5));
    world.job.admit(returning(2), world.now).unwrap();
    assert_eq!(world.job.status(world.now).ranks[2].state, "in MPI");
    world.sleep();
    assert_eq!(world.epoch_under_way(), Epoch(6));
    world.up_to_commit(2);
    world.committed(Epoch(6));
    assert!(matches!(world.told(1)[..], [.., ToCommand::Committed(_)]));
}

#[test]
fn a_request_without_patience_names_the_host_that_is_silent() {
    let mut world = World::running();
    world.input(Input::Unreachable { rank: Rank(0) });
    world.input(Input::Unreachable { rank: Rank(1) });
    world.ask(1, false);
    let [ToCommand::Refused { reasons }] = &world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert_eq!(
        reasons[..],
        [refusal!(
            RankUnreachable,
            "ranks 0, 1 on h cannot be reached"
        )]
    );
}

#[test]
fn an_epoch_whose_images_are_all_written_is_committed_without_the_silent() {
    let mut world = World::running();
    world.ask(1, false);
    world.up_to_commit(1);
    world.input(Input::Unreachable { rank: Rank(1) });
    world.committed(Epoch(5));
    assert!(matches!(world.told(1)[..], [ToCommand::Committed(_)]));
    assert_eq!(world.job.fate().newest_epoch, Some(Epoch(5)));
    for rank in [0, 2] {
        world.say(rank, 1, Progress::Released);
    }
    assert_eq!(world.job.status(world.now).phase, None);
}

#[test]
fn when_no_other_rank_is_left_the_silent_are_lost_and_the_job_ends() {
    let mut world = World::running();
    world.input(Input::Unreachable { rank: Rank(1) });
    world.input(Input::Disconnected { rank: Rank(0) });
    world.input(Input::Disconnected { rank: Rank(2) });
    assert!(!world.has(&Output::Ended));
    world.input(Input::StarterGone);
    world.sleep();
    assert_eq!(world.now, Patience::default().grace);
    assert!(world.has(&Output::Ended));
    let fate = world.job.fate();
    assert_eq!(fate.state, JobState::Failed);
    let reason = fate.reason.clone().unwrap();
    assert!(
        reason.starts_with("rank 1 on h cannot be reached, and no other rank is running; rank 0"),
        "{reason}"
    );
    // A rank that was given up is not taken in again.
    assert!(world.job.admit(returning(1), world.now).is_err());
}

#[test]
fn a_host_that_is_cut_off_itself_waits_while_the_job_lives_there() {
    let mut world = World::running();
    for rank in 0..RANKS {
        world.input(Input::Unreachable { rank: Rank(rank) });
    }
    assert_eq!(world.job.deadline(), None);
    world.job.admit(returning(1), world.now).unwrap();
    world.input(Input::Unreachable { rank: Rank(1) });
    assert!(!world.has(&Output::Ended));
    world.input(Input::StarterGone);
    world.sleep();
    assert!(world.has(&Output::Ended));
}

#[test]
fn a_process_that_is_dead_does_not_count_as_silent() {
    let mut world = World::running();
    world.input(Input::Unreachable { rank: Rank(1) });
    world.input(Input::ProcessGone { rank: Rank(1) });
    let reason = world.job.fate().reason.clone().unwrap();
    assert!(
        reason.starts_with("rank 1") && reason.contains("died"),
        "{reason}"
    );
    world.ask(1, false);
    assert!(matches!(world.told(1)[..], [ToCommand::Aborted { .. }]));
}

#[test]
fn an_agent_that_returns_before_its_silence_was_noticed_has_given_its_checkpoint_up() {
    let mut world = World::running();
    world.input(patient(1, 600));
    world.all_say(1, Progress::Clocks { clocks: vec![] });
    let outputs = world.job.admit(returning(0), world.now).unwrap();
    world.outputs.extend(outputs);
    assert!(matches!(world.orders().last(), Some(Order::Abort { .. })));
    assert_eq!(world.job.fate().reason, None);
    // Another process with the rank's number is turned away.
    let other = Hello {
        pid: 4711,
        ..returning(1)
    };
    assert!(world.job.admit(other, world.now).is_err());
    assert!(world.job.admit(hello(1), world.now).is_err());
}

#[test]
fn a_suspended_job_does_not_wait_for_the_silent() {
    let mut world = World::running();
    world.ask(1, true);
    world.up_to_commit(1);
    world.input(Input::Unreachable { rank: Rank(2) });
    world.committed(Epoch(5));
    for rank in [0, 1] {
        world.agent(rank, FromAgent::Exiting { status: 0 });
        world.input(Input::Disconnected { rank: Rank(rank) });
    }
    if !world.has(&Output::Ended) {
        world.input(Input::StarterGone);
        world.sleep();
    }
    assert!(world.has(&Output::Ended));
    let fate = world.job.fate();
    assert_eq!(
        (fate.state, fate.reason.clone()),
        (JobState::Suspended, None)
    );
}

#[test]
fn a_coordinator_whose_host_is_cut_off_lets_the_directory_go() {
    lets_go(|rank| Hello {
        host: format!("other{rank}"),
        ..hello(rank)
    });
    // Hosts with the same name are told apart all the same.
    lets_go(|rank| Hello {
        namespace: Namespace::told_of(1, &format!("boot {rank}"), ""),
        ..hello(rank)
    });
}

fn lets_go(elsewhere: impl Fn(u32) -> Hello) {
    let mut world = World::starting();
    world.job.admit(hello(0), world.now).unwrap();
    for rank in [1, 2] {
        world.job.admit(elsewhere(rank), world.now).unwrap();
    }
    for rank in 0..RANKS {
        world.agent(rank, FromAgent::MpiReady);
    }
    world.input(patient(1, 600));
    world.up_to_seal(1);
    world.input(Input::Unreachable { rank: Rank(1) });
    assert_eq!(
        world.orders().last(),
        Some(&&Order::Abort {
            again: false,
            reason: format!(
                "rank 1 on {} cannot be reached [rank-unreachable]",
                elsewhere(1).host
            )
        })
    );
    // Another host can still be reached.
    let patience = Patience::default();
    world.now += patience.grace * 2;
    world.input(Input::Tick);
    assert!(!world.has(&Output::LetGo));
    world.input(Input::Unreachable { rank: Rank(2) });
    world.now += patience.grace * 2;
    world.input(Input::Tick);
    // Rank 0 has not yet given up its image.
    assert!(!world.has(&Output::LetGo));
    world.say(0, 1, Progress::Released);
    world.now += patience.grace * 2;
    world.input(Input::Tick);
    assert!(world.has(&Output::LetGo));
    let again = Hello {
        returns: true,
        ..elsewhere(1)
    };
    world.job.admit(again, world.now).unwrap();
    world.outputs.clear();
    world.now += patience.grace * 2;
    world.input(Input::Tick);
    assert!(world.has(&Output::TakeAgain));
    assert!(!world.has(&Output::LetGo));
    assert!(!world.has(&Output::Ended));
}
