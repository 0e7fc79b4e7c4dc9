//! Messages between a rank's agent and the coordinator.
//!
//! ```text
//!  agent                               coordinator
//!   Hello                    ──────▶                      once, first
//!                            ◀──────    Welcome | Rejected
//!   MpiReady, MpiFinalized   ──────▶                      as they happen
//!   SuspendWanted            ──────▶                      a signal asked for it
//!
//!                            ◀──────    Begin             a checkpoint: every order carries its attempt
//!   Clocks                   ──────▶                      pending set, membarrier, cells read
//!                            ◀──────    Targets           version 1
//!   Joined, Raise, State     ──────▶                      as they happen, in order
//!                            ◀──────    Raised, Advance   to whom it concerns; each answered by a State
//!                            ◀──────    Poll              answered by a State that names it
//!   Asks                     ──────▶                      late, and computes
//!                            ◀──────    Tell              to everybody, twice; answered by Told
//!                            ◀──────    CarryOut          to who is late
//!                            ◀──────    Check
//!   CheckResult              ──────▶
//!                            ◀──────    Drain             round 1, 2, ...
//!   Counts                   ──────▶
//!                            ◀──────    Seal
//!   Sealed                   ──────▶
//!                            ◀──────    Write
//!   Written | WriteFailed    ──────▶
//!                            ◀──────    WriteApart        in the place of Write, where the application is to run on meanwhile
//!   Apart                    ──────▶
//!                            ◀──────    RunOn             every rank is apart
//!   Written | WriteFailed    ──────▶
//!                            ◀──────    Committed         release, carry on   ┐
//!                            ◀──────    Abort             release, carry on   ├ one of them,
//!                            ◀──────    Terminate         end with status 0   ┘ at any time for Abort
//!   Released                 ──────▶                      after Committed and Abort
//!
//!   Exiting                  ──────▶                      last, before the process ends
//! ```
//!
//! Where the job has storage tiers, [`crate::tier`] says what is said besides.
//!
//! An agent answers an order of an attempt that it does not know (or that is over) with nothing.

use serde::{Deserialize, Serialize};

use crate::absent::{Missing, Operation, Told};
use crate::codec::{Decode, Encode};
use crate::namespace::Namespace;
use crate::tier::{Announced, Assignment, Gathered, Moved, Rates, Sized};
use stillpoint_clock::rank::Activity;
use stillpoint_clock::safe_state::Report;
use stillpoint_incremental::viability::Record;

/// From a rank's agent.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum FromAgent {
    /// Who this is. Must be the first message; answered by [`ToAgent::Welcome`] or
    /// [`ToAgent::Rejected`].
    Hello(Hello),
    /// `MPI_Init` has returned.
    MpiReady,
    /// `MPI_Finalize` has returned.
    MpiFinalized,
    /// The process is about to end: `status` as for `exit(2)`. An agent that goes without this
    /// message counts as a rank that has died.
    Exiting { status: i32 },
    /// A signal to this rank asks for a suspend (`--suspend-signal`, `--on-term suspend`).
    SuspendWanted { signal: i32 },
    /// Something about the attempt that is under way.
    Progress { attempt: u64, progress: Progress },
    /// This rank cannot take part in the attempt, and why. Ends the attempt.
    Refuse { attempt: u64, reason: String },
    /// Arrived at a barrier of the restart; answered by [`ToAgent::BarrierPassed`] when every rank
    /// has arrived at it.
    AtBarrier { name: String },
    /// This rank's fast tier.
    Tier(Announced),
    /// What the ways from this rank carry, and why one carries nothing.
    Measured {
        rates: Rates,
        problem: Option<String>,
    },
    /// What this rank's agent held of an epoch is on the slow tier, synced; or why not.
    Flushed { epoch: u64, problem: Option<String> },
    /// Before a restart: where this rank's image is read from; and, where the epoch was staged only, why it is not whole
    /// on the slow tier now.
    Recovered {
        epoch: u64,
        gathered: Gathered,
        problem: Option<String>,
    },
}

/// Who an agent is.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Hello {
    pub rank: u32,
    pub size: u32,
    pub pid: u32,
    pub host: String,
    /// In which the number is its.
    pub namespace: Namespace,
    /// [`crate::launch::Launch::launch`].
    pub launch: String,
    /// The epoch that this process is restored from.
    pub restarted_from: Option<u64>,
    /// This agent has been connected before, and has lost its coordinator.
    pub returns: bool,
    /// It joins since it starts MPI: it is no process that the launch has begun with, but a program that one of these has started.
    pub late: bool,
}

/// What a rank says during an attempt.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum Progress {
    /// (ggid, what binds the others there) of every group that this rank knows.
    Clocks { clocks: Vec<(u64, u64)> },
    /// This rank has come to know a group after it has sent its clocks. Said before its next raise and state.
    Joined { ggid: u64 },
    /// This rank went past a target: SEQ is the group's new target.
    Raise { ggid: u64, seq: u64 },
    /// What the rank does. Sent when it changes, after every order and for every poll.
    State(State),
    /// What forbids a checkpoint, in words for people, one reason each; empty: nothing.
    CheckResult { refusals: Vec<String> },
    /// Messages sent and received since the job began, one round of pulling after the order.
    Counts {
        round: u32,
        sent: u64,
        received: u64,
    },
    /// MPI objects are in the form that a restart starts from.
    Sealed,
    /// What is left to be written does not change any more when the application runs on.
    Apart,
    /// The image is on disk and synced.
    Written(Written),
    /// How much there is to write.
    Sized(Sized),
    /// Every block of the image is on some tier.
    Staged(Written, Moved),
    /// It is not, and why (file, cause, what to do).
    WriteFailed { reason: String },
    /// The application runs again.
    Released,
    /// What a rank does that has not come to its still point for long, in words; empty: it has come.
    Waits { what: String },
    /// This rank is late for what others have returned from, and computes: can it be carried out for it in advance? Said again and again until it has come.
    Asks { missing: Vec<Missing> },
    /// The answer to [`Order::Tell`].
    Told(Told),
    /// Said at the check: (ggid, sum of the names of communicators that this rank has given up there); on all members the same.
    GivenUp { sums: Vec<(u64, u64)> },
}

/// A rank's report of itself: see `stillpoint_clock::safe_state::Report`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct State {
    pub doing: Doing,
    /// Version of the newest order ([`Order::Targets`], [`Order::Raised`], [`Order::Advance`]) that had
    /// been applied before the agent looked.
    pub seen: u64,
    /// The [`Order::Poll`] that this answers; 0: none.
    pub poll: u32,
    pub sent: u64,
    pub received: u64,
    /// Collective operations begun, over all groups.
    pub begun: u64,
}

/// [`Activity`] on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Doing {
    Running,
    InCollective,
    Waiting,
    Parked,
}

impl From<Activity> for Doing {
    fn from(activity: Activity) -> Doing {
        match activity {
            Activity::Running => Doing::Running,
            Activity::InCollective => Doing::InCollective,
            Activity::Waiting => Doing::Waiting,
            Activity::Parked => Doing::Parked,
        }
    }
}

impl From<State> for Report {
    fn from(state: State) -> Report {
        let activity = match state.doing {
            Doing::Running => Activity::Running,
            Doing::InCollective => Activity::InCollective,
            Doing::Waiting => Activity::Waiting,
            Doing::Parked => Activity::Parked,
        };
        let State {
            seen,
            poll,
            sent,
            received,
            begun,
            ..
        } = state;
        Report {
            activity,
            seen,
            poll,
            sent,
            received,
            begun,
        }
    }
}

/// What a rank has written.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Written {
    /// Length of the image file.
    pub stored_bytes: u64,
    /// Bytes of memory that it holds, before compression, those in images of earlier epochs too.
    pub bytes: u64,
    /// The image's digest (`stillpoint_image::format`).
    pub digest: u128,
    /// Time spent writing and syncing.
    pub seconds: f64,
    /// The contract between the halves that the upper half in it was built with.
    pub contract: u32,
    /// Earlier epochs whose images hold parts of it, ascending.
    pub needs: Vec<u64>,
    /// What was expected of an incremental image, and what came of it.
    #[bincode(with_serde)]
    pub increment: Option<Box<Record>>,
}

/// To a rank's agent.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ToAgent {
    /// The rank belongs to the job.
    Welcome,
    /// It does not (wrong launch, rank taken, ...), and why. The connection ends.
    Rejected { reason: String },
    /// Something about the attempt under way, or the start of one ([`Order::Begin`]).
    Checkpoint { attempt: u64, order: Order },
    /// Every rank has arrived at this barrier.
    BarrierPassed { name: String },
    /// Every rank's fast tier, by rank.
    Peers(Vec<Announced>),
    /// Copy what this agent holds of the epoch to the images in `directory`.
    Flush { epoch: u64, directory: String },
    /// The epoch is durable: its parts on fast tiers are not needed any more.
    Durable { epoch: u64 },
    /// Before a restart for which blocks were gathered: the epoch to restart from; another one, and why, if the staged
    /// one could not be made whole.
    CarryOn { epoch: Option<u64>, reason: String },
    /// Tell the user this, on the rank's stderr.
    Say { text: String },
    /// Another process is this rank now: a program that this one, which does not use MPI, has started. The connection ends.
    Replaced,
}

/// What a rank is to do during an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Order {
    /// Set the flag, `membarrier`, send [`Progress::Clocks`].
    Begin(Begin),
    /// (ggid, TARGET) of every group where others are ahead of this rank. Store them, then `pending := 2`.
    Targets {
        version: u64,
        targets: Vec<(u64, u64)>,
    },
    /// One target went up (never down: store the maximum).
    Raised {
        version: u64,
        ggid: u64,
        target: u64,
    },
    /// One more park point may be passed.
    Advance { version: u64 },
    /// Say [`Progress::Told`] of these operations. A rank that is late itself holds its application, if `hold`, before it says so, until
    /// [`Order::CarryOut`] comes.
    Tell { hold: bool, missing: Vec<Missing> },
    /// Carry these out in advance, in this order, and let the application run on; none: only that.
    CarryOut { operations: Vec<Operation> },
    /// Say [`Progress::State`] now, with this number.
    Poll { poll: u32 },
    /// Say what forbids a checkpoint.
    Check,
    /// Make one more round of progress, then say [`Progress::Counts`].
    Drain { round: u32 },
    /// Bring MPI objects into the form that a restart starts from.
    Seal,
    /// Write the image to [`Begin::image`] and sync it.
    Write,
    /// The same, but say [`Progress::Apart`] as soon as the application may run on. Copies of what it changes meanwhile take at most so
    /// many bytes; `None`: a fair part of what is free.
    WriteApart { most: Option<u64> },
    /// Every rank is apart: release the application, and go on writing.
    RunOn,
    /// Say [`Progress::Sized`].
    Size,
    /// Write the image's blocks to their tiers.
    Stage(Assignment),
    /// The epoch is committed: release the application.
    Committed,
    /// There will be no epoch: remove what is half-written, release the application. `again`: a suspend that a signal asked for is tried again.
    Abort { reason: String, again: bool },
    /// The epoch is committed and the job is to end: end the process with status 0.
    Terminate,
}

/// How a checkpoint begins.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Begin {
    /// The epoch's number.
    pub epoch: u64,
    /// Directory that is being written, absolute; exists when [`Order::Write`] comes.
    pub directory: String,
    /// This rank's image: `directory` / its name.
    pub image: String,
    /// `none`, `lz4` or `zstd[:level]`.
    pub compress: String,
    /// Whether the image may have chunks in earlier epochs' images.
    pub incremental: Incremental,
    /// Whether what the epoch has already is written again.
    pub dedup: Dedup,
}

/// Which equal memory is written once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub enum Dedup {
    /// None.
    #[default]
    Off,
    /// That of one rank.
    Rank,
    /// That of all ranks of the node. The process with this id keeps the table of what there is already, from the check on; the others find it
    /// there when they write.
    Node { keeper: u32 },
}

/// What an image may leave where earlier ones have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub enum Incremental {
    /// Nothing.
    #[default]
    Off,
    /// What the faster of the two others does, by what the last epochs have taken.
    Auto,
    /// Pages that were not written to.
    Pages,
    /// Blocks that do not differ from what was there.
    Blocks,
}

impl Incremental {
    /// Whether anything may be hashed.
    pub fn hashes(self) -> bool {
        matches!(self, Incremental::Auto | Incremental::Blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_becomes_the_report_that_it_says() {
        for activity in [
            Activity::Running,
            Activity::InCollective,
            Activity::Waiting,
            Activity::Parked,
        ] {
            let state = State {
                doing: activity.into(),
                seen: 3,
                poll: 4,
                sent: 5,
                received: 6,
                begun: 7,
            };
            let report = Report {
                activity,
                seen: 3,
                poll: 4,
                sent: 5,
                received: 6,
                begun: 7,
            };
            assert_eq!(Report::from(state), report);
        }
    }
}
