//! The job as a pure state machine: no I/O, no clock of its own, no threads.
//!
//! [`Job::on`] takes what has happened and the time, and says what is to be done. The server carries
//! it out and reports back; tests and simulations do the same without sockets.

mod attempt;
mod checkpoint;
mod ending;
mod phase;
mod recovery;
mod roster;
mod staging;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use stillpoint_multilevel::placement::Rules;
use stillpoint_protocol::agent::{FromAgent, Hello, ToAgent, Written};
use stillpoint_protocol::command::{JobStatus, ToCommand};
use stillpoint_protocol::job_file::JobState;

use attempt::Attempt;
pub use phase::Phase;
use recovery::Recovery;
use roster::{Life, Roster, ranks_in_words};
use staging::Staging;

/// What a job is told once.
#[derive(Clone, Debug)]
pub struct Settings {
    pub ranks: u32,
    pub launch: String,
    /// The checkpoint directory.
    pub directory: PathBuf,
    /// As `--compress` takes it.
    pub compress: String,
    /// The number that the next epoch gets.
    pub next_epoch: u64,
    /// The newest epoch that is committed already.
    pub newest_epoch: Option<u64>,
    /// Time between checkpoints that nobody asks for.
    pub interval: Option<Duration>,
    /// How images are staged; `None`: they are written to the checkpoint directory.
    pub staging: Option<Rules>,
    /// The epoch that this launch carries on from.
    pub restarted_from: Option<u64>,
    /// The staged epoch that is to be made whole first.
    pub recovers: Option<u64>,
    pub patience: Patience,
}

/// How long the job waits for what ought to happen soon.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// From the launch to the first word of every rank.
    pub start: Duration,
    /// From a request to the moment when images are written, unless the request says otherwise.
    pub still_point: Duration,
    /// For ranks to say that the application runs again.
    pub release: Duration,
    /// For ranks to end after a suspend, before the command is told that they have not.
    pub end: Duration,
    /// From the moment when the last process of the job has gone, none having used MPI, to the moment when
    /// the program that one of them became connects.
    pub handover: Duration,
    /// For the other ranks to come or to go, once one rank has failed before all were there.
    pub grace: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            start: Duration::from_secs(120),
            still_point: Duration::from_secs(600),
            release: Duration::from_secs(60),
            end: Duration::from_secs(30),
            handover: Duration::from_secs(60),
            grace: Duration::from_secs(2),
        }
    }
}

/// What has happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A message of a rank that has been admitted.
    Agent { rank: u32, message: FromAgent },
    /// A rank's connection has ended.
    Disconnected { rank: u32 },
    /// A command asks for a checkpoint; it is told about it under this number.
    Checkpoint {
        watcher: u64,
        suspend: bool,
        timeout: Option<Duration>,
    },
    /// [`Output::Prepare`] is done.
    Prepared {
        epoch: u64,
        result: Result<(), String>,
    },
    /// [`Output::Commit`] is done: the epoch's directory.
    Committed {
        epoch: u64,
        result: Result<String, String>,
    },
    /// [`Output::Secure`] is done: the epoch's directory.
    Durable {
        epoch: u64,
        result: Result<String, String>,
    },
    /// The process of a rank whose connection has ended is dead.
    ProcessGone { rank: u32 },
    /// The process that started the job as rank 0 has ended, and no rank is connected.
    StarterGone,
    /// [`Job::deadline`] has come.
    Tick,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    Send {
        rank: u32,
        message: ToAgent,
    },
    /// To every rank that is connected.
    Broadcast(ToAgent),
    /// To a command.
    Tell {
        watcher: u64,
        message: ToCommand,
    },
    /// Make the directory of an epoch that is about to be written.
    Prepare {
        epoch: u64,
    },
    /// Remove it, half-written as it is.
    Discard {
        epoch: u64,
    },
    /// Commit it: one image a rank, in order.
    Commit {
        epoch: u64,
        images: Vec<Written>,
    },
    /// Call it staged; answered by [`Input::Committed`].
    Stage {
        epoch: u64,
        images: Vec<Written>,
    },
    /// Commit a staged epoch that has become whole.
    Secure {
        epoch: u64,
    },
    /// Remove a staged epoch that cannot become whole.
    DiscardStaged {
        epoch: u64,
    },
    /// What job.json says has changed.
    Record,
    /// A line for the log.
    Log(String),
    /// Every rank has gone: record the end and stop.
    Ended,
}

/// What job.json says about the job's fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    pub state: JobState,
    pub reason: Option<String>,
    pub exit_status: Option<i32>,
    pub newest_epoch: Option<u64>,
    pub restarted_from: Option<u64>,
}

/// A checkpoint that somebody wants, not begun yet.
#[derive(Debug)]
struct Wanted {
    watcher: Option<u64>,
    suspend: bool,
    timeout: Option<Duration>,
    since: Duration,
}

/// The job.
#[derive(Debug)]
pub struct Job {
    settings: Settings,
    roster: Roster,
    wanted: VecDeque<Wanted>,
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
    fate: Fate,
    /// The epoch after which the job is to end is committed.
    suspended: bool,
    ended: bool,
    committed: u64,
    aborted: u64,
    last_failure: Option<String>,
    outputs: Vec<Output>,
}

impl Job {
    pub fn new(settings: Settings, now: Duration) -> Job {
        Job {
            roster: Roster::new(settings.ranks),
            wanted: VecDeque::new(),
            attempt: None,
            attempts: 0,
            staging: Staging::new(settings.staging, settings.ranks),
            recovery: Recovery::new(settings.recovers, settings.ranks),
            next_epoch: settings.next_epoch,
            next_periodic: settings.interval.map(|interval| now + interval),
            barriers: BTreeMap::new(),
            began: now,
            deserted: None,
            starter_gone: false,
            fate: Fate {
                state: JobState::Running,
                reason: None,
                exit_status: None,
                newest_epoch: settings.newest_epoch,
                restarted_from: settings.restarted_from,
            },
            suspended: false,
            ended: false,
            committed: 0,
            aborted: 0,
            last_failure: None,
            outputs: vec![],
            settings,
        }
    }

    /// Takes a rank in; the error is for its agent.
    pub fn admit(&mut self, hello: Hello, now: Duration) -> Result<Vec<Output>, String> {
        self.roster.admit(hello, &self.settings.launch)?;
        self.deserted = None;
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
            Input::Checkpoint {
                watcher,
                suspend,
                timeout,
            } => self.want(Some(watcher), suspend, timeout, now),
            Input::Prepared { epoch, result } => self.on_prepared(epoch, result, now),
            Input::Committed { epoch, result } => self.on_committed(epoch, result, now),
            Input::Durable { epoch, result } => self.on_durable(epoch, result, now),
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
        let waits_for_ranks =
            self.roster.nobody_connected() && self.roster.starting().next().is_some();
        let start = waits_for_ranks.then(|| self.start_deadline());
        // Behind an attempt or a flush, only a request that has a limit of its own is given up.
        let idle = self.attempt.is_none() && self.staging.flushing().is_none();
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
            .chain(attempt)
            .chain(self.next_periodic.filter(|_| !self.suspended))
            .min()
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
            epoch: self.fate.newest_epoch,
            committed: self.committed,
            aborted: self.aborted,
            last_failure: self.last_failure.clone(),
            staged: self.staging.epoch(),
            tiers: self.staging.status(),
            seconds: now.saturating_sub(self.began).as_secs_f64(),
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
                    self.want(None, true, None, now);
                }
            }
            FromAgent::Progress { attempt, progress } => {
                self.on_progress(rank, attempt, progress, now);
            }
            FromAgent::Refuse { reason } => self.on_refuse(rank, reason, now),
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

    fn on_exiting(&mut self, rank: u32, status: i32, now: Duration) {
        self.roster.set_life(rank, Life::Ended(status));
        if status != 0 {
            let reason = format!("{} ended with status {status}", self.roster.named(rank));
            self.fail(reason, Some(status));
        }
        self.on_rank_gone(rank, now);
    }

    fn on_disconnected(&mut self, rank: u32, now: Duration) {
        if self.roster.disconnect(rank) {
            self.on_lost(rank, now);
        } else if self.suspended {
            // It is not to come back as another program.
            self.roster.set_life(rank, Life::Lost);
        } else if self
            .roster
            .get(rank)
            .is_some_and(|r| r.life == Life::Starting)
        {
            self.on_rank_gone(rank, now);
        }
        if self.roster.nobody_connected() {
            self.deserted = Some(now);
        }
    }

    fn on_lost(&mut self, rank: u32, now: Duration) {
        if !self.suspended {
            let named = self.roster.named(rank).to_string();
            self.fail(format!("{named} died without a word (killed?)"), None);
        }
        self.on_rank_gone(rank, now);
    }

    /// A rank that did not use MPI yet has not become another program: its process is dead.
    fn on_process_gone(&mut self, rank: u32, now: Duration) {
        if self
            .roster
            .get(rank)
            .is_some_and(|r| r.life == Life::Starting)
        {
            self.roster.set_life(rank, Life::Lost);
            self.on_lost(rank, now);
        }
    }

    /// The first failure is the job's; what follows is usually its launcher cleaning up.
    fn fail(&mut self, reason: String, exit_status: Option<i32>) {
        self.log(reason.clone());
        if self.suspended || self.fate.reason.is_some() {
            return;
        }
        self.fate.reason = Some(reason);
        self.fate.exit_status = exit_status;
    }

    /// Everything that happens because time has passed, or because the input has settled something.
    fn on_time(&mut self, now: Duration) {
        self.attempt_on_time(now);
        if self.next_periodic.is_some_and(|due| due <= now) && !self.suspended {
            self.next_periodic = None;
            if self.attempt.is_none() && self.wanted.is_empty() && self.roster.gone().is_none() {
                self.want(None, false, None, now);
            }
        }
        if self.attempt.is_none() && self.next_periodic.is_none() {
            self.next_periodic = self.settings.interval.map(|interval| now + interval);
        }
        self.begin_wanted(now);
        self.end_if_deserted(now);
    }

    /// When the job stops waiting for ranks that have not come.
    fn start_deadline(&self) -> Duration {
        match self.deserted {
            Some(since) if self.fate.reason.is_some() || self.starter_gone => {
                since + self.settings.patience.grace
            }
            Some(since) => since + self.settings.patience.handover,
            _ => self.began + self.settings.patience.start,
        }
    }

    fn end_if_deserted(&mut self, now: Duration) {
        if self.ended || !self.roster.nobody_connected() {
            return;
        }
        let committing = self
            .attempt
            .as_ref()
            .is_some_and(|a| a.phase == Phase::Commit);
        let starting: Vec<u32> = self.roster.starting().collect();
        let committing = committing || self.staging.securing();
        let waits = !starting.is_empty() && now < self.start_deadline();
        if committing || waits {
            return;
        }
        self.ended = true;
        if self.suspended {
            self.fate.state = JobState::Suspended;
            self.fate.exit_status = Some(0);
        } else if self.fate.reason.is_some() {
            self.fate.state = JobState::Failed;
        } else if !starting.is_empty() {
            let who = ranks_in_words(&starting, self.roster.size());
            self.fate.state = JobState::Failed;
            self.fate.reason = Some(match self.starter_gone && starting.contains(&0) {
                true => "rank 0 ended before its application ran".to_owned(),
                false => format!("{who} never connected"),
            });
        } else {
            self.fate.state = JobState::Finished;
            self.fate.exit_status = Some(0);
        }
        self.end_attempt_of_ended_job(now);
        for wanted in std::mem::take(&mut self.wanted) {
            let reason = "the job has ended".to_owned();
            self.tell(wanted.watcher, ToCommand::Aborted { reason });
        }
        self.outputs.push(Output::Record);
        self.outputs.push(Output::Ended);
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
