//! Requests for checkpoints, at various times.

use super::*;
use stillpoint_ids::Epoch;

#[test]
fn a_second_request_joins_the_first_and_may_turn_it_into_a_suspend() {
    let mut world = World::running();
    world.ask(1, false);
    world.up_to_write(1);
    world.ask(2, true);
    world.all_say(1, Progress::Written(written()));
    world.committed(Epoch(5));
    assert_eq!(world.orders().last(), Some(&&Order::Terminate));
    for rank in 0..RANKS {
        world.input(Input::Disconnected { rank: Rank(rank) });
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
    world.committed(Epoch(5));
    assert_eq!(world.told(2).len(), 0);
    world.all_say(1, Progress::Released);
    world.up_to_commit(2);
    world.committed(Epoch(6));
    assert!(matches!(world.told(2)[..], [ToCommand::Committed(o)] if o.epoch == Epoch(6)));
}

#[test]
fn a_request_before_all_ranks_are_there_waits_for_them() {
    let mut world = World::starting();
    world.ask(1, false);
    assert!(world.told(1).is_empty());
    world.connect_all();
    world.up_to_commit(1);
    world.committed(Epoch(5));
    assert!(matches!(world.told(1)[..], [ToCommand::Committed(_)]));
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
        world.committed(Epoch(4 + attempt));
        let released = world.now;
        world.all_say(attempt, Progress::Released);
        world.now = released;
    }
    assert_eq!(world.job.fate().newest_epoch, Some(Epoch(7)));
}

#[test]
fn a_signal_suspends_without_anybody_watching() {
    let mut world = World::running();
    for rank in 0..RANKS {
        world.agent(rank, FromAgent::SuspendWanted { signal: 10 });
    }
    world.up_to_commit(1);
    world.committed(Epoch(5));
    assert_eq!(world.orders().last(), Some(&&Order::Terminate));
    let text = "suspended: epoch 5 is committed".to_owned();
    let (rank, message) = (Rank(0), ToAgent::Say { text });
    assert!(world.has(&Output::Send { rank, message }));
}

#[test]
fn who_had_it_suspended_is_noted_and_told_once() {
    let mut world = World::running();
    let asked = Requester {
        by: "root".into(),
        reason: Some("maintenance of node 7".into()),
    };
    world.input(Input::Checkpoint {
        watcher: 1,
        suspend: true,
        timeout: None,
        waits: false,
        asked: Some(asked.clone()),
    });
    world.up_to_commit(1);
    world.committed(world.epoch_under_way());
    assert_eq!(world.job.fate().suspended_by, Some(asked));
    let said = world.outputs.iter().filter(|output| {
        let text = "suspended by root: maintenance of node 7".to_owned();
        let (rank, message) = (Rank(0), ToAgent::Say { text });
        **output == Output::Send { rank, message }
    });
    assert_eq!(said.count(), 1);
    let log = "got a request to suspend by root: maintenance of node 7";
    assert!(world.outputs.contains(&Output::Log(log.into())));
}
