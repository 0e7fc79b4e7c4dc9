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
pub const KINDS: usize = Kind::Gatherv as usize;

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
        let begun = self.begun.get(&key)?;
        let is_known = |it: &&Operation| it.kind != Kind::Unknown as u32;
        let mut known: Vec<Operation> = begun.iter().filter(is_known).copied().collect();
        let first = *known.first()?;
        let kind = Kind::from_word(first.kind);
        let agrees = |it: &Operation| (it.kind, it.root) == (first.kind, first.root);
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
