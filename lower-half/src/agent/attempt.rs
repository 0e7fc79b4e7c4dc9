//! One attempt at a checkpoint, as this rank sees it: from `Begin` until it is committed, abandoned or
//! the process is told to end.

mod reports;

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use stillpoint_clock::rank::Activity;
use stillpoint_faults::{Point, pass, strike};
use stillpoint_protocol::Sender;
use stillpoint_protocol::agent::{Begin, FromAgent, Order, Progress};
use stillpoint_protocol::client::ClientError;
use stillpoint_protocol::safe_text::word;
use stillpoint_refusals::{Refusal, refusal};

use super::late::{Late, Writes};
use super::late_operations::{Absent, LateMessage};
use super::{ending, late};
use crate::capture::access::Access;
use crate::capture::increment;
use crate::capture::maps::Seen;
use crate::capture::write_behind::Behind;
use crate::executor::carrier::{Executor, Means, Task};
use crate::executor::destination::InFile;
use crate::executor::staging::Staging;
use crate::executor::stopping::{self, Stopping};
use crate::gate::stop;
use crate::gpu::{early, held};
use crate::ground::page::Page;
use crate::ground::{arriving, child_delay, wake};
use crate::mpi::progress;
use crate::threads::direct_way;
use reports::{STANDS_SOON, worth_saying};

/// The consequence of an order for the agent.
pub enum OrderOutcome {
    /// The attempt goes on.
    Continues,
    /// It is over and the application runs.
    Released,
    /// The epoch is committed and the process is to end.
    Ends,
}

/// The time between two looks at the threads when no message comes.
const TICK: Duration = Duration::from_millis(1);

/// The rank's side of one attempt.
pub struct Attempt {
    number: u64,
    begin: Begin,
    page: Page,
    staging: Option<Staging>,
    /// The mappings that were read before the threads stood still.
    ahead: Seen,
    stopping: Stopping,
    /// The version of the newest order applied; 0 before the targets are known.
    seen: u64,
    /// Set past the safe state: the driver answers its commands, and threads stay where they are.
    executor: Option<Executor>,
    /// The application runs while its image is being written.
    ran_on: bool,
    /// The rank has said that it cannot take part.
    refused: bool,
    said: Option<(Activity, u64)>,
    /// The activity that the latest tick saw.
    looked: Option<Activity>,
    late: Late,
    /// Set while the image is being written.
    writes: Option<Writes>,
    absent: Absent,
    /// The open poll, and the time by which it has to be answered.
    unanswered: Option<(u32, Instant)>,
    /// Clocks that the coordinator knows this rank to have.
    told: HashSet<u64>,
}

impl Attempt {
    /// Sets the flag and sends the clocks. Returns `None` if this rank cannot take part.
    pub fn begin(
        number: u64,
        begin: Begin,
        page: Page,
        staging: Option<Staging>,
        sender: &Sender<FromAgent>,
    ) -> Result<Option<Self>, ClientError> {
        if !page.mpi_active() {
            sender.send(&FromAgent::Refuse {
                attempt: number,
                reason: refusal!(
                    MpiNotRunning,
                    "the program has not called MPI_Init, or has called MPI_Finalize: there is \
                     nothing to checkpoint; try again while it computes (a program inside an emulator is not \
                     seen: start it without)"
                ),
            })?;
            return Ok(None);
        }
        let mut hindrances = page.hindrances();
        hindrances.extend(stopping::lacks_a_thread());
        if !hindrances.is_empty() {
            sender.send(&FromAgent::Refuse {
                attempt: number,
                reason: Refusal::together(hindrances),
            })?;
            return Ok(None);
        }
        // An epoch holds all memory, so memory that a restart has not brought back yet has to arrive first.
        arriving::wait();
        if let Err(error) = strike(Point::Flag) {
            let reason = refusal!(FaultPoint, "{error}");
            sender.send(&FromAgent::Refuse {
                attempt: number,
                reason,
            })?;
            return Ok(None);
        }
        // The application still runs.
        let ahead = Seen::ahead();
        held::prepare(begin.epoch);
        child_delay::tried_again();
        page.begin();
        direct_way::shut(true);
        progress::pending(true);
        // If the real MPI does not call back, no thread can stand still inside it: then operations that have begun bind.
        let inside = match progress::calls_back() {
            true => stopping::inside_of(),
            false => Vec::new(),
        };
        let clocks = page.clocks(&inside);
        let attempt = Self {
            number,
            begin,
            page,
            staging,
            ahead,
            stopping: Stopping::new(),
            seen: 0,
            executor: None,
            ran_on: false,
            refused: false,
            said: None,
            looked: None,
            late: Late::new(),
            writes: None,
            absent: Absent::new(),
            unanswered: None,
            told: clocks.iter().map(|(ggid, _)| *ggid).collect(),
        };
        attempt.say(Progress::Clocks { clocks }, sender)?;
        Ok(Some(attempt))
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    /// Carries out one order.
    pub fn obey(
        &mut self,
        order: Order,
        sender: &Sender<FromAgent>,
    ) -> Result<OrderOutcome, ClientError> {
        match order {
            Order::Begin(_) => {}
            Order::Targets { version, targets } => {
                pass(Point::Targets);
                self.page.set_targets(&targets);
                self.page.targeted();
                self.applied(version, sender)?;
            }
            Order::Raised {
                version,
                ggid,
                target,
            } => {
                self.page.set_targets(&[(ggid, target)]);
                self.applied(version, sender)?;
            }
            Order::Advance { version } => {
                self.stopping.advance();
                self.page.advance();
                self.applied(version, sender)?;
            }
            Order::Tell { hold, missing } => {
                let activity = self.activity();
                if let Some(told) = self.absent.tell(&self.page, activity, hold, missing) {
                    self.say(Progress::Told(told), sender)?;
                }
            }
            Order::CarryOut { operations } => {
                let operations = operations.into_iter().map(Into::into).collect();
                self.absent.carry_out(&self.page, operations);
            }
            Order::Poll { poll } => {
                self.unanswered = Some((poll, Instant::now() + STANDS_SOON));
                self.answer(sender)?;
            }
            Order::Check => self.give(Task::Check, sender)?,
            Order::Drain { round } => self.give(Task::Drain { round }, sender)?,
            Order::Seal => self.give(Task::Seal, sender)?,
            Order::Write => self.give(Task::Write(Box::new(InFile), None), sender)?,
            Order::WriteApart { most } => {
                let behind = Some(Behind { most });
                self.give(Task::Write(Box::new(InFile), behind), sender)?;
            }
            Order::RunOn => {
                pass(Point::RunOn);
                self.run_on();
            }
            Order::Size => match self.staging.clone() {
                Some(staging) => {
                    let attempt = self.number;
                    let planned = move |bytes, access: &Access| {
                        let sized = staging.size(attempt, bytes, access)?;
                        Ok(Progress::Sized(sized))
                    };
                    self.give(Task::Size(Box::new(planned)), sender)?;
                }
                None => self.has_no_tier(sender)?,
            },
            Order::Stage(assignment) => match &self.staging {
                Some(staging) => {
                    let (attempt, epoch) = (self.number, self.begin.epoch);
                    let tiers = staging.destination(attempt, epoch, assignment);
                    self.give(Task::Write(Box::new(tiers), None), sender)?;
                }
                None => self.has_no_tier(sender)?,
            },
            Order::Committed => {
                pass(Point::Released);
                child_delay::over();
                self.release();
                if self.staging.is_none() {
                    increment::committed(self.begin.epoch);
                }
                return Ok(OrderOutcome::Released);
            }
            Order::Abort { reason, .. } => {
                pass(Point::GivenUp);
                child_delay::given_up(&reason);
                self.release();
                if let Some(staging) = &self.staging {
                    staging.give_up(self.number);
                }
                return Ok(OrderOutcome::Released);
            }
            Order::Terminate => return Ok(OrderOutcome::Ends),
        }
        Ok(OrderOutcome::Continues)
    }

    /// Takes raises that this rank's stubs made. They become its own targets, too: a stub may have been about to make one for an attempt
    /// that was given up then. If it is sent for this attempt, this rank has to reach it as the others do.
    pub fn raise(
        &mut self,
        raises: Vec<(u64, u64)>,
        sender: &Sender<FromAgent>,
    ) -> Result<(), ClientError> {
        if self.ran_on {
            return Ok(());
        }
        self.join(sender)?;
        if !raises.is_empty() {
            self.page.set_targets(&raises);
        }
        for (ggid, seq) in raises {
            self.say(Progress::Raise { ggid, seq }, sender)?;
        }
        Ok(())
    }

    /// Reports groups that this rank has come to know since it sent its clocks.
    fn join(&mut self, sender: &Sender<FromAgent>) -> Result<(), ClientError> {
        let ggids: Vec<u64> = self.page.ggids().collect();
        for ggid in ggids {
            if self.told.insert(ggid) {
                self.say(Progress::Joined { ggid }, sender)?;
            }
        }
        Ok(())
    }

    /// Returns how long the agent sleeps at most when no message comes.
    pub fn patience(&self) -> Option<Duration> {
        match &self.writes {
            Some(_) => Some(late::PAUSE),
            None => self.ticks().then_some(TICK),
        }
    }

    /// Returns whether the threads have to be looked at again and again.
    fn ticks(&self) -> bool {
        self.seen != 0 && self.executor.is_none() && !self.refused
    }

    /// Looks at the threads, and reports what the rank does if that has changed.
    pub fn tick(&mut self, sender: &Sender<FromAgent>) -> Result<(), ClientError> {
        if let Some(what) = self.writes.as_mut().and_then(Writes::look) {
            self.say(Progress::Waits { what }, sender)?;
        }
        if !self.ticks() {
            return Ok(());
        }
        // A rank that waits for another, by a window's lock for example, never gets to its still point when the other one is parked. So a
        // reason that the check would find refuses the checkpoint as soon as it arises.
        let mut hindrances = self.page.hindrances();
        hindrances.extend(stopping::lacks_a_thread());
        if !hindrances.is_empty() {
            self.refused = true;
            return sender.send(&FromAgent::Refuse {
                attempt: self.number,
                reason: Refusal::together(hindrances),
            });
        }
        self.stopping.tick(&self.page, self.absent.holds());
        self.answer(sender)?;
        let activity = self.activity();
        let lasts = self.looked == Some(activity);
        self.looked = Some(activity);
        if worth_saying(activity, lasts) && self.said != Some((activity, self.seen)) {
            self.report(0, sender)?;
        }
        match self.absent.look(&self.page, activity) {
            Some(LateMessage::Asks(missing)) => self.say(Progress::Asks { missing }, sender)?,
            Some(LateMessage::Told(told)) => self.say(Progress::Told(told), sender)?,
            None => {}
        }
        if let Some(what) = self.late.look(&self.page, activity) {
            self.say(Progress::Waits { what }, sender)?;
        }
        Ok(())
    }

    /// Ends the attempt because the coordinator has gone, or began another attempt: the application runs on.
    pub fn abandon(mut self) {
        self.release();
    }

    /// Lets the application run on, while the executor writes memory that is apart from it.
    fn run_on(&mut self) {
        self.ran_on = true;
        wake::put_off_end(true);
        if let Some(executor) = &self.executor {
            executor.let_go().unwrap_or_else(|why| self.lost(&why));
        }
        self.let_run();
    }

    /// Returns whether the application runs while its image is written: it must not end before that.
    pub fn is_behind(&self) -> bool {
        self.ran_on
    }

    /// Lets the application run on; from here on nothing of this attempt touches it.
    fn release(&mut self) {
        if let Some(executor) = self.executor.take() {
            executor.stop().unwrap_or_else(|why| self.lost(&why));
        }
        early::is_over();
        match self.ran_on {
            true => wake::put_off_end(false),
            false => self.let_run(),
        }
    }

    /// Ends the job, because the application cannot run on.
    fn lost(&self, why: &str) -> ! {
        let directory = Path::new(&self.begin.directory);
        let directory = directory.parent().unwrap_or(directory);
        ending::lost(format!(
            "{why}; the job ends here: carry on from its newest epoch with stillpoint restart {}",
            word(&directory.display().to_string())
        ))
    }

    fn let_run(&mut self) {
        self.absent.end(&self.page);
        self.page.end();
        direct_way::shut(false);
        progress::pending(false);
        stop::release_all();
    }

    /// Gives a task to the executor, which starts with the first task, when the safe state is found.
    fn give(&mut self, task: Task, sender: &Sender<FromAgent>) -> Result<(), ClientError> {
        if self.executor.is_none() {
            let means = Means {
                attempt: self.number,
                begin: self.begin.clone(),
                page: self.page,
                sender: sender.clone(),
            };
            let started = Executor::start(means, std::mem::take(&mut self.ahead));
            match started {
                Ok(executor) => self.executor = Some(executor),
                Err(error) => {
                    let reason =
                        refusal!(NoRoom, "this rank cannot carry a checkpoint out: {error}");
                    return self.say(Progress::WriteFailed { reason }, sender);
                }
            }
        }
        if matches!(task, Task::Write(..)) {
            self.writes = Some(Writes::begin());
        }
        if let Some(executor) = &self.executor {
            executor.give(task);
        }
        Ok(())
    }

    fn has_no_tier(&self, sender: &Sender<FromAgent>) -> Result<(), ClientError> {
        let reason = refusal!(
            TierFailed,
            "this rank has no fast tier: start every rank with --tier fast=..."
        );
        self.say(Progress::WriteFailed { reason }, sender)
    }

    fn say(&self, progress: Progress, sender: &Sender<FromAgent>) -> Result<(), ClientError> {
        sender.send(&FromAgent::Progress {
            attempt: self.number,
            progress,
        })
    }
}
