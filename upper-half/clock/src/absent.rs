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
//! A real MPI's operation waits for others. What is carried out in advance must not wait for one who never comes, or who first waits for somebody else:
//!
//! * who is late stops before it says so, outside of every collective operation, and begins nothing by itself before it is answered: else it might be in
//!   another operation, with a member that is already carried out for and waits for it here; who cannot stop says that it has no rank ([`Behind::rank`]);
//! * an operation is carried out only where each member has begun it, and says so, or stands and carries it out as well ([`Question::grant`]): also
//!   one that does not know the communicator yet has yet to come;
//! * all do so in one order, by clock and number: so the first one that is not over lacks nobody.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::group::Ggid;

/// Operations that a clock remembers: the place of one is its number's last byte.
pub const REMEMBERED: usize = 256;

/// Kinds that are remembered.
pub const KINDS: usize = 4;

/// What a member remembers an operation as.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Any that cannot be carried out in advance.
    #[default]
    Unknown = 0,
    Bcast = 1,
    Scatter = 2,
    Gather = 3,
    Gatherv = 4,
}

impl Kind {
    /// The kinds that are remembered, in their order.
    pub const REMEMBERED: [Kind; KINDS] = [Kind::Bcast, Kind::Scatter, Kind::Gather, Kind::Gatherv];

    /// Reads a kind; an unknown number is [`Kind::Unknown`].
    pub const fn from_word(word: u32) -> Kind {
        match word {
            1 => Kind::Bcast,
            2 => Kind::Scatter,
            3 => Kind::Gather,
            4 => Kind::Gatherv,
            _ => Kind::Unknown,
        }
    }

    /// Whether a late member with that rank has nothing to give.
    const fn gives_nothing(self, rank: i32, root: i32) -> bool {
        match self {
            Kind::Unknown => false,
            Kind::Bcast | Kind::Scatter => rank != root,
            Kind::Gather | Kind::Gatherv => rank == root,
        }
    }
}

/// An operation as one of those remembers it who have begun it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Operation {
    pub ggid: Ggid,
    pub number: u64,
    /// A [`Kind`].
    pub kind: u32,
    /// The root's rank in the communicator, and that of who remembers.
    pub root: i32,
    pub teller: i32,
    /// Elements, and bytes of each: of a broadcast's buffer, of what a root scatters to one member, of what a member gives to a gather.
    pub count: i32,
    pub size: i32,
    pub reserved: u32,
}

/// What one member has yet to come to on a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Behind {
    pub ggid: Ggid,
    /// Operations that it has begun, and that all must have begun.
    pub begun: u64,
    pub target: u64,
    /// Its rank in the communicator, and how many members that has; -1: the clock is of no communicator, or of one of two groups, or the application does
    /// not stand.
    pub rank: i32,
    pub size: i32,
}

/// What one rank answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Told {
    pub behind: Vec<Behind>,
    /// Of what was asked for, as much as it remembers of what it has begun.
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
        let told = self.told.iter().map(Option::as_ref);
        let told: Vec<&Told> = told.collect::<Option<_>>()?;
        let late = || {
            (0u32..)
                .zip(&told)
                .filter(|(_, told)| !told.behind.is_empty())
        };
        late().next()?;
        let mut known = Known::default();
        for told in &told {
            for operation in &told.operations {
                let key = (operation.ggid, operation.number);
                known.begun.entry(key).or_default().push(*operation);
            }
            for behind in &told.behind {
                for number in behind.begun + 1..=behind.target {
                    let key = (behind.ggid, number);
                    known.late.entry(key).or_default().push(behind.rank);
                }
            }
        }
        let granted = |(rank, told): (u32, &&Told)| {
            let mut clocks = told.behind.clone();
            clocks.sort_by_key(|it| it.ggid);
            let mut granted = vec![];
            for behind in clocks {
                for number in behind.begun + 1..=behind.target {
                    granted.extend(known.part(&behind, number)?);
                }
            }
            Some((rank, granted))
        };
        late().map(granted).collect()
    }
}

/// Who has begun an operation, and who is late for it, by clock and number.
#[derive(Default)]
struct Known {
    begun: BTreeMap<(Ggid, u64), Vec<Operation>>,
    late: BTreeMap<(Ggid, u64), Vec<i32>>,
}

impl Known {
    /// What a late member needs to know of an operation; `None` where that is not known, or does not do.
    fn part(&self, behind: &Behind, number: u64) -> Option<Vec<Operation>> {
        let key = (behind.ggid, number);
        let known = self.begun.get(&key)?;
        let first = known.first()?;
        let kind = Kind::from_word(first.kind);
        let agrees = |it: &Operation| it.kind == first.kind && it.root == first.root;
        if behind.rank < 0
            || !known.iter().all(agrees)
            || !kind.gives_nothing(behind.rank, first.root)
            || !self.all_come(key, behind.size)
        {
            return None;
        }
        let bytes = |it: &Operation| i64::from(it.count) * i64::from(it.size);
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
                let mut known = known.clone();
                known.sort_by_key(|it| it.teller);
                known.dedup_by_key(|it| it.teller);
                Some(known)
            }
        }
    }

    /// Whether each member of the communicator has begun the operation, or carries it out in advance.
    fn all_come(&self, key: (Ggid, u64), size: i32) -> bool {
        let begun = self.begun.get(&key).into_iter().flatten();
        let late = self.late.get(&key).into_iter().flatten();
        let mut members: Vec<i32> = begun.map(|it| it.teller).chain(late.copied()).collect();
        members.sort_unstable();
        members.dedup();
        members.len() as i64 == i64::from(size)
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
        // Late on a clock each, of which the other one has begun.
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
        // Nor does one come that is late for another one.
        let second = Operation { number: 2, ..known };
        let told = vec![known, second];
        let other = asked([(vec![], told), (late(1, 1), vec![]), (late(2, 2), vec![])]);
        assert_eq!(other, None);
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
}
