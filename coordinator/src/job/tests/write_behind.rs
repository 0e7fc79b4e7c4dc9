//! Images that are written while the application runs on.

use super::*;
use crate::job::Copies;
use stillpoint_ids::Epoch;

fn running() -> World {
    let mut world = World::of(Settings {
        copies: Some(Copies { most: Some(7) }),
        ..World::settings(None)
    });
    world.connect_all();
    world
}

#[test]
fn ranks_run_on_when_all_are_apart_and_the_epoch_is_committed_when_all_have_written() {
    let mut world = running();
    world.ask(1, false);
    world.up_to_seal(1);
    assert_eq!(
        world.orders().last(),
        Some(&&Order::WriteApart { most: Some(7) })
    );
    world.now += Duration::from_secs(1);
    world.say(0, 1, Progress::Apart);
    // Rank 1 could not be set apart, so it has written its image by then.
    world.say(1, 1, Progress::Written(written()));
    assert!(!world.orders().contains(&&Order::RunOn));
    world.say(2, 1, Progress::Apart);
    assert_eq!(world.orders().last(), Some(&&Order::RunOn));
    world.now += Duration::from_secs(5);
    world.say(2, 1, Progress::Written(written()));
    world.say(0, 1, Progress::Written(written()));
    assert!(matches!(world.outputs.last(), Some(Output::Commit { .. })));
    world.committed(Epoch(5));
    assert_eq!(world.orders().last(), Some(&&Order::Committed));
    let [ToCommand::Committed(outcome)] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert!((1.0..2.0).contains(&outcome.stopped), "{}", outcome.stopped);
}

#[test]
fn where_no_rank_can_be_set_apart_it_is_as_if_nobody_had_asked_for_it() {
    let mut world = running();
    world.ask(1, false);
    world.up_to_seal(1);
    world.all_say(1, Progress::Written(written()));
    assert!(matches!(world.outputs.last(), Some(Output::Commit { .. })));
    assert!(!world.orders().contains(&&Order::RunOn));
    world.committed(Epoch(5));
    assert_eq!(world.orders().last(), Some(&&Order::Committed));
}

#[test]
fn a_suspend_writes_at_once_and_waits_for_an_epoch_whose_application_runs() {
    let mut world = running();
    world.ask(1, true);
    world.up_to_seal(1);
    assert_eq!(world.orders().last(), Some(&&Order::Write));
    // A suspend that comes while ranks are set apart, or run, needs a later epoch.
    for running in [false, true] {
        let mut world = self::running();
        world.ask(1, false);
        world.up_to_seal(1);
        if running {
            world.all_say(1, Progress::Apart);
        }
        world.ask(2, true);
        if !running {
            world.all_say(1, Progress::Apart);
        }
        world.all_say(1, Progress::Written(written()));
        world.committed(Epoch(5));
        assert!(matches!(world.told(1)[..], [ToCommand::Committed(_)]));
        assert!(world.told(2).is_empty());
        world.all_say(1, Progress::Released);
        world.up_to_seal(2);
        assert_eq!(world.orders().last(), Some(&&Order::Write));
    }
}

#[test]
fn a_checkpoint_that_is_asked_for_later_is_of_a_later_moment() {
    let mut world = running();
    world.ask(1, false);
    world.up_to_seal(1);
    // No rank runs on yet.
    world.ask(2, false);
    world.all_say(1, Progress::Apart);
    world.ask(3, false);
    world.all_say(1, Progress::Written(written()));
    world.committed(Epoch(5));
    for watcher in [1, 2] {
        assert!(matches!(world.told(watcher)[..], [ToCommand::Committed(_)]));
    }
    assert!(world.told(3).is_empty());
}

#[test]
fn what_fails_behind_the_application_is_told_and_the_job_runs_on() {
    let mut world = running();
    world.ask(1, false);
    world.up_to_seal(1);
    world.all_say(1, Progress::Apart);
    let reason = refusal!(NoSpace, "the disk is full");
    world.say(1, 1, Progress::WriteFailed { reason });
    assert!(matches!(world.orders().last(), Some(Order::Abort { .. })));
    assert!(matches!(world.told(1)[..], [ToCommand::Aborted { .. }]));
    world.all_say(1, Progress::Released);
    assert!(world.has(&Output::Discard { epoch: Epoch(5) }));
    // The number of the aborted epoch is not used again.
    world.ask(2, false);
    assert_eq!(world.epoch_under_way(), Epoch(6));
}
