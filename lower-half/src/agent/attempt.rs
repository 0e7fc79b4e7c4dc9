//! One attempt at a checkpoint, as this rank sees it: from `Begin` until it is committed, abandoned or
//! the process is told to end.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use stillpoint_clock::rank::{Activity, observe};
use stillpoint_clock::steps::Every;
use stillpoint_protocol::Sender;
use stillpoint_protocol::agent::{Begin, FromAgent, Order, Progress, State, Written};
use stillpoint_protocol::client::ClientError;
use stillpoint_protocol::tier::Assignment;
use stillpoint_wrappers::gate::{Command, DriverState};

use super::page::Page;
use super::staging::Staging;
use super::staging::image::Staged;
use super::stopping::{self, Stopping};
use super::wake;
use crate::{capture, threads};

/// How long a parked driver thread may take over one command. It does nothing but its own work then.
const ANSWER: Duration = Duration::from_secs(60);

/// What follows for the agent.
pub enum Outcome {
    /// The attempt goes on.
    Continues,
    /// It is over and the application runs.
    Released,
    /// The epoch is committed and the process is to end.
    Ends,
}

/// The rank's side of one attempt.
pub struct Attempt {
    number: u64,
    begin: Begin,
    page: Page,
    staging: Option<Staging>,
    stopping: Stopping,
    /// Version of the newest order applied; 0: targets not known yet.
    seen: u64,
    /// Past the safe state: the driver answers commands, threads stay where they are.
    found: bool,
    /// Has said that it cannot take part.
    refused: bool,
    said: Option<(Activity, u64)>,
    /// What the latest tick saw.
    looked: Option<Activity>,
    /// Clocks that the coordinator knows this rank to have.
    told: HashSet<u64>,
}

impl Attempt {
    /// Sets the flag and sends the clocks. `None` where this rank cannot take part.
    pub fn begin(
        number: u64,
        begin: Begin,
        page: Page,
        staging: Option<Staging>,
        sender: &Sender<FromAgent>,
    ) -> Result<Option<Self>, ClientError> {
        if !page.mpi_active() {
            sender.send(&FromAgent::Refuse {
                reason:
                    "the program has not called MPI_Init, or has called MPI_Finalize: there is \
                         nothing to checkpoint; try again while it computes"
                        .to_owned(),
            })?;
            return Ok(None);
        }
        let hindrances = page.hindrances();
        if !hindrances.is_empty() {
            sender.send(&FromAgent::Refuse {
                reason: hindrances.join("; "),
            })?;
            return Ok(None);
        }
        page.begin();
        let clocks = page.clocks();
        let attempt = Self {
            number,
            begin,
            page,
            staging,
            stopping: Stopping::new(),
            seen: 0,
            found: false,
            refused: false,
            said: None,
            looked: None,
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
    ) -> Result<Outcome, ClientError> {
        match order {
            Order::Begin(_) => {}
            Order::Targets { version, targets } => {
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
            Order::Poll { poll } => self.report(poll, sender)?,
            Order::Check => self.check(sender)?,
            Order::Drain { round } => self.drain(round, sender)?,
            Order::Seal => self.seal(sender)?,
            Order::Write => self.write(sender)?,
            Order::Size => self.size(sender)?,
            Order::Stage(assignment) => self.stage(&assignment, sender)?,
            Order::Committed => {
                self.release();
                return Ok(Outcome::Released);
            }
            Order::Abort { .. } => {
                self.release();
                if let Some(staging) = &self.staging {
                    staging.give_up(self.number);
                }
                return Ok(Outcome::Released);
            }
            Order::Terminate => return Ok(Outcome::Ends),
        }
        Ok(Outcome::Continues)
    }

    /// Raises that this rank's stubs made. They are its own targets too: a stub may have been about to make one for an attempt that
    /// was given up then, and what is sent for this one has to be reached by this rank as by the others.
    pub fn raise(
        &mut self,
        raises: Vec<(u64, u64)>,
        sender: &Sender<FromAgent>,
    ) -> Result<(), ClientError> {
        self.join(sender)?;
        if !raises.is_empty() {
            self.page.set_targets(&raises);
        }
        for (ggid, seq) in raises {
            self.say(Progress::Raise { ggid, seq }, sender)?;
        }
        Ok(())
    }

    /// Groups that this rank has come to know since it sent its clocks.
    fn join(&mut self, sender: &Sender<FromAgent>) -> Result<(), ClientError> {
        let ggids: Vec<u64> = self.page.ggids().collect();
        for ggid in ggids {
            if self.told.insert(ggid) {
                self.say(Progress::Joined { ggid }, sender)?;
            }
        }
        Ok(())
    }

    /// Looks at the threads, and says what the rank does if that has changed.
    pub fn tick(&mut self, sender: &Sender<FromAgent>) -> Result<(), ClientError> {
        if self.seen == 0 || self.found || self.refused {
            return Ok(());
        }
        // A rank that waits for another by a window's lock, say, never gets to its still point when the other one
        // is parked: what will be refused at the check is refused as soon as it is there.
        let hindrances = self.page.hindrances();
        if !hindrances.is_empty() {
            self.refused = true;
            return sender.send(&FromAgent::Refuse {
                reason: hindrances.join("; "),
            });
        }
        self.stopping.tick(&self.page);
        let activity = self.activity();
        let lasts = self.looked == Some(activity);
        self.looked = Some(activity);
        if worth_saying(activity, lasts) && self.said != Some((activity, self.seen)) {
            self.report(0, sender)?;
        }
        Ok(())
    }

    /// The coordinator has gone, or began another attempt: the application runs on.
    pub fn abandon(self) {
        self.release();
    }

    fn release(&self) {
        self.page.end();
        threads::release_all();
    }

    fn applied(&mut self, version: u64, sender: &Sender<FromAgent>) -> Result<(), ClientError> {
        self.seen = version;
        self.report(0, sender)
    }

    fn activity(&self) -> Activity {
        let before = Stopping::activity(&self.page);
        let advances = self.page.advances();
        let reached = self.page.all_reached();
        observe::<Every>(before, reached, advances, Stopping::activity(&self.page))
    }

    /// What the rank does after everything that it has raised. A raise happened before the state that followed it: the report must not
    /// overtake it.
    fn settled(&mut self, sender: &Sender<FromAgent>) -> Result<Activity, ClientError> {
        loop {
            let activity = self.activity();
            self.join(sender)?;
            let raises = wake::take_raises();
            if raises.is_empty() {
                return Ok(activity);
            }
            self.raise(raises, sender)?;
        }
    }

    fn report(&mut self, poll: u32, sender: &Sender<FromAgent>) -> Result<(), ClientError> {
        let activity = self.settled(sender)?;
        let (sent, received) = stopping::counts(&self.page);
        self.said = Some((activity, self.seen));
        self.say(
            Progress::State(State {
                doing: activity.into(),
                seen: self.seen,
                poll,
                sent,
                received,
                begun: self.page.begun(),
            }),
            sender,
        )
    }

    fn check(&mut self, sender: &Sender<FromAgent>) -> Result<(), ClientError> {
        self.found = true;
        self.page.command(Command::Check);
        let mut refusals = if self.page.await_driver(DriverState::Checked, ANSWER) {
            self.page.refusals()
        } else {
            vec![self.silent("the check")]
        };
        refusals.extend(capture::refusals());
        self.say(Progress::CheckResult { refusals }, sender)
    }

    fn drain(&mut self, round: u32, sender: &Sender<FromAgent>) -> Result<(), ClientError> {
        let before = self.page.rounds();
        self.page.command(Command::Drain);
        let pulled = self.page.await_driver(DriverState::Draining, ANSWER)
            && self.page.await_round_after(before, ANSWER);
        if !pulled {
            return self.fail(self.silent("the drain"), sender);
        }
        let (sent, received) = stopping::counts(&self.page);
        self.say(
            Progress::Counts {
                round,
                sent,
                received,
            },
            sender,
        )
    }

    fn seal(&mut self, sender: &Sender<FromAgent>) -> Result<(), ClientError> {
        self.page.command(Command::Seal);
        if !self.page.await_driver(DriverState::Sealed, ANSWER) {
            return self.fail(self.silent("sealing its MPI objects"), sender);
        }
        self.say(Progress::Sealed, sender)
    }

    fn write(&mut self, sender: &Sender<FromAgent>) -> Result<(), ClientError> {
        if !self.hold() {
            return self.fail(self.silent("holding still"), sender);
        }
        let path = PathBuf::from(&self.begin.directory).join(&self.begin.image);
        // SAFETY: the safe state was found: every thread of the upper half is stopped, the driver holds,
        // and only this thread's orders let them go on.
        match unsafe { capture::write(&path, &self.begin, None) } {
            Ok(written) => self.say(Progress::Written(written), sender),
            Err(error) => self.fail(error.to_string(), sender),
        }
    }

    /// True when the driver holds.
    fn hold(&self) -> bool {
        self.page.command(Command::Hold);
        self.page.await_driver(DriverState::Held, ANSWER)
    }

    fn size(&mut self, sender: &Sender<FromAgent>) -> Result<(), ClientError> {
        let Some(staging) = &self.staging else {
            let reason = "this rank has no fast tier: start every rank with --tier fast=...";
            return self.fail(reason.to_owned(), sender);
        };
        if !self.hold() {
            return self.fail(self.silent("holding still"), sender);
        }
        // SAFETY: as in `write`.
        match unsafe { capture::size(&self.begin) } {
            Ok(bytes) => self.say(Progress::Sized(staging.size(self.number, bytes)), sender),
            Err(error) => self.fail(error.to_string(), sender),
        }
    }

    fn stage(
        &mut self,
        assignment: &Assignment,
        sender: &Sender<FromAgent>,
    ) -> Result<(), ClientError> {
        let Some(staging) = &self.staging else {
            return self.fail("this rank has no fast tier".to_owned(), sender);
        };
        match self.stage_image(staging, assignment) {
            Ok((written, staged)) => {
                self.say(Progress::Staged(written, staged.moved), sender)?;
                staging.learn(staged.rates);
                Ok(())
            }
            Err(reason) => self.fail(reason, sender),
        }
    }

    fn stage_image(
        &self,
        staging: &Staging,
        assignment: &Assignment,
    ) -> Result<(Written, Staged), String> {
        let path = PathBuf::from(&self.begin.directory).join(&self.begin.image);
        let (image, lanes) = staging.stage(self.number, self.begin.epoch, &path, assignment)?;
        // SAFETY: as in `write`; the driver has been holding since the order to size.
        let written = unsafe { capture::write(&path, &self.begin, Some(Box::new(lanes))) };
        let written = written.map_err(|error| error.to_string())?;
        let staged = image.staged();
        staged
            .blocks
            .write(&path.with_extension("blocks"))
            .map_err(|error| error.to_string())?;
        Ok((written, staged))
    }

    fn silent(&self, what: &str) -> String {
        format!(
            "the program's main thread did not answer within {} s ({what}); the job runs on",
            ANSWER.as_secs()
        )
    }

    fn fail(&self, reason: String, sender: &Sender<FromAgent>) -> Result<(), ClientError> {
        self.say(Progress::WriteFailed { reason }, sender)
    }

    fn say(&self, progress: Progress, sender: &Sender<FromAgent>) -> Result<(), ClientError> {
        sender.send(&FromAgent::Progress {
            attempt: self.number,
            progress,
        })
    }
}

/// Whether the coordinator needs to hear of it unasked: that a rank is parked at once, that it waits when that lasts. That
/// it runs on it has said when it was ordered to; ranks on their way to their targets would say so
/// every millisecond.
fn worth_saying(activity: Activity, lasts: bool) -> bool {
    match activity {
        Activity::Parked => true,
        Activity::Running => false,
        Activity::InCollective | Activity::Waiting => lasts,
    }
}
