//! What others have returned from, and a member is late for: whether it can be carried out for the member in advance.
//!
//! The root of a small broadcast returns at once, and so its operation binds: every member has to come to it before the still point. One that computes
//! for an hour needs nothing of its own for that, though: whoever has begun the operation remembers its kind, its root and how many bytes it moves
//! ([`Operation`]). So the late member's part is carried out while its application stands, into memory of this library's, and the application is
//! served from there when it comes.
//!
//! That is right where the late member gives nothing: in a broadcast or a scatter whose root is another one, and in a gather whose root it is (its own part
//! need not travel). Where a member gives something that others need, only its application knows what.
//!
//! A real MPI's operation waits for others. What is carried out in advance must not wait for one who never comes: so it is begun only as far as every
//! member has begun it or can do its part as well ([`Question::grant`]), and in an order that cannot go round in a circle: all who are held are late on one clock, which numbers
//! its operations, or one alone is held.

mod operation;

use alloc::vec;
use alloc::vec::Vec;

pub use operation::{KINDS, Kind, Operation, REMEMBERED};

use crate::group::Ggid;

/// What one member has yet to come to on a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Behind {
    pub ggid: Ggid,
    /// Operations that it has begun, and that all must have begun.
    pub begun: u64,
    pub target: u64,
    /// Its rank in the communicator, and how many members that has; -1: the clock is of no communicator, or of one of two groups.
    pub rank: i32,
    pub size: i32,
    /// Whether the rank's application stands, or can: it computes, or waits for a message. One that is in another call comes when that is over.
    pub able: bool,
}

/// What one rank answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Told {
    pub behind: Vec<Behind>,
    /// Of what was asked for, as much as it remembers.
    pub operations: Vec<Operation>,
}

/// A question to all ranks: who is late for what, and who knows what that is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    told: Vec<Option<Told>>,
}

impl Question {
    pub fn new(ranks: usize) -> Question {
        Question {
            told: vec![None; ranks],
        }
    }

    /// Takes a rank's answer; true when all have answered.
    pub fn tell(&mut self, rank: u32, told: Told) -> bool {
        if let Some(slot) = self.told.get_mut(rank as usize) {
            *slot = Some(told);
        }
        self.told.iter().all(Option::is_some)
    }

    /// What each late rank is to carry out, in this order; `None` where somebody has to be waited for.
    pub fn grant(&self) -> Option<Vec<(u32, Vec<Operation>)>> {
        let told = || (0u32..).zip(self.told.iter().flatten());
        let held: Vec<(u32, &Told)> = told().filter(|(_, told)| told.can_be_held()).collect();
        let mut behind = held.iter().flat_map(|(_, told)| &told.behind);
        let first = behind.next()?.ggid;
        if held.len() > 1 && behind.any(|it| it.ggid != first) {
            return None;
        }
        let busy: Vec<&Behind> = told()
            .filter(|(_, told)| !told.can_be_held())
            .flat_map(|(_, told)| &told.behind)
            .collect();
        let operations: Vec<Operation> = told()
            .flat_map(|(_, told)| told.operations.iter().copied())
            .collect();
        // Up to where each late rank can go by itself; together they go no further than all of them can.
        let reach = |behind: &Behind| {
            let begun_by_all = (busy.iter())
                .filter(|it| it.ggid == behind.ggid)
                .map(|it| it.begun)
                .fold(behind.target, u64::min);
            (behind.begun + 1..=begun_by_all)
                .find(|number| part(&operations, behind, *number).is_none())
                .map_or(begun_by_all, |number| number - 1)
        };
        let limit = |ggid: Ggid| {
            let on_clock = held.iter().flat_map(|(_, told)| &told.behind);
            on_clock.filter(|it| it.ggid == ggid).map(reach).min()
        };
        let granted: Vec<(u32, Vec<Operation>)> = held
            .iter()
            .map(|(rank, told)| {
                let parts = told.behind.iter().flat_map(|behind| {
                    let last = limit(behind.ggid).unwrap_or(0);
                    let parts = (behind.begun + 1..=last)
                        .filter_map(|number| part(&operations, behind, number));
                    parts.flatten().collect::<Vec<_>>()
                });
                (*rank, parts.collect())
            })
            .collect();
        let something = granted.iter().any(|(_, operations)| !operations.is_empty());
        something.then_some(granted)
    }
}

impl Told {
    /// Whether the rank is late, and its application stands or can.
    fn can_be_held(&self) -> bool {
        self.behind.iter().any(|behind| behind.able)
    }
}

/// What a late member needs to know of an operation; `None` where that is not known, or does not do.
fn part(operations: &[Operation], behind: &Behind, number: u64) -> Option<Vec<Operation>> {
    let known: Vec<Operation> = operations
        .iter()
        .filter(|it| it.ggid == behind.ggid && it.number == number && it.teller != behind.rank)
        .copied()
        .collect();
    let first = known.first()?;
    let kind = Kind::from_word(first.kind);
    let agrees = |it: &&Operation| it.kind == first.kind && it.root == first.root;
    let bytes = |it: &Operation| i64::from(it.count) * i64::from(it.size);
    // From a broadcast of nothing everybody may return at once.
    let of_nothing = kind == Kind::Bcast && bytes(first) == 0;
    if behind.rank < 0
        || !known.iter().all(|it| agrees(&it))
        || !(of_nothing || kind.gives_nothing(behind.rank, first.root))
    {
        return None;
    }
    match kind {
        Kind::Unknown => None,
        Kind::Bcast | Kind::Gather => {
            let alike = known.iter().all(|it| bytes(it) == bytes(first));
            alike.then(|| vec![*first])
        }
        Kind::Scatter => {
            let root = known.iter().find(|it| it.teller == it.root)?;
            Some(vec![*root])
        }
        Kind::Gatherv => {
            let mut known = known;
            known.sort_by_key(|it| it.teller);
            known.dedup_by_key(|it| it.teller);
            (known.len() as i64 == i64::from(behind.size) - 1).then_some(known)
        }
    }
}

#[cfg(test)]
mod tests {
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
            able: true,
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
            let all = question.tell(rank, Told { behind, operations });
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
        // Of a broadcast all must say the same.
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
    fn several_are_late_on_one_clock_or_one_alone_on_several() {
        let known = |ggid| operation(ggid, 1, Kind::Bcast, 0, 0);
        let both = vec![known(A), known(B)];
        let on = |ggid, rank| vec![behind(ggid, 0, 1, rank)];
        let granted = asked([
            (vec![], both.clone()),
            (on(A, 1), vec![]),
            (on(A, 2), vec![]),
        ]);
        let granted = granted.expect("granted");
        assert_eq!(granted, [(1, vec![known(A)]), (2, vec![known(A)])]);
        let two_clocks = asked([
            (vec![], both.clone()),
            (on(A, 1), vec![]),
            (on(B, 2), vec![]),
        ]);
        assert_eq!(two_clocks, None);
        let alone = [on(A, 2), on(B, 2)].concat();
        let granted = asked([(vec![], both.clone()), (vec![], vec![]), (alone, vec![])]);
        assert_eq!(granted, Some(vec![(2, both)]));
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
    fn a_root_gives_nothing_to_a_broadcast_of_nothing() {
        let told = |count| {
            let known = Operation {
                count,
                ..operation(A, 1, Kind::Bcast, 2, 0)
            };
            let late = vec![behind(A, 0, 1, 2)];
            asked([(vec![], vec![known]), (vec![], vec![]), (late, vec![])])
        };
        assert!(told(0).is_some());
        assert!(told(1).is_none());
    }

    #[test]
    fn as_many_are_carried_out_as_can_be() {
        // The third one is a gather to another rank.
        let known = |number, kind| operation(A, number, kind, 0, 0);
        let all = vec![
            known(1, Kind::Bcast),
            known(2, Kind::Bcast),
            known(3, Kind::Gather),
        ];
        let late = |begun, rank| vec![behind(A, begun, 3, rank)];
        let granted = asked([
            (vec![], all.clone()),
            (late(1, 1), vec![]),
            (late(0, 2), vec![]),
        ]);
        assert_eq!(
            granted,
            Some(vec![(1, vec![all[1]]), (2, all[..2].to_vec())])
        );
    }

    #[test]
    fn nobody_goes_further_than_a_member_that_is_in_another_call() {
        let known = |number| operation(A, number, Kind::Bcast, 0, 0);
        let all = vec![known(1), known(2)];
        let busy = |ggid, begun| {
            vec![Behind {
                able: false,
                ..behind(ggid, begun, 2, 1)
            }]
        };
        let late = vec![behind(A, 0, 2, 2)];
        let granted = asked([
            (vec![], all.clone()),
            (busy(A, 1), vec![]),
            (late.clone(), vec![]),
        ]);
        assert_eq!(granted, Some(vec![(2, all[..1].to_vec())]));
        let granted = asked([
            (vec![], all.clone()),
            (busy(A, 0), vec![]),
            (late.clone(), vec![]),
        ]);
        assert_eq!(granted, None);
        // It is late elsewhere.
        let granted = asked([(vec![], all.clone()), (busy(B, 0), vec![]), (late, vec![])]);
        assert_eq!(granted, Some(vec![(2, all)]));
    }

    #[test]
    fn nobody_is_late() {
        assert_eq!(
            asked([(vec![], vec![]), (vec![], vec![]), (vec![], vec![])]),
            None
        );
    }
}
