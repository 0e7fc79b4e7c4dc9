//! Where the input of an operation in place (`MPI_IN_PLACE`) lies, which is kept for a restart.

/// Which part of the buffer is input, of an operation in place.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    /// Not to be known from a count and a datatype, or not kept.
    Nothing,
    /// `count` elements.
    Once,
    /// `count` elements for each member.
    EachMember,
    /// Of the blocks of `count` elements this member's own.
    OwnBlock,
}
