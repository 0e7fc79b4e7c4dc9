//! The rank's side of the clock: the decisions of a stub around a collective operation, and the conclusions that the agent
//! may draw from the outside. Algorithms 2 and 3 of the paper, as decisions without state.
//!
//! How the runtime drives it, once per collective operation (blocking, nonblocking initiation,
//! persistent start, making and freeing of communicators, finalize):
//!
//! ```text
//! cell.seq := seq + 1                       plain store, no fence
//! if pending != 0 {                         one test; the rest is out of line
//!     cell.seq := seq                       taken back: the decision comes first
//!     loop { match commit_begin(pending, reached, advances, seq, target) {
//!         AwaitTargets => sleep at the bell
//!         Park         => park, pulling messages in; look again when the bell rings
//!         Go { .. }    => if uses_advance { advances -= 1 }
//!                         say Running (Collective), then cell.seq := seq + 1
//!                         if raise { target := max(target, seq + 1); tell the agent (ggid, seq + 1) }
//!                         break } }
//! }
//! the operation
//! if pending != 0 and commit_finish(..) == Park { park }
//! ```
//!
//! The optimistic increment is sound for this reason: the agent sets `pending`, calls `membarrier`, and only then
//! reads the cells. A stub that did not see the flag has its increment read. One that saw it takes the
//! increment back; should the agent have read the larger number, the target includes an operation
//! that this rank is about to carry out anyway, and it finds its target ahead of it.
//!
//! A nonblocking operation that can be begun again counts when it is begun, without a test, and binds the other members when the
//! application is told of its end ([`crate::count`]):
//!
//! ```text
//! count.initiate()                          at the initiation
//! ...
//! if let Some(seq) = count.bind() {         before the application is told
//!     loop { match tell(pending, seq, target) {
//!         AwaitTargets => sleep at the bell
//!         Raise        => { target := seq; tell the agent (ggid, seq); break }
//!         Return       => break } } }
//! ```
//!
//! A blocking operation that can be begun again does not bind before a member returns from it. Its count does not show that. The agent
//! knows which thread is inside, and leaves its operation out of what it reads ([`crate::count::Count::committed_before_newest`]):
//!
//! ```text
//! inside := cell
//! cell.seq := seq + 1
//! if pending != 0 {                         it is not begun; what was hidden is told
//!     cell.seq := seq
//!     inside := stub
//!     as for what is told: match returned(pending, committed, target) ..
//!     begin as above }
//! the operation; while it waits, with a checkpoint pending:
//!     match blocked(pending, reached, advances, seq + 1, target) {
//!         GoOn         => wait on
//!         Stand        => cell.seq := seq; park; when the bell rings: cell.seq := seq + 1; ask again
//!         Bind { .. }  => target := seq + 1; tell the agent (ggid, seq + 1); wait on }
//! inside := stub
//! if pending != 0 { as for what is told: match returned(pending, committed, target) .. }
//! inside := outside
//! ```
//!
//! A rank that stands still inside an operation has not begun it. So it has to go on as soon as that operation is a target, every agent sees that it has to,
//! and after a restart the rank is before it. A thread that says `inside` and has not counted, or has just taken back, is read as one operation too few; so is
//! one that returns while it is looked at. Both see the flag, and tell what binds there before they can be stopped: no thread is stopped at `inside == stub`.
//! So nothing stays hidden. If a thread does not see the flag, then the agent that sets it finds the thread at `stub`, and reads everything.

use crate::steps::Steps;

/// How far a checkpoint request has come (`GatePage::pending`); the stubs test it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Pending {
    /// No checkpoint is going on.
    No = 0,
    /// Asked for; the cells' targets mean nothing yet.
    Asked = 1,
    /// The cells hold this checkpoint's targets.
    Targeted = 2,
}

impl Pending {
    /// Reads the flag; an unknown value counts as [`Pending::Asked`], which decides nothing.
    pub const fn from_word(word: u32) -> Self {
        match word {
            0 => Pending::No,
            2 => Pending::Targeted,
            _ => Pending::Asked,
        }
    }
}

/// The next step of a stub before a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Targets are on their way: wait for the bell, ask again.
    AwaitTargets,
    /// Every target is reached: park here, before the increment, and ask again when the bell rings.
    Park,
    /// Increment and carry the operation out.
    Go {
        /// The increment goes past the target: it *is* the new target, and every member must learn
        /// of it (section 4.2.2).
        raise: bool,
        /// One permission to pass a park point was used up.
        uses_advance: bool,
    },
}

/// The next step of a stub after an operation, or when it leaves any other MPI call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Return to the application.
    Return { uses_advance: bool },
    /// Every target is reached: park.
    Park,
}

/// The next step of a stub before it tells the application that a nonblocking operation is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// Nothing.
    Return,
    /// Targets are on their way: wait for the bell, ask again.
    AwaitTargets,
    /// The operations that this rank has begun become the target, and every member must learn of it.
    Raise,
}

/// The next step of a thread that is blocked inside a collective operation which it has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// Goes on waiting for the others: the operation binds, or nothing is known yet.
    GoOn,
    /// Stands still where it is, because no rank needs it, and begins anew after a restart.
    Stand,
    /// Is needed to get on: raises the target to its operation, so that the others come, and goes on.
    Bind {
        /// One permission to pass a park point was used up.
        uses_advance: bool,
    },
}

/// Whether every target of this rank is reached; `cells` are (seq, target).
pub fn all_reached<S: Steps>(cells: impl IntoIterator<Item = (u64, u64)>) -> bool {
    !S::REACH || cells.into_iter().all(|(seq, target)| seq >= target)
}

/// COMMIT_BEGIN of Algorithm 2, also for the initiation of a nonblocking operation (section 4.3.1).
///
/// `seq` and `target` are the group's own cell before the increment, `reached` is
/// [`all_reached`] of all cells, `advances` the park points that may be passed.
pub fn commit_begin<S: Steps>(
    pending: Pending,
    reached: bool,
    advances: u32,
    seq: u64,
    target: u64,
) -> Begin {
    match pending {
        Pending::No => Begin::Go {
            raise: false,
            uses_advance: false,
        },
        Pending::Asked if S::AWAIT_TARGETS => Begin::AwaitTargets,
        Pending::Asked => Begin::Go {
            raise: false,
            uses_advance: false,
        },
        Pending::Targeted if reached && advances == 0 => Begin::Park,
        Pending::Targeted => Begin::Go {
            raise: S::RAISE && seq + 1 > target,
            uses_advance: reached,
        },
    }
}

/// COMMIT_FINISH of Algorithm 2, and the park point at the end of every other MPI call.
///
/// A rank that leaves while targets are still unknown runs on: it will meet the next park point, or
/// the stop signal.
pub fn commit_finish(pending: Pending, reached: bool, advances: u32) -> Finish {
    match pending {
        Pending::No | Pending::Asked => Finish::Return {
            uses_advance: false,
        },
        Pending::Targeted if reached && advances == 0 => Finish::Park,
        Pending::Targeted => Finish::Return {
            uses_advance: reached,
        },
    }
}

/// The application is about to be told that a nonblocking operation of a group is over; `begun` operations of
/// the group have been begun here.
///
/// Until then, its buffers are as they were, and ranks that have begun the operation may begin it again after a restart.
/// From then on all members have to have begun it. It cannot wait for a park
/// point: the operation is over.
pub fn tell<S: Steps>(pending: Pending, begun: u64, target: u64) -> Tell {
    binds_from_now::<S>(pending, S::TELL && begun > target)
}

/// A blocking operation of a group is over that the thread said it was inside, or the thread has taken its increment back instead of beginning it. `committed`
/// is [`Count::committed`](crate::count::Count::committed) now.
///
/// The agent may have read one operation less, because it took the thread for one that was inside. So the thread may not be stopped before this is answered.
pub fn returned<S: Steps>(pending: Pending, committed: u64, target: u64) -> Tell {
    binds_from_now::<S>(pending, S::RETURN && committed > target)
}

fn binds_from_now<S: Steps>(pending: Pending, beyond: bool) -> Tell {
    match pending {
        Pending::No => Tell::Return,
        Pending::Asked if S::AWAIT_TARGETS => Tell::AwaitTargets,
        Pending::Targeted if beyond => Tell::Raise,
        Pending::Asked | Pending::Targeted => Tell::Return,
    }
}

/// A thread is blocked inside the operation with that number. No member is known to have returned from it unless `target` says so.
///
/// A blocking operation, too, binds only when a member returns from it: until then, ranks that have begun it can begin it anew. A rank that
/// returns while a checkpoint is pending makes it bind first ([`tell`]).
pub fn blocked<S: Steps>(
    pending: Pending,
    reached: bool,
    advances: u32,
    number: u64,
    target: u64,
) -> Blocked {
    match pending {
        Pending::No | Pending::Asked => Blocked::GoOn,
        Pending::Targeted if number <= target && S::LET_ON => Blocked::GoOn,
        Pending::Targeted if reached && advances == 0 => Blocked::Stand,
        Pending::Targeted if !S::CALL => Blocked::GoOn,
        Pending::Targeted => Blocked::Bind {
            uses_advance: reached,
        },
    }
}

/// Whether every member has to finish the operation with that number in the group's clock before an image is
/// written. An operation that does not bind is begun again after a restart.
pub fn binds(number: u64, target: u64) -> bool {
    number <= target
}

/// Whether a rank that stands somewhere else (stopped in its computation, or blocked in a receive)
/// counts as parked: the loop condition of Algorithm 3.
pub fn may_park(pending: Pending, reached: bool, advances: u32) -> bool {
    pending == Pending::Targeted && reached && advances == 0
}

/// The activity of one rank, as the job's side needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// In the application, or in an MPI call that returns without another rank's next move.
    Running,
    /// In a collective operation: returns when every member has come.
    InCollective,
    /// Blocked in a receive, probe or completion call with targets ahead; pulls messages in.
    Waiting,
    /// Every target reached; pulls messages in, begins nothing.
    Parked,
}

/// The activity that the agent may report, from what it read: `before`, then `advances` and the cells, then
/// `after` - in this order, `before` and `after` being two reads of the driver's own state.
/// A driver leaves its parked state *before* it takes an advance or increments a cell. So a rank that
/// was about to go on shows in `after`, in `advances` or in a target not reached; a rank that was
/// parked in both reads with everything reached in between has nothing left to do.
///
/// After its look, and before it sends what it saw, the agent sends the raises that the rank has left with
/// it: a raise happened before the state that followed it, and must not be overtaken by its report.
pub fn observe<S: Steps>(
    before: Activity,
    reached: bool,
    advances: u32,
    after: Activity,
) -> Activity {
    if !S::LOOK_TWICE {
        return before;
    }
    let may_be = after != Activity::Parked || reached && advances == 0;
    match before == after && may_be {
        true => after,
        false => Activity::Running,
    }
}

#[cfg(test)]
mod tests;
