//! Operations that are granted to late ranks.

use super::*;

const A: Ggid = 7;
const B: Ggid = 8;

fn behind(ggid: Ggid, begun: u64, target: u64, rank: i32) -> Behind {
    Behind {
        ggid,
        begun,
        target,
        rank,
        size: 3,
    }
}

fn operation(ggid: Ggid, number: u64, kind: Kind, root: i32, teller: i32) -> Operation {
    Operation {
        ggid,
        number,
        kind: kind as u32,
        root,
        teller,
        count: 10 + teller,
        size: 4,
        reserved: 0,
    }
}

fn asked(told: [(Vec<Behind>, Vec<Operation>); 3]) -> Option<Vec<(u32, Vec<Operation>)>> {
    let mut question = Question::new(3);
    for (rank, (behind, operations)) in (0..).zip(told) {
        assert_eq!(question.grant(), None);
        let all = question.tell(rank, MemberAnswer { behind, operations });
        assert_eq!(all, rank == 2);
    }
    question.grant()
}

/// Rank 2 is late on `A` for one operation of that kind, which the other two remember with as many bytes.
fn late_for(kind: Kind, root: i32) -> Option<Vec<(u32, Vec<Operation>)>> {
    let alike = |teller| Operation {
        count: 10,
        ..operation(A, 5, kind, root, teller)
    };
    asked([
        (vec![], vec![alike(0)]),
        (vec![], vec![alike(1)]),
        (vec![behind(A, 4, 5, 2)], vec![]),
    ])
}

#[test]
fn who_gives_nothing_can_be_late() {
    for (kind, root) in [
        (Kind::Bcast, 0),
        (Kind::Scatter, 1),
        (Kind::Gather, 2),
        (Kind::Gatherv, 2),
    ] {
        let granted = late_for(kind, root).expect("granted");
        assert_eq!(granted.len(), 1);
        assert_eq!(granted[0].0, 2);
        assert!(granted[0].1.iter().all(|it| it.kind == kind as u32));
    }
}

#[test]
fn who_gives_something_is_waited_for() {
    for (kind, root) in [
        (Kind::Bcast, 2),
        (Kind::Scatter, 2),
        (Kind::Gather, 0),
        (Kind::Gatherv, 1),
        (Kind::Unknown, 0),
    ] {
        assert_eq!(late_for(kind, root), None, "{kind:?}");
    }
}

#[test]
fn what_nobody_remembers_is_waited_for() {
    let known = operation(A, 6, Kind::Bcast, 0, 0);
    let late = vec![behind(A, 4, 6, 2)];
    assert_eq!(
        asked([(vec![], vec![known]), (vec![], vec![]), (late, vec![])]),
        None
    );
}

#[test]
fn a_scatter_s_size_is_the_root_s_and_a_gatherv_s_everybody_s() {
    let told = |kind, root| {
        asked([
            (vec![], vec![operation(A, 1, kind, root, 0)]),
            (vec![], vec![operation(A, 1, kind, root, 1)]),
            (vec![behind(A, 0, 1, 2)], vec![]),
        ])
    };
    let scattered = told(Kind::Scatter, 1).expect("granted");
    assert_eq!(scattered[0].1, [operation(A, 1, Kind::Scatter, 1, 1)]);
    let gathered = told(Kind::Gatherv, 2).expect("granted");
    assert_eq!(gathered[0].1.len(), 2);
    // All members must say the same of a broadcast.
    assert_eq!(told(Kind::Bcast, 0), None);
    // One member's part of a gather is not known.
    let one = asked([
        (vec![], vec![operation(A, 1, Kind::Gatherv, 2, 0)]),
        (vec![], vec![]),
        (vec![behind(A, 0, 1, 2)], vec![]),
    ]);
    assert_eq!(one, None);
}

#[test]
fn members_that_disagree_are_waited_for() {
    let one = operation(A, 1, Kind::Scatter, 0, 0);
    let other = operation(A, 1, Kind::Scatter, 1, 1);
    let late = vec![behind(A, 0, 1, 2)];
    assert_eq!(
        asked([(vec![], vec![one]), (vec![], vec![other]), (late, vec![])]),
        None
    );
}

#[test]
fn several_are_late_and_all_take_the_same_order() {
    let known = |ggid, teller| Operation {
        count: 10,
        ..operation(ggid, 1, Kind::Bcast, 0, teller)
    };
    let on = |ggid, rank| vec![behind(ggid, 0, 1, rank)];
    let told = vec![known(A, 0), known(B, 0)];
    let granted = asked([
        (vec![], told.clone()),
        (on(A, 1), vec![]),
        (on(A, 2), vec![]),
    ]);
    let granted = granted.expect("granted");
    assert_eq!(granted, [(1, vec![known(A, 0)]), (2, vec![known(A, 0)])]);
    let both = |rank| [on(B, rank), on(A, rank)].concat();
    let all = asked([(vec![], told.clone()), (both(1), vec![]), (both(2), vec![])]);
    assert_eq!(all, Some(vec![(1, told.clone()), (2, told.clone())]));
    // Each is late on a clock on which the other one has begun.
    let begun = |ggid, rank| vec![known(ggid, rank)];
    let each = asked([
        (vec![], told),
        (on(A, 1), begun(B, 1)),
        (on(B, 2), begun(A, 2)),
    ]);
    assert_eq!(
        each,
        Some(vec![(1, vec![known(A, 0)]), (2, vec![known(B, 0)])])
    );
}

#[test]
fn a_member_that_says_nothing_of_it_is_waited_for() {
    let known = operation(A, 1, Kind::Bcast, 0, 0);
    let late = |rank, target| vec![behind(A, 0, target, rank)];
    let one = asked([
        (vec![], vec![known]),
        (vec![], vec![]),
        (late(2, 1), vec![]),
    ]);
    assert_eq!(one, None);
    // A member that is late for another operation does not come either.
    let second = Operation { number: 2, ..known };
    let told = vec![known, second];
    let other = asked([(vec![], told), (late(1, 1), vec![]), (late(2, 2), vec![])]);
    assert_eq!(other, Some(vec![(1, vec![known]), (2, vec![known])]));
}

#[test]
fn as_many_are_carried_out_as_can_be() {
    let known = |number, kind| Operation {
        count: 10,
        ..operation(A, number, kind, 0, 0)
    };
    // The third one is a gather to another rank.
    let all = vec![
        known(1, Kind::Bcast),
        known(2, Kind::Bcast),
        known(3, Kind::Gather),
    ];
    let begun = operation(A, 1, Kind::Unknown, 0, 1);
    let late = |begun, rank| vec![behind(A, begun, 3, rank)];
    let granted = asked([
        (vec![], all.clone()),
        (late(1, 1), vec![begun]),
        (late(0, 2), vec![]),
    ]);
    assert_eq!(
        granted,
        Some(vec![(1, vec![all[1]]), (2, all[..2].to_vec())])
    );
    // A member that does not stand has come as far as the first.
    let granted = asked([
        (vec![], all.clone()),
        (late(1, -1), vec![begun]),
        (late(0, 2), vec![]),
    ]);
    assert_eq!(granted, Some(vec![(2, vec![all[0]])]));
}

#[test]
fn a_root_gives_nothing_to_a_broadcast_of_nothing() {
    let told = |count| {
        let known = |teller| Operation {
            count,
            ..operation(A, 1, Kind::Bcast, 2, teller)
        };
        let late = vec![behind(A, 0, 1, 2)];
        asked([
            (vec![], vec![known(0)]),
            (vec![], vec![known(1)]),
            (late, vec![]),
        ])
    };
    assert!(told(0).is_some());
    assert!(told(1).is_none());
}

#[test]
fn who_has_begun_and_forgotten_comes_all_the_same() {
    for (kind, granted) in [
        (Kind::Bcast, true),
        (Kind::Scatter, true),
        (Kind::Gather, true),
        (Kind::Gatherv, false),
    ] {
        let root = if (kind as u32) < 3 { 0 } else { 2 };
        let forgotten = operation(A, 1, Kind::Unknown, 0, 1);
        let known = vec![operation(A, 1, kind, root, 0)];
        let late = vec![behind(A, 0, 1, 2)];
        let told = [(vec![], known), (vec![], vec![forgotten]), (late, vec![])];
        assert_eq!(asked(told).is_some(), granted, "{kind:?}");
    }
    let forgotten = vec![operation(A, 1, Kind::Unknown, 0, 0)];
    let late = |rank| vec![behind(A, 0, 1, rank)];
    assert_eq!(
        asked([(vec![], forgotten), (late(1), vec![]), (late(2), vec![])]),
        None
    );
}

#[test]
fn who_does_not_stand_is_waited_for() {
    let known = operation(A, 1, Kind::Bcast, 0, 0);
    for ranks in [[1, 2], [-1, 2], [1, -1]] {
        let [one, other] = ranks.map(|rank| vec![behind(A, 0, 1, rank)]);
        let granted = asked([(vec![], vec![known]), (one, vec![]), (other, vec![])]);
        assert_eq!(granted.is_some(), ranks == [1, 2]);
    }
}

#[test]
fn one_that_has_to_be_waited_for_is_waited_for_by_all() {
    // Rank 1 is to be the gather's root; rank 2 gives its part.
    let known = operation(A, 1, Kind::Gather, 1, 0);
    let late = |rank| vec![behind(A, 0, 1, rank)];
    assert_eq!(
        asked([(vec![], vec![known]), (late(1), vec![]), (late(2), vec![])]),
        None
    );
}

#[test]
fn nobody_is_late() {
    assert_eq!(
        asked([(vec![], vec![]), (vec![], vec![]), (vec![], vec![])]),
        None
    );
}
