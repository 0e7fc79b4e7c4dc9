//! Ranks that go, and the end of the job when all have gone.

use std::time::Duration;

use stillpoint_ids::Rank;
use stillpoint_protocol::job_file::JobState;
use stillpoint_refusals::refusal;

use super::member::Life;
use super::phase::Phase;
use super::rank_names::ranks_in_words;
use super::{Job, Output, Stage};

/// A wait of the job for ranks.
pub(super) struct Wait {
    /// `None`: until the next event.
    pub until: Option<Duration>,
}

impl Job {
    pub(super) fn on_exiting(&mut self, rank: Rank, status: i32, now: Duration) {
        self.roster.set_life(rank, Life::Ended(status));
        if status != 0 {
            let reason = format!("{} ended with status {status}", self.roster.named(rank));
            self.fail(reason, Some(status));
        }
        self.on_rank_gone(rank, now);
    }

    pub(super) fn on_disconnected(&mut self, rank: Rank, now: Duration) {
        if self.roster.disconnect(rank) {
            self.on_lost(rank, now);
        } else if self.is_suspended() {
            // The rank must not come back as another program.
            self.roster.set_life(rank, Life::Lost);
        } else if self
            .roster
            .get(rank)
            .is_some_and(|r| r.life == Life::Starting)
        {
            self.on_rank_gone(rank, now);
        }
        if self.roster.nobody_connected() {
            self.absence.deserted = Some(now);
        }
    }

    /// Handles the batch system's answer. If it will not start the job again, a person has to do so.
    pub(super) fn on_requeued(&mut self, result: Result<String, String>) {
        match result {
            Ok(done) => {
                self.log(done.clone());
                self.fate.requeued = Some(done);
                self.outputs.push(Output::Record);
            }
            Err(why) => {
                let reason = format!("the batch system will not start the job again: {why}");
                self.log(reason.clone());
                self.fate.reason = Some(reason);
                self.outputs.push(Output::Record);
            }
        }
    }

    fn on_lost(&mut self, rank: Rank, now: Duration) {
        if !self.is_suspended() {
            self.fail(self.roster.loss(rank), None);
        }
        self.on_rank_gone(rank, now);
    }

    /// Handles the death of a rank's process that did not use MPI yet: it has not become another program.
    pub(super) fn on_process_gone(&mut self, rank: Rank, now: Duration) {
        if self
            .roster
            .get(rank)
            .is_some_and(|r| r.life == Life::Starting || r.silent)
        {
            self.roster.give_up(rank);
            self.on_lost(rank, now);
        }
    }

    /// Fails the job. The first failure counts; later ones usually come from the launcher, which ends the other ranks.
    pub(super) fn fail(&mut self, reason: String, exit_status: Option<i32>) {
        self.log(reason.clone());
        if self.is_suspended() || self.fate.reason.is_some() {
            return;
        }
        self.fate.reason = Some(reason);
        self.fate.exit_status = exit_status;
    }

    /// Returns until when the job, with no rank connected, waits for ranks that have not come or cannot be reached, if it does.
    pub(super) fn waits_for_ranks(&self) -> Option<Wait> {
        let patience = &self.settings.patience;
        let over = self.fate.reason.is_some() || self.absence.starter_gone;
        let silent = self.roster.silent().next().is_some();
        if !silent && self.roster.starting().next().is_none() {
            return None;
        }
        let until = match self.absence.deserted {
            Some(since) if over => Some(since + patience.grace),
            // The process that started the job lives on this host, so this host is the one that is cut off.
            Some(_) if silent => None,
            Some(since) => Some(since + patience.handover),
            None => Some(self.absence.began + patience.start),
        };
        Some(Wait { until })
    }

    pub(super) fn end_if_deserted(&mut self, now: Duration) {
        if self.has_ended() || !self.roster.nobody_connected() {
            return;
        }
        let committing = self
            .attempt
            .as_ref()
            .is_some_and(|a| a.phase == Phase::Commit);
        let starting: Vec<Rank> = self.roster.starting().collect();
        let committing = committing || self.staging.securing();
        let wait = self.waits_for_ranks();
        let waits = wait.is_some_and(|wait| wait.until.is_none_or(|until| now < until));
        if committing || waits {
            return;
        }
        self.give_up_the_silent();
        self.stage = Stage::Ended;
        if self.is_suspended() {
            self.fate.exit_status = Some(self.settings.suspended_status.into());
        } else if self.fate.reason.is_some() {
            self.fate.state = JobState::Failed;
        } else if !starting.is_empty() {
            let who = ranks_in_words(&starting, self.roster.size());
            self.fate.state = JobState::Failed;
            let mut ended = starting.iter();
            let other = ended.find_map(|rank| self.roster.end_of_other_program(*rank));
            let begun = self.absence.starter_gone && starting.contains(&Rank::FIRST);
            self.fate.reason = Some(match (other, begun) {
                (Some(other), _) => other,
                (None, true) => "rank 0 ended before its application ran".to_owned(),
                (None, false) => format!("{who} never connected to the coordinator"),
            });
        } else {
            self.fate.state = JobState::Finished;
            self.fate.exit_status = Some(0);
        }
        match self.fate.state {
            JobState::Failed => {
                self.happens("failed", self.fate.newest_epoch, self.fate.reason.clone())
            }
            JobState::Finished => self.happens("finished", self.fate.newest_epoch, None),
            _ => {}
        }
        self.trace_at_the_end(now);
        // Commands that hear of the end find it in job.json.
        self.outputs.push(Output::Record);
        self.end_attempt_of_ended_job(now);
        for wanted in std::mem::take(&mut self.requests.wanted) {
            self.tell(
                wanted.watcher,
                wanted.aborted(&refusal!(JobEnds, "the job has ended")),
            );
        }
        self.outputs.push(Output::Ended);
    }
}
