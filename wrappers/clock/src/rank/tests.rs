//! A rank's decisions, as whole tables.

use super::*;
use crate::steps::Every;

/// Every way that a rank can stand: whether all its targets are reached, and the advances that it has.
fn stands() -> impl Iterator<Item = (bool, u32)> {
    [false, true]
        .into_iter()
        .flat_map(|reached| [0, 1, 2].map(|advances| (reached, advances)))
}

#[test]
fn the_flag_is_read_as_it_is_written() {
    for pending in [Pending::No, Pending::Asked, Pending::Targeted] {
        assert_eq!(Pending::from_word(pending as u32), pending);
    }
    assert_eq!([3, u32::MAX].map(Pending::from_word), [Pending::Asked; 2]);
}

#[test]
fn all_is_reached_where_nothing_is_ahead() {
    let reached = |cells: &[(u64, u64)]| all_reached::<Every>(cells.iter().copied());
    assert!(reached(&[]) && reached(&[(5, 5)]) && reached(&[(5, 5), (6, 5)]));
    assert!(!reached(&[(4, 5)]) && !reached(&[(5, 5), (4, 5)]) && !reached(&[(4, 5), (5, 5)]));
}

/// Every decision, against a table of the right ones.
#[test]
fn every_rank_that_stands_anywhere_does_what_it_has_to() {
    use Pending::*;
    let go = |raise, uses_advance| Begin::Go {
        raise,
        uses_advance,
    };
    let back = |uses_advance| Finish::Return { uses_advance };
    for (reached, advances) in stands() {
        // Parks there, unless it is let on.
        let parks = (reached, advances) == (true, 0);
        for (seq, goes_past) in [(3, false), (4, false), (5, true), (6, true)] {
            let begin = |pending| commit_begin::<Every>(pending, reached, advances, seq, 5);
            assert_eq!(begin(No), go(false, false));
            assert_eq!(begin(Asked), Begin::AwaitTargets);
            let begins = match parks {
                true => Begin::Park,
                false => go(goes_past, reached),
            };
            assert_eq!(begin(Targeted), begins, "{reached} {advances} {seq}");
        }
        let finish = |pending| commit_finish(pending, reached, advances);
        assert_eq!([No, Asked].map(finish), [back(false); 2]);
        let finishes = match parks {
            true => Finish::Park,
            false => back(reached),
        };
        assert_eq!(finish(Targeted), finishes, "{reached} {advances}");
        let stays = |pending| may_park(pending, reached, advances);
        assert_eq!([No, Asked, Targeted].map(stays), [false, false, parks]);
    }
    for (begun, binds_others) in [(4, false), (5, false), (6, true)] {
        let raises = match binds_others {
            true => Tell::Raise,
            false => Tell::Return,
        };
        for tells in [tell::<Every>, returned::<Every>] {
            assert_eq!(
                [No, Asked, Targeted].map(|pending| tells(pending, begun, 5)),
                [Tell::Return, Tell::AwaitTargets, raises]
            );
        }
        assert_eq!(binds(begun, 5), !binds_others);
    }
}

#[test]
fn a_rank_is_what_it_was_in_both_looks_and_parked_only_with_all_reached() {
    use Activity::*;
    let all = [Running, InCollective, Waiting, Parked];
    for (before, after) in all.into_iter().flat_map(|b| all.map(|a| (b, a))) {
        for (reached, advances) in stands() {
            let seen = match (before == after, before) {
                (true, Parked) if !(reached && advances == 0) => Running,
                (true, same) => same,
                (false, _) => Running,
            };
            let found = observe::<Every>(before, reached, advances, after);
            assert_eq!(found, seen, "{before:?} {reached} {advances} {after:?}");
        }
    }
}

#[test]
fn nothing_is_decided_without_a_checkpoint() {
    let go = Begin::Go {
        raise: false,
        uses_advance: false,
    };
    // Targets left over from an earlier checkpoint mean nothing.
    assert_eq!(commit_begin::<Every>(Pending::No, true, 0, 9, 3), go);
    assert_eq!(
        commit_finish(Pending::No, true, 0),
        Finish::Return {
            uses_advance: false
        }
    );
}

#[test]
fn a_rank_does_not_begin_before_it_knows_its_targets() {
    assert_eq!(
        commit_begin::<Every>(Pending::Asked, false, 1, 0, 0),
        Begin::AwaitTargets
    );
}

#[test]
fn a_rank_parks_before_the_increment_when_all_is_reached() {
    assert_eq!(
        commit_begin::<Every>(Pending::Targeted, true, 0, 5, 5),
        Begin::Park
    );
    assert_eq!(commit_finish(Pending::Targeted, true, 0), Finish::Park);
}

#[test]
fn going_past_a_target_raises_it() {
    // Rank 3 of the paper's Figure 1b: target 7 of {2,3} ahead, a new operation on {3,4,5}.
    assert_eq!(
        commit_begin::<Every>(Pending::Targeted, false, 0, 2, 2),
        Begin::Go {
            raise: true,
            uses_advance: false
        }
    );
    assert_eq!(
        commit_begin::<Every>(Pending::Targeted, false, 0, 6, 7),
        Begin::Go {
            raise: false,
            uses_advance: false
        }
    );
}

#[test]
fn an_advance_passes_one_park_point_and_raises() {
    assert_eq!(
        commit_begin::<Every>(Pending::Targeted, true, 1, 5, 5),
        Begin::Go {
            raise: true,
            uses_advance: true
        }
    );
    // Targets ahead: nothing is passed, so nothing is used up.
    assert_eq!(
        commit_finish(Pending::Targeted, false, 1),
        Finish::Return {
            uses_advance: false
        }
    );
}

#[test]
fn only_a_rank_seen_parked_throughout_is_parked() {
    use Activity::*;
    assert_eq!(observe::<Every>(Parked, true, 0, Parked), Parked);
    assert_eq!(observe::<Every>(Parked, false, 0, Parked), Running);
    assert_eq!(observe::<Every>(Parked, true, 1, Parked), Running);
    assert_eq!(observe::<Every>(Parked, true, 0, Running), Running);
    assert_eq!(observe::<Every>(Running, true, 0, Parked), Running);
    assert_eq!(observe::<Every>(Waiting, false, 0, Waiting), Waiting);
    assert_eq!(observe::<Every>(Waiting, false, 0, InCollective), Running);
    assert_eq!(
        observe::<Every>(InCollective, false, 0, InCollective),
        InCollective
    );
}

#[test]
fn who_is_blocked_stands_still_unless_its_operation_is_needed() {
    use Pending::*;
    for (reached, advances) in stands() {
        for (number, binds) in [(4, true), (5, true), (6, false)] {
            let does = |pending| blocked::<Every>(pending, reached, advances, number, 5);
            assert_eq!([No, Asked].map(does), [Blocked::GoOn; 2]);
            let done = match (binds, reached, advances) {
                (true, _, _) => Blocked::GoOn,
                (false, true, 0) => Blocked::Stand,
                (false, uses_advance, _) => Blocked::Bind { uses_advance },
            };
            assert_eq!(does(Targeted), done, "{reached} {advances} {number}");
        }
    }
}

#[test]
fn what_the_application_is_told_binds_the_others() {
    assert_eq!(tell::<Every>(Pending::No, 9, 3), Tell::Return);
    assert_eq!(tell::<Every>(Pending::Asked, 9, 0), Tell::AwaitTargets);
    assert_eq!(tell::<Every>(Pending::Targeted, 9, 8), Tell::Raise);
    assert_eq!(tell::<Every>(Pending::Targeted, 9, 9), Tell::Return);
    assert!(binds(9, 9) && !binds(10, 9));
}
