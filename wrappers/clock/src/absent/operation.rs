//! An operation as ranks remember it: the record goes from one half of a process to the other, and from rank to rank.

use crate::group::Ggid;

/// The number of operations that a clock remembers. The last byte of an operation's number is its place.
pub const REMEMBERED: usize = 256;

/// Kinds that are remembered.
pub const KINDS: usize = 4;

/// The kind under which a member remembers an operation.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Any kind that cannot be carried out in advance.
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
    pub(super) const fn gives_nothing(self, rank: i32, root: i32) -> bool {
        match self {
            Kind::Unknown => false,
            Kind::Bcast | Kind::Scatter => rank != root,
            Kind::Gather | Kind::Gatherv => rank == root,
        }
    }
}

/// An operation, as a rank that has begun it remembers it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Operation {
    pub ggid: Ggid,
    pub number: u64,
    /// A [`Kind`].
    pub kind: u32,
    /// The root's rank in the communicator, and that of the rank that remembers.
    pub root: i32,
    pub teller: i32,
    /// Elements, and bytes of each: of a broadcast's buffer, of the part that a root scatters to one member, or of the part that a member gives to a gather.
    pub count: i32,
    pub size: i32,
    pub reserved: u32,
}
