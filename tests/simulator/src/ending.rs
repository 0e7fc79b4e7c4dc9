//! The end of a checkpoint: every rank runs on, or begins again from the image; and the end of the job.

use crate::coordinator::Coordinator;
use crate::job::{Job, State};
use crate::mutant::Mutant;
use crate::{ahead, barrier, step};

impl<S: Mutant> Job<S> {
    /// Once the last checkpoint is over, everything comes to the same end in any order.
    pub fn run_out(&self, state: &mut State<S>) {
        if !matches!(
            state.coordinator,
            Coordinator::Releasing(_) | Coordinator::Idle
        ) {
            return;
        }
        state.all_released();
        let ranks = &mut state.ranks;
        let all = 0..ranks.len();
        loop {
            if let Some(number) = all.clone().find(|rank| step::can_step(self, ranks, *rank)) {
                step::step(self, ranks, number);
            } else if let Some(number) = all
                .clone()
                .find(|rank| ahead::can_carry(self, ranks, *rank))
            {
                ahead::carry(self, ranks, number);
            } else if let Some(number) = all
                .clone()
                .find(|rank| barrier::can_test(self, ranks, *rank))
            {
                barrier::test(self, ranks, number);
            } else {
                return;
            }
        }
    }
}

impl<S: Mutant> State<S> {
    /// Lets every rank run on, whatever orders are on their way.
    fn all_released(&mut self) {
        for rank in self.ranks.iter_mut() {
            rank.hear_what_was_given();
            rank.agent = rank.agent.anew();
            rank.release::<S>();
            rank.raises.clear();
        }
        self.coordinator = Coordinator::Idle;
    }

    /// The job begins again from the image that has been written, on another lower half.
    pub fn restart(&mut self, job: &Job<S>) {
        self.restarts -= 1;
        for (rank, ops) in self.ranks.iter_mut().zip(&job.program.ranks) {
            if let Some(op) = ops.get(rank.at) {
                rank.lose_operation::<S>(*op);
            }
            if !S::KEEP {
                rank.ahead.kept.clear();
            }
        }
        self.all_released();
        for rank in self.ranks.iter_mut() {
            rank.lose_barriers();
        }
    }
}
