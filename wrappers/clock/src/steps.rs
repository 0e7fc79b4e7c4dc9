//! The steps that the algorithm cannot do without, as constants.
//!
//! The code of this crate asks for each of them by name, and Stillpoint takes all: [`Every`] is the only
//! implementation outside the tests, and with it the compiler removes the questions. The model
//! checker runs the same code with one step left out at a time, and has to find the fault.

use core::fmt::Debug;
use core::hash::Hash;

/// Which steps are taken.
pub trait Steps:
    Copy + Clone + Debug + Default + PartialEq + Eq + Hash + Send + Sync + 'static
{
    /// A target is the maximum over all ranks (section 4.2.1), not the last value that came.
    const MAXIMUM: bool = true;
    /// A rank that goes past a target raises it (section 4.2.2).
    const RAISE: bool = true;
    /// A raise is passed on to the other ranks.
    const PASS_ON: bool = true;
    /// A rank begins nothing between the flag and its targets.
    const AWAIT_TARGETS: bool = true;
    /// A rank has to reach every target before it stands still for good (Algorithm 3).
    const REACH: bool = true;
    /// A nonblocking operation binds the other members once the application has been told of its end.
    const TELL: bool = true;
    /// A blocking operation that a member has returned from binds the others.
    const RETURN: bool = true;
    /// A rank that is blocked in an operation that binds goes on.
    const LET_ON: bool = true;
    /// A rank that is blocked in an operation that does not bind, and is needed elsewhere, makes it bind.
    const CALL: bool = true;
    /// The number up to which a clock binds is noted before an operation begins that does not bind.
    const NOTE: bool = true;
    /// The agent looks at the driver before and after it looks at the targets.
    const LOOK_TWICE: bool = true;
    /// A report that crossed an order does not count.
    const CURRENT: bool = true;
    /// When no rank can get on, parked ranks are let past one more park point.
    const ADVANCE: bool = true;
    /// Collective operations alone are no reason to let ranks on soon: they end without the parked ones.
    const COLLECTIVES_END: bool = true;
    /// The drain begins when every rank is parked.
    const ALL_PARKED: bool = true;
    /// The drain ends when as many messages have been received as were sent.
    const SUMS: bool = true;
    /// Two groups with one id are told apart.
    const COLLISIONS: bool = true;
    /// A cell that has been given back is not used again while a checkpoint is pending.
    const REST: bool = true;
    /// Two-phase commit: a rank that has targets ahead calls the others into the trivial barrier that it waits in.
    const ANNOUNCE: bool = true;
    /// Two-phase commit: a rank that has found its trivial barrier over does not park before the operation.
    const GO_ON_PAST: bool = true;
    /// Two-phase commit: nonblocking operations make a checkpoint refuse.
    const REFUSE: bool = true;
}

/// All of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Every;

impl Steps for Every {}
