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
//!   one that does not know the communicator yet has yet to come. What lies behind one that cannot be is left for another question;
//! * all do so in one order, by clock and number: so the first one that is not over lacks nobody.

mod operation;

use alloc::collections::BTreeMap;
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
    /// Its rank in the communicator, and how many members that has; -1: the clock is of no communicator, or of one of two groups, or the application does
    /// not stand.
    pub rank: i32,
    pub size: i32,
}

/// What one rank answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Told {
    pub behind: Vec<Behind>,
    /// Of what was asked for, what it has begun: as it remembers it, or as [`Kind::Unknown`].
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

    /// What each late rank that stands is to carry out, in this order; `None` where somebody has to be waited for.
    pub fn grant(&self) -> Option<Vec<(u32, Vec<Operation>)>> {
        let told = self.told.iter().map(Option::as_ref);
        let told: Vec<&Told> = told.collect::<Option<_>>()?;
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

impl Told {
    /// What the rank is late for, in the order of the clocks, if it stands.
    fn held(&self) -> Vec<Behind> {
        let stands = self.behind.iter().filter(|behind| behind.rank >= 0);
        let mut held: Vec<Behind> = stands.copied().collect();
        held.sort_by_key(|behind| behind.ggid);
        held
    }
}

/// Who has begun an operation, and who is late for it, by clock and number.
#[derive(Default)]
struct Known {
    begun: BTreeMap<(Ggid, u64), Vec<Operation>>,
    late: BTreeMap<(Ggid, u64), Vec<i32>>,
}

impl Known {
    fn of<'a>(told: &[&Told], held: impl Iterator<Item = &'a Behind>) -> Known {
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

    /// What a late member needs to know of an operation; `None` where that is not known, or does not do.
    fn part(&self, behind: &Behind, number: u64) -> Option<Vec<Operation>> {
        let key = (behind.ggid, number);
        let begun = self.begun.get(&key)?;
        let is_known = |it: &&Operation| it.kind != Kind::Unknown as u32;
        let mut known: Vec<Operation> = begun.iter().filter(is_known).copied().collect();
        let first = *known.first()?;
        let kind = Kind::from_word(first.kind);
        let agrees = |it: &Operation| (it.kind, it.root) == (first.kind, first.root);
        let bytes = |it: &Operation| i64::from(it.count) * i64::from(it.size);
        // From a broadcast of nothing everybody may return at once.
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
