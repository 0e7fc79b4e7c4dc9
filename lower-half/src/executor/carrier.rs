//! Carries a checkpoint out, from the check to the image: on a thread of its own, so that the agent always listens.
//!
//! The thread touches the upper half only from inside its [`Access`]. [`Executor::stop`] takes that back: it waits for what
//! the thread does inside, at most for a block of memory, and not for a disk. A thread that the kernel keeps in a write or a
//! sync ends when the kernel lets it; what it has written it removes, under a name that is used only once.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use stillpoint_faults::{Point, strike};
use stillpoint_image::store::Store;
use stillpoint_protocol::Sender;
use stillpoint_protocol::agent::{Begin, FromAgent, Progress, Written};
use stillpoint_protocol::tier::Assignment;
use stillpoint_wrappers::gate::{Command, DriverState};

use super::page::Page;
use super::staging::Staging;
use super::staging::image::Staged;
use super::stopping;
use crate::capture::access::{Access, Revoked};
use crate::capture::still::Still;
use crate::{capture, parts};

/// How long a parked driver thread may take over one command. It does nothing but its own work then.
const ANSWER: Duration = Duration::from_secs(60);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_micros(50);
/// Threads that were stopped and that the kernel still keeps, at most.
const STUCK: usize = 4;

/// Executors whose threads have not ended.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// What is to be carried out.
pub enum Task {
    Check,
    Drain { round: u32 },
    Seal,
    Write,
    Size,
    Stage(Assignment),
}

/// What a checkpoint is carried out with.
pub struct Means {
    pub attempt: u64,
    pub begin: Begin,
    pub page: Page,
    pub staging: Option<Staging>,
    pub sender: Sender<FromAgent>,
}

/// The agent's hold on the thread.
pub struct Executor {
    tasks: mpsc::Sender<Task>,
    access: Arc<Access>,
}

impl Executor {
    /// Starts the thread. The safe state must have been found: every thread of the upper half is stopped, and only the
    /// agent lets them go on, after [`Executor::stop`].
    pub fn start(means: Means) -> io::Result<Executor> {
        strike(Point::Executor)?;
        if THREADS.load(Ordering::Relaxed) > STUCK {
            return Err(io::Error::other(
                "the file system still holds up several images that were given up: try again when it answers",
            ));
        }
        let access = Arc::new(Access::default());
        let (tasks, given) = mpsc::channel();
        let carrier = Carrier {
            means,
            access: Arc::clone(&access),
        };
        let thread = std::thread::Builder::new()
            .name("stillpoint-exec".to_owned())
            .stack_size(1 << 20);
        THREADS.fetch_add(1, Ordering::Relaxed);
        let started = thread.spawn(move || {
            for task in given {
                carrier.carry_out(task);
            }
            THREADS.fetch_sub(1, Ordering::Relaxed);
        });
        if let Err(error) = started {
            THREADS.fetch_sub(1, Ordering::Relaxed);
            return Err(error);
        }
        Ok(Executor { tasks, access })
    }

    /// Has the thread carry a task out after those before it. It tells the coordinator itself what came of it.
    pub fn give(&self, task: Task) {
        // The thread lives as long as this does.
        let _ = self.tasks.send(task);
    }

    /// Ends everything that is under way: when this returns the thread leaves the upper half alone.
    pub fn stop(self) {
        self.access.revoke();
        parts::release();
    }
}

/// Why a task has failed.
enum Failure {
    /// Nobody wants to know.
    Revoked,
    Reason(String),
}

impl From<Revoked> for Failure {
    fn from(_: Revoked) -> Failure {
        Failure::Revoked
    }
}

impl From<stillpoint_part::Failure> for Failure {
    fn from(failure: stillpoint_part::Failure) -> Failure {
        match failure {
            stillpoint_part::Failure::GivenUp => Failure::Revoked,
            stillpoint_part::Failure::Refused(reason) => Failure::Reason(reason),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Reason(error.to_string())
    }
}

impl From<String> for Failure {
    fn from(reason: String) -> Failure {
        Failure::Reason(reason)
    }
}

/// The thread's side.
struct Carrier {
    means: Means,
    access: Arc<Access>,
}

impl Carrier {
    fn carry_out(&self, task: Task) {
        let done = match task {
            Task::Check => self.check(),
            Task::Drain { round } => self.drain(round),
            Task::Seal => self.seal(),
            Task::Write => self.write(),
            Task::Size => self.size(),
            Task::Stage(assignment) => self.stage(&assignment),
        };
        if self.access.revoked() {
            return;
        }
        match done {
            Ok(progress) => self.say(progress),
            Err(Failure::Reason(reason)) => self.say(Progress::WriteFailed { reason }),
            Err(Failure::Revoked) => {}
        }
    }

    fn check(&self) -> Result<Progress, Failure> {
        strike(Point::Check)?;
        self.command(Command::Check, DriverState::Checked)?;
        let inside = self.access.enter()?;
        let mut found = self.means.page.refusals();
        drop(inside);
        // SAFETY: `start` demands that the upper half's threads are stopped.
        found.extend(unsafe { parts::hinders(&self.access)? });
        if found.is_empty() {
            self.each(|part, still| part.quiesce(still))?;
        }
        Ok(Progress::CheckResult { refusals: found })
    }

    fn drain(&self, round: u32) -> Result<Progress, Failure> {
        strike(Point::Drain)?;
        let page = &self.means.page;
        let before = page.rounds();
        self.command(Command::Drain, DriverState::Draining)?;
        // A whole round that began after the command.
        self.until("the drain", || page.rounds().wrapping_sub(before) >= 2)?;
        if let Some(refused) = self.refused() {
            return Ok(refused);
        }
        self.each(|part, still| part.drain(still))?;
        let (sent, received) = stopping::counts(page);
        Ok(Progress::Counts {
            round,
            sent,
            received,
        })
    }

    fn seal(&self) -> Result<Progress, Failure> {
        strike(Point::Seal)?;
        self.command(Command::Seal, DriverState::Sealed)?;
        self.each(|part, still| part.seal(still))?;
        Ok(self.refused().unwrap_or(Progress::Sealed))
    }

    /// One phase of every part.
    fn each(
        &self,
        turn: impl Fn(&parts::AnyPart, &Still<'_>) -> stillpoint_part::Done,
    ) -> Result<(), Failure> {
        // SAFETY: `start` demands that the upper half's threads are stopped.
        let still = unsafe { Still::new(&self.access) };
        Ok(parts::each(&still, turn)?)
    }

    /// What the upper half has found after the check, if anything.
    fn refused(&self) -> Option<Progress> {
        let refusals = self.means.page.refusals();
        (!refusals.is_empty()).then_some(Progress::CheckResult { refusals })
    }

    fn write(&self) -> Result<Progress, Failure> {
        strike(Point::Write)?;
        self.command(Command::Hold, DriverState::Held)?;
        let written = self.write_to(&self.image(), None)?;
        strike(Point::Written)?;
        Ok(Progress::Written(written))
    }

    /// Writes the image to `path`, or to `store`, where it is called by that path. The driver holds.
    fn write_to(&self, path: &Path, store: Option<Box<dyn Store>>) -> Result<Written, Failure> {
        // SAFETY: `start` demands that the upper half's threads are stopped.
        let still = unsafe { Still::new(&self.access) };
        let payloads = parts::capture(&still)?;
        // SAFETY: the driver holds.
        let written = unsafe { capture::write(path, &self.means.begin, store, &still, payloads) };
        Ok(written.map_err(|error| error.to_string())?)
    }

    fn size(&self) -> Result<Progress, Failure> {
        strike(Point::Size)?;
        let staging = self.staging()?;
        self.command(Command::Hold, DriverState::Held)?;
        // SAFETY: as in `write`.
        let bytes = unsafe { capture::size(&self.means.begin, &self.access) };
        let bytes = bytes.map_err(|error| error.to_string())?;
        // A later attempt must find its own room.
        let _inside = self.access.enter()?;
        Ok(Progress::Sized(staging.size(self.means.attempt, bytes)))
    }

    fn stage(&self, assignment: &Assignment) -> Result<Progress, Failure> {
        strike(Point::Stage)?;
        let staging = self.staging()?;
        let (written, staged) = self.stage_image(staging, assignment)?;
        staging.learn(staged.rates);
        Ok(Progress::Staged(written, staged.moved))
    }

    fn stage_image(
        &self,
        staging: &Staging,
        assignment: &Assignment,
    ) -> Result<(Written, Staged), Failure> {
        let (path, begin) = (self.image(), &self.means.begin);
        let (image, lanes) = staging.stage(self.means.attempt, begin.epoch, &path, assignment)?;
        // The driver has been holding since the task to size.
        let written = self.write_to(&path, Some(Box::new(lanes)))?;
        let staged = image.staged();
        staged
            .blocks
            .write(&path.with_extension("blocks"))
            .map_err(|error| error.to_string())?;
        Ok((written, staged))
    }

    fn staging(&self) -> Result<&Staging, String> {
        let none =
            || "this rank has no fast tier: start every rank with --tier fast=...".to_owned();
        self.means.staging.as_ref().ok_or_else(none)
    }

    fn image(&self) -> PathBuf {
        PathBuf::from(&self.means.begin.directory).join(&self.means.begin.image)
    }

    /// Gives the driver thread a command and waits for its answer.
    fn command(&self, command: Command, answer: DriverState) -> Result<(), Failure> {
        let page = &self.means.page;
        let inside = self.access.enter()?;
        page.command(command);
        drop(inside);
        let what = match command {
            Command::Check => "the check",
            Command::Drain => "the drain",
            Command::Seal => "sealing its MPI objects",
            Command::Run | Command::Reach | Command::Hold => "holding still",
        };
        self.until(what, || page.driver_state() == answer as u32)
    }

    /// Waits until something is so; it takes the driver thread, which is to do it, no longer than [`ANSWER`].
    fn until(&self, what: &str, so: impl Fn() -> bool) -> Result<(), Failure> {
        let end = Instant::now() + ANSWER;
        while !so() {
            if self.access.revoked() {
                return Err(Failure::Revoked);
            }
            if Instant::now() >= end {
                return Err(Failure::Reason(format!(
                    "the program's main thread did not answer within {} s ({what}); the job runs on",
                    ANSWER.as_secs()
                )));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn say(&self, progress: Progress) {
        // An agent whose coordinator has gone finds out by itself.
        let _ = self.means.sender.send(&FromAgent::Progress {
            attempt: self.means.attempt,
            progress,
        });
    }
}
