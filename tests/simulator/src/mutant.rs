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
    /// A synchronous send is over when its receive has begun, and not when its message was drained.
    const UNTIL_TAKEN: bool = true;
    /// A look that tells of an end (`MPI_Request_get_status`) binds as a wait does.
    const BIND_WHEN_SEEN: bool = true;
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
    /// Who is late stands still until it is answered.
    const STAND: bool = true;
    /// Nothing is carried out in advance before every rank that is late stands.
    const ALL_STAND: bool = true;
    /// Nobody carries anything out where it stands still inside a collective operation, or before one.
    const STAND_OUTSIDE: bool = true;
    /// Nothing is carried out before every rank that is late has nothing to give.
    const ALL_ABLE: bool = true;
    /// ... and every member has begun it or stands.
    const ALL_COME: bool = true;
    /// Who has not answered is waited for.
    const ALL_ANSWER: bool = true;
    /// All who are late carry out what they are granted in one order.
    const ONE_ORDER: bool = true;
    /// What is noted of an operation is noted with its number.
    const OWN_NUMBER: bool = true;
    /// What is carried out in advance is counted.
    const COUNT_AHEAD: bool = true;
    /// ... when it is over.
    const COUNT_WHEN_OVER: bool = true;
    /// ... and only then: not when the application comes to it.
    const COUNT_ONCE: bool = true;
    /// The application is served what was carried out in advance.
    const SERVE: bool = true;
    /// ... after a restart as well.
    const KEEP: bool = true;
    /// What has been granted is carried out, whatever becomes of the checkpoint.
    const CARRY_ON: bool = true;
    /// Who stands until it is answered goes on when the checkpoint is over.
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
    /// A synchronous send is over when its message was drained.
    OverWhenDrained:; UNTIL_TAKEN,
    /// A look that tells of an end binds nobody.
    NoBindingWhenSeen:; BIND_WHEN_SEEN,
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
    /// Who is late goes on while it waits for an answer.
    NoStanding:; STAND,
    /// Who is somewhere else is taken for one that stands.
    AnySomewhereElse:; ALL_STAND,
    /// Who stands still inside an operation, or before one, carries others out there.
    StandsInOne:; STAND_OUTSIDE,
    /// Who can do its part does it, though somebody else cannot.
    AnyUnable:; ALL_ABLE,
    /// Who says nothing of an operation is taken for one that has begun it.
    AnyUnknown:; ALL_COME,
    /// Who has not answered is taken for one that has begun everything.
    AnyUnanswered:; ALL_ANSWER,
    /// Everybody carries out what it is late for in an order of its own.
    NoOrder:; ONE_ORDER,
    /// What was in an operation's place in the log is told of a nonblocking one.
    TellsOlder:; OWN_NUMBER,
    /// What is carried out in advance is not counted.
    NoCountAhead:; COUNT_AHEAD,
    /// What is carried out in advance is counted when it is begun.
    CountsEarly:; COUNT_WHEN_OVER,
    /// The application counts what has been counted in advance.
    CountsServed:; COUNT_ONCE,
    /// The application begins what has been carried out in advance.
    NoServing:; SERVE,
    /// What was kept for the application is gone after a restart.
    NoKeeping:; KEEP,
    /// What has been granted is forgotten when the checkpoint is over.
    NoCarryingOn:; CARRY_ON,
    /// Who stands until it is answered stands when the checkpoint is over.
    NoLettingGo:; LET_GO,
}
