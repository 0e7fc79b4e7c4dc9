//! Images that are written while the application runs on. Its memory is set apart: memory that it changes meanwhile is copied first.
//!
//! No rank runs on before all are apart. Otherwise its new messages could reach the memory of a rank that is not apart yet.

use std::time::Duration;

use stillpoint_ids::Rank;
use stillpoint_protocol::agent::{Order, Written};

use super::phase::Phase;
use super::{Job, Output};

impl Job {
    /// Whether the application runs on while the images of the attempt under way are written. In a suspend it has no more work to do.
    pub(super) fn writes_behind(&self) -> bool {
        let suspends = self.attempt.as_ref().is_some_and(|attempt| attempt.suspend);
        self.settings.copies.is_some() && !suspends
    }

    pub(super) fn begin_copy(&mut self, now: Duration) {
        let most = self.settings.copies.and_then(|copies| copies.most);
        self.enter(Phase::Copy, now);
        self.order(Order::WriteApart { most });
    }

    /// Handles a rank that is apart. `written` is its image, if it could not be set apart and was written at once.
    pub(super) fn on_apart(&mut self, rank: Rank, written: Option<Written>, now: Duration) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        if let Some(written) = written {
            attempt.reports.has_written(rank, written);
        }
        if !attempt.reports.done(rank) {
            return;
        }
        if attempt.reports.all_written() {
            // The commit is short, and releases the application.
            return self.commit_if_written(now);
        }
        attempt.times.runs_on(now);
        let epoch = attempt.epoch;
        self.outputs.push(Output::Log(format!(
            "epoch {epoch}: apart, the application runs on"
        )));
        self.enter(Phase::Write, now);
        if let Some(attempt) = &mut self.attempt {
            attempt.reports.written_is_done();
        }
        self.order(Order::RunOn);
    }
}
