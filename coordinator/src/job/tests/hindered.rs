//! A checkpoint waits for hindrances to pass, as long as its request has patience.

use super::*;
use stillpoint_ids::Epoch;

fn reason() -> Refusal {
    refusal!(LostFile, "all 3 ranks: a file is open")
}

impl World {
    fn ask_patiently(&mut self, watcher: u64, seconds: u64) {
        self.input(Input::Checkpoint {
            watcher,
            suspend: true,
            timeout: Some(Duration::from_secs(seconds).into()),
            waits: true,
            asked: None,
        });
    }

    /// A try that every rank refuses, and its release.
    fn hindered_try(&mut self, attempt: u64) {
        self.all_say(attempt, Progress::Clocks { clocks: vec![] });
        self.all_say(attempt, parked(1));
        let refusals = vec![refusal!(LostFile, "a file is open")];
        self.all_say(attempt, Progress::CheckResult { refusals });
        self.all_say(attempt, Progress::Released);
    }
}

#[test]
fn a_hindrance_that_passes_is_waited_for() {
    let mut world = World::running();
    world.ask_patiently(1, 5);
    for attempt in 1..=3 {
        world.hindered_try(attempt);
        assert!(!world.told(1).is_empty());
        let said =
            |m: &&ToCommand| matches!(m, ToCommand::Hindered { reasons } if *reasons == [reason()]);
        assert!(world.told(1).iter().all(said), "{:?}", world.told(1));
        assert_eq!(world.job.status(world.now).waits_for, [reason()]);
        world.sleep();
    }
    assert_eq!(world.job.status(world.now).aborted, 0);
    world.up_to_commit(4);
    assert!(world.job.status(world.now).waits_for.is_empty());
    // The number was not used up by any try.
    world.committed(Epoch(5));
    assert_eq!(world.job.fate().state, JobState::Suspended);
}

#[test]
fn one_that_stays_is_the_answer_at_the_limit_and_the_job_runs_on() {
    let mut world = World::running();
    world.ask_patiently(1, 5);
    let mut tries = 0;
    while !matches!(world.told(1).last(), Some(ToCommand::Refused { .. })) {
        tries += 1;
        assert!(tries < 20, "{:?}", world.told(1));
        world.hindered_try(tries);
        if world.told(1).len() <= tries as usize {
            world.sleep();
        }
    }
    // Pauses of 50, 100, ... 1000 ms.
    assert!(tries > 5, "{tries}");
    assert_eq!(world.now, Duration::from_secs(5));
    let refused = ToCommand::Refused {
        reasons: vec![reason()],
    };
    assert_eq!(world.told(1).last(), Some(&&refused));
    let status = world.job.status(world.now);
    assert_eq!((status.aborted, status.waits_for), (1, vec![]));
    assert_eq!(status.last_failure, Some(reason()));
    assert!(world.job.deadline().is_none());
    // The next request is served.
    world.ask(2, false);
    world.up_to_commit(tries + 1);
}

#[test]
fn who_does_not_wait_is_answered_at_once_and_others_wait_on() {
    let mut world = World::running();
    world.ask_patiently(1, 5);
    world.hindered_try(1);
    // It begins a try of its own at once.
    world.ask(2, false);
    world.hindered_try(2);
    assert!(matches!(world.told(2)[..], [ToCommand::Refused { .. }]));
    let waits = |m: &&ToCommand| matches!(m, ToCommand::Hindered { .. });
    assert!(world.told(1).iter().all(waits));
    world.sleep();
    world.up_to_commit(3);
}

#[test]
fn a_suspend_by_signal_is_tried_again_and_an_end_of_the_job_ends_it() {
    let mut world = World::running();
    world.agent(0, FromAgent::SuspendWanted { signal: 10 });
    world.hindered_try(1);
    world.ask_patiently(1, 600);
    world.hindered_try(2);
    world.input(Input::Disconnected { rank: Rank(1) });
    assert!(
        matches!(world.told(1).last(), Some(ToCommand::Aborted { reason, .. }) if reason.details().contains("has died")),
        "{:?}",
        world.told(1)
    );
    assert!(world.job.status(world.now).waits_for.is_empty());
}

#[test]
fn a_suspend_by_signal_that_is_hindered_tells_the_user_why_and_job_json_keeps_it() {
    let mut world = World::running();
    world.agent(0, FromAgent::SuspendWanted { signal: 10 });
    for attempt in 1..=3 {
        world.hindered_try(attempt);
        world.sleep();
    }
    let said = |output: &&Output| {
        matches!(output, Output::Send { rank: Rank(0), message: ToAgent::Say { text } }
            if text.starts_with("a signal asks for a suspend") && text.contains("a file is open"))
    };
    assert_eq!(
        world.outputs.iter().filter(said).count(),
        1,
        "once is enough"
    );
    assert!(world.has(&Output::Record));
    let kept = |world: &World| world.job.fate().not_suspended.clone();
    assert!(kept(&world).unwrap().contains("a file is open"));
    world.up_to_commit(4);
    world.committed(Epoch(5));
    assert_eq!(kept(&world), None);
}

#[test]
fn a_suspend_by_signal_that_is_given_up_is_told_too() {
    let mut world = World::running();
    world.agent(0, FromAgent::SuspendWanted { signal: 10 });
    world.input(Input::Disconnected { rank: Rank(1) });
    world.all_say(1, Progress::Released);
    world.agent(0, FromAgent::SuspendWanted { signal: 10 });
    let said = |output: &Output| {
        matches!(output, Output::Send { message: ToAgent::Say { text }, .. }
            if text.starts_with("a signal asked for a suspend, which failed"))
    };
    assert!(world.outputs.iter().any(said), "{:?}", world.outputs);
    assert!(world.job.fate().not_suspended.is_some());
}

#[test]
fn a_suspend_by_signal_that_waits_for_a_rank_tells_what_it_waits_for() {
    let mut world = World::running();
    world.agent(0, FromAgent::SuspendWanted { signal: 10 });
    world.all_say(1, Progress::Clocks { clocks: vec![] });
    world.say(0, 1, parked(1));
    let before = world.outputs.len();
    let first = world
        .job
        .tell_what_takes_long(world.now + Duration::from_secs(1));
    assert!(first.is_empty(), "{first:?}");
    let later = world
        .job
        .tell_what_takes_long(world.now + Duration::from_secs(3));
    assert!(
        matches!(&later[..], [Output::Send { message: ToAgent::Say { text }, .. }, Output::Record]
            if text.contains("epoch 5, reach")),
        "{before} {later:?}"
    );
}
