//! Images that are written while the application runs on: its memory is set apart, and what it changes meanwhile is copied first.
//!
//! No rank runs on before all are apart: what it sends then would lie in another's memory before that is.

use std::time::Duration;

use stillpoint_protocol::agent::{Order, Written};

use super::phase::Phase;
use super::{Job, Output};

impl Job {
    /// Whether the application is to run on while the images of the attempt under way are written. A suspended one has nothing to do any more.
    pub(super) fn writes_behind(&self) -> bool {
        let suspends = self.attempt.as_ref().is_some_and(|attempt| attempt.suspend);
        self.settings.copies.is_some() && !suspends
    }

    pub(super) fn begin_copy(&mut self, now: Duration) {
        let most = self.settings.copies.and_then(|copies| copies.most);
        self.enter(Phase::Copy, now);
        self.order(Order::WriteApart { most });
    }

    /// A rank is apart; with its image, where it could not be set apart and has been written.
    pub(super) fn on_apart(&mut self, rank: u32, written: Option<Written>, now: Duration) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        if let Some(written) = written {
            attempt.has_written(rank, written);
        }
        if !attempt.done(rank) {
            return;
        }
        if attempt.all_written() {
            // The commit is short, and releases the application.
            return self.commit_if_written(now);
        }
        attempt.ran_on = true;
        attempt.runs_on(now);
        let epoch = attempt.epoch;
        self.outputs.push(Output::Log(format!(
            "epoch {epoch}: apart, the application runs on"
        )));
        self.enter(Phase::Write, now);
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        let written = attempt.written.iter().map(Option::is_some);
        let written: Vec<u32> = (0u32..)
            .zip(written)
            .filter_map(|(rank, is)| is.then_some(rank))
            .collect();
        for rank in written {
            attempt.done(rank);
        }
        self.order(Order::RunOn);
    }
}
