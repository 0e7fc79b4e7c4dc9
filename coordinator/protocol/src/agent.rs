//! Messages between a rank's agent and the coordinator.
//!
//! ```text
//!  agent                               coordinator
//!   Hello                    ──────▶                      once, first
//!                            ◀──────    Welcome | Rejected
//!   KnownAs                  ──────▶                      in a restart, before its first barrier
//!                            ◀──────    Neighbours        every rank has said so; before that barrier is passed
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
//!   BecomesUnsplit           ──────▶                      last, before the process executes a program without an agent
//! ```
//!
//! If the job has storage tiers, there are more messages: see [`crate::tier`].
//!
//! An agent ignores an order of an attempt that it does not know, or that is over.

use serde::{Deserialize, Serialize};

use crate::absent::{MemberAnswer, Missing, Operation};
use crate::codec::{Decode, Encode};
use crate::namespace::Namespace;
use crate::tier::{Announced, Assignment, Gathered, Moved, Rates, Sized};
use stillpoint_clock::rank::Activity;
use stillpoint_clock::safe_state::Report;
use stillpoint_ids::{Epoch, Rank};
use stillpoint_incremental::viability::Record;
use stillpoint_refusals::Refusal;

/// From a rank's agent.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum FromAgent {
    /// Identifies the agent. It must be the first message; answered by [`ToAgent::Welcome`] or [`ToAgent::Rejected`].
    Hello(Hello),
    /// `MPI_Init` has returned.
    MpiReady,
    /// `MPI_Finalize` has returned.
    MpiFinalized,
    /// The process is about to end: `status` as for `exit(2)`. If an agent disconnects without this message, its rank counts as dead.
    Exiting { status: i32 },
    /// A signal to this rank asks for a suspend (`--suspend-signal`, `--on-term suspend`).
    SuspendWanted { signal: i32 },
    /// Something about the attempt that is under way.
    Progress { attempt: u64, progress: Progress },
    /// This rank cannot take part in the attempt, for this reason. It ends the attempt.
    Refuse {
        attempt: u64,
        #[bincode(with_serde)]
        reason: Refusal,
    },
    /// This rank has arrived at a barrier of the restart; answered by [`ToAgent::BarrierPassed`] when every rank has arrived at it.
    AtBarrier { name: String },
    /// This rank's fast tier.
    Tier(Announced),
    /// The measured rates of the ways from this rank, and the problem of a way that carries nothing.
    Measured {
        rates: Rates,
        problem: Option<String>,
    },
    /// This agent's blocks of an epoch are on the slow tier, synced; or a problem prevented that.
    Flushed {
        #[bincode(with_serde)]
        epoch: Epoch,
        problem: Option<String>,
    },
    /// Before a restart: the places to read this rank's image from. If the epoch was only staged, `problem` says why the image is not whole on the slow tier
    /// now.
    Recovered {
        #[bincode(with_serde)]
        epoch: Epoch,
        gathered: Gathered,
        problem: Option<String>,
    },
    /// Before the application comes back: the id by which it has known this rank since the job began.
    KnownAs(KnownAs),
    /// The process is about to execute this program, which cannot be split: no agent comes any more.
    BecomesUnsplit { program: String },
}

/// The process id by which an application knows a rank, in all launches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct KnownAs {
    pub pid: u32,
    /// The PID namespace in which the rank had that id; unknown in images of earlier releases.
    pub born: Namespace,
}

/// Another rank that had its id in the same namespace as the one that is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Neighbour {
    /// By which the application knows it.
    pub known: u32,
    /// The kernel's id of it in this launch, and where.
    pub pid: u32,
    pub namespace: Namespace,
}

/// The identity of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Hello {
    #[bincode(with_serde)]
    pub rank: Rank,
    pub size: u32,
    pub pid: u32,
    pub host: String,
    /// The PID namespace that `pid` belongs to.
    pub namespace: Namespace,
    /// [`crate::launch::Launch::launch`].
    pub launch: String,
    /// The epoch that this process is restored from.
    #[bincode(with_serde)]
    pub restarted_from: Option<Epoch>,
    /// This agent has been connected before, and has lost its coordinator.
    pub returns: bool,
    /// It joins because it starts MPI: the launch did not begin with this process, but with one that has started its program.
    pub late: bool,
}

/// Messages of a rank during an attempt.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum Progress {
    /// The clock of every group that this rank knows: (ggid, the count that binds the other members).
    Clocks { clocks: Vec<(u64, u64)> },
    /// This rank has come to know a group after it has sent its clocks. The message comes before its next raise and state.
    Joined { ggid: u64 },
    /// This rank went past a target: SEQ is the group's new target.
    Raise { ggid: u64, seq: u64 },
    /// The rank's current activity. Sent when it changes, after every order and for every poll.
    State(State),
    /// The reasons that forbid a checkpoint, one each; empty if there are none.
    CheckResult {
        #[bincode(with_serde)]
        refusals: Vec<Refusal>,
    },
    /// Messages sent and received since the job began, one round of pulling after the order.
    Counts {
        round: u32,
        sent: u64,
        received: u64,
    },
    /// MPI objects are in the form that a restart starts from.
    Sealed,
    /// The memory that is left to be written does not change any more when the application runs on.
    Apart,
    /// The image is on disk and synced.
    Written(Written),
    /// The number of bytes to write.
    Sized(Sized),
    /// Every block of the image is on some tier.
    Staged(Written, Moved),
    /// The image was not written, for this reason (file, cause, what to do).
    WriteFailed {
        #[bincode(with_serde)]
        reason: Refusal,
    },
    /// The application runs again.
    Released,
    /// The activity that has kept a rank from its still point for long, in words; empty: the rank has come.
    Waits { what: String },
    /// This rank is late for operations that others have returned from, and computes: can they be carried out for it in advance? It is repeated until the
    /// rank has come.
    Asks { missing: Vec<Missing> },
    /// The answer to [`Order::Tell`].
    Told(MemberAnswer),
    /// Sent at the check: (ggid, sum of the names of communicators that this rank has given up there), the same on all members.
    GivenUp { sums: Vec<(u64, u64)> },
}

/// A rank's report of itself: see `stillpoint_clock::safe_state::Report`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct State {
    pub doing: Doing,
    /// The version of the newest order ([`Order::Targets`], [`Order::Raised`], [`Order::Advance`]) that had been applied before the agent looked.
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

/// The result of a rank's write.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Written {
    /// Length of the image file.
    pub stored_bytes: u64,
    /// Bytes of memory that the image holds, before compression, including those in images of earlier epochs.
    pub bytes: u64,
    /// The image's digest (`stillpoint_image::format`).
    pub digest: u128,
    /// Time spent writing and syncing.
    pub seconds: f64,
    /// The contract between the halves that the image's upper half was built with.
    pub contract: u32,
    /// Earlier epochs whose images hold parts of it, ascending.
    #[bincode(with_serde)]
    pub needs: Vec<Epoch>,
    /// The prediction for an incremental image, and the result.
    #[bincode(with_serde)]
    pub increment: Option<Box<Record>>,
}

/// To a rank's agent.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ToAgent {
    /// The rank belongs to the job.
    Welcome,
    /// The rank does not belong to the job (wrong launch, rank taken, ...), for this reason. The connection ends.
    Rejected {
        #[bincode(with_serde)]
        reason: Refusal,
    },
    /// Something about the attempt under way, or the start of one ([`Order::Begin`]).
    Checkpoint { attempt: u64, order: Order },
    /// Every rank has arrived at this barrier.
    BarrierPassed { name: String },
    /// Every rank's fast tier, by rank.
    Peers(Vec<Announced>),
    /// Copy this agent's blocks of the epoch to the images in `directory`.
    Flush {
        #[bincode(with_serde)]
        epoch: Epoch,
        directory: String,
    },
    /// The epoch is durable: its parts on fast tiers are not needed any more.
    Durable {
        #[bincode(with_serde)]
        epoch: Epoch,
    },
    /// Sent before a restart for which blocks were gathered: the epoch to restart from. It is another one, and `reason` says why, if the staged epoch could
    /// not be made whole.
    CarryOn {
        #[bincode(with_serde)]
        epoch: Option<Epoch>,
        reason: String,
    },
    /// Tell the user this, on the rank's stderr.
    Say { text: String },
    /// Another process is this rank now: this process does not use MPI, and has started a program that does. The connection ends.
    Replaced,
    /// In a restart: the other ranks whose ids the application may know on this rank's host.
    Neighbours(Vec<Neighbour>),
}

/// Orders to a rank during an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Order {
    /// Set the flag, `membarrier`, send [`Progress::Clocks`].
    Begin(Begin),
    /// (ggid, TARGET) of every group in which others are ahead of this rank. Store them, then `pending := 2`.
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
    /// Answer with [`Progress::Told`] about these operations. With `hold`, a rank that is late itself first holds its application, until [`Order::CarryOut`]
    /// comes.
    Tell { hold: bool, missing: Vec<Missing> },
    /// Carry out these operations in advance, in this order, and let the application run on. If there are none, only let it run on.
    CarryOut { operations: Vec<Operation> },
    /// Say [`Progress::State`] now, with this number.
    Poll { poll: u32 },
    /// Answer with the reasons that forbid a checkpoint.
    Check,
    /// Make one more round of progress, then say [`Progress::Counts`].
    Drain { round: u32 },
    /// Bring MPI objects into the form that a restart starts from.
    Seal,
    /// Write the image to [`Begin::image`] and sync it.
    Write,
    /// Write the image like [`Order::Write`], but send [`Progress::Apart`] as soon as the application may run on. Copies of memory that it changes meanwhile
    /// take at most `most` bytes; `None`: a fair part of the free memory.
    WriteApart { most: Option<u64> },
    /// Every rank is apart: release the application, and go on writing.
    RunOn,
    /// Say [`Progress::Sized`].
    Size,
    /// Write the image's blocks to their tiers.
    Stage(Assignment),
    /// The epoch is committed: release the application.
    Committed,
    /// There will be no epoch: remove half-written files, release the application. `again`: a suspend that a signal asked for is tried again.
    Abort { reason: String, again: bool },
    /// The epoch is committed and the job is to end: end the process with status 0.
    Terminate,
}

/// The terms of a checkpoint that begins.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Begin {
    /// The epoch's number.
    #[bincode(with_serde)]
    pub epoch: Epoch,
    /// The directory that is being written, absolute. It exists when [`Order::Write`] comes.
    pub directory: String,
    /// This rank's image: `directory` / its name.
    pub image: String,
    /// `none`, `lz4` or `zstd[:level]`.
    pub compress: String,
    /// Whether the image may have chunks in earlier epochs' images.
    pub incremental: Incremental,
    /// The scope of deduplication: equal memory within it is written once.
    pub dedup: Dedup,
}

/// The ranks whose equal memory is written once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub enum Dedup {
    /// No rank: nothing is deduplicated.
    #[default]
    Off,
    /// One rank: its own equal memory is written once.
    Rank,
    /// All ranks of the node. From the check on, the process with this id keeps the table of what was written already; the other ranks find it there when
    /// they write.
    Node { keeper: u32 },
}

/// The parts of memory that an image may leave to earlier images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub enum Incremental {
    /// No parts: the image is complete.
    #[default]
    Off,
    /// Chooses between `Pages` and `Blocks` whichever is faster, judging by the times of the last epochs.
    Auto,
    /// Pages that were not written to.
    Pages,
    /// Blocks whose contents are the same as before.
    Blocks,
}

impl Incremental {
    /// Whether it may hash memory.
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
