//! The end of the drain: every rank is parked, no rank sends, all pull messages in. Nothing is on the
//! wire when the job's sums of sent and received messages agree.
//!
//! One sum over one moment would be enough, since no rank sends. Two equal rounds in a row are required, so
//! that a rank shows itself whose counters were read while its driver was still leaving a call.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::marker::PhantomData;

use crate::steps::{Every, Steps};

/// The next action that the drain asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask every rank for its counts once more (a moment later).
    Round { round: u32 },
    /// Nothing is on the wire.
    Drained,
    /// More messages were received than sent, twice: a rank miscounts and the drain cannot end.
    Miscounted { sent: u64, received: u64 },
}

/// Collects counts round by round.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Drain<S: Steps = Every> {
    counts: Vec<Option<(u64, u64)>>,
    /// Answers that the round still waits for.
    missing: usize,
    round: u32,
    previous: Option<Vec<(u64, u64)>>,
    steps: PhantomData<S>,
}

impl<S: Steps> Drain<S> {
    /// Starts with round 1, which the caller asks every rank for.
    pub fn new(ranks: usize) -> Self {
        Drain {
            counts: vec![None; ranks],
            missing: ranks,
            round: 1,
            previous: None,
            steps: PhantomData,
        }
    }

    /// The round that is being collected.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Whether a rank's answer in this round has not come.
    pub fn lacks(&self, rank: usize) -> bool {
        self.counts.get(rank).is_some_and(Option::is_none)
    }

    /// Messages sent and received, as far as the last full round knows.
    pub fn totals(&self) -> (u64, u64) {
        self.previous.as_deref().map_or((0, 0), totals)
    }

    /// One rank's answer; answers to other rounds and from unknown ranks are ignored.
    pub fn counts(&mut self, rank: usize, round: u32, sent: u64, received: u64) -> Option<Action> {
        if round != self.round {
            return None;
        }
        let slot = self.counts.get_mut(rank)?;
        self.missing -= usize::from(slot.is_none());
        *slot = Some((sent, received));
        if self.missing > 0 {
            return None;
        }
        let now: Vec<(u64, u64)> = self.counts.iter_mut().filter_map(Option::take).collect();
        self.missing = now.len();
        let stable = self.previous.as_ref() == Some(&now);
        let (sent, received) = totals(&now);
        self.previous = Some(now);
        match received.cmp(&sent) {
            Ordering::Equal if stable => Some(Action::Drained),
            _ if stable && !S::SUMS => Some(Action::Drained),
            Ordering::Greater if stable => Some(Action::Miscounted { sent, received }),
            _ => {
                self.round += 1;
                Some(Action::Round { round: self.round })
            }
        }
    }
}

fn totals(counts: &[(u64, u64)]) -> (u64, u64) {
    counts.iter().fold((0, 0), |(sent, received), (s, r)| {
        (sent.wrapping_add(*s), received.wrapping_add(*r))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(drain: &mut Drain, counts: &[(u64, u64)]) -> Option<Action> {
        let number = drain.round();
        let mut last = None;
        for (rank, (sent, received)) in counts.iter().enumerate() {
            assert_eq!(last, None, "an action before the round was complete");
            last = drain.counts(rank, number, *sent, *received);
        }
        last
    }

    #[test]
    fn drained_takes_two_equal_rounds_with_equal_sums() {
        let mut drain: Drain = Drain::new(2);
        let balanced = [(3, 1), (0, 2)];
        assert_eq!(
            round(&mut drain, &[(3, 1), (0, 0)]),
            Some(Action::Round { round: 2 })
        );
        assert_eq!(
            round(&mut drain, &balanced),
            Some(Action::Round { round: 3 })
        );
        assert_eq!(round(&mut drain, &balanced), Some(Action::Drained));
        assert_eq!(drain.totals(), (3, 3));
    }

    #[test]
    fn equal_sums_that_still_move_are_not_drained() {
        let mut drain: Drain = Drain::new(2);
        round(&mut drain, &[(1, 0), (0, 1)]);
        assert_eq!(
            round(&mut drain, &[(2, 0), (0, 2)]),
            Some(Action::Round { round: 3 })
        );
    }

    #[test]
    fn messages_on_the_wire_keep_the_drain_going() {
        let mut drain: Drain = Drain::new(1);
        for next in 2..50 {
            assert_eq!(
                round(&mut drain, &[(5, 4)]),
                Some(Action::Round { round: next })
            );
        }
    }

    #[test]
    fn stale_and_strange_answers_are_ignored() {
        let mut drain: Drain = Drain::new(1);
        assert_eq!(drain.counts(0, 9, 1, 1), None);
        assert_eq!(drain.counts(7, 1, 1, 1), None);
        assert_eq!(drain.round(), 1);
    }

    #[test]
    fn a_round_waits_for_everybody_and_says_for_whom() {
        let mut drain: Drain = Drain::new(2);
        let lacks = |drain: &Drain| [0, 1, 2].map(|rank| drain.lacks(rank));
        assert_eq!(lacks(&drain), [true, true, false]);
        assert_eq!(drain.totals(), (0, 0));
        // A rank that answers twice counts once, with its later answer.
        assert_eq!(drain.counts(1, 1, 8, 8), None);
        assert_eq!(drain.counts(1, 1, 2, 3), None);
        assert_eq!(lacks(&drain), [true, false, false]);
        assert_eq!(drain.counts(0, 1, 4, 3), Some(Action::Round { round: 2 }));
        assert_eq!(
            (lacks(&drain), drain.totals()),
            ([true, true, false], (6, 6))
        );
        assert_eq!(drain.counts(1, 2, 2, 3), None);
        assert_eq!(drain.counts(0, 2, 4, 3), Some(Action::Drained));
    }

    #[test]
    fn one_round_of_too_many_received_is_no_miscount_yet() {
        let mut drain: Drain = Drain::new(2);
        // One rank was still counting.
        assert_eq!(
            round(&mut drain, &[(0, 1), (0, 0)]),
            Some(Action::Round { round: 2 })
        );
        assert_eq!(
            round(&mut drain, &[(0, 1), (1, 0)]),
            Some(Action::Round { round: 3 })
        );
        assert_eq!(round(&mut drain, &[(0, 1), (1, 0)]), Some(Action::Drained));
    }

    #[test]
    fn a_miscount_is_told_instead_of_waited_for() {
        let mut drain: Drain = Drain::new(1);
        round(&mut drain, &[(1, 2)]);
        assert_eq!(
            round(&mut drain, &[(1, 2)]),
            Some(Action::Miscounted {
                sent: 1,
                received: 2
            })
        );
    }
}
