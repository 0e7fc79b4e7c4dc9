//! Not all ranks are parked and nothing moves. Either a message or the last member of a collective is just
//! arriving, or a rank computes, or a parked rank is needed. Two equal polls in a row tell the last case from the
//! others. If they are mistaken, a rank parks one call later than it could have.
//!
//! A rank that runs may be computing: then the others had better wait. But it may also be in a blocking send whose
//! receiver waits for a parked rank, or ask again and again for a message that a parked rank has yet to
//! send. These look the same from outside. So the polls take long as long as a rank runs, and longer after
//! every time that ranks were let on because of it. Collective operations take as long as their data, or a busy
//! machine, make them take. They need no parked rank ([`super::reports::Tally::somebody_moves`]), so the polls take
//! long as well if the others could be needed for nothing else.

use alloc::vec::Vec;

use super::events::Report;
use crate::rank::Activity;

/// A rank's words in a poll.
type Answer = (Activity, u64, u64, u64);

/// The polls of one checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stall {
    /// The poll that is being answered.
    poll: Option<u32>,
    polls: u32,
    /// Ranks that have answered it.
    answered: usize,
    /// The pause before it was a long one.
    patient: bool,
    /// How often ranks were let on although others seemed to get on.
    mistrusted: u32,
    /// The answers to the previous complete poll.
    before: Option<Vec<Answer>>,
}

/// The conclusion from the reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Some answers are missing.
    Wait,
    /// Ask every rank.
    Ask,
    /// Nothing has moved between two polls.
    Stalled,
}

impl Stall {
    /// The job has been told to move.
    pub fn moves(&mut self) {
        self.poll = None;
        self.before = None;
    }

    /// The next poll's number, and the patience that it asks for.
    pub fn ask(&mut self, somebody_moves: bool) -> (u32, u32) {
        self.polls += 1;
        self.poll = Some(self.polls);
        self.answered = 0;
        self.patient = somebody_moves;
        let patience = u32::from(somebody_moves) * (1 + self.mistrusted);
        (self.polls, patience)
    }

    /// A rank that had last answered poll `before` now names `poll`.
    pub fn note(&mut self, before: u32, poll: u32) {
        self.answered += usize::from(self.poll != Some(before) && self.poll == Some(poll));
    }

    /// Parked ranks are let on, while others seem to get on or not.
    pub fn let_on(&mut self, somebody_moves: bool) {
        self.mistrusted += u32::from(somebody_moves);
    }

    /// Judges the current reports of all ranks.
    pub fn judge(
        &mut self,
        ranks: usize,
        somebody_moves: bool,
        reports: impl Iterator<Item = Report>,
    ) -> Verdict {
        // No rank gets on any more: a short pause is enough.
        if self.poll.is_none() || self.patient && !somebody_moves {
            return Verdict::Ask;
        }
        if self.answered < ranks {
            return Verdict::Wait;
        }
        let now: Vec<Answer> = reports
            .map(|r| (r.activity, r.sent, r.received, r.begun))
            .collect();
        if self.before.as_ref() == Some(&now) && self.patient == somebody_moves {
            return Verdict::Stalled;
        }
        self.before = Some(now);
        Verdict::Ask
    }
}
