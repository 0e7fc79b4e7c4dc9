//! Jobs with an essential step left out.

use stillpoint_clock::steps::{Every, Steps};

/// Steps that the surroundings of the clock take.
pub trait Mutant: Steps {
    /// The agent sets the flag before it reads the clocks.
    const FLAG_FIRST: bool = true;
    /// The agent passes raises on before the report of what the rank did then.
    const RAISE_FIRST: bool = true;
    /// The agent says that its rank has come to know a group.
    const JOIN: bool = true;
    /// A stub that sees the flag takes its increment back and decides first.
    const TAKE_BACK: bool = true;
    /// A stub that has taken its increment back tells how far its clock binds before it may be stopped.
    const TELL_FIRST: bool = true;
    /// A thread that owes the others a word, because it has returned or has taken back, cannot be stopped.
    const OWES_INSIDE: bool = true;
    /// The agent leaves out what a thread says that it is inside.
    const LEAVE_OUT: bool = true;
    /// Who is in place has the others come instead of standing still inside.
    const IN_PLACE: bool = true;
    /// Who stands still inside an operation takes its increment back, as who stands still before it.
    const STAND_BEFORE: bool = true;
    /// After a restart who stood inside has not begun the operation.
    const AGAIN: bool = true;
    /// Parked and waiting ranks pull messages in.
    const PULL: bool = true;
    /// What has begun on a communicator binds before it is given up.
    const BIND: bool = true;
    /// Giving a communicator up is counted.
    const COUNT_GIVING_UP: bool = true;
    /// ... by the clock of the set of members, which outlives the communicator.
    const OUTLIVE: bool = true;
    /// A rank that was in a trivial barrier enters it again after a restart.
    const ENTER_AGAIN: bool = true;
    /// What a rank raises is a target of its own too, when its agent says so.
    const OWN_RAISES: bool = true;
}

impl Mutant for Every {}

/// Defines a mutant: `leave_out!(Name: FROM_CLOCK;)` or `leave_out!(Name: ; FROM_SURROUNDINGS)`.
macro_rules! leave_out {
    ($($(#[$doc:meta])* $name:ident: $($step:ident)?; $($around:ident)?,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name;
        impl Steps for $name { $(const $step: bool = false;)? }
        impl Mutant for $name { $(const $around: bool = false;)? }
    )*};
}

leave_out! {
    /// A target is what came last.
    NoMaximum: MAXIMUM;,
    /// Nobody raises a target.
    NoRaise: RAISE;,
    /// Raises end at the coordinator.
    NoPassingOn: PASS_ON;,
    /// Operations are begun before the targets are known.
    NoAwaiting: AWAIT_TARGETS;,
    /// What the application is told binds nobody.
    NoTelling: TELL;,
    /// The agent looks once.
    LooksOnce: LOOK_TWICE;,
    /// Reports that crossed an order count.
    StaleReports: CURRENT;,
    /// Parked ranks are never let on.
    NoAdvance: ADVANCE;,
    /// A rank in a collective operation is taken for one that needs a parked one.
    NoEndOfCollectives: COLLECTIVES_END;,
    /// The drain begins when nobody runs.
    EarlyDrain: ALL_PARKED;,
    /// Two groups share a clock.
    NoCollisions: COLLISIONS;,
    /// Targets are there, but nobody has to reach them.
    NoReaching: REACH;,
    /// The drain ends when nothing moves.
    NoSums: SUMS;,
    /// A cell is used again while the agent may still write into it for the clock before.
    NoRest: REST;,
    /// Who waits in a trivial barrier waits in silence.
    NoAnnouncing: ANNOUNCE;,
    /// Who has found a trivial barrier over parks.
    ParksPast: GO_ON_PAST;,
    /// Nonblocking operations under two-phase commit are not noticed.
    NoRefusing: REFUSE;,
    /// Clocks are read before the flag is set.
    ReadsBeforeFlag:; FLAG_FIRST,
    /// A report overtakes the raise of what the rank did before.
    RaisesLate:; RAISE_FIRST,
    /// The increment stays, whatever the flag says.
    NoTakingBack:; TAKE_BACK,
    /// With an operation that does not bind yet, what was begun before it does not bind either.
    NoNoting: NOTE;,
    /// Parked ranks sleep.
    NoPulling:; PULL,
    /// Who returns from an operation while a checkpoint is pending says nothing of it.
    NoReturning: RETURN;,
    /// Who stands inside an operation that binds goes on standing there.
    NoLettingOn: LET_ON;,
    /// Who is needed elsewhere waits inside an operation that nobody has to come to.
    NoCalling: CALL;,
    /// What the agent has not read because a thread said it was inside is told by nobody.
    NoTellingFirst:; TELL_FIRST,
    /// A thread is stopped with a word that it owes.
    StoppedOwing:; OWES_INSIDE,
    /// What is begun binds, whether it can be begun again or not.
    NoLeavingOut:; LEAVE_OUT,
    /// What is in place is left out like everything else.
    LeavesOutInPlace:; IN_PLACE,
    /// Who stands inside an operation counts as having begun it.
    StandsBehind:; STAND_BEFORE,
    /// After a restart who stood inside counts the operation twice.
    CountsTwice:; AGAIN,
    /// Nobody says that it has come to know a group.
    NoJoining:; JOIN,
    /// What is pending on a communicator that is given up binds nobody.
    NoBinding:; BIND,
    /// Giving up is not counted.
    NoCountOfGivingUp:; COUNT_GIVING_UP,
    /// Giving up is counted by the clock that goes with it.
    CountedOnWhatGoes:; OUTLIVE,
    /// A restart leaves ranks in barriers that are gone.
    NoEnteringAgain:; ENTER_AGAIN,
    /// A rank has others come to an operation, and need not come itself.
    NoOwnRaises:; OWN_RAISES,
}
