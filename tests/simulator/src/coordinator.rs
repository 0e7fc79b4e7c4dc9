//! The job's side: the real [`SafeState`] and [`Drain`], and the channels for their words.

use std::sync::Arc;

use stillpoint_clock::drain::{self, Drain};
use stillpoint_clock::safe_state::{Action, Event, SafeState};
use stillpoint_clock::two_phase::has_safe_state;

use crate::agent::{FromRank, ToRank};
use crate::asking::Asking;
use crate::job::State;
use crate::mutant::Mutant;
use crate::promise::Broken;

/// A poll, and whether the pause before it is a long one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Poll {
    number: u32,
    pub patient: bool,
}

/// How far the checkpoint has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Coordinator<S: Mutant> {
    Idle,
    Seeking {
        safe: Arc<SafeState<S>>,
        /// A poll that goes out after a pause.
        poll: Option<Poll>,
        asking: Asking,
    },
    Draining(Drain<S>),
    /// The image is there; the model's next action decides how the job goes on.
    Written,
    /// Waits for that many ranks to run again.
    Releasing(usize),
}

impl<S: Mutant> State<S> {
    pub fn broadcast(&mut self, order: &ToRank) {
        for rank in self.ranks.iter_mut() {
            rank.agent.inbox.push_back(order.clone());
        }
    }

    pub fn send(&mut self, rank: u32, order: ToRank) {
        self.ranks[rank as usize].agent.inbox.push_back(order);
    }

    /// Begins a checkpoint that was asked for.
    pub fn request(&mut self) {
        self.wanted -= 1;
        self.attempt += 1;
        self.coordinator = Coordinator::Seeking {
            safe: Arc::new(SafeState::new(self.ranks.len())),
            poll: None,
            asking: Asking::default(),
        };
        let attempt = self.attempt;
        self.broadcast(&ToRank::Begin { attempt });
    }

    /// The pause before a poll is over.
    pub fn pause_over(&mut self) {
        if let Coordinator::Seeking { poll, .. } = &mut self.coordinator
            && let Some(poll) = poll.take()
        {
            self.broadcast(&ToRank::Poll(poll.number));
        }
    }

    /// The checkpoint is over, or given up.
    pub fn release(&mut self) {
        self.coordinator = Coordinator::Releasing(self.ranks.len());
        self.broadcast(&ToRank::Release);
    }

    /// A rank's next word arrives.
    pub fn deliver(&mut self, number: usize) -> Result<(), Broken> {
        let Some((attempt, word)) = self.ranks[number].agent.outbox.pop_front() else {
            return Ok(());
        };
        if attempt != self.attempt {
            return Ok(());
        }
        let rank = number as u32;
        let event = match word {
            FromRank::Clocks(clocks) => Event::Clocks { rank, clocks },
            FromRank::Joined(ggid) => Event::Joined { rank, ggid },
            FromRank::Raise(ggid, seq) => Event::Raise { rank, ggid, seq },
            FromRank::Report(report) => Event::Report { rank, report },
            FromRank::Counts {
                round,
                sent,
                received,
            } => return self.on_counts(number, round, sent, received),
            FromRank::Ask(asked) => {
                self.ask(asked);
                return Ok(());
            }
            FromRank::Told(told) => {
                self.told(number, told);
                return Ok(());
            }
            FromRank::Released => {
                self.on_released();
                return Ok(());
            }
        };
        match &mut self.coordinator {
            Coordinator::Seeking { safe, .. } => {
                let actions = Arc::make_mut(safe).on(event);
                actions
                    .into_iter()
                    .try_for_each(|action| self.carry_out(action))
            }
            _ => Ok(()),
        }
    }

    fn carry_out(&mut self, action: Action) -> Result<(), Broken> {
        match action {
            Action::Targets {
                rank,
                version,
                targets,
            } => self.send(rank, ToRank::Targets(version, targets)),
            Action::Raised {
                ranks,
                version,
                ggid,
                target,
            } => {
                self.forget_poll();
                for rank in ranks {
                    self.send(rank, ToRank::Raised(version, ggid, target));
                }
            }
            Action::Advance { ranks, version } => {
                self.forget_poll();
                if !self.hasty {
                    self.is_a_reason_to_let_on()?;
                }
                for rank in ranks {
                    self.send(rank, ToRank::Advance(version));
                }
            }
            Action::Poll {
                poll: number,
                patience,
            } => {
                if let Coordinator::Seeking { poll, .. } = &mut self.coordinator {
                    let patient = patience > 0;
                    *poll = Some(Poll { number, patient });
                }
            }
            Action::SafeStateFound => {
                self.is_safe()?;
                let begun = self.ranks.iter().map(|rank| rank.nonblocking).sum();
                if self.two_phase && !has_safe_state::<S>(begun) {
                    self.release();
                    return Ok(());
                }
                let drain: Drain<S> = Drain::new(self.ranks.len());
                let round = drain.round();
                self.coordinator = Coordinator::Draining(drain);
                self.broadcast(&ToRank::Count { round });
            }
        }
        Ok(())
    }

    /// A poll that has been overtaken by an order need not be asked any more.
    fn forget_poll(&mut self) {
        if let Coordinator::Seeking { poll, .. } = &mut self.coordinator {
            *poll = None;
        }
    }

    fn on_counts(
        &mut self,
        number: usize,
        round: u32,
        sent: u64,
        received: u64,
    ) -> Result<(), Broken> {
        let Coordinator::Draining(drain) = &mut self.coordinator else {
            return Ok(());
        };
        match drain.counts(number, round, sent, received) {
            Some(drain::Action::Round { round }) => self.broadcast(&ToRank::Count { round }),
            Some(drain::Action::Drained) => {
                self.is_safe()?;
                self.is_drained()?;
                self.done += 1;
                match self.restarts {
                    0 => self.release(),
                    _ => self.coordinator = Coordinator::Written,
                }
            }
            Some(drain::Action::Miscounted { .. }) => return Err(Broken::Miscounted),
            None => {}
        }
        Ok(())
    }

    fn on_released(&mut self) {
        if let Coordinator::Releasing(left) = &mut self.coordinator {
            *left -= 1;
            if *left == 0 {
                self.coordinator = Coordinator::Idle;
            }
        }
    }
}
