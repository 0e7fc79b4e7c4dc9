//! The events that the machine hears, and the actions that it asks for.

use alloc::vec::Vec;

use crate::group::Ggid;
use crate::rank::Activity;

/// A rank's account of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    pub activity: Activity,
    /// Version of the newest order applied before looking.
    pub seen: u64,
    /// The poll that this answers, 0 for a report of the rank's own accord.
    pub poll: u32,
    /// Point-to-point messages sent and received since the job began.
    pub sent: u64,
    pub received: u64,
    /// Collective operations begun since the job began, over all groups.
    pub begun: u64,
}

/// Events that the machine handles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The number that binds the others (`committed`) in every group that a rank knows, read after the rank has set its
    /// pending flag. The rank takes these numbers for its targets until it hears of larger ones.
    Clocks { rank: u32, clocks: Vec<(Ggid, u64)> },
    /// A rank has come to know a group after it has sent its clocks. It says so before its next report and before
    /// it raises the group's target: so everything that it begins there becomes known.
    Joined { rank: u32, ggid: Ggid },
    /// A rank went past a target; said before its next report.
    Raise { rank: u32, ggid: Ggid, seq: u64 },
    /// A rank's report of itself.
    Report { rank: u32, report: Report },
}

/// Actions that the machine asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// To one rank: the targets that are ahead of the numbers that it has said. Every rank gets one.
    Targets {
        rank: u32,
        version: u64,
        targets: Vec<(Ggid, u64)>,
    },
    /// To those ranks: one target went up.
    Raised {
        ranks: Vec<u32>,
        version: u64,
        ggid: Ggid,
        target: u64,
    },
    /// To every rank, after a pause: report again, naming this poll. `patience` 0 asks for a short pause; from 1
    /// on, for a long one that doubles with it.
    Poll { poll: u32, patience: u32 },
    /// To those ranks: they may pass one more park point.
    Advance { ranks: Vec<u32>, version: u64 },
    /// Every rank is parked and stays so: the still point.
    SafeStateFound,
}
