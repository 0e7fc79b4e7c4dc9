//! The phases of a checkpoint, in their order.

use std::fmt;

/// The phase that a checkpoint has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Every rank sets its flag and sends its clocks.
    Flag,
    /// Ranks run on until every target is reached.
    Reach,
    /// Each rank reports the reasons that forbid a checkpoint.
    Check,
    /// Messages under way are pulled in.
    Drain,
    /// MPI objects are brought into the form that a restart starts from.
    Seal,
    /// With storage tiers: the destinations of all blocks are decided.
    Plan,
    /// Each rank sets its memory apart, and writes the memory that it cannot set apart. Memory that the application changes is copied before.
    Copy,
    /// Images are written and synced, or staged, so that every block is on some tier.
    Write,
    /// Manifest, sync, rename.
    Commit,
    /// The application runs again.
    Release,
    /// After a suspend: the ranks end.
    End,
}

impl Phase {
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Flag => "flag",
            Phase::Reach => "reach",
            Phase::Check => "check",
            Phase::Drain => "drain",
            Phase::Seal => "seal",
            Phase::Plan => "plan",
            Phase::Copy => "copy",
            Phase::Write => "write",
            Phase::Commit => "commit",
            Phase::Release => "release",
            Phase::End => "end",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
