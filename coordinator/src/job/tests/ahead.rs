//! Suspends that copy ahead.

use super::*;
use crate::job::Copies;
use stillpoint_ids::Epoch;

fn running(precopy: bool) -> World {
    let mut world = World::of(Settings {
        copies: Some(Copies { most: None }),
        incremental: Incremental::Pages,
        precopy,
        ..World::settings(None)
    });
    world.connect_all();
    world
}

impl World {
    /// An epoch that is written behind the application in that many seconds.
    fn behind(&mut self, attempt: u64, epoch: Epoch, seconds: f64) {
        self.up_to_seal(attempt);
        assert_eq!(
            self.orders().last(),
            Some(&&Order::WriteApart { most: None }),
            "attempt {attempt} stops the application"
        );
        self.all_say(attempt, Progress::Apart);
        self.now += Duration::from_secs_f64(seconds);
        self.all_say(attempt, Progress::Written(written()));
        self.committed(epoch);
        self.all_say(attempt, Progress::Released);
    }

    /// A suspend that writes at once.
    fn suspended(&mut self, attempt: u64, epoch: Epoch) {
        self.up_to_commit(attempt);
        self.committed(epoch);
        assert_eq!(self.orders().last(), Some(&&Order::Terminate));
        for rank in 0..RANKS {
            self.input(Input::Disconnected { rank: Rank(rank) });
        }
    }

    fn ask_within(&mut self, watcher: u64, seconds: u64) {
        self.input(Input::Checkpoint {
            watcher,
            suspend: true,
            timeout: Some(Duration::from_secs(seconds).into()),
            waits: false,
            asked: None,
        });
    }

    fn signal(&mut self) {
        for rank in 0..RANKS {
            self.agent(rank, FromAgent::SuspendWanted { signal: 10 });
        }
    }

    /// Whether the attempt, from its request on, stops the application.
    fn stops(&mut self, attempt: u64) -> bool {
        self.up_to_seal(attempt);
        match self.orders().last() {
            Some(Order::Write) => true,
            Some(Order::WriteApart { .. }) => false,
            other => panic!("{other:?}"),
        }
    }
}

fn ahead(world: &World, watcher: u64) -> Option<Epoch> {
    match world.told(watcher)[..] {
        [ToCommand::Committed(outcome)] if outcome.suspended => {
            outcome.ahead.map(|ahead| ahead.epoch)
        }
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_suspend_comes_after_an_epoch_behind_the_application() {
    for by_signal in [false, true] {
        let mut world = running(true);
        match by_signal {
            false => world.ask(1, true),
            true => world.signal(),
        }
        world.behind(1, Epoch(5), 3.0);
        assert!(world.told(1).is_empty());
        let heard = |output: &Output| matches!(output, Output::Tell { watcher: 1, .. });
        assert_eq!(world.outputs.iter().any(heard), !by_signal);
        world.suspended(2, Epoch(6));
        if !by_signal {
            assert_eq!(ahead(&world, 1), Some(Epoch(5)));
        }
        assert_eq!(world.job.fate().newest_epoch, Some(Epoch(6)));
    }
}

#[test]
fn no_epoch_comes_ahead_where_nothing_is_gained_by_it() {
    assert!({
        let mut world = running(false);
        world.ask(1, true);
        world.stops(1)
    });
    let without = [
        Settings {
            incremental: Incremental::Pages,
            precopy: true,
            ..World::settings(None)
        },
        Settings {
            copies: Some(Copies { most: None }),
            precopy: true,
            ..World::settings(None)
        },
    ];
    for settings in without {
        let mut world = World::of(settings);
        world.connect_all();
        world.ask(1, true);
        assert!(world.stops(1));
    }
}

#[test]
fn what_goes_wrong_ahead_leaves_the_suspend_its_turn() {
    let mut world = running(true);
    world.ask(1, true);
    world.up_to_seal(1);
    // A request that joins it is then served by the suspend.
    world.ask(2, false);
    world.all_say(1, Progress::Apart);
    let reason = refusal!(NoSpace, "the disk is full");
    world.say(1, 1, Progress::WriteFailed { reason });
    assert!(world.told(1).is_empty() && world.told(2).is_empty());
    world.all_say(1, Progress::Released);
    assert!(world.has(&Output::Discard { epoch: Epoch(5) }));
    world.suspended(2, Epoch(6));
    assert_eq!(ahead(&world, 1), None);
    assert_eq!(ahead(&world, 2), None);

    // A refusal counts if it is the suspend's own.
    let mut world = running(true);
    world.ask(1, true);
    let hindrance = Progress::CheckResult {
        refusals: vec![refusal!(LiveChild, "a child lives")],
    };
    for attempt in 1..=2 {
        world.all_say(attempt, Progress::Clocks { clocks: vec![] });
        world.all_say(attempt, parked(1));
        assert!(world.told(1).is_empty());
        world.all_say(attempt, hindrance.clone());
        world.all_say(attempt, Progress::Released);
    }
    assert!(matches!(world.told(1)[..], [ToCommand::Refused { .. }]));
}

#[test]
fn an_epoch_ahead_takes_no_more_than_half_of_the_time_there_is() {
    // The epoch ahead takes longer than its half of the time.
    let mut world = running(true);
    world.ask_within(1, 10);
    world.up_to_seal(1);
    world.all_say(1, Progress::Apart);
    let asked = Duration::ZERO;
    world.sleep();
    assert_eq!(world.now, asked + Duration::from_secs(5));
    assert!(matches!(world.orders().last(), Some(Order::Abort { .. })));
    world.all_say(1, Progress::Released);
    world.suspended(2, Epoch(6));
    assert_eq!(ahead(&world, 1), None);
}

#[test]
fn a_checkpoint_that_is_on_its_way_to_the_still_point_is_the_epoch_ahead() {
    let mut world = running(true);
    world.ask(1, false);
    world.all_say(1, Progress::Clocks { clocks: vec![] });
    world.ask(2, true);
    world.ask(3, true);
    world.all_say(1, parked(1));
    world.all_say(1, Progress::CheckResult { refusals: vec![] });
    world.all_say(1, counts(1));
    world.sleep();
    world.all_say(1, counts(2));
    world.all_say(1, Progress::Sealed);
    world.input(Input::Prepared {
        attempt: 1,
        result: Ok(()),
    });
    world.all_say(1, Progress::Apart);
    world.all_say(1, Progress::Written(written()));
    world.committed(Epoch(5));
    assert!(matches!(world.told(1)[..], [ToCommand::Committed(_)]));
    world.all_say(1, Progress::Released);
    world.suspended(2, Epoch(6));
    assert_eq!(ahead(&world, 2), Some(Epoch(5)));
    assert_eq!(ahead(&world, 3), Some(Epoch(5)));
}

#[test]
fn an_epoch_ahead_that_is_committed_is_told_of_where_the_job_ends_before_its_suspend() {
    let mut world = running(true);
    world.ask(1, true);
    world.behind(1, Epoch(5), 3.0);
    for rank in 0..RANKS {
        world.agent(rank, FromAgent::Exiting { status: 0 });
        world.input(Input::Disconnected { rank: Rank(rank) });
    }
    let [ToCommand::Aborted { ahead, .. }] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert_eq!(*ahead, Some(Epoch(5)));
}
