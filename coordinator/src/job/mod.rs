//! The job as a pure state machine: no I/O, no clock of its own, no threads.
//!
//! [`Job::on`] takes what has happened and the time, and says what is to be done. The server carries
//! it out and reports back; tests and simulations do the same without sockets.

mod absent;
mod ahead;
mod asked;
mod attempt;
mod behind;
mod checkpoint;
mod departure;
mod ending;
mod exchange;
mod phase;
mod rank;
mod recovery;
mod request;
mod roster;
mod settings;
mod silent;
mod slow;
mod staging;
mod tally;
#[cfg(test)]
mod tests;
mod words;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use stillpoint_protocol::Span;
use stillpoint_protocol::agent::{FromAgent, Hello, ToAgent};
use stillpoint_protocol::command::{Ahead, Asked, JobStatus, Tally, ToCommand};
use stillpoint_protocol::job_file::JobState;

use attempt::Attempt;
pub use exchange::{Fate, Input, Output};
pub use phase::Phase;
pub use rank::{Life, Location};
use recovery::Recovery;
use request::Hindered;
use roster::Roster;
pub use settings::{Copies, Patience, Settings};
use silent::Isolation;
use staging::Staging;

/// A checkpoint that somebody wants.
#[derive(Debug)]
struct Wanted {
    watcher: Option<u64>,
    suspend: bool,
    timeout: Option<Duration>,
    /// How long after `since` it is tried again when it is refused.
    patience: Duration,
    since: Duration,
    /// Who asks, where it is not the job's own user, and why.
    asked: Option<Asked>,
    /// A suspend's epoch ahead has been begun; and what has come of it.
    tried_ahead: bool,
    ahead: Option<Ahead>,
}

/// The job.
#[derive(Debug)]
pub struct Job {
    settings: Settings,
    roster: Roster,
    wanted: VecDeque<Wanted>,
    /// What requests wait for.
    hindered: Option<Hindered>,
    /// Tries in a row that have failed of a suspend by signal.
    failures: u32,
    attempt: Option<Attempt>,
    attempts: u64,
    staging: Staging,
    recovery: Recovery,
    next_epoch: u64,
    next_periodic: Option<Duration>,
    barriers: BTreeMap<String, Vec<bool>>,
    began: Duration,
    /// When the last rank that was connected went, others not having come yet.
    deserted: Option<Duration>,
    /// The process that started the job as rank 0 has ended.
    starter_gone: bool,
    isolation: Isolation,
    fate: Fate,
    /// The epoch after which the job is to end is committed.
    suspended: bool,
    ended: bool,
    committed: u64,
    aborted: u64,
    last_failure: Option<String>,
    tally: Tally,
    outputs: Vec<Output>,
}

impl Job {
    pub fn new(settings: Settings, now: Duration) -> Job {
        Job {
            roster: Roster::new(settings.ranks),
            wanted: VecDeque::new(),
            hindered: None,
            failures: 0,
            attempt: None,
            attempts: settings.attempts_before,
            staging: Staging::new(settings.staging, settings.ranks),
            recovery: Recovery::new(settings.recovers, settings.ranks),
            next_epoch: settings.next_epoch,
            next_periodic: settings.interval.map(|interval| now + interval.time()),
            barriers: BTreeMap::new(),
            began: now,
            deserted: None,
            starter_gone: false,
            isolation: Isolation::default(),
            fate: Fate {
                state: JobState::Running,
                reason: None,
                exit_status: None,
                suspended_by: None,
                newest_epoch: settings.newest_epoch,
                restarted_from: settings.restarted_from,
            },
            suspended: false,
            ended: false,
            committed: 0,
            aborted: 0,
            last_failure: None,
            tally: Tally::default(),
            outputs: vec![],
            settings,
        }
    }

    /// Takes a rank in; the error is for its agent.
    pub fn admit(&mut self, hello: Hello, now: Duration) -> Result<Vec<Output>, String> {
        let rank = hello.rank;
        let returns = self.roster.returns(&hello);
        let was_connected = self.roster.get(rank).is_some_and(|rank| rank.connected);
        if let Err(reason) = self.roster.admit(hello, &self.settings.launch) {
            self.refuse_if_twice(now);
            return Err(reason);
        }
        self.deserted = None;
        if returns {
            self.on_return(rank, was_connected, now);
        }
        if self.roster.starting().next().is_none() {
            self.outputs.push(Output::Record);
        }
        self.begin_wanted(now);
        Ok(std::mem::take(&mut self.outputs))
    }

    /// Handles what has happened at `now` (time since any fixed moment).
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
                    self.log(format!("{what} asked for {asked}"));
                }
                let timeout = timeout.map(Span::time);
                let patience = match waits {
                    true => timeout.unwrap_or(self.settings.patience.hindrance),
                    false => Duration::ZERO,
                };
                self.want(Wanted {
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
            // What its agent has said may still be on its way here.
            Input::StarterGone => {
                self.starter_gone = true;
                if self.roster.nobody_connected() && self.deserted.is_none() {
                    self.deserted = Some(now);
                }
            }
            Input::Tick => {}
        }
        self.on_time(now);
        std::mem::take(&mut self.outputs)
    }

    /// When [`Input::Tick`] is due, if nothing else happens before.
    pub fn deadline(&self) -> Option<Duration> {
        if self.ended {
            return None;
        }
        let patience = &self.settings.patience;
        let start = self
            .roster
            .nobody_connected()
            .then(|| self.waits_for_ranks());
        let start = start.flatten().and_then(|wait| wait.until);
        // Behind an attempt or a flush, only a request that has a limit of its own is given up.
        let idle = self.attempt.is_none() && self.staging.flushing().is_none();
        let idle = idle && self.hindered.is_none();
        let limit = idle.then_some(patience.start);
        let wanted = self.wanted.iter();
        let wanted = wanted.filter_map(|w| Some(w.since + w.timeout.or(limit)?));
        let attempt = self.attempt.iter().flat_map(|attempt| {
            let delayed = attempt.delayed.as_ref().map(|(due, _)| *due);
            delayed.into_iter().chain(self.attempt_deadline(attempt))
        });
        start
            .into_iter()
            .chain(wanted)
            .chain(self.hindered_deadline())
            .chain(attempt)
            .chain(self.next_periodic.filter(|_| !self.suspended))
            .chain(self.isolation.due())
            .min()
    }

    /// Every rank has gone; what follows is to be recorded and told.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// What job.json should say.
    pub fn fate(&self) -> &Fate {
        &self.fate
    }

    /// For `stillpoint status`.
    pub fn status(&self, now: Duration) -> JobStatus {
        JobStatus {
            ranks: self.roster.status(),
            phase: self.attempt.as_ref().map(|a| a.phase.name().to_owned()),
            waits_for: self.waits_for(now),
            epoch: self.fate.newest_epoch,
            committed: self.committed,
            aborted: self.aborted,
            last_failure: self.last_failure.clone(),
            staged: self.staging.epoch(),
            tiers: self.staging.status(),
            seconds: now.saturating_sub(self.began).as_secs_f64(),
            tally: Box::new(self.tally.clone()),
        }
    }

    fn on_agent(&mut self, rank: u32, message: FromAgent, now: Duration) {
        match message {
            FromAgent::Hello(_) => self.log(format!("rank {rank} introduces itself twice")),
            FromAgent::MpiReady => self.roster.set_life(rank, Life::InMpi),
            FromAgent::MpiFinalized => self.roster.set_life(rank, Life::AfterMpi),
            FromAgent::Exiting { status } => self.on_exiting(rank, status, now),
            FromAgent::SuspendWanted { signal } => {
                self.log(format!("rank {rank} got signal {signal}: suspend"));
                if self.wanted.iter().all(|wanted| !wanted.suspend) {
                    // Nobody waits at a terminal, and the job is to end: it is tried as long as any checkpoint.
                    let patience = self.settings.patience.still_point;
                    self.want(Wanted::of_the_job(true, patience, now));
                }
            }
            FromAgent::Progress { attempt, progress } => {
                self.on_progress(rank, attempt, progress, now);
            }
            FromAgent::Refuse { attempt, reason } => {
                self.on_refuse(rank, attempt, reason, now);
            }
            FromAgent::AtBarrier { name } => self.on_barrier(rank, name),
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

    /// A barrier opens when every rank of the job has come to it.
    fn on_barrier(&mut self, rank: u32, name: String) {
        let size = self.roster.size();
        let arrived = self
            .barriers
            .entry(name.clone())
            .or_insert_with(|| vec![false; size]);
        if let Some(here) = arrived.get_mut(rank as usize) {
            *here = true;
        }
        if arrived.iter().all(|here| *here) {
            self.barriers.remove(&name);
            self.outputs
                .push(Output::Broadcast(ToAgent::BarrierPassed { name }));
        }
    }

    /// Everything that happens because time has passed, or because the input has settled something.
    fn on_time(&mut self, now: Duration) {
        self.attempt_on_time(now);
        if self.next_periodic.is_some_and(|due| due <= now) && !self.suspended {
            self.next_periodic = None;
            if self.attempt.is_none() && self.wanted.is_empty() && self.roster.gone().is_none() {
                let most = self.settings.patience.hindrance;
                let patience = self.settings.interval;
                let patience = patience.map_or(most, |interval| interval.time().min(most));
                self.want(Wanted::of_the_job(false, patience, now));
            }
        }
        if self.attempt.is_none() && self.next_periodic.is_none() {
            self.next_periodic = self.settings.interval.map(|interval| now + interval.time());
        }
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
