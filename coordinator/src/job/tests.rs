//! The job, driven by ranks and commands that are made of plain values.

mod staging;

use std::time::Duration;

use stillpoint_clock::rank::Activity;
use stillpoint_protocol::agent::{FromAgent, Hello, Order, Progress, State, ToAgent, Written};
use stillpoint_protocol::command::ToCommand;
use stillpoint_protocol::job_file::JobState;

use super::{Input, Job, Output, Patience, Settings};

/// A job of which everything is at hand.
struct World {
    job: Job,
    now: Duration,
    outputs: Vec<Output>,
}

const RANKS: u32 = 3;

impl World {
    fn starting() -> World {
        World::with(None)
    }

    fn with(interval: Option<Duration>) -> World {
        World::of(World::settings(interval))
    }

    fn settings(interval: Option<Duration>) -> Settings {
        Settings {
            ranks: RANKS,
            launch: "l".into(),
            directory: "/d".into(),
            compress: "lz4".into(),
            next_epoch: 5,
            newest_epoch: Some(4),
            interval,
            staging: None,
            restarted_from: None,
            recovers: None,
            patience: Patience::default(),
        }
    }

    fn of(settings: Settings) -> World {
        World {
            job: Job::new(settings, Duration::ZERO),
            now: Duration::ZERO,
            outputs: vec![],
        }
    }

    fn running() -> World {
        let mut world = World::starting();
        world.connect_all();
        world
    }

    fn connect_all(&mut self) {
        for rank in 0..RANKS {
            let hello = Hello {
                rank,
                size: RANKS,
                pid: 10 + rank,
                host: "h".into(),
                launch: "l".into(),
                restarted_from: None,
            };
            let outputs = self.job.admit(hello, self.now).unwrap();
            self.outputs.extend(outputs);
            self.agent(rank, FromAgent::MpiReady);
        }
    }

    fn input(&mut self, input: Input) {
        let outputs = self.job.on(self.now, input);
        self.outputs.extend(outputs);
    }

    fn agent(&mut self, rank: u32, message: FromAgent) {
        self.input(Input::Agent { rank, message });
    }

    fn say(&mut self, rank: u32, attempt: u64, progress: Progress) {
        self.agent(rank, FromAgent::Progress { attempt, progress });
    }

    fn all_say(&mut self, attempt: u64, progress: Progress) {
        for rank in 0..RANKS {
            self.say(rank, attempt, progress.clone());
        }
    }

    fn ask(&mut self, watcher: u64, suspend: bool) {
        self.input(Input::Checkpoint {
            watcher,
            suspend,
            timeout: None,
        });
    }

    /// Lets time pass until the job wants a tick, then ticks.
    fn sleep(&mut self) {
        self.now = self.job.deadline().expect("nothing is due").max(self.now);
        self.input(Input::Tick);
    }

    fn orders(&self) -> Vec<&Order> {
        self.outputs
            .iter()
            .filter_map(|output| match output {
                Output::Broadcast(ToAgent::Checkpoint { order, .. }) => Some(order),
                _ => None,
            })
            .collect()
    }

    fn told(&self, watcher: u64) -> Vec<&ToCommand> {
        self.outputs
            .iter()
            .filter_map(|output| match output {
                Output::Tell {
                    watcher: to,
                    message,
                } if *to == watcher => Some(message),
                _ => None,
            })
            .filter(|message| !matches!(message, ToCommand::Phase { .. }))
            .collect()
    }

    fn has(&self, output: &Output) -> bool {
        self.outputs.contains(output)
    }

    /// From the request to where images are to be written.
    fn up_to_write(&mut self, attempt: u64) {
        self.up_to_seal(attempt);
        assert_eq!(self.orders().last(), Some(&&Order::Write));
    }

    /// From the request to where every rank is sealed and the directory is there.
    fn up_to_seal(&mut self, attempt: u64) {
        self.all_say(attempt, Progress::Clocks { clocks: vec![] });
        self.all_say(attempt, parked(1));
        self.all_say(attempt, Progress::CheckResult { refusals: vec![] });
        self.all_say(attempt, counts(1));
        self.sleep();
        self.all_say(attempt, counts(2));
        self.all_say(attempt, Progress::Sealed);
        let epoch = self.epoch_under_way();
        self.input(Input::Prepared {
            epoch,
            result: Ok(()),
        });
    }

    fn up_to_commit(&mut self, attempt: u64) {
        self.up_to_write(attempt);
        self.all_say(attempt, Progress::Written(written()));
        assert!(
            matches!(self.outputs.last(), Some(Output::Commit { images, .. }) if images.len() == 3)
        );
    }

    fn epoch_under_way(&self) -> u64 {
        self.outputs
            .iter()
            .rev()
            .find_map(|output| match output {
                Output::Prepare { epoch } => Some(*epoch),
                _ => None,
            })
            .expect("no epoch was begun")
    }

    fn committed(&mut self, epoch: u64) {
        self.input(Input::Committed {
            epoch,
            result: Ok(format!("/d/epoch-{epoch:06}")),
        });
    }
}

fn parked(seen: u64) -> Progress {
    state(Activity::Parked, seen, 0)
}

fn state(activity: Activity, seen: u64, poll: u32) -> Progress {
    Progress::State(State {
        doing: activity.into(),
        seen,
        poll,
        sent: 7,
        received: 7,
        begun: 0,
    })
}

fn counts(round: u32) -> Progress {
    Progress::Counts {
        round,
        sent: 7,
        received: 7,
    }
}

fn written() -> Written {
    Written {
        stored_bytes: 10,
        bytes: 40,
        digest: 1,
        seconds: 0.1,
    }
}

#[test]
fn a_checkpoint_goes_through_every_phase_and_the_job_runs_on() {
    let mut world = World::running();
    world.ask(1, false);
    world.up_to_commit(1);
    assert_eq!(world.told(1).len(), 0);
    world.committed(5);
    let [ToCommand::Committed(outcome)] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert_eq!(
        (outcome.epoch, outcome.bytes, outcome.stored_bytes),
        (5, 120, 30)
    );
    let phases: Vec<&str> = outcome
        .phases
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(
        phases,
        ["flag", "reach", "check", "drain", "seal", "write", "commit"]
    );
    assert_eq!(world.orders().last(), Some(&&Order::Committed));
    assert!(!world.has(&Output::Discard { epoch: 5 }));
    world.all_say(1, Progress::Released);
    // The next one gets the next number, and late words of the first do not disturb it.
    world.ask(2, false);
    world.all_say(1, Progress::Sealed);
    world.up_to_commit(2);
    world.committed(6);
    assert!(matches!(world.told(2)[..], [ToCommand::Committed(_)]));
    assert_eq!(world.job.fate().newest_epoch, Some(6));
}

#[test]
fn images_are_not_written_before_the_directory_is_there() {
    let mut world = World::running();
    world.ask(1, false);
    world.all_say(1, Progress::Clocks { clocks: vec![] });
    world.all_say(1, parked(1));
    world.all_say(1, Progress::CheckResult { refusals: vec![] });
    world.all_say(1, counts(1));
    world.sleep();
    world.all_say(1, counts(2));
    world.all_say(1, Progress::Sealed);
    assert_eq!(world.orders().last(), Some(&&Order::Seal));
    world.input(Input::Prepared {
        epoch: 5,
        result: Err("/d: read-only file system".into()),
    });
    assert!(matches!(world.told(1)[..], [ToCommand::Aborted { .. }]));
    assert!(matches!(world.orders().last(), Some(Order::Abort { .. })));
}

#[test]
fn a_suspend_ends_the_job_only_after_the_commit() {
    let mut world = World::running();
    world.ask(1, true);
    world.up_to_commit(1);
    assert!(!world.orders().contains(&&Order::Terminate));
    assert_eq!(world.job.fate().state, JobState::Running);
    world.committed(5);
    assert_eq!(world.orders().last(), Some(&&Order::Terminate));
    assert_eq!(world.job.fate().state, JobState::Suspended);
    assert!(world.has(&Output::Record));
    for rank in 0..RANKS {
        assert_eq!(world.told(1).len(), 0);
        world.agent(rank, FromAgent::Exiting { status: 0 });
        world.input(Input::Disconnected { rank });
    }
    let [ToCommand::Committed(outcome)] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert!(outcome.suspended && outcome.directory == "/d/epoch-000005");
    assert!(world.has(&Output::Ended));
    assert_eq!(world.job.fate().state, JobState::Suspended);
    assert_eq!(world.job.fate().exit_status, Some(0));
}

#[test]
fn ranks_that_are_killed_after_the_commit_of_a_suspend_do_not_make_it_a_failure() {
    let mut world = World::running();
    world.ask(1, true);
    world.up_to_commit(1);
    for rank in 0..RANKS {
        world.input(Input::Disconnected { rank });
    }
    // The commit is still being carried out: the job must not end before it is known.
    assert!(!world.has(&Output::Ended));
    world.committed(5);
    assert!(world.has(&Output::Ended));
    assert_eq!(world.job.fate().state, JobState::Suspended);
    assert_eq!(world.job.fate().reason, None);
}

#[test]
fn a_rank_that_dies_before_the_commit_aborts_it_and_the_epoch_is_discarded() {
    for steps in 0..5 {
        let mut world = World::running();
        world.ask(1, true);
        match steps {
            0 => {}
            1 => world.all_say(1, Progress::Clocks { clocks: vec![] }),
            2 => world.up_to_write(1),
            3 => {
                world.up_to_write(1);
                world.say(1, 1, Progress::Written(written()));
            }
            _ => {
                world.up_to_write(1);
                world.say(0, 1, Progress::Written(written()));
                world.say(2, 1, Progress::Written(written()));
            }
        }
        world.input(Input::Disconnected { rank: 2 });
        let [ToCommand::Aborted { reason }] = world.told(1)[..] else {
            panic!("{steps}: {:?}", world.told(1));
        };
        assert!(
            reason.contains("rank 2 (process 12 on h) has died"),
            "{reason}"
        );
        // Discarded only when nobody writes any more.
        world.say(0, 1, Progress::Released);
        assert!(!world.has(&Output::Discard { epoch: 5 }));
        world.say(1, 1, Progress::Released);
        assert!(world.has(&Output::Discard { epoch: 5 }));
        assert!(
            !world
                .outputs
                .iter()
                .any(|o| matches!(o, Output::Commit { .. }))
        );
        assert_eq!(world.job.fate().newest_epoch, Some(4));
        // There is no checkpoint of half a job.
        world.ask(2, false);
        assert!(matches!(world.told(2)[..], [ToCommand::Aborted { .. }]));
        for rank in [0, 1] {
            world.input(Input::Disconnected { rank });
        }
        assert!(world.has(&Output::Ended));
        assert_eq!(world.job.fate().state, JobState::Failed);
    }
}

#[test]
fn a_refusal_names_the_ranks_and_the_job_runs_on() {
    let mut world = World::running();
    world.ask(1, true);
    world.all_say(1, Progress::Clocks { clocks: vec![] });
    world.all_say(1, parked(1));
    let refuse = |reasons: &[&str]| Progress::CheckResult {
        refusals: reasons.iter().map(ToString::to_string).collect(),
    };
    world.say(0, 1, refuse(&["a window is open", "a socket is open"]));
    world.say(1, 1, refuse(&[]));
    world.say(2, 1, refuse(&["a window is open"]));
    let [ToCommand::Refused { reasons }] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert_eq!(
        reasons,
        &[
            "rank 0: a socket is open".to_owned(),
            "ranks 0, 2: a window is open".to_owned()
        ]
    );
    world.all_say(1, Progress::Released);
    assert_eq!(world.job.fate().state, JobState::Running);
    // The number was not used up.
    world.ask(2, false);
    world.up_to_commit(2);
    world.committed(5);
    assert!(matches!(world.told(2)[..], [ToCommand::Committed(_)]));
}

#[test]
fn a_full_disk_aborts_with_the_reason_and_the_rank() {
    let mut world = World::running();
    world.ask(1, false);
    world.up_to_write(1);
    world.say(0, 1, Progress::Written(written()));
    world.say(
        1,
        1,
        Progress::WriteFailed {
            reason: "no space left".into(),
        },
    );
    let [ToCommand::Aborted { reason }] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert_eq!(reason, "rank 1 (process 11 on h): no space left");
    // Rank 2 had written before it heard of it: that no longer counts.
    world.say(2, 1, Progress::Written(written()));
    assert!(
        !world
            .outputs
            .iter()
            .any(|o| matches!(o, Output::Commit { .. }))
    );
}

#[test]
fn a_commit_that_fails_releases_the_job() {
    let mut world = World::running();
    world.ask(1, true);
    world.up_to_commit(1);
    world.input(Input::Committed {
        epoch: 5,
        result: Err("rename: input/output error".into()),
    });
    assert!(matches!(world.told(1)[..], [ToCommand::Aborted { .. }]));
    assert!(!world.orders().contains(&&Order::Terminate));
    world.all_say(1, Progress::Released);
    assert_eq!(world.job.fate().state, JobState::Running);
}

#[test]
fn a_request_that_takes_too_long_is_given_up_and_says_what_it_waited_for() {
    let mut world = World::running();
    world.input(Input::Checkpoint {
        watcher: 1,
        suspend: false,
        timeout: Some(Duration::from_secs(7)),
    });
    world.all_say(1, Progress::Clocks { clocks: vec![] });
    world.say(0, 1, parked(1));
    world.say(1, 1, state(Activity::Running, 1, 0));
    world.say(2, 1, state(Activity::InCollective, 1, 0));
    // Rank 1 may compute or need rank 0: it is asked once, and does not answer.
    world.sleep();
    assert_eq!(world.now, Duration::from_millis(250));
    assert_eq!(world.orders().last(), Some(&&Order::Poll { poll: 1 }));
    world.sleep();
    assert_eq!(world.now, Duration::from_secs(7));
    let [ToCommand::Aborted { reason }] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert_eq!(
        reason,
        "given up after 7 s in phase reach: rank 2 inside a collective operation; \
         rank 1 still running"
    );
}

#[test]
fn ranks_that_wait_for_a_parked_one_get_it_moving() {
    let mut world = World::running();
    world.ask(1, false);
    world.all_say(
        1,
        Progress::Clocks {
            clocks: vec![(1, 1)],
        },
    );
    world.say(0, 1, parked(1));
    world.say(1, 1, parked(1));
    world.say(2, 1, state(Activity::Waiting, 1, 0));
    for poll in 1..=2 {
        world.sleep();
        assert_eq!(world.orders().last(), Some(&&Order::Poll { poll }));
        world.say(0, 1, state(Activity::Parked, 1, poll));
        world.say(1, 1, state(Activity::Parked, 1, poll));
        world.say(2, 1, state(Activity::Waiting, 1, poll));
    }
    let passed: Vec<u32> = world
        .outputs
        .iter()
        .filter_map(|output| match output {
            Output::Send {
                rank,
                message:
                    ToAgent::Checkpoint {
                        order: Order::Advance { version: 2 },
                        ..
                    },
            } => Some(*rank),
            _ => None,
        })
        .collect();
    assert_eq!(passed, [0, 1]);
}

#[test]
fn a_second_request_joins_the_first_and_may_turn_it_into_a_suspend() {
    let mut world = World::running();
    world.ask(1, false);
    world.up_to_write(1);
    world.ask(2, true);
    world.all_say(1, Progress::Written(written()));
    world.committed(5);
    assert_eq!(world.orders().last(), Some(&&Order::Terminate));
    for rank in 0..RANKS {
        world.input(Input::Disconnected { rank });
    }
    for watcher in [1, 2] {
        assert!(matches!(world.told(watcher)[..], [ToCommand::Committed(_)]));
    }
}

#[test]
fn a_request_during_the_release_gets_an_epoch_of_its_own() {
    let mut world = World::running();
    world.ask(1, false);
    world.up_to_commit(1);
    world.ask(2, false);
    world.committed(5);
    assert_eq!(world.told(2).len(), 0);
    world.all_say(1, Progress::Released);
    world.up_to_commit(2);
    world.committed(6);
    assert!(matches!(world.told(2)[..], [ToCommand::Committed(o)] if o.epoch == 6));
}

#[test]
fn a_request_before_all_ranks_are_there_waits_for_them() {
    let mut world = World::starting();
    world.ask(1, false);
    assert!(world.told(1).is_empty());
    world.connect_all();
    world.up_to_commit(1);
    world.committed(5);
    assert!(matches!(world.told(1)[..], [ToCommand::Committed(_)]));
}

#[test]
fn a_job_that_never_starts_ends_as_a_failure() {
    let mut world = World::starting();
    world.sleep();
    assert!(world.has(&Output::Ended));
    assert_eq!(world.job.fate().state, JobState::Failed);
    assert_eq!(
        world.job.fate().reason.as_deref(),
        Some("all 3 ranks never connected")
    );
    assert_eq!(world.job.deadline(), None);
}

#[test]
fn a_job_whose_starter_fails_does_not_wait_for_ranks_for_long() {
    let mut world = World::starting();
    world.input(Input::StarterGone);
    world.sleep();
    assert_eq!(world.now, Patience::default().grace);
    assert!(world.has(&Output::Ended));
    assert_eq!(world.job.fate().state, JobState::Failed);
    // Where ranks are connected, their own ends count.
    let mut world = World::running();
    world.input(Input::StarterGone);
    assert!(!world.has(&Output::Ended));
    assert_eq!(world.job.fate().reason, None);
}

#[test]
fn a_program_that_becomes_another_before_mpi_keeps_its_rank() {
    let mut world = World::starting();
    let hello = |rank| Hello {
        rank,
        size: RANKS,
        pid: 10 + rank,
        host: "h".into(),
        launch: "l".into(),
        restarted_from: None,
    };
    for rank in 0..RANKS {
        world.job.admit(hello(rank), world.now).unwrap();
    }
    world.input(Input::Disconnected { rank: 1 });
    world.job.admit(hello(1), world.now).unwrap();
    assert_eq!(world.job.fate().reason, None);
    // One that is dead does not come back.
    world.input(Input::ProcessGone { rank: 1 });
    assert_eq!(world.job.fate().reason, None);
    world.input(Input::Disconnected { rank: 2 });
    world.input(Input::ProcessGone { rank: 2 });
    let reason = world.job.fate().reason.clone().unwrap();
    assert!(
        reason.starts_with("rank 2") && reason.contains("died"),
        "{reason}"
    );
}

#[test]
fn a_program_that_becomes_another_does_not_leave_a_checkpoint_waiting() {
    let mut world = World::starting();
    for rank in 0..RANKS {
        let hello = Hello {
            rank,
            size: RANKS,
            pid: 10 + rank,
            host: "h".into(),
            launch: "l".into(),
            restarted_from: None,
        };
        world.job.admit(hello, world.now).unwrap();
    }
    world.ask(1, false);
    world.input(Input::Disconnected { rank: 0 });
    let [ToCommand::Aborted { reason }] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert!(reason.contains("became another program"), "{reason}");
}

#[test]
fn the_first_failure_is_the_jobs() {
    let mut world = World::running();
    world.agent(1, FromAgent::Exiting { status: 3 });
    world.input(Input::Disconnected { rank: 1 });
    world.input(Input::Disconnected { rank: 0 });
    world.agent(2, FromAgent::Exiting { status: 143 });
    assert!(!world.has(&Output::Ended));
    world.input(Input::Disconnected { rank: 2 });
    assert!(world.has(&Output::Ended));
    let fate = world.job.fate();
    assert_eq!((fate.state, fate.exit_status), (JobState::Failed, Some(3)));
}

#[test]
fn a_job_whose_ranks_end_well_is_finished() {
    let mut world = World::running();
    for rank in 0..RANKS {
        world.agent(rank, FromAgent::MpiFinalized);
        world.agent(rank, FromAgent::Exiting { status: 0 });
        world.input(Input::Disconnected { rank });
    }
    assert!(world.has(&Output::Ended));
    assert_eq!(world.job.fate().state, JobState::Finished);
}

#[test]
fn periodic_checkpoints_come_again_and_again() {
    let mut world = World::with(Some(Duration::from_secs(60)));
    world.connect_all();
    for attempt in 1..4 {
        let before = world.now;
        world.sleep();
        assert_eq!(world.now, before + Duration::from_secs(60));
        world.up_to_commit(attempt);
        world.committed(4 + attempt);
        let released = world.now;
        world.all_say(attempt, Progress::Released);
        world.now = released;
    }
    assert_eq!(world.job.fate().newest_epoch, Some(7));
}

#[test]
fn a_rank_that_does_not_say_that_it_runs_again_burns_the_number() {
    let mut world = World::running();
    world.ask(1, false);
    world.up_to_write(1);
    world.say(
        0,
        1,
        Progress::WriteFailed {
            reason: "full".into(),
        },
    );
    world.say(0, 1, Progress::Released);
    world.say(1, 1, Progress::Released);
    world.sleep();
    world.ask(2, false);
    assert_eq!(world.epoch_under_way(), 6);
}

#[test]
fn a_barrier_opens_when_all_have_come_and_can_be_used_again() {
    let mut world = World::running();
    let passed = Output::Broadcast(ToAgent::BarrierPassed {
        name: "mapped".into(),
    });
    for _ in 0..2 {
        world.outputs.clear();
        for rank in 0..RANKS {
            assert!(!world.has(&passed));
            world.agent(
                rank,
                FromAgent::AtBarrier {
                    name: "mapped".into(),
                },
            );
        }
        assert!(world.has(&passed));
    }
}

#[test]
fn a_signal_suspends_without_anybody_watching() {
    let mut world = World::running();
    for rank in 0..RANKS {
        world.agent(rank, FromAgent::SuspendWanted { signal: 10 });
    }
    world.up_to_commit(1);
    world.committed(5);
    assert_eq!(world.orders().last(), Some(&&Order::Terminate));
}
