//! The job as a pure state machine: no I/O, no clock of its own, no threads.
//!
//! [`Job::on`] takes an event and the time, and returns the actions to carry out. The server carries them out and reports back; tests and simulations do the
//! same without sockets.

mod absence;
mod ahead;
mod asked;
mod attempt;
mod checkpoint;
mod departure;
mod ending;
mod events;
mod exchange;
mod late_ranks;
mod member;
mod neighbours;
mod periodic;
mod phase;
mod progress;
mod rank_names;
mod recovery;
mod request;
mod requests;
mod roster;
mod settings;
mod silent;
mod staging;
mod stopped;
mod tally;
#[cfg(test)]
mod tests;
mod trace;
mod unsuspended;
mod write_behind;

use std::collections::BTreeMap;
use std::time::Duration;

use stillpoint_ids::{Epoch, Rank};
use stillpoint_protocol::Span;
use stillpoint_protocol::agent::{FromAgent, Hello, KnownAs, ToAgent};
use stillpoint_protocol::command::{JobStatus, ToCommand};
use stillpoint_protocol::job_file::JobState;
use stillpoint_refusals::Refusal;

use absence::Absence;
pub use asked::SPEAKER;
use attempt::Attempt;
pub use events::Happening;
pub use exchange::{Fate, Input, Output, StoppedRank};
pub use member::{Life, Location};
use periodic::Periodic;
pub use phase::Phase;
use recovery::Recovery;
use requests::{CheckpointRequest, Requests};
use roster::Roster;
pub use settings::{Copies, Patience, Settings};
use staging::Staging;
use tally::Record;

/// The job's way from its first rank to its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Ranks have not come yet.
    Starting,
    /// All ranks have come. After a suspend they end.
    Running,
    /// Every rank has gone.
    Ended,
}

/// The job.
#[derive(Debug)]
pub struct Job {
    settings: Settings,
    roster: Roster,
    requests: Requests,
    attempt: Option<Attempt>,
    attempts: u64,
    staging: Staging,
    recovery: Recovery,
    next_epoch: Epoch,
    periodic: Periodic,
    barriers: BTreeMap<String, Vec<bool>>,
    /// As what ranks that come back are known, until all have said so.
    known_as: BTreeMap<Rank, KnownAs>,
    absence: Absence,
    stage: Stage,
    fate: Fate,
    record: Record,
    outputs: Vec<Output>,
}

impl Job {
    pub fn new(settings: Settings, now: Duration) -> Job {
        Job {
            roster: Roster::new(settings.ranks),
            requests: Requests::default(),
            attempt: None,
            attempts: settings.attempts_before,
            staging: Staging::new(settings.staging, settings.ranks),
            recovery: Recovery::new(settings.recovers, settings.ranks),
            next_epoch: settings.next_epoch,
            periodic: Periodic::new(&settings, now),
            barriers: BTreeMap::new(),
            known_as: BTreeMap::new(),
            absence: Absence::new(now),
            stage: match settings.has_begun {
                true => Stage::Running,
                false => Stage::Starting,
            },
            fate: Fate {
                state: JobState::Running,
                reason: None,
                exit_status: None,
                suspended_by: None,
                not_suspended: settings.not_suspended.clone(),
                requeued: None,
                interval: None,
                newest_epoch: settings.newest_epoch,
                restarted_from: settings.restarted_from,
            },
            record: Record::default(),
            outputs: vec![],
            settings,
        }
    }

    /// Takes a rank in. The error is for its agent.
    pub fn admit(&mut self, hello: Hello, now: Duration) -> Result<Vec<Output>, Refusal> {
        let rank = hello.rank;
        let returns = self.roster.returns(&hello);
        let was_connected = self.roster.get(rank).is_some_and(|it| it.connected);
        if let Err(reason) = self.roster.admit(hello, &self.settings.launch) {
            self.refuse_if_twice(now);
            return Err(reason);
        }
        self.absence.deserted = None;
        if returns {
            self.on_return(rank, was_connected, now);
        }
        if self.roster.starting().next().is_none() {
            self.outputs.push(Output::Record);
        }
        self.begin_wanted(now);
        Ok(std::mem::take(&mut self.outputs))
    }

    /// Handles an event at `now` (time since any fixed moment).
    pub fn on(&mut self, now: Duration, input: Input) -> Vec<Output> {
        match input {
            Input::Agent { rank, message } => self.on_agent(rank, message, now),
            Input::Disconnected { rank } => self.on_disconnected(rank, now),
            Input::Unreachable { rank } => self.on_unreachable(rank, now),
            Input::Checkpoint {
                watcher,
                suspend,
                timeout,
                waits,
                asked,
            } => {
                if let Some(asked) = &asked {
                    let what = if suspend { "suspend" } else { "checkpoint" };
                    self.log(format!("got a request to {what} {asked}"));
                }
                let timeout = timeout.map(Span::time);
                let patience = match waits {
                    true => timeout.unwrap_or(self.settings.patience.hindrance),
                    false => Duration::ZERO,
                };
                self.want(CheckpointRequest {
                    watcher: Some(watcher),
                    suspend,
                    timeout,
                    patience,
                    since: now,
                    asked,
                    tried_ahead: false,
                    ahead: None,
                });
            }
            Input::Prepared { attempt, result } => self.on_prepared(attempt, result, now),
            Input::Committed { attempt, result } => self.on_committed(attempt, result, now),
            Input::Durable { epoch, result } => self.on_durable(epoch, result, now),
            Input::Requeued { result } => self.on_requeued(result),
            Input::ProcessGone { rank } => self.on_process_gone(rank, now),
            // The agent's messages may still be on their way here.
            Input::StarterGone => {
                self.absence.starter_gone = true;
                if self.roster.nobody_connected() && self.absence.deserted.is_none() {
                    self.absence.deserted = Some(now);
                }
            }
            Input::Stopped { ranks } => self.on_stopped(&ranks, now),
            Input::Tick => {}
        }
        self.on_time(now);
        std::mem::take(&mut self.outputs)
    }

    /// The time at which [`Input::Tick`] is due, unless another event comes before.
    pub fn deadline(&self) -> Option<Duration> {
        if self.has_ended() {
            return None;
        }
        let patience = &self.settings.patience;
        let start = self
            .roster
            .nobody_connected()
            .then(|| self.waits_for_ranks());
        let start = start.flatten().and_then(|wait| wait.until);
        // During an attempt or a flush, only a request with a limit of its own is given up.
        let idle = self.attempt.is_none() && self.staging.flushing().is_none();
        let idle = idle && self.requests.hindered.is_none();
        let limit = idle.then_some(patience.start);
        let wanted = self.requests.wanted.iter();
        let wanted = wanted.filter_map(|w| Some(w.since + w.timeout.or(limit)?));
        let attempt = self.attempt.iter().flat_map(|attempt| {
            let delayed = attempt.pace.due();
            delayed.into_iter().chain(self.attempt_deadline(attempt))
        });
        start
            .into_iter()
            .chain(wanted)
            .chain(self.hindered_deadline())
            .chain(attempt)
            .chain(self.next_periodic().filter(|_| !self.is_suspended()))
            .chain(self.absence.isolation.due())
            .min()
    }

    /// Whether every rank has gone. The outputs that follow still have to be carried out.
    pub fn has_ended(&self) -> bool {
        self.stage == Stage::Ended
    }

    /// Whether the epoch of a suspend is committed.
    fn is_suspended(&self) -> bool {
        self.fate.state == JobState::Suspended
    }

    /// The fate of the job for job.json.
    pub fn fate(&self) -> &Fate {
        &self.fate
    }

    /// The status for `stillpoint status`.
    pub fn status(&self, now: Duration) -> JobStatus {
        JobStatus {
            ranks: self.roster.status(),
            phase: self.attempt.as_ref().map(|a| a.phase.name().to_owned()),
            waits_for: self.waits_for(now),
            epoch: self.fate.newest_epoch,
            committed: self.record.committed,
            aborted: self.record.aborted,
            last_failure: self.record.last_failure.clone(),
            staged: self.staging.epoch(),
            tiers: self.staging.status(),
            seconds: now.saturating_sub(self.absence.began).as_secs_f64(),
            tally: Box::new(self.record.tally.clone()),
        }
    }

    fn on_agent(&mut self, rank: Rank, message: FromAgent, now: Duration) {
        match message {
            FromAgent::Hello(_) => self.log(format!("rank {rank} sent its first message twice")),
            FromAgent::MpiReady => self.roster.set_life(rank, Life::InMpi),
            FromAgent::MpiFinalized => self.roster.set_life(rank, Life::AfterMpi),
            FromAgent::Exiting { status } => self.on_exiting(rank, status, now),
            FromAgent::SuspendWanted { signal } => {
                self.log(format!(
                    "rank {rank} got signal {signal}: suspending the job"
                ));
                if self.requests.wanted.iter().all(|wanted| !wanted.suspend) {
                    // No command waits, and the job is to end, so this is tried as long as any checkpoint.
                    let patience = self.settings.patience.still_point;
                    self.forget_unsuspended();
                    self.want(CheckpointRequest::of_the_job(true, patience, now));
                }
            }
            FromAgent::Progress { attempt, progress } => {
                self.on_progress(rank, attempt, progress, now);
            }
            FromAgent::Refuse { attempt, reason } => {
                self.on_refuse(rank, attempt, reason, now);
            }
            FromAgent::AtBarrier { name } => self.on_barrier(rank, name),
            FromAgent::KnownAs(known) => self.on_known_as(rank, known),
            FromAgent::BecomesUnsplit { program } => {
                self.log(format!(
                    "{} becomes {program}, a statically linked program: no checkpoints from now on",
                    self.roster.named(rank)
                ));
                self.roster.becomes_unsplit(rank, program);
            }
            FromAgent::Tier(announced) => self.on_tier(rank, announced),
            FromAgent::Measured { rates, problem } => {
                self.on_measured(rank, rates, problem, now);
            }
            FromAgent::Flushed { epoch, problem } => self.on_flushed(rank, epoch, problem),
            FromAgent::Recovered {
                epoch,
                gathered,
                problem,
            } => self.on_recovered(rank, epoch, &gathered, problem),
        }
    }

    /// Opens a barrier when every rank of the job has come to it.
    fn on_barrier(&mut self, rank: Rank, name: String) {
        let size = self.roster.size();
        let arrived = self
            .barriers
            .entry(name.clone())
            .or_insert_with(|| vec![false; size]);
        if let Some(here) = arrived.get_mut(rank.index()) {
            *here = true;
        }
        if arrived.iter().all(|here| *here) {
            self.barriers.remove(&name);
            self.outputs
                .push(Output::Broadcast(ToAgent::BarrierPassed { name }));
        }
    }

    /// Does everything that is due by now, or that the input has made possible.
    fn on_time(&mut self, now: Duration) {
        self.attempt_on_time(now);
        self.tell_of_start();
        self.periodic_on_time(now);
        self.begin_wanted(now);
        self.let_go_if_isolated(now);
        self.end_if_deserted(now);
    }

    fn tell(&mut self, watcher: impl IntoIterator<Item = u64>, message: ToCommand) {
        for watcher in watcher {
            let message = message.clone();
            self.outputs.push(Output::Tell { watcher, message });
        }
    }

    fn log(&mut self, line: String) {
        self.outputs.push(Output::Log(line));
    }
}
