//! A rank in the trivial barrier of two-phase commit: what Stillpoint's stub does around [`two_phase::step`].
//!
//! The stub tests the barrier and decides, in turn. Either may take its time, so both are actions of their own here: a test
//! that finds the barrier over, and a decision that is still due to a test that did not.

use stillpoint_clock::rank::{Activity, Pending};
use stillpoint_clock::two_phase;

use crate::job::Job;
use crate::mutant::Mutant;
use crate::program::Op;
use crate::rank::{Rank, Step};
use crate::ranks::Ranks;

/// A rank's part of a trivial barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Barrier {
    /// The communicator.
    pub on: usize,
    pub stage: Stage,
}

/// How far a rank has got in a trivial barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// A restart has come since it entered: what it had entered is gone.
    Outside,
    Entered,
    /// It has found out that every member has entered.
    Past,
    /// ... and has seen no flag: the increment is next. An increment that a flag takes back need not be looked at before it is made, so only a job that takes
    /// nothing back comes here.
    Committing,
}

/// Whether a trivial barrier stands before the operation.
pub fn stands_before<S: Mutant>(job: &Job<S>, op: Op) -> bool {
    job.circumstances.two_phase && matches!(op, Op::Collective { .. })
}

/// Whether the rank's next test of the barrier that it is in changes anything.
pub fn can_test<S: Mutant>(job: &Job<S>, ranks: &Ranks, number: usize) -> bool {
    let rank = &ranks[number];
    match rank.step {
        Step::Barrier(_) if rank.doing == Activity::Parked => false,
        Step::Barrier(Barrier { on, stage }) => match stage {
            Stage::Outside => S::ENTER_AGAIN,
            Stage::Entered => lacking(job, ranks, number, on).next().is_none(),
            Stage::Past | Stage::Committing => false,
        },
        _ => false,
    }
}

/// The rank tests the barrier that it is in.
pub fn test<S: Mutant>(job: &Job<S>, ranks: &mut Ranks, number: usize) {
    let rank = &mut ranks[number];
    if let Some(op) = job.program.ranks[number].get(rank.at)
        && let Some(on) = op.on()
    {
        rank.test_barrier::<S>(job.clocks[on], *op);
    }
}

/// The members that have yet to enter the barrier that a rank is in.
pub fn lacking<'a, S: Mutant>(
    job: &'a Job<S>,
    ranks: &'a Ranks,
    number: usize,
    on: usize,
) -> impl Iterator<Item = usize> + 'a {
    let entered = move |rank: usize| ranks[rank].entered.get(on).copied().unwrap_or(0);
    let members = job.program.communicators[on].members.iter().copied();
    members.filter(move |member| entered(*member) < entered(number))
}

impl Rank {
    pub fn enter_barrier(&mut self, on: usize) {
        if self.entered.len() <= on {
            self.entered.resize(on + 1, 0);
        }
        self.entered[on] += 1;
        let stage = Stage::Entered;
        self.step = Step::Barrier(Barrier { on, stage });
    }

    /// Tests the barrier, which is over, or enters it again if it has to. A test that finds it over comes to the same a moment
    /// later, so the decision follows at once.
    pub fn test_barrier<S: Mutant>(&mut self, clock: usize, op: Op) {
        if let Step::Barrier(Barrier { on, stage }) = self.step {
            if stage == Stage::Outside {
                return self.enter_barrier(on);
            }
            let stage = Stage::Past;
            self.step = Step::Barrier(Barrier { on, stage });
            self.decide_in_barrier::<S>(Barrier { on, stage }, clock, op);
        }
    }

    /// The lower half is another one: it knows nothing of the barriers that the rank had entered.
    pub fn lose_barriers(&mut self) {
        self.entered.clear();
        if let Step::Barrier(Barrier { stage, .. }) = &mut self.step
            && *stage == Stage::Entered
        {
            *stage = Stage::Outside;
        }
    }

    /// Whether the rank has found out that the barrier on that communicator is over.
    pub fn is_past(&self, on: usize) -> bool {
        let is = |stage| self.step == Step::Barrier(Barrier { on, stage });
        is(Stage::Past) || is(Stage::Committing)
    }

    fn next_in_barrier<S: Mutant>(&self, barrier: Barrier) -> two_phase::Step {
        let past = barrier.stage == Stage::Past;
        two_phase::step::<S>(self.pending, past, self.reached::<S>(), self.advances)
    }

    /// Whether the decision that is due changes anything.
    pub fn can_decide_in_barrier<S: Mutant>(&self, barrier: Barrier, clock: usize) -> bool {
        let cell = self.clocks.of(clock);
        if barrier.stage == Stage::Committing {
            return true;
        }
        match self.next_in_barrier::<S>(barrier) {
            two_phase::Step::AskAgain | two_phase::Step::AwaitTargets => false,
            two_phase::Step::Announce { uses_advance } => {
                uses_advance || cell.target <= cell.count.seq()
            }
            two_phase::Step::Park | two_phase::Step::Commit => true,
        }
    }

    /// Decides, and does what was decided.
    pub fn decide_in_barrier<S: Mutant>(&mut self, barrier: Barrier, clock: usize, op: Op) {
        if barrier.stage == Stage::Committing {
            return self.increment(clock);
        }
        match self.next_in_barrier::<S>(barrier) {
            two_phase::Step::AskAgain | two_phase::Step::AwaitTargets => {}
            two_phase::Step::Park => self.doing = Activity::Parked,
            two_phase::Step::Announce { uses_advance } => {
                self.advances -= u32::from(uses_advance);
                self.announce(barrier, clock);
            }
            two_phase::Step::Commit if self.pending == Pending::No && S::TAKE_BACK => {
                self.increment(clock);
            }
            two_phase::Step::Commit if self.pending == Pending::No => {
                let (on, stage) = (barrier.on, Stage::Committing);
                self.step = Step::Barrier(Barrier { on, stage });
            }
            two_phase::Step::Commit => {
                self.doing = Activity::Running;
                self.go(clock, op, S::RAISE);
            }
        }
    }

    /// Has the other members come to the operation that this rank waits before.
    pub fn announce(&mut self, barrier: Barrier, clock: usize) {
        self.doing = Activity::Running;
        self.step = Step::Barrier(barrier);
        let next = self.clocks.of(clock).count.seq() + 1;
        self.raise(clock, next);
    }

    /// The increment is done; a flag that is set by now has it taken back.
    pub fn commit_in_barrier<S: Mutant>(&mut self, clock: usize, op: Op) {
        let Some(on) = op.on() else { return };
        if self.pending == Pending::No || !S::TAKE_BACK {
            return self.enter(op, clock);
        }
        self.take_back(clock);
        let stage = Stage::Past;
        self.step = Step::Barrier(Barrier { on, stage });
    }
}
