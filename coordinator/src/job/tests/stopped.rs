//! Ranks whose processes are stopped.

use super::*;
use stillpoint_ids::Epoch;

impl World {
    fn is_stopped(&mut self, rank: u32, tracer: Option<u32>) {
        let rank = Rank(rank);
        let ranks = vec![StoppedRank { rank, tracer }];
        self.input(Input::Stopped { ranks });
    }

    fn ask_and_wait(&mut self, watcher: u64) {
        self.input(Input::Checkpoint {
            watcher,
            suspend: false,
            timeout: None,
            waits: true,
            asked: None,
        });
    }
}

#[test]
fn a_stopped_rank_is_named_and_waited_for_as_a_hindrance_that_passes() {
    let mut world = World::running();
    world.ask_and_wait(1);
    assert!(world.job.awaited(world.now).is_empty(), "not so soon");
    world.now += Duration::from_secs(1);
    assert_eq!(world.job.awaited(world.now), [0, 1, 2].map(Rank));
    for rank in [0, 2] {
        world.say(rank, 1, Progress::Clocks { clocks: vec![] });
    }
    assert_eq!(world.job.awaited(world.now), [1].map(Rank));
    // It has answered meanwhile.
    world.is_stopped(0, None);
    assert!(world.told(1).is_empty());
    world.is_stopped(1, None);
    let [ToCommand::Hindered { reasons }] = world.told(1)[..] else {
        panic!("{:?}", world.told(1));
    };
    assert_eq!(
        reasons[0],
        refusal!(
            StoppedRank,
            "rank 1 (process 11 on h) is stopped by a signal, such as SIGSTOP: let it run on with kill -CONT 11"
        )
    );
    // The others run on.
    assert!(matches!(world.orders().last(), Some(Order::Abort { .. })));
    assert!(world.job.awaited(world.now).is_empty());
    world.all_say(1, Progress::Released);
    world.sleep();
    world.up_to_commit(2);
}

#[test]
fn one_that_stays_stopped_refuses_within_ten_seconds() {
    let mut world = World::running();
    world.ask_and_wait(1);
    world.up_to_write(1);
    world.now += Duration::from_secs(2);
    world.is_stopped(2, Some(77));
    while world.now < Duration::from_secs(10) {
        world.sleep();
    }
    let Some(ToCommand::Refused { reasons }) = world.told(1).last() else {
        panic!("{:?}", world.told(1));
    };
    let (code, text) = (reasons[0].code(), reasons[0].details().to_owned());
    assert_eq!(code, Code::StoppedRank);
    assert!(text.contains("a debugger, process 77"), "{text}");
}

#[test]
fn the_next_request_does_not_wait_until_one_has_run_on() {
    let mut world = World::running();
    world.ask(1, false);
    world.is_stopped(1, None);
    assert!(matches!(world.told(1)[..], [ToCommand::Refused { .. }]));
    world.ask(2, false);
    for rank in [0, 2] {
        world.say(rank, 1, Progress::Released);
    }
    assert!(world.told(2).is_empty());
    world.now += Duration::from_secs(1);
    assert_eq!(world.job.awaited(world.now), [1].map(Rank));
    world.is_stopped(1, None);
    // The second attempt has begun. The answer to the order of the first one comes late.
    world.say(1, 1, Progress::Released);
    world.up_to_commit(2);
}

#[test]
fn nothing_is_given_up_for_one_after_the_commit() {
    let mut world = World::running();
    world.ask(1, false);
    world.up_to_commit(1);
    world.now += Duration::from_secs(60);
    assert!(world.job.awaited(world.now).is_empty());
    world.is_stopped(1, None);
    world.committed(Epoch(5));
    assert!(matches!(world.told(1)[..], [ToCommand::Committed(_)]));
}
