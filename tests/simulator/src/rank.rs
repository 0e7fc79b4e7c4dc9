//! The application's side of a rank: its driver thread's way through the stubs.

use stillpoint_clock::rank::{
    Activity, Begin, Finish, Pending, Tell, all_reached, commit_begin, commit_finish, may_park,
    tell,
};

use crate::agent::Agent;
use crate::ahead::Ahead;
use crate::barrier::Barrier;
use crate::clocks::{Cell, Clocks};
use crate::inside::InsideOn;
use crate::mutant::Mutant;
use crate::program::Op;

/// The point that a rank has reached in its next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// In the application, or blocked in a call that waits for a message.
    Before,
    /// The optimistic increment is done, the flag not yet tested.
    Incremented,
    /// The flag was seen and the increment taken back.
    Deciding,
    /// Parked before a collective operation and let past by an advance.
    Passing,
    /// In the trivial barrier before a collective operation, under two-phase commit.
    Barrier(Barrier),
    /// Parked in it and let past by an advance.
    Calling(Barrier),
    /// In a collective operation that binds, and about which the agent knows nothing else.
    Inside,
    /// The thread has said that it is inside, and has counted nothing yet.
    Said,
    /// ... and has counted, the flag not yet tested.
    Counted,
    /// The flag was seen and the increment taken back: about to tell what binds before anything else.
    TakenBack,
    /// Counted without a flag, and about to say that it is inside.
    Unsaid,
    /// In an operation that the thread has said it is inside.
    Open,
    /// Stood still inside and was let past by an advance.
    LetPast,
    /// Stood still inside when the job began again: the call is made anew.
    Again,
    /// The operation that it was inside is over: about to tell that it binds.
    Returned,
    /// In a synchronous send.
    Sending,
    /// About to give a communicator up on which more has been begun than binds the others.
    Binding { begun: u64 },
    /// About to tell the application that a nonblocking operation is over.
    Telling { begun: u64 },
    /// At the end of a call.
    Leaving,
    /// In an operation that it carries out ahead of its application, which is stopped or waits for a message.
    Carrying,
}

/// A rank with its agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rank {
    /// The next operation's number.
    pub at: usize,
    pub step: Step,
    pub clocks: Clocks,
    /// By communicator: operations begun, and the newest that every member has to come to.
    pub begun: Vec<u32>,
    pub bound: Vec<u32>,
    /// Trivial barriers entered since the last restart, by communicator as far as there are any.
    pub entered: Vec<u32>,
    /// Nonblocking operations begun.
    pub nonblocking: u32,
    /// Communicators that the rank has given up, as bits.
    pub given_up: u128,
    pub pending: Pending,
    pub advances: u32,
    /// The driver thread's own account of what it does.
    pub doing: Activity,
    /// Let past a park point: not stopped before it has done something.
    pub let_on: bool,
    /// Past the safe state: stays parked whatever the targets.
    pub held: bool,
    /// Has been through a checkpoint.
    pub carried: bool,
    /// Raises that the agent has yet to send: clock and number.
    pub raises: Vec<(usize, u64)>,
    /// The place that the thread says it is inside.
    pub inside: Option<InsideOn>,
    /// Messages by the other rank: sent to it, taken in from it, given to the application.
    pub sent: Vec<u32>,
    pub pulled: Vec<u32>,
    pub taken: Vec<u32>,
    /// A synchronous send was called over although its receive had not begun.
    pub told_early: bool,
    pub ahead: Ahead,
    pub agent: Agent,
}

impl Rank {
    pub fn new(ranks: usize, communicators: usize, clocks: Clocks) -> Rank {
        Rank {
            at: 0,
            step: Step::Before,
            clocks,
            given_up: 0,
            begun: vec![0; communicators],
            bound: vec![0; communicators],
            entered: vec![],
            nonblocking: 0,
            pending: Pending::No,
            advances: 0,
            doing: Activity::Running,
            let_on: false,
            held: false,
            carried: false,
            raises: vec![],
            inside: None,
            sent: vec![0; ranks],
            pulled: vec![0; ranks],
            taken: vec![0; ranks],
            told_early: false,
            ahead: Ahead::default(),
            agent: Agent::default(),
        }
    }

    pub fn reached<S: Mutant>(&self) -> bool {
        all_reached::<S>(
            self.clocks
                .all()
                .map(|cell| (cell.count.seq(), cell.target)),
        )
    }

    pub fn begun(&self) -> u64 {
        self.clocks.all().map(|cell| cell.count.seq()).sum()
    }

    pub fn counts(&self) -> (u64, u64) {
        let sum = |counts: &[u32]| counts.iter().map(|count| u64::from(*count)).sum();
        (sum(&self.sent), sum(&self.pulled))
    }

    /// The activity that the agent infers from the driver's state.
    pub fn activity(&self) -> Activity {
        let collective = matches!(
            self.step,
            Step::Binding { .. }
                | Step::Incremented
                | Step::Deciding
                | Step::Passing
                | Step::Barrier(_)
                | Step::Calling(_)
                | Step::Inside
                | Step::Said
                | Step::Counted
                | Step::Unsaid
                | Step::Open
                | Step::LetPast
                | Step::Again
                | Step::Carrying
        );
        match self.doing {
            Activity::Running if collective => Activity::InCollective,
            doing => doing,
        }
    }

    /// Whether the stop signal would park it; `busy` while it has something left to do.
    pub fn can_stop<S: Mutant>(&self, busy: bool) -> bool {
        let owes = matches!(self.step, Step::TakenBack | Step::Returned);
        (self.step == Step::Before || owes && !S::OWES_INSIDE)
            && self.doing == Activity::Running
            && !self.ahead.stands
            && !(self.let_on && busy)
            && may_park(self.pending, self.reached::<S>(), self.advances)
    }

    /// Whether a parked rank has to go on.
    pub fn can_wake<S: Mutant>(&self) -> bool {
        let stays = self.held || self.ahead.stands;
        self.doing == Activity::Parked && !stays && (!self.reached::<S>() || self.advances > 0)
    }

    /// A parked rank goes on, because a target is ahead or because it is let past.
    pub fn wake<S: Mutant>(&mut self) {
        let advanced = self.reached::<S>();
        self.advances -= u32::from(advanced);
        self.doing = Activity::Running;
        match self.step {
            Step::Leaving => self.next(),
            Step::Deciding if advanced => self.step = Step::Passing,
            Step::Barrier(barrier) if advanced => self.step = Step::Calling(barrier),
            Step::Open => {
                self.count_again::<S>();
                if advanced {
                    self.step = Step::LetPast;
                }
            }
            _ => {}
        }
        self.let_on = advanced;
    }

    /// The checkpoint is over.
    pub fn release<S: Mutant>(&mut self) {
        if self.stands_inside() {
            self.count_again::<S>();
        }
        if self.pending != Pending::No {
            self.ahead.answered::<S>();
        }
        self.pending = Pending::No;
        self.advances = 0;
        self.carried |= self.held;
        self.held = false;
        if self.doing == Activity::Parked && self.step == Step::Leaving {
            self.next();
        }
        self.doing = Activity::Running;
    }

    pub fn next(&mut self) {
        self.at += 1;
        self.step = Step::Before;
        self.let_on = false;
    }

    /// The call has done its work.
    pub fn leave(&mut self) {
        self.doing = Activity::Running;
        match self.pending {
            Pending::No => self.next(),
            _ => self.step = Step::Leaving,
        }
    }

    /// The park point at the end of a call.
    pub fn finish<S: Mutant>(&mut self) {
        match commit_finish(self.pending, self.reached::<S>(), self.advances) {
            Finish::Park => self.doing = Activity::Parked,
            Finish::Return { uses_advance } => {
                self.advances -= u32::from(uses_advance);
                self.next();
                self.let_on = uses_advance;
            }
        }
    }

    /// The activity of a call that has to wait for other ranks.
    fn when_blocked<S: Mutant>(&self, busy: bool) -> Activity {
        match self.pending {
            Pending::Targeted if self.reached::<S>() => Activity::Parked,
            Pending::No => self.doing,
            _ if busy => self.doing,
            _ => Activity::Waiting,
        }
    }

    pub fn would_block<S: Mutant>(&self, busy: bool) -> bool {
        self.when_blocked::<S>(busy) != self.doing
    }

    pub fn blocked<S: Mutant>(&mut self, busy: bool) {
        self.doing = self.when_blocked::<S>(busy);
    }

    /// The increment of a collective operation that binds, before the flag is tested.
    pub fn increment(&mut self, clock: usize) {
        self.clocks.of_mut(clock).count.begin();
        self.step = Step::Incremented;
    }

    pub fn flag_is_seen(&mut self, clock: usize) {
        self.take_back(clock);
        self.step = Step::Deciding;
    }

    pub fn take_back(&mut self, clock: usize) {
        self.clocks.of_mut(clock).count.take_back();
    }

    pub fn decide<S: Mutant>(&mut self, clock: usize, op: Op) {
        let Cell { count, target, .. } = self.clocks.of(clock);
        match commit_begin::<S>(
            self.pending,
            self.reached::<S>(),
            self.advances,
            count.seq(),
            *target,
        ) {
            Begin::AwaitTargets => {}
            Begin::Park => self.doing = Activity::Parked,
            Begin::Go {
                raise,
                uses_advance,
            } => {
                self.doing = Activity::Running;
                self.advances -= u32::from(uses_advance);
                self.go(clock, op, raise);
            }
        }
    }

    pub fn go(&mut self, clock: usize, op: Op, raise: bool) {
        let count = &self.clocks.of_mut(clock).count;
        count.begin();
        if raise {
            let begun = count.seq();
            self.raise(clock, begun);
        }
        self.enter(op, clock);
    }

    pub fn raise(&mut self, clock: usize, begun: u64) {
        let cell = self.clocks.of_mut(clock);
        if cell.target < begun {
            cell.target = begun;
            self.raises.push((clock, begun));
        }
    }

    /// The operation begins, and binds if it cannot be begun again.
    pub fn enter(&mut self, op: Op, clock: usize) {
        if let Some(on) = op.on() {
            self.begun[on] += 1;
            if !op.is_repeatable() {
                self.bound[on] = self.begun[on];
            }
        }
        match op {
            Op::Start { .. } => {
                self.nonblocking += 1;
                self.leave();
            }
            _ if op.is_said() => {
                self.inside = op.on().map(|on| InsideOn { on, clock });
                self.step = Step::Open;
            }
            _ => self.step = Step::Inside,
        }
    }

    /// Operations that have begun on a communicator bind before the rank gives it up.
    pub fn bind<S: Mutant>(&mut self, on: usize, clock: usize, set: usize) {
        self.doing = Activity::Running;
        if S::BIND
            && let Some(begun) = self.clocks.of_mut(clock).count.bind()
        {
            self.bound[on] = self.begun[on];
            if self.pending != Pending::No {
                self.step = Step::Binding { begun };
                return;
            }
        }
        self.count_giving_up::<S>(set);
    }

    /// Giving up is counted by the clock of the set of members.
    pub fn count_giving_up<S: Mutant>(&mut self, set: usize) {
        match S::COUNT_GIVING_UP {
            true => self.increment(set),
            false => self.step = Step::Inside,
        }
    }

    /// A nonblocking operation is over, and the application is about to be told.
    pub fn tell<S: Mutant>(&mut self, on: usize, number: u32, clock: usize) {
        self.doing = Activity::Running;
        self.bound[on] = number.max(self.bound[on]);
        let count = &self.clocks.of_mut(clock).count;
        let news = S::TELL.then(|| count.bind()).flatten();
        match news.filter(|_| self.pending != Pending::No) {
            None => self.leave(),
            Some(begun) => self.step = Step::Telling { begun },
        }
    }

    /// Whether the other members know of it.
    pub fn tells<S: Mutant>(&mut self, clock: usize, begun: u64) -> bool {
        let target = self.clocks.of(clock).target;
        self.does(clock, begun, tell::<S>(self.pending, begun, target))
    }

    /// Does everything that has to be done before the thread goes on; false: not yet.
    pub fn does(&mut self, clock: usize, begun: u64, tell: Tell) -> bool {
        match tell {
            Tell::AwaitTargets => return false,
            Tell::Raise => self.raise(clock, begun),
            Tell::Return => {}
        }
        true
    }
}
