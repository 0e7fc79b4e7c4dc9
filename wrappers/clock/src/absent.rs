//! Operations that others have returned from, and a member is late for: whether they can be carried out for the member in advance.
//!
//! The root of a small broadcast returns at once, and so its operation binds: every member has to come to it before the still point. A member that computes
//! for an hour need not do so itself, though. Each rank that has begun the operation remembers its kind, its root and how many bytes it moves
//! ([`Operation`]). So the late member's part is carried out while its application stands, into memory of this library's, and the application is
//! served from there when it comes.
//!
//! That is right if the late member gives nothing: in a broadcast or a scatter with another root, and in a gather whose root it is (its own part
//! need not travel). If a member gives something that others need, only its application knows the data.
//!
//! A real MPI's operation waits for others. An operation that is carried out in advance must not wait for a rank that never comes, or that first waits for
//! another:
//!
//! * A late rank stops before it says that it is late, outside of every collective operation, and begins nothing by itself before it is answered. Otherwise it
//!   might be in another operation, with a member that already carries this one out and waits for it here. A rank that cannot stop says that it has no rank
//!   ([`Behind::rank`]).
//! * An operation is carried out only if each member has begun it, and says so, or stands and carries it out as well ([`Question::grant`]). A member
//!   that does not know the communicator yet has yet to come, too. Operations behind one that cannot be carried out are left for another question.
//! * All late ranks do so in one order, by clock and number: so the first operation that is not over lacks no member.

mod operation;

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

pub use operation::{KINDS, Kind, Operation, REMEMBERED};

use crate::group::Ggid;

/// The operations that one member has yet to come to on a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Behind {
    pub ggid: Ggid,
    /// The number of operations that it has begun; `target` is the number that all must have begun.
    pub begun: u64,
    pub target: u64,
    /// Its rank in the communicator, and the number of members of that. The rank is -1 if the clock belongs to no communicator, or to one of two groups, or if
    /// the application does not stand.
    pub rank: i32,
    pub size: i32,
}

/// One rank's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemberAnswer {
    pub behind: Vec<Behind>,
    /// Those of the asked-for operations that it has begun: as it remembers them, or as [`Kind::Unknown`].
    pub operations: Vec<Operation>,
}

/// A question to all ranks: which ranks are late for which operations, and which ranks know what these are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    told: Vec<Option<MemberAnswer>>,
}

impl Question {
    pub fn new(ranks: usize) -> Question {
        Question {
            told: vec![None; ranks],
        }
    }

    /// Takes a rank's answer; true when all have answered.
    pub fn tell(&mut self, rank: u32, told: MemberAnswer) -> bool {
        if let Some(slot) = self.told.get_mut(rank as usize) {
            *slot = Some(told);
        }
        self.told.iter().all(Option::is_some)
    }

    /// The operations that each late rank that stands is to carry out, in this order, or `None` if a rank has to be waited for.
    pub fn grant(&self) -> Option<Vec<(u32, Vec<Operation>)>> {
        let told = self.told.iter().map(Option::as_ref);
        let told: Vec<&MemberAnswer> = told.collect::<Option<_>>()?;
        let held: Vec<(u32, Vec<Behind>)> = (0u32..)
            .zip(&told)
            .map(|(rank, told)| (rank, told.held()))
            .filter(|(_, held)| !held.is_empty())
            .collect();
        let known = Known::of(&told, held.iter().flat_map(|(_, held)| held));
        // All go equally far on a clock: as far as each of them can.
        let mut limits: BTreeMap<Ggid, u64> = BTreeMap::new();
        for behind in held.iter().flat_map(|(_, held)| held) {
            let limit = limits.entry(behind.ggid).or_insert(u64::MAX);
            *limit = (*limit).min(known.reach(behind));
        }
        let granted: Vec<(u32, Vec<Operation>)> = held
            .iter()
            .map(|(rank, held)| {
                let parts = held.iter().flat_map(|behind| {
                    let last = limits
                        .get(&behind.ggid)
                        .map_or(0, |it| *it.min(&behind.target));
                    (behind.begun + 1..=last)
                        .filter_map(|number| known.part(behind, number))
                        .flatten()
                        .collect::<Vec<_>>()
                });
                (*rank, parts.collect())
            })
            .collect();
        let something = granted.iter().any(|(_, operations)| !operations.is_empty());
        something.then_some(granted)
    }
}

impl MemberAnswer {
    /// The operations that the rank is late for, in the order of the clocks, if it stands.
    fn held(&self) -> Vec<Behind> {
        let stands = self.behind.iter().filter(|behind| behind.rank >= 0);
        let mut held: Vec<Behind> = stands.copied().collect();
        held.sort_by_key(|behind| behind.ggid);
        held
    }
}

/// The ranks that have begun an operation, and those that are late for it, by clock and number.
#[derive(Default)]
struct Known {
    begun: BTreeMap<(Ggid, u64), Vec<Operation>>,
    late: BTreeMap<(Ggid, u64), Vec<i32>>,
}

impl Known {
    fn of<'a>(told: &[&MemberAnswer], held: impl Iterator<Item = &'a Behind>) -> Known {
        let mut known = Known::default();
        for operation in told.iter().flat_map(|told| &told.operations) {
            let key = (operation.ggid, operation.number);
            known.begun.entry(key).or_default().push(*operation);
        }
        for behind in held {
            for number in behind.begun + 1..=behind.target {
                let key = (behind.ggid, number);
                known.late.entry(key).or_default().push(behind.rank);
            }
        }
        known
    }

    /// The last one up to the target that a late member can carry out, with all before it.
    fn reach(&self, behind: &Behind) -> u64 {
        (behind.begun + 1..=behind.target)
            .find(|number| self.part(behind, *number).is_none())
            .map_or(behind.target, |number| number - 1)
    }

    /// Returns what a late member needs to know of an operation, or `None` if that is not known or not enough.
    fn part(&self, behind: &Behind, number: u64) -> Option<Vec<Operation>> {
        let key = (behind.ggid, number);
        let begun = self.begun.get(&key)?;
        let is_known = |it: &&Operation| it.kind != Kind::Unknown as u32;
        let mut known: Vec<Operation> = begun.iter().filter(is_known).copied().collect();
        let first = *known.first()?;
        let kind = Kind::from_word(first.kind);
        let agrees = |it: &Operation| (it.kind, it.root) == (first.kind, first.root);
        let bytes = |it: &Operation| i64::from(it.count) * i64::from(it.size);
        // From a broadcast of nothing every member may return at once.
        let of_nothing = kind == Kind::Bcast && bytes(&first) == 0;
        if !known.iter().all(agrees)
            || !(of_nothing || kind.gives_nothing(behind.rank, first.root))
            || !self.all_come(key, behind.size)
        {
            return None;
        }
        match kind {
            Kind::Unknown => None,
            Kind::Bcast | Kind::Gather => {
                let alike = known.iter().all(|it| bytes(it) == bytes(&first));
                alike.then(|| vec![first])
            }
            Kind::Scatter => {
                let root = known.iter().find(|it| it.teller == it.root)?;
                Some(vec![*root])
            }
            Kind::Gatherv => {
                known.sort_by_key(|it| it.teller);
                known.dedup_by_key(|it| it.teller);
                (known.len() as i64 == i64::from(behind.size) - 1).then_some(known)
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
mod tests;
