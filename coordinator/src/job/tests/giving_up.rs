//! Checkpoints that are given up.

use super::*;
use stillpoint_ids::Epoch;

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
        world.input(Input::Disconnected { rank: Rank(2) });
        let [ToCommand::Aborted { reason, .. }] = world.told(1)[..] else {
            panic!("{steps}: {:?}", world.told(1));
        };
        assert!(
            reason
                .details()
                .contains("rank 2 (process 12 on h) has died"),
            "{reason}"
        );
        // The epoch is discarded only when no rank writes any more.
        world.say(0, 1, Progress::Released);
        assert!(!world.has(&Output::Discard { epoch: Epoch(5) }));
        world.say(1, 1, Progress::Released);
        assert!(world.has(&Output::Discard { epoch: Epoch(5) }));
        assert!(
            !world
                .outputs
                .iter()
                .any(|o| matches!(o, Output::Commit { .. }))
        );
        assert_eq!(world.job.fate().newest_epoch, Some(Epoch(4)));
        // There is no checkpoint of half a job.
        world.ask(2, false);
        assert!(matches!(world.told(2)[..], [ToCommand::Aborted { .. }]));
        for rank in [0, 1] {
            world.input(Input::Disconnected { rank: Rank(rank) });
        }
        assert!(world.has(&Output::Ended));
        assert_eq!(world.job.fate().state, JobState::Failed);
    }
}

#[test]
fn what_a_rank_finds_in_the_drain_or_the_seal_refuses_by_name() {
    for sealing in [false, true] {
        let mut world = World::running();
        world.ask(1, true);
        world.all_say(1, Progress::Clocks { clocks: vec![] });
        world.all_say(1, parked(1));
        world.all_say(1, Progress::CheckResult { refusals: vec![] });
        if sealing {
            world.all_say(1, counts(1));
            world.sleep();
            world.all_say(1, counts(2));
            world.say(0, 1, Progress::Sealed);
        }
        let refusals = vec![refusal!(MpiMessages, "MPI cannot look for messages")];
        world.say(1, 1, Progress::CheckResult { refusals });
        let [ToCommand::Refused { reasons }] = world.told(1)[..] else {
            panic!("{:?}", world.told(1));
        };
        assert_eq!(
            reasons,
            &[refusal!(
                MpiMessages,
                "rank 1: MPI cannot look for messages"
            )]
        );
        assert!(matches!(world.orders().last(), Some(Order::Abort { .. })));
    }
}

#[test]
fn a_refusal_names_the_ranks_and_the_job_runs_on() {
    let mut world = World::running();
    world.ask(1, true);
    world.all_say(1, Progress::Clocks { clocks: vec![] });
    world.all_say(1, parked(1));
    let refuse = |reasons: &[&Refusal]| Progress::CheckResult {
        refusals: reasons.iter().copied().cloned().collect(),
    };
    let window = refusal!(MpiWindow, "a window is open");
    let socket = refusal!(OpenSocket, "a socket is open");
    world.say(0, 1, refuse(&[&window, &socket]));
    world.say(1, 1, refuse(&[]));
    world.say(2, 1, refuse(&[&window]));
    let [ToCommand::Refused { reasons }] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert_eq!(
        reasons,
        &[
            refusal!(OpenSocket, "rank 0: a socket is open"),
            refusal!(MpiWindow, "ranks 0, 2: a window is open")
        ]
    );
    world.all_say(1, Progress::Released);
    assert_eq!(world.job.fate().state, JobState::Running);
    // The epoch's number was not used up.
    world.ask(2, false);
    world.up_to_commit(2);
    world.committed(Epoch(5));
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
            reason: refusal!(NoSpace, "no space left"),
        },
    );
    let [ToCommand::Aborted { reason, .. }] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert_eq!(
        *reason,
        refusal!(NoSpace, "rank 1 (process 11 on h): no space left")
    );
    // Rank 2 has written its image before it heard of the abort, which no longer counts.
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
        attempt: 1,
        result: Err(refusal!(NotWritten, "rename: input/output error")),
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
        timeout: Some(Duration::from_secs(7).into()),
        waits: false,
        asked: None,
    });
    world.all_say(1, Progress::Clocks { clocks: vec![] });
    world.say(0, 1, parked(1));
    world.say(1, 1, state(Activity::Running, 1, 0));
    world.say(2, 1, state(Activity::InCollective, 1, 0));
    // Rank 1 may compute, or need rank 0: it is asked once, and does not answer.
    world.sleep();
    assert_eq!(world.now, Duration::from_millis(250));
    assert_eq!(world.orders().last(), Some(&&Order::Poll { poll: 1 }));
    world.sleep();
    assert_eq!(world.now, Duration::from_secs(7));
    let [ToCommand::Aborted { reason, .. }] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert_eq!(
        reason.details(),
        "given up after 7 s in phase reach: rank 2 inside a collective operation; \
         rank 1 still running"
    );
}

#[test]
fn the_number_of_an_image_that_was_begun_is_not_used_again() {
    let mut world = World::running();
    world.ask(1, false);
    world.up_to_write(1);
    let reason = refusal!(NoSpace, "full");
    world.say(0, 1, Progress::WriteFailed { reason });
    world.all_say(1, Progress::Released);
    world.ask(2, false);
    assert_eq!(world.epoch_under_way(), Epoch(6));
}

#[test]
fn a_rank_that_fails_before_it_writes_is_heard() {
    let mut world = World::running();
    world.ask(1, false);
    world.all_say(1, Progress::Clocks { clocks: vec![] });
    world.all_say(1, parked(1));
    let reason = refusal!(NoRoom, "no threads left");
    world.say(2, 1, Progress::WriteFailed { reason });
    assert!(matches!(world.told(1)[..], [ToCommand::Aborted { .. }]));
    assert!(matches!(world.orders().last(), Some(Order::Abort { .. })));
}

#[test]
fn ranks_that_do_not_say_that_they_run_again_are_not_waited_for_for_ever() {
    let mut world = World::running();
    world.ask(1, false);
    world.up_to_write(1);
    let reason = refusal!(NoSpace, "full");
    world.say(0, 1, Progress::WriteFailed { reason });
    world.say(0, 1, Progress::Released);
    let failed = world.now;
    world.sleep();
    assert_eq!(world.now - failed, Patience::default().release);
    world.ask(2, false);
    assert_eq!(world.epoch_under_way(), Epoch(6));
}

#[test]
fn a_directory_that_an_earlier_try_has_got_is_not_taken() {
    let mut world = World::running();
    world.input(Input::Checkpoint {
        watcher: 1,
        suspend: true,
        timeout: Some(Duration::from_secs(60).into()),
        waits: true,
        asked: None,
    });
    world.all_say(1, Progress::Clocks { clocks: vec![] });
    world.all_say(1, parked(1));
    let refusals = vec![refusal!(LostFile, "a file is open")];
    world.all_say(1, Progress::CheckResult { refusals });
    world.all_say(1, Progress::Released);
    // The file system is slow: the directory of the first try is made now, and removed afterwards.
    assert!(world.has(&Output::Discard { epoch: Epoch(5) }));
    world.sleep();
    let sealed = |world: &mut World| {
        world.all_say(2, Progress::Clocks { clocks: vec![] });
        world.all_say(2, parked(1));
        world.all_say(2, Progress::CheckResult { refusals: vec![] });
        world.all_say(2, counts(1));
        world.sleep();
        world.all_say(2, counts(2));
        world.all_say(2, Progress::Sealed);
    };
    let prepared = |world: &mut World, attempt| {
        world.input(Input::Prepared {
            attempt,
            result: Ok(()),
        });
    };
    prepared(&mut world, 1);
    sealed(&mut world);
    assert_eq!(world.orders().last(), Some(&&Order::Seal));
    prepared(&mut world, 2);
    assert_eq!(world.orders().last(), Some(&&Order::Write));
}

#[test]
fn a_refusal_of_an_earlier_attempt_does_not_end_this_one() {
    let mut world = World::running();
    world.ask(1, false);
    let refuse = |attempt| FromAgent::Refuse {
        attempt,
        reason: refusal!(OpenSocket, "a socket is open"),
    };
    world.agent(0, refuse(1));
    world.all_say(1, Progress::Released);
    world.ask(2, false);
    world.agent(1, refuse(1));
    assert!(world.told(2).is_empty());
    world.up_to_commit(2);
}

#[test]
fn a_suspend_by_signal_that_has_failed_is_tried_again_while_there_is_time() {
    let mut world = World::running();
    world.agent(0, FromAgent::SuspendWanted { signal: 10 });
    world.up_to_write(1);
    // The command joins the attempt, and gets its answer.
    world.ask(1, false);
    let reason = refusal!(NoSpace, "no space left");
    world.say(2, 1, Progress::WriteFailed { reason });
    assert!(matches!(world.told(1)[..], [ToCommand::Aborted { .. }]));
    let orders = world.orders();
    assert!(matches!(orders[..], [.., Order::Abort { again: true, .. }]));
    world.all_say(1, Progress::Released);
    world.sleep();
    world.up_to_commit(2);
    world.committed(Epoch(6));
    assert_eq!(world.job.fate().state, JobState::Suspended);
}

#[test]
fn a_suspend_by_signal_that_always_fails_is_tried_less_and_less_often_and_comes_to_an_end() {
    let mut world = World::running();
    world.agent(0, FromAgent::SuspendWanted { signal: 10 });
    let patience = Patience::default().still_point;
    for attempt in 1.. {
        world.up_to_write(attempt);
        let reason = refusal!(NoSpace, "no space left");
        world.say(2, attempt, Progress::WriteFailed { reason });
        world.all_say(attempt, Progress::Released);
        if world.job.deadline().is_none() {
            assert!((20..400).contains(&attempt), "{attempt}");
            break;
        }
        world.sleep();
        if world.now >= patience {
            break;
        }
    }
    assert_eq!(world.now, patience);
    assert_eq!(world.job.status(world.now).waits_for, [] as [Refusal; 0]);
    let orders = world.orders();
    assert!(orders.contains(&&Order::Abort {
        reason: "rank 2 (process 12 on h): no space left [no-space]".into(),
        again: true
    }));
}

#[test]
fn a_rank_that_can_never_write_its_image_refuses_once() {
    let mut world = World::running();
    world.input(Input::Checkpoint {
        watcher: 1,
        suspend: true,
        timeout: Some(Duration::from_secs(60).into()),
        waits: true,
        asked: None,
    });
    world.up_to_write(1);
    let refusals = vec![refusal!(FileLimit, "no file may be so long")];
    world.say(0, 1, Progress::CheckResult { refusals });
    let [ToCommand::Refused { reasons }] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert_eq!(
        reasons,
        &[refusal!(FileLimit, "rank 0: no file may be so long")]
    );
    world.all_say(1, Progress::Released);
    assert!(world.job.deadline().is_none());
}
