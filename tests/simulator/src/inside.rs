//! A rank's way through a blocking operation that can be begun again, and through one that is in place: what Stillpoint's stubs do
//! around [`rank::blocked`](stillpoint_clock::rank::blocked) and [`rank::returned`](stillpoint_clock::rank::returned).
//!
//! The thread says that it is inside before it counts, and takes that back before it looks whether it has to tell. So the agent may take it for inside when it
//! has yet to count, or has just taken back: then the agent reads one operation too few. The thread tells the others of that one before it may be stopped.

use stillpoint_clock::rank::{Activity, Blocked, Pending, blocked, returned};

use crate::job::Job;
use crate::mutant::Mutant;
use crate::program::Op;
use crate::rank::{Rank, Step};
use crate::ranks::Ranks;

/// The place that a thread says it is inside: a communicator and its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InsideOn {
    pub on: usize,
    pub clock: usize,
}

/// Whether a rank that is inside finds that it has to do something else than to wait.
pub fn can_ask<S: Mutant>(ranks: &Ranks, number: usize) -> bool {
    let rank = &ranks[number];
    rank.step == Step::Open
        && rank.doing != Activity::Parked
        && rank.when_inside::<S>() != Blocked::GoOn
}

/// A rank that is inside stands still there, or has the others come.
pub fn ask<S: Mutant>(job: &Job<S>, ranks: &mut Ranks, number: usize) {
    let rank = &mut ranks[number];
    let Some(InsideOn { clock, .. }) = rank.inside else {
        return;
    };
    let op = job.program.ranks[number][rank.at];
    let begun = rank.clocks.of(clock).count.seq();
    match rank.when_inside::<S>() {
        Blocked::GoOn => {}
        Blocked::Stand if S::IN_PLACE && !op.is_repeatable() => rank.raise(clock, begun),
        Blocked::Stand => {
            if S::STAND_BEFORE {
                rank.take_back(clock);
            }
            rank.doing = Activity::Parked;
        }
        Blocked::Bind { uses_advance } => {
            rank.advances -= u32::from(uses_advance);
            rank.raise(clock, begun);
        }
    }
}

impl Rank {
    /// Whether the rank stands still inside an operation.
    pub fn stands_inside(&self) -> bool {
        self.step == Step::Open && self.doing == Activity::Parked
    }

    /// The newest operation of a communicator that it has begun and does not stand inside.
    pub fn begun_for_good(&self, communicator: usize) -> u32 {
        self.begun[communicator] - u32::from(self.stands_inside() && self.is_inside(communicator))
    }

    fn is_inside(&self, communicator: usize) -> bool {
        self.inside.is_some_and(|place| place.on == communicator)
    }

    fn when_inside<S: Mutant>(&self) -> Blocked {
        let Some(InsideOn { clock, .. }) = self.inside else {
            return Blocked::GoOn;
        };
        let cell = self.clocks.of(clock);
        let (number, target) = (cell.count.seq(), cell.target);
        blocked::<S>(
            self.pending,
            self.reached::<S>(),
            self.advances,
            number,
            target,
        )
    }

    /// Goes on with the operation that it stood inside: it has begun again.
    pub fn count_again<S: Mutant>(&mut self) {
        if S::STAND_BEFORE
            && let Some(InsideOn { clock, .. }) = self.inside
        {
            self.clocks.of_mut(clock).count.begin();
        }
    }

    /// Its lower half is another one, which knows nothing of the operation that the rank stands inside.
    pub fn lose_operation<S: Mutant>(&mut self, op: Op) {
        let (Some(on), true) = (op.on(), self.stands_inside()) else {
            return;
        };
        self.begun[on] -= 1;
        if !S::AGAIN {
            self.count_again::<S>();
        }
        self.step = match op {
            Op::Make { .. } => Step::Again,
            _ => {
                self.inside = None;
                Step::Before
            }
        };
    }

    /// The next step of a call that the thread says it is inside, or is about to say that.
    pub fn step_inside<S: Mutant>(&mut self, clock: usize, op: Op) {
        match self.step {
            Step::Said => {
                self.clocks.of_mut(clock).count.begin();
                self.step = Step::Counted;
            }
            Step::Counted if self.pending == Pending::No || !S::TAKE_BACK => self.enter(op, clock),
            Step::Counted => {
                self.take_back(clock);
                self.inside = None;
                self.step = Step::TakenBack;
            }
            Step::TakenBack => {
                let told = !S::TELL_FIRST || self.tells_committed::<S>(clock);
                if told {
                    self.step = Step::Deciding;
                }
            }
            Step::Unsaid => self.enter(op, clock),
            Step::Again => {
                self.clocks.of_mut(clock).count.begin();
                self.enter(op, clock);
            }
            Step::LetPast => {
                let begun = self.clocks.of(clock).count.seq();
                self.raise(clock, begun);
                self.step = Step::Open;
            }
            _ => {}
        }
    }

    /// The operation that it is inside is over. Returns whether nothing has to be told.
    pub fn returns(&mut self, op: Op) -> bool {
        self.inside = None;
        if let Some(on) = op.on() {
            self.bound[on] = self.begun[on];
        }
        self.step = Step::Returned;
        self.pending == Pending::No
    }

    /// Whether the other members know how far the clock binds.
    pub fn tells_committed<S: Mutant>(&mut self, clock: usize) -> bool {
        let cell = self.clocks.of(clock);
        let committed = cell.count.committed();
        let tell = returned::<S>(self.pending, committed, cell.target);
        self.does(clock, committed, tell)
    }
}
