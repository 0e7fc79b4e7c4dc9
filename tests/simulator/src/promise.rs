//! What must hold.

use stillpoint_clock::rank::Activity;

use crate::job::State;
use crate::mutant::Mutant;
use crate::rank::{Rank, Step};

/// A promise that was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Broken {
    /// A rank was taken for parked although it is not.
    NotParked(usize),
    /// Invariant 1 (section 4.1): a rank is inside a collective operation, and does not stand there.
    Inside(usize),
    /// Invariant 2: a member has not begun an operation, or stands inside it, although another has returned from it or cannot take it back for another reason.
    NotBegunByAll { communicator: usize },
    /// Some members have given a communicator up and others have not: a restart could not make it again for these.
    GivenUpBySome { communicator: usize },
    /// An operation on a communicator that has been given up could be begun again in a restart only by ranks that still know the communicator.
    Forgotten { communicator: usize },
    /// A clock has got a target that was meant for another one: no rank will come to it.
    Misled(usize),
    /// Two-phase commit: a member has left the trivial barrier, and another is stopped in it.
    PastByOne { communicator: usize },
    /// Two-phase commit: a nonblocking operation would be lost with the lower half.
    Unfinished(usize),
    /// A rank stands still inside an operation that it has to go on with at once.
    StandsInVain(usize),
    /// Parked ranks were let on although only collective operations stood still, which need none of these ranks.
    LetOnInVain,
    /// An application has come to an operation that is not its next one, or has got the result of another one.
    AnotherOperation(usize),
    /// An operation that is carried out ahead of an application waits for a rank that does not come.
    WaitsAhead(usize),
    /// A clock differs from the number of operations begun on its communicator.
    CountedOtherwise { communicator: usize },
    /// A synchronous send was called over, and its receive had not begun.
    OverWithoutReceive(usize),
    /// A message would be lost with the lower half.
    OnTheWire,
    /// More messages were received than sent.
    Miscounted,
    /// Two groups share a clock, and no error said so.
    Shared,
}

impl<S: Mutant> State<S> {
    /// Invariants 1 and 2 of the paper (section 4.1).
    pub fn is_safe(&self) -> Result<(), Broken> {
        for (number, rank) in self.ranks.iter().enumerate() {
            let moves = match rank.step {
                Step::Inside | Step::Incremented | Step::Said | Step::Counted | Step::Carrying => {
                    true
                }
                Step::Open => !rank.stands_inside(),
                _ => false,
            };
            if moves {
                return Err(Broken::Inside(number));
            }
            if rank.doing != Activity::Parked {
                return Err(Broken::NotParked(number));
            }
        }
        for (communicator, members) in self.members.iter().enumerate() {
            let members = || members.iter().map(|member| &self.ranks[*member]);
            let bound = members().map(|rank| rank.bound[communicator]).max();
            let begun = members()
                .map(|rank| rank.begun_for_good(communicator))
                .min();
            // Without collisions a communicator's clock has its number.
            let counted = |rank: &Rank| {
                let index = rank.clocks.find(communicator);
                index.is_none_or(|_| {
                    let count = &rank.clocks.of(communicator).count;
                    count.seq() == u64::from(rank.begun_for_good(communicator))
                })
            };
            if self.asks && !members().all(counted) {
                return Err(Broken::CountedOtherwise { communicator });
            }
            if bound > begun {
                return Err(Broken::NotBegunByAll { communicator });
            }
            let has_given_up = |rank: &&Rank| rank.given_up >> communicator & 1 == 1;
            if members().any(|rank| !has_given_up(&rank))
                && members().any(|rank| has_given_up(&rank))
            {
                return Err(Broken::GivenUpBySome { communicator });
            }
            let newest = members()
                .filter(has_given_up)
                .map(|rank| rank.begun_for_good(communicator))
                .max();
            if newest > bound {
                return Err(Broken::Forgotten { communicator });
            }
        }
        self.is_before_or_past()
    }

    /// All members of a communicator have left a trivial barrier, or no member has.
    fn is_before_or_past(&self) -> Result<(), Broken> {
        for (communicator, members) in self.members.iter().enumerate() {
            let left =
                |rank: &Rank| rank.begun[communicator] + u32::from(rank.is_past(communicator));
            let before = members
                .iter()
                .map(|member| left(&self.ranks[*member]))
                .min();
            let is_ahead = |rank: &Rank| rank.is_past(communicator) && Some(left(rank)) > before;
            if members.iter().any(|member| is_ahead(&self.ranks[*member])) {
                return Err(Broken::PastByOne { communicator });
            }
        }
        Ok(())
    }

    /// When nothing can happen any more, a rank waits for a message or runs in vain: collective operations alone end by themselves.
    pub fn is_a_reason_to_let_on(&self) -> Result<(), Broken> {
        let needs_others = |rank: &Rank| {
            let activity = rank.activity();
            activity == Activity::Waiting || activity == Activity::Running
        };
        match self.ranks.iter().any(needs_others) {
            true => Ok(()),
            false => Err(Broken::LetOnInVain),
        }
    }

    /// Nothing is on the wire.
    pub fn is_drained(&self) -> Result<(), Broken> {
        let ranks = self.ranks.len();
        let mut pairs = (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to)));
        match pairs.all(|(from, to)| self.ranks[from].sent[to] == self.ranks[to].pulled[from]) {
            true => Ok(()),
            false => Err(Broken::OnTheWire),
        }
    }
}
