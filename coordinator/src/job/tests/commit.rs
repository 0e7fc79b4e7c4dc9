//! A checkpoint on its way to its commit, and the steps that follow.

use super::*;
use stillpoint_ids::Epoch;

#[test]
fn a_checkpoint_goes_through_every_phase_and_the_job_runs_on() {
    let mut world = World::running();
    world.ask(1, false);
    world.up_to_commit(1);
    assert_eq!(world.told(1).len(), 0);
    world.committed(Epoch(5));
    let [ToCommand::Committed(outcome)] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert_eq!(
        (outcome.epoch, outcome.bytes, outcome.stored_bytes),
        (Epoch(5), 120, 30)
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
    assert!(!world.has(&Output::Discard { epoch: Epoch(5) }));
    world.all_say(1, Progress::Released);
    // The next one gets the next number, and late messages of the first do not disturb it.
    world.ask(2, false);
    world.all_say(1, Progress::Sealed);
    world.up_to_commit(2);
    world.committed(Epoch(6));
    assert!(matches!(world.told(2)[..], [ToCommand::Committed(_)]));
    assert_eq!(world.job.fate().newest_epoch, Some(Epoch(6)));
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
        attempt: 1,
        result: Err(refusal!(PermissionDenied, "/d: read-only file system")),
    });
    assert!(matches!(world.told(1)[..], [ToCommand::Aborted { .. }]));
    assert!(matches!(world.orders().last(), Some(Order::Abort { .. })));
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
    let passed: Vec<Rank> = world
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
    assert_eq!(passed, [0, 1].map(Rank));
}

#[test]
fn a_suspend_ends_the_job_only_after_the_commit() {
    let mut world = World::running();
    world.ask(1, true);
    world.up_to_commit(1);
    assert!(!world.orders().contains(&&Order::Terminate));
    assert_eq!(world.job.fate().state, JobState::Running);
    world.committed(Epoch(5));
    assert_eq!(world.orders().last(), Some(&&Order::Terminate));
    assert_eq!(world.job.fate().state, JobState::Suspended);
    assert!(world.has(&Output::Record));
    for rank in 0..RANKS {
        assert_eq!(world.told(1).len(), 0);
        world.agent(rank, FromAgent::Exiting { status: 0 });
        world.input(Input::Disconnected { rank: Rank(rank) });
    }
    let [ToCommand::Committed(outcome)] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert!(outcome.suspended && outcome.directory == "/d/epoch-000005");
    assert!(world.has(&Output::Ended));
    assert_eq!(world.job.fate().state, JobState::Suspended);
    assert_eq!(world.job.fate().exit_status, Some(75));
    assert!(!world.has(&Output::Requeue));
}

#[test]
fn a_batch_job_is_requeued_after_the_commit_and_before_its_ranks_end() {
    let requeue = true;
    let mut world = World::of(Settings {
        requeue,
        ..World::settings(None)
    });
    world.connect_all();
    world.ask(1, true);
    world.up_to_commit(1);
    assert!(!world.has(&Output::Requeue));
    world.outputs.clear();
    world.committed(Epoch(5));
    let end = ToAgent::Checkpoint {
        attempt: 1,
        order: Order::Terminate,
    };
    let wanted = [Output::Record, Output::Requeue, Output::Broadcast(end)];
    let order: Vec<&Output> = world
        .outputs
        .iter()
        .filter(|o| wanted.contains(o))
        .collect();
    assert_eq!(order, wanted.iter().collect::<Vec<_>>());
    // Then the batch system does not start it again, so the user must know.
    world.input(Input::Requeued {
        result: Err("no answer".into()),
    });
    let fate = world.job.fate();
    assert_eq!(fate.state, JobState::Suspended);
    assert!(
        fate.reason
            .as_ref()
            .is_some_and(|r| r.contains("no answer"))
    );
}

#[test]
fn ranks_that_are_killed_after_the_commit_of_a_suspend_do_not_make_it_a_failure() {
    let mut world = World::running();
    world.ask(1, true);
    world.up_to_commit(1);
    for rank in 0..RANKS {
        world.input(Input::Disconnected { rank: Rank(rank) });
    }
    // The commit is still being carried out: the job must not end before it is known.
    assert!(!world.has(&Output::Ended));
    world.committed(Epoch(5));
    assert!(world.has(&Output::Ended));
    assert_eq!(world.job.fate().state, JobState::Suspended);
    assert_eq!(world.job.fate().reason, None);
}
