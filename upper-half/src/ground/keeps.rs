//! The input of an operation in place (`MPI_IN_PLACE`), which is kept for a restart: its place in the buffer.

/// The part of the buffer that is input, for an operation in place.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    /// A count and a datatype do not tell it, or it is not kept.
    Nothing,
    /// `count` elements.
    Once,
    /// `count` elements for each member.
    EachMember,
    /// Only this member's own, of the blocks of `count` elements.
    OwnBlock,
}
