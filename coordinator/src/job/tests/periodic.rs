//! Automatic intervals, from what epochs have cost.

use super::*;
use stillpoint_ids::Epoch;

const MTTF: u64 = 3600;

fn automatic() -> World {
    let mut world = World::of(Settings {
        mttf: Some(Duration::from_secs(MTTF).into()),
        ..World::settings(None)
    });
    world.now = Duration::from_secs(2);
    world.connect_all();
    world
}

/// An epoch whose stop takes so long, from the request to its commit.
fn epoch(world: &mut World, attempt: u64, stopped: Duration) {
    world.sleep();
    world.up_to_write(attempt);
    world.now += stopped;
    world.all_say(attempt, Progress::Written(written()));
    world.committed(Epoch(4 + attempt));
    world.all_say(attempt, Progress::Released);
}

#[test]
fn a_launch_begins_with_the_costs_that_the_one_before_it_has_measured() {
    let mut world = automatic();
    world.sleep();
    world.up_to_write(1);
    world.now += Duration::from_secs(8);
    world.all_say(1, Progress::Written(written()));
    world.committed(Epoch(5));
    let before = world.job.fate().interval;
    let mut next = World::of(Settings {
        mttf: Some(Duration::from_secs(MTTF).into()),
        costs: before,
        ..World::settings(None)
    });
    next.connect_all();
    let chosen = next.job.fate().interval.unwrap();
    assert_eq!(chosen.every, before.unwrap().every);
    let due = next.job.deadline().unwrap().as_millis() as u64;
    assert!(due.abs_diff(chosen.every) <= 1, "{due} {chosen:?}");
}

#[test]
fn the_interval_follows_from_what_each_epoch_costs() {
    let mut world = automatic();
    let chosen = world.job.fate().interval.unwrap();
    assert_eq!((chosen.every, chosen.lost_per_million), (72_000, None));
    assert_eq!((chosen.restart, chosen.mttf), (2_000, 1000 * MTTF));
    let connected = world.now;
    world.sleep();
    assert_eq!(world.now, connected + Duration::from_secs(72));
    world.up_to_write(1);
    world.now += Duration::from_secs(8);
    world.all_say(1, Progress::Written(written()));
    world.committed(Epoch(5));
    world.all_say(1, Progress::Released);
    let released = world.now;
    let chosen = world.job.fate().interval.unwrap();
    // Young: the root of 2 * 8 s * 1 h is 240 s.
    assert!((225_000..240_000).contains(&chosen.every), "{chosen:?}");
    assert!((8_000..8_200).contains(&chosen.stopped), "{chosen:?}");
    let lost = chosen.lost_per_million.unwrap();
    assert!((60_000..80_000).contains(&lost), "{chosen:?}");
    world.sleep();
    let waited = (world.now - released).as_millis() as u64;
    assert!(waited.abs_diff(chosen.every) <= 1, "{waited} {chosen:?}");
    // A cheaper one comes sooner.
    world.up_to_write(2);
    world.all_say(2, Progress::Written(written()));
    world.committed(Epoch(6));
    world.all_say(2, Progress::Released);
    assert!(world.job.fate().interval.unwrap().every < chosen.every);
    epoch(&mut world, 3, Duration::from_millis(10));
    assert_eq!(world.job.fate().newest_epoch, Some(Epoch(7)));
}

#[test]
fn after_an_attempt_without_an_epoch_the_next_one_is_a_whole_interval_away() {
    let mut world = automatic();
    let every = Duration::from_millis(world.job.fate().interval.unwrap().every);
    for attempt in 1..4 {
        world.sleep();
        assert_eq!(world.job.attempts, attempt);
        world.up_to_write(attempt);
        world.now += Duration::from_secs(5);
        let reason = refusal!(NoSpace, "no space left");
        world.say(1, attempt, Progress::WriteFailed { reason });
        world.all_say(attempt, Progress::Released);
        assert_eq!(world.job.deadline(), Some(world.now + every));
    }
}

#[test]
fn an_interval_begins_anew_when_a_checkpoint_is_hindered() {
    let mut world = automatic();
    let every = Duration::from_millis(world.job.fate().interval.unwrap().every);
    world.sleep();
    world.all_say(1, Progress::Clocks { clocks: vec![] });
    world.all_say(1, parked(1));
    world.now += Duration::from_secs(5);
    let refusals = vec![refusal!(LostFile, "a file is open")];
    world.all_say(1, Progress::CheckResult { refusals });
    world.all_say(1, Progress::Released);
    assert_eq!(world.job.next_periodic(), Some(world.now + every));
}
