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
    /// The agent leaves out the operation that a thread says it is inside.
    const LEAVE_OUT: bool = true;
    /// A rank in place has the others come instead of standing still inside.
    const IN_PLACE: bool = true;
    /// A rank that stands still inside an operation takes its increment back, as one that stands still before it does.
    const STAND_BEFORE: bool = true;
    /// After a restart, a rank that stood inside an operation has not begun it.
    const AGAIN: bool = true;
    /// Parked and waiting ranks pull messages in.
    const PULL: bool = true;
    /// A synchronous send is over when its receive has begun, and not when its message was drained.
    const UNTIL_TAKEN: bool = true;
    /// A look that tells of an end (`MPI_Request_get_status`) binds as a wait does.
    const BIND_WHEN_SEEN: bool = true;
    /// Operations that have begun on a communicator bind before it is given up.
    const BIND: bool = true;
    /// Giving a communicator up is counted.
    const COUNT_GIVING_UP: bool = true;
    /// ... by the clock of the set of members, which outlives the communicator.
    const OUTLIVE: bool = true;
    /// A rank that was in a trivial barrier enters it again after a restart.
    const ENTER_AGAIN: bool = true;
    /// A target that a rank raises is also its own, when its agent says so.
    const OWN_RAISES: bool = true;
    /// A late rank stands still until it is answered.
    const STAND: bool = true;
    /// Nothing is carried out in advance before every rank that is late stands.
    const ALL_STAND: bool = true;
    /// No rank carries anything out while it stands still inside a collective operation, or before one.
    const STAND_OUTSIDE: bool = true;
    /// Nothing is carried out before every rank that is late has nothing to give.
    const ALL_ABLE: bool = true;
    /// ... and every member has begun it or stands.
    const ALL_COME: bool = true;
    /// Ranks that have not answered are waited for.
    const ALL_ANSWER: bool = true;
    /// All late ranks carry out their granted operations in one order.
    const ONE_ORDER: bool = true;
    /// The log notes an operation together with its number.
    const OWN_NUMBER: bool = true;
    /// Operations that are carried out in advance are counted.
    const COUNT_AHEAD: bool = true;
    /// ... when it is over.
    const COUNT_WHEN_OVER: bool = true;
    /// ... and only then: not when the application comes to it.
    const COUNT_ONCE: bool = true;
    /// The application is served the operation that was carried out in advance.
    const SERVE: bool = true;
    /// ... after a restart as well.
    const KEEP: bool = true;
    /// Granted operations are carried out, whatever becomes of the checkpoint.
    const CARRY_ON: bool = true;
    /// A rank that stands until it is answered goes on when the checkpoint is over.
    const LET_GO: bool = true;
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
    /// The last value that came becomes the target.
    NoMaximum: MAXIMUM;,
    /// No rank raises a target.
    NoRaise: RAISE;,
    /// Raises end at the coordinator.
    NoPassingOn: PASS_ON;,
    /// Operations are begun before the targets are known.
    NoAwaiting: AWAIT_TARGETS;,
    /// An operation whose end the application is told of binds no rank.
    NoTelling: TELL;,
    /// The agent looks once.
    LooksOnce: LOOK_TWICE;,
    /// Reports that crossed an order count.
    StaleReports: CURRENT;,
    /// Parked ranks are never let on.
    NoAdvance: ADVANCE;,
    /// A rank in a collective operation is taken for one that needs a parked one.
    NoEndOfCollectives: COLLECTIVES_END;,
    /// The drain begins when no rank runs.
    EarlyDrain: ALL_PARKED;,
    /// Two groups share a clock.
    NoCollisions: COLLISIONS;,
    /// Targets are there, but no rank has to reach them.
    NoReaching: REACH;,
    /// The drain ends when nothing moves.
    NoSums: SUMS;,
    /// A cell is used again while the agent may still write into it for the clock before.
    NoRest: REST;,
    /// A rank that waits in a trivial barrier waits in silence.
    NoAnnouncing: ANNOUNCE;,
    /// A rank that has found a trivial barrier over parks.
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
    /// A rank that returns from an operation while a checkpoint is pending says nothing of it.
    NoReturning: RETURN;,
    /// A rank that stands inside an operation that binds goes on standing there.
    NoLettingOn: LET_ON;,
    /// A rank that is needed elsewhere waits inside an operation that no member has to come to.
    NoCalling: CALL;,
    /// No rank tells of an operation that the agent has not read because a thread said it was inside.
    NoTellingFirst:; TELL_FIRST,
    /// A thread is stopped with a word that it owes.
    StoppedOwing:; OWES_INSIDE,
    /// Operations that have begun bind, whether they can be begun again or not.
    NoLeavingOut:; LEAVE_OUT,
    /// Operations in place are left out like all others.
    LeavesOutInPlace:; IN_PLACE,
    /// A rank that stands inside an operation counts as having begun it.
    StandsBehind:; STAND_BEFORE,
    /// After a restart, a rank that stood inside counts the operation twice.
    CountsTwice:; AGAIN,
    /// A synchronous send is over when its message was drained.
    OverWhenDrained:; UNTIL_TAKEN,
    /// A look that tells of an end binds no rank.
    NoBindingWhenSeen:; BIND_WHEN_SEEN,
    /// No agent says that its rank has come to know a group.
    NoJoining:; JOIN,
    /// Operations pending on a communicator that is given up bind no rank.
    NoBinding:; BIND,
    /// Giving up is not counted.
    NoCountOfGivingUp:; COUNT_GIVING_UP,
    /// Giving up is counted by the clock that goes with it.
    CountedOnWhatGoes:; OUTLIVE,
    /// A restart leaves ranks in barriers that are gone.
    NoEnteringAgain:; ENTER_AGAIN,
    /// A rank has others come to an operation, and need not come itself.
    NoOwnRaises:; OWN_RAISES,
    /// A late rank goes on while it waits for an answer.
    NoStanding:; STAND,
    /// A rank that is somewhere else is taken for one that stands.
    AnySomewhereElse:; ALL_STAND,
    /// A rank that stands still inside an operation, or before one, carries others out there.
    StandsInOne:; STAND_OUTSIDE,
    /// A rank that can do its part does it, although another one cannot.
    AnyUnable:; ALL_ABLE,
    /// A rank that says nothing of an operation is taken for one that has begun it.
    AnyUnknown:; ALL_COME,
    /// A rank that has not answered is taken for one that has begun everything.
    AnyUnanswered:; ALL_ANSWER,
    /// Each late rank carries operations out in an order of its own.
    NoOrder:; ONE_ORDER,
    /// An older entry in an operation's place in the log is told of a nonblocking operation.
    TellsOlder:; OWN_NUMBER,
    /// Operations that are carried out in advance are not counted.
    NoCountAhead:; COUNT_AHEAD,
    /// Operations that are carried out in advance are counted when they begin.
    CountsEarly:; COUNT_WHEN_OVER,
    /// The application counts an operation that has been counted in advance.
    CountsServed:; COUNT_ONCE,
    /// The application begins an operation that has been carried out in advance.
    NoServing:; SERVE,
    /// Operations kept for the application are gone after a restart.
    NoKeeping:; KEEP,
    /// Granted operations are forgotten when the checkpoint is over.
    NoCarryingOn:; CARRY_ON,
    /// A rank that stands until it is answered still stands when the checkpoint is over.
    NoLettingGo:; LET_GO,
}
