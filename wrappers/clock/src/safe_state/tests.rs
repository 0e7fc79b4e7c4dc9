//! The machine by hand.

use super::*;
use Activity::*;

fn report(activity: Activity, seen: u64, poll: u32) -> Report {
    Report {
        activity,
        seen,
        poll,
        sent: 0,
        received: 0,
        begun: 0,
    }
}

fn say(job: &mut SafeState, rank: u32, activity: Activity, seen: u64, poll: u32) -> Vec<Action> {
    job.on(Event::Report {
        rank,
        report: report(activity, seen, poll),
    })
}

fn targeted(clocks: &[&[(u64, u64)]]) -> (SafeState, Vec<Action>) {
    let mut job = SafeState::new(clocks.len());
    let mut actions = vec![];
    for (rank, clocks) in clocks.iter().enumerate() {
        assert_eq!(actions, vec![]);
        actions = job.on(Event::Clocks {
            rank: rank as u32,
            clocks: clocks.to_vec(),
        });
    }
    (job, actions)
}

#[test]
fn a_target_is_the_maximum_over_all_ranks() {
    let (_, actions) = targeted(&[&[(1, 5)], &[(1, 4), (2, 7)], &[(2, 6)]]);
    // Every rank hears of the targets that are ahead of it, and of nothing else.
    assert_eq!(
        targets(&actions),
        vec![(0, vec![]), (1, vec![(1, 5)]), (2, vec![(2, 7)])]
    );
}

/// The targets, by rank.
fn targets(actions: &[Action]) -> Vec<(u32, Vec<(u64, u64)>)> {
    let of_rank = |action: &Action| match action {
        Action::Targets {
            rank,
            version: 1,
            targets,
        } => (*rank, targets.clone()),
        other => panic!("{other:?}"),
    };
    actions.iter().map(of_rank).collect()
}

#[test]
fn a_report_that_crossed_a_raise_does_not_count() {
    let (mut job, _) = targeted(&[&[(1, 5)], &[(1, 5)]]);
    say(&mut job, 0, Parked, 1, 0);
    let raised = job.on(Event::Raise {
        rank: 1,
        ggid: 1,
        seq: 6,
    });
    assert_eq!(
        raised,
        vec![Action::Raised {
            ranks: vec![0],
            version: 2,
            ggid: 1,
            target: 6
        }]
    );
    // Rank 1 has caused the order and got none.
    assert_eq!(say(&mut job, 1, Parked, 1, 0), vec![]);
    assert_eq!(say(&mut job, 0, Parked, 1, 0), vec![]);
    assert_eq!(say(&mut job, 0, Parked, 2, 0), vec![Action::SafeStateFound]);
}

#[test]
fn a_raise_to_a_known_target_is_not_forwarded() {
    let (mut job, _) = targeted(&[&[(1, 5)], &[(1, 6)]]);
    assert_eq!(
        job.on(Event::Raise {
            rank: 0,
            ggid: 1,
            seq: 6
        }),
        vec![]
    );
    assert_eq!(job.version(), 1);
}

#[test]
fn a_parked_rank_that_another_waits_for_may_go_on() {
    let (mut job, _) = targeted(&[&[(1, 1)], &[]]);
    say(&mut job, 0, Waiting, 1, 0);
    assert_eq!(
        say(&mut job, 1, Parked, 1, 0),
        vec![Action::Poll {
            poll: 1,
            patience: 0
        }]
    );
    say(&mut job, 0, Waiting, 1, 1);
    assert_eq!(
        say(&mut job, 1, Parked, 1, 1),
        vec![Action::Poll {
            poll: 2,
            patience: 0
        }]
    );
    say(&mut job, 0, Waiting, 1, 2);
    assert_eq!(
        say(&mut job, 1, Parked, 1, 2),
        vec![Action::Advance {
            version: 2,
            ranks: vec![1]
        }]
    );
    // The rank that was let on counts again when it has seen the order.
    assert_eq!(say(&mut job, 1, Parked, 1, 2), vec![]);
    say(&mut job, 0, Parked, 1, 0);
    assert_eq!(say(&mut job, 1, Parked, 2, 0), vec![Action::SafeStateFound]);
}

#[test]
fn a_job_that_moves_is_not_advanced() {
    let (mut job, _) = targeted(&[&[(1, 1)], &[(1, 0)]]);
    say(&mut job, 0, Waiting, 1, 0);
    say(&mut job, 1, Parked, 1, 0);
    for poll in 1..20 {
        let mut moving = report(Waiting, 1, poll);
        moving.received = u64::from(poll);
        job.on(Event::Report {
            rank: 0,
            report: moving,
        });
        assert_eq!(
            say(&mut job, 1, Parked, 1, poll),
            vec![Action::Poll {
                poll: poll + 1,
                patience: 0
            }]
        );
    }
}

#[test]
fn a_rank_that_runs_is_asked_with_patience() {
    let (mut job, _) = targeted(&[&[(1, 1)], &[(1, 0)]]);
    let patient = |poll, patience| vec![Action::Poll { poll, patience }];
    say(&mut job, 0, Running, 1, 0);
    assert_eq!(say(&mut job, 1, Parked, 1, 0), patient(1, 1));
    say(&mut job, 0, Running, 1, 1);
    assert_eq!(say(&mut job, 1, Parked, 1, 1), patient(2, 1));
    // It may be in a send whose receiver waits for rank 1.
    say(&mut job, 0, Running, 1, 2);
    let ranks = vec![1];
    assert_eq!(
        say(&mut job, 1, Parked, 1, 2),
        vec![Action::Advance { ranks, version: 2 }]
    );
    // It may as well compute: the next time takes longer.
    assert_eq!(say(&mut job, 1, Parked, 2, 0), patient(3, 2));
    // It blocks: no patience is needed any more.
    assert_eq!(say(&mut job, 0, Waiting, 1, 0), patient(4, 0));
}

#[test]
fn a_rank_that_gets_on_is_left_alone() {
    let (mut job, _) = targeted(&[&[(1, 1)], &[(1, 0)]]);
    say(&mut job, 0, Running, 1, 0);
    say(&mut job, 1, Parked, 1, 0);
    for poll in 1..20 {
        let mut moving = report(Running, 1, poll);
        moving.begun = u64::from(poll);
        job.on(Event::Report {
            rank: 0,
            report: moving,
        });
        assert_eq!(
            say(&mut job, 1, Parked, 1, poll),
            vec![Action::Poll {
                poll: poll + 1,
                patience: 1
            }]
        );
    }
}

#[test]
fn a_report_of_its_own_accord_does_not_undo_an_answer() {
    let (mut job, _) = targeted(&[&[(1, 1)], &[]]);
    say(&mut job, 0, Waiting, 1, 0);
    say(&mut job, 1, Parked, 1, 0);
    say(&mut job, 0, Waiting, 1, 1);
    say(&mut job, 0, InCollective, 1, 0);
    assert_eq!(
        say(&mut job, 1, Parked, 1, 1),
        vec![Action::Poll {
            poll: 2,
            patience: 1
        }]
    );
}

#[test]
fn collective_operations_are_given_time_unless_somebody_waits_for_a_message() {
    let asks = |patience| vec![Action::Poll { poll: 1, patience }];
    let (mut job, _) = targeted(&[&[(1, 1)], &[(1, 0)], &[]]);
    say(&mut job, 0, InCollective, 1, 0);
    say(&mut job, 1, InCollective, 1, 0);
    assert_eq!(say(&mut job, 2, Parked, 1, 0), asks(1));
    let (mut job, _) = targeted(&[&[(1, 1)], &[(1, 0)], &[]]);
    say(&mut job, 0, InCollective, 1, 0);
    say(&mut job, 1, Waiting, 1, 0);
    assert_eq!(say(&mut job, 2, Parked, 1, 0), asks(0));
}

#[test]
fn who_is_missing_can_be_told() {
    let mut job: SafeState = SafeState::new(3);
    job.on(Event::Clocks {
        rank: 1,
        clocks: vec![],
    });
    assert_eq!(job.clocks_missing().collect::<Vec<_>>(), vec![0, 2]);
    let (mut job, _) = targeted(&[&[], &[], &[]]);
    say(&mut job, 0, Parked, 1, 0);
    say(&mut job, 1, Waiting, 1, 0);
    assert_eq!(
        job.not_parked().collect::<Vec<_>>(),
        vec![(1, Some(Waiting)), (2, None)]
    );
}

#[test]
fn unknown_ranks_and_repeated_clocks_change_nothing() {
    let mut job: SafeState = SafeState::new(2);
    job.on(Event::Clocks {
        rank: 0,
        clocks: vec![(1, 1)],
    });
    job.on(Event::Clocks {
        rank: 0,
        clocks: vec![(1, 9)],
    });
    job.on(Event::Clocks {
        rank: 5,
        clocks: vec![(1, 9)],
    });
    let actions = job.on(Event::Clocks {
        rank: 1,
        clocks: vec![(1, 0)],
    });
    assert_eq!(targets(&actions), vec![(0, vec![]), (1, vec![(1, 1)])]);
}

#[test]
fn a_rank_that_comes_to_know_a_group_comes_after_its_members() {
    let (mut job, _) = targeted(&[&[(1, 3), (7, 2)], &[(1, 3)]]);
    say(&mut job, 1, Parked, 1, 0);
    let joined = job.on(Event::Joined { rank: 1, ggid: 7 });
    assert_eq!(
        joined,
        vec![Action::Raised {
            ranks: vec![1],
            version: 2,
            ggid: 7,
            target: 2
        }]
    );
    // A report from before the order does not make a still point.
    assert_eq!(say(&mut job, 1, Parked, 1, 0), vec![]);
    assert_eq!(say(&mut job, 0, Parked, 1, 0), vec![]);
    assert_eq!(say(&mut job, 1, Parked, 2, 0), vec![Action::SafeStateFound]);
    // From now on it hears of the group's raises.
    let (mut job, _) = targeted(&[&[(7, 2)], &[]]);
    job.on(Event::Joined { rank: 1, ggid: 7 });
    let raised = job.on(Event::Raise {
        rank: 0,
        ggid: 7,
        seq: 3,
    });
    assert!(matches!(&raised[..], [Action::Raised { ranks, .. }] if *ranks == [1]));
}

#[test]
fn a_rank_that_joins_after_a_raise_comes_after_it() {
    let (mut job, _) = targeted(&[&[(7, 2)], &[(7, 2)], &[]]);
    let raise = |rank, seq| Event::Raise { rank, ggid: 7, seq };
    let raised = |ranks: &[u32], version, target| {
        vec![Action::Raised {
            ranks: ranks.to_vec(),
            version,
            ggid: 7,
            target,
        }]
    };
    assert_eq!(job.on(raise(0, 5)), raised(&[1], 2, 5));
    assert_eq!(
        job.on(Event::Joined { rank: 2, ggid: 7 }),
        raised(&[2], 3, 5)
    );
    // If no other rank has begun anything on a group, there is nothing to say; after a first operation there is.
    assert_eq!(job.on(Event::Joined { rank: 2, ggid: 8 }), vec![]);
    let (mut first, _) = targeted(&[&[(7, 1)], &[]]);
    assert_eq!(
        first.on(Event::Joined { rank: 1, ggid: 7 }),
        raised(&[1], 2, 1)
    );
    // A repeated or smaller raise gives no order.
    assert_eq!(job.on(raise(1, 5)), vec![]);
    assert_eq!(job.on(raise(1, 4)), vec![]);
    assert_eq!(job.on(raise(1, 6)), raised(&[0, 2], 4, 6));
}

#[test]
fn what_is_said_before_the_targets_becomes_part_of_them() {
    let mut job: SafeState = SafeState::new(2);
    let (rank, ggid) = (0, 7);
    assert_eq!(say(&mut job, 0, Parked, 0, 0), vec![]);
    assert_eq!(say(&mut job, 1, Parked, 0, 0), vec![]);
    job.on(Event::Clocks {
        rank,
        clocks: vec![],
    });
    assert_eq!(job.on(Event::Raise { rank, ggid, seq: 3 }), vec![]);
    assert_eq!(job.on(Event::Joined { rank, ggid }), vec![]);
    assert_eq!((job.version(), job.found()), (0, false));
    let clocks = vec![(7, 1)];
    let actions = job.on(Event::Clocks { rank: 1, clocks });
    assert_eq!(
        targets(&actions),
        vec![(0, vec![(7, 3)]), (1, vec![(7, 3)])]
    );
    // The reports from before do not count.
    assert_eq!((job.version(), job.found()), (1, false));
    assert_eq!(job.clocks_missing().count(), 0);
    assert_eq!(say(&mut job, 0, Parked, 1, 0), vec![]);
    assert_eq!(say(&mut job, 1, Parked, 1, 0), vec![Action::SafeStateFound]);
}

#[test]
fn what_comes_after_the_still_point_is_ignored() {
    let (mut job, _) = targeted(&[&[(7, 2)], &[(7, 2)]]);
    say(&mut job, 0, Parked, 1, 0);
    assert!(!job.found());
    assert_eq!(say(&mut job, 1, Parked, 1, 0), vec![Action::SafeStateFound]);
    assert!(job.found());
    assert_eq!(say(&mut job, 1, Parked, 1, 0), vec![]);
    let (rank, ggid) = (0, 7);
    assert_eq!(job.on(Event::Raise { rank, ggid, seq: 3 }), vec![]);
    assert_eq!(job.version(), 1);
}

#[test]
fn nobody_is_asked_while_nobody_is_parked_or_somebody_is_silent() {
    let (mut job, _) = targeted(&[&[(1, 1)], &[(1, 0)], &[]]);
    say(&mut job, 0, Running, 1, 0);
    assert_eq!(say(&mut job, 1, Parked, 1, 0), vec![]);
    assert_eq!(say(&mut job, 1, Waiting, 1, 0), vec![]);
    assert_eq!(say(&mut job, 2, Waiting, 1, 0), vec![]);
    let poll = Action::Poll {
        poll: 1,
        patience: 1,
    };
    assert_eq!(say(&mut job, 1, Parked, 1, 0), vec![poll]);
}

#[test]
fn an_answer_that_is_given_twice_is_one() {
    let (mut job, _) = targeted(&[&[(1, 1)], &[], &[]]);
    say(&mut job, 0, Waiting, 1, 0);
    say(&mut job, 1, Waiting, 1, 0);
    say(&mut job, 2, Parked, 1, 0);
    // Also where something was said in between, or before.
    assert_eq!(say(&mut job, 1, Waiting, 1, 0), vec![]);
    assert_eq!(say(&mut job, 0, Waiting, 1, 1), vec![]);
    assert_eq!(say(&mut job, 0, InCollective, 1, 0), vec![]);
    assert_eq!(say(&mut job, 0, Waiting, 1, 1), vec![]);
    assert_eq!(say(&mut job, 2, Parked, 1, 1), vec![]);
    assert_eq!(say(&mut job, 2, Parked, 1, 1), vec![]);
    let poll = Action::Poll {
        poll: 2,
        patience: 0,
    };
    assert_eq!(say(&mut job, 1, Waiting, 1, 1), vec![poll]);
}

#[test]
fn a_rank_that_runs_again_is_not_judged_by_a_short_pause() {
    let (mut job, _) = targeted(&[&[(1, 1)], &[]]);
    let asks = |poll, patience| vec![Action::Poll { poll, patience }];
    say(&mut job, 0, Running, 1, 0);
    assert_eq!(say(&mut job, 1, Parked, 1, 0), asks(1, 1));
    say(&mut job, 0, Running, 1, 1);
    assert_eq!(say(&mut job, 1, Parked, 1, 1), asks(2, 1));
    // It waits for a moment, and a short pause is asked for; after that it runs as it did before.
    assert_eq!(say(&mut job, 0, Waiting, 1, 0), asks(3, 0));
    say(&mut job, 0, Running, 1, 3);
    assert_eq!(say(&mut job, 1, Parked, 1, 3), asks(4, 1));
    say(&mut job, 0, Running, 1, 4);
    let let_on = Action::Advance {
        ranks: vec![1],
        version: 2,
    };
    assert_eq!(say(&mut job, 1, Parked, 1, 4), vec![let_on]);
    assert_eq!(job.advances(), 1);
}

#[test]
fn after_an_order_two_polls_have_to_agree_anew() {
    let (mut job, _) = targeted(&[&[(1, 1)], &[]]);
    let asks = |poll| vec![Action::Poll { poll, patience: 0 }];
    let let_on = |version| {
        vec![Action::Advance {
            ranks: vec![1],
            version,
        }]
    };
    say(&mut job, 0, Waiting, 1, 0);
    assert_eq!(say(&mut job, 1, Parked, 1, 0), asks(1));
    for (order, poll) in [(1, 1), (2, 3), (3, 5)] {
        say(&mut job, 0, Waiting, 1, poll);
        assert_eq!(say(&mut job, 1, Parked, order, poll), asks(poll + 1));
        say(&mut job, 0, Waiting, 1, poll + 1);
        assert_eq!(say(&mut job, 1, Parked, order, poll + 1), let_on(order + 1));
        // It says, at a moment of its own, that it stands where it stood.
        assert_eq!(say(&mut job, 1, Parked, order + 1, 0), asks(poll + 2));
    }
    assert_eq!((job.advances(), job.version()), (3, 4));
}

#[test]
fn whatever_a_rank_does_differently_is_a_move() {
    for moved in 0..4 {
        let (mut job, _) = targeted(&[&[(1, 1)], &[]]);
        let asks = |poll| vec![Action::Poll { poll, patience: 0 }];
        say(&mut job, 0, Waiting, 1, 0);
        say(&mut job, 1, Parked, 1, 0);
        say(&mut job, 0, Waiting, 1, 1);
        assert_eq!(say(&mut job, 1, Parked, 1, 1), asks(2));
        let mut other = report(Waiting, 1, 2);
        match moved {
            0 => other.sent = 1,
            1 => other.received = 1,
            2 => other.begun = 1,
            _ => {}
        }
        let (rank, report) = (0, other);
        job.on(Event::Report { rank, report });
        let then = say(&mut job, 1, Parked, 1, 2);
        assert_eq!(then == asks(3), moved < 3, "{moved} {then:?}");
    }
}
