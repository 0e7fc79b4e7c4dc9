//! Carries out a checkpoint, from the check to the image, on a thread of its own, so that the agent always listens.
//!
//! The thread touches the upper half only from inside its [`Access`]. [`Executor::stop`] takes that back: it waits for the
//! thread's work inside, which takes no longer than a block of memory, and not for a disk. A thread that the kernel keeps in a
//! write or a sync ends when the kernel lets it. It removes the file that it has written, whose name is used only once.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use stillpoint_faults::{Point, strike};
use stillpoint_part::{Done, Failure};
use stillpoint_protocol::Sender;
use stillpoint_protocol::agent::{Begin, FromAgent, Progress};
use stillpoint_refusals::refusal;

use super::chunk_table::SharedChunkTable;
use super::destination::Destination;
use super::files::Syncing;
use super::stopping;
use crate::capture::access::{Access, Revoked};
use crate::capture::driver;
use crate::capture::file_limit::SpaceLimit;
use crate::capture::maps::Seen;
use crate::capture::stopped_process::Still;
use crate::capture::write_behind::Behind;
use crate::ground::page::Page;
use crate::ground::thread;
use crate::{capture, parts};

/// The most threads that were stopped and that the kernel still keeps.
const STUCK: usize = 4;

/// The number of executors whose threads have not ended.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// A step of a checkpoint.
pub enum Task {
    Check,
    Drain {
        round: u32,
    },
    Seal,
    /// Estimates how long the image will be.
    Size(Planned),
    /// Writes the image; with [`Behind`], while the application runs on, if that is possible.
    Write(Box<dyn Destination>, Option<Behind>),
}

/// Makes the report of an image's length: the planner of its destination knows what else belongs to it.
pub type Planned = Box<dyn FnOnce(u64, &Access) -> Result<Progress, Revoked> + Send>;

/// The settings and connections of a checkpoint.
pub struct Means {
    pub attempt: u64,
    pub begin: Begin,
    pub page: Page,
    pub sender: Sender<FromAgent>,
}

/// The agent's hold on the thread.
pub struct Executor {
    tasks: mpsc::Sender<Task>,
    access: Arc<Access>,
    table: Arc<SharedChunkTable>,
}

impl Executor {
    /// Starts the thread; `seen` has the mappings that were read ahead. The safe state must have been found: every thread of the upper half
    /// is stopped, and only the agent lets them run on, after [`Executor::stop`].
    pub fn start(means: Means, seen: Seen) -> io::Result<Executor> {
        strike(Point::Executor)?;
        if THREADS.load(Ordering::Relaxed) > STUCK {
            return Err(io::Error::other(
                "the file system still holds up several images that were given up: try again when it answers",
            ));
        }
        let access = Arc::new(Access::default());
        if let Ok(inside) = access.enter() {
            inside.lasts(SpaceLimit::lift());
        }
        let table = Arc::new(SharedChunkTable::default());
        let (tasks, given) = mpsc::channel();
        let carrier = Carrier {
            means,
            access: Arc::clone(&access),
            table: Arc::clone(&table),
            seen,
        };
        THREADS.fetch_add(1, Ordering::Relaxed);
        let started = thread::start("stillpoint-exec", thread::USUAL, move || {
            for task in given {
                carrier.carry_out(task);
            }
            THREADS.fetch_sub(1, Ordering::Relaxed);
        });
        if let Err(error) = started {
            THREADS.fetch_sub(1, Ordering::Relaxed);
            return Err(error);
        }
        Ok(Executor {
            tasks,
            access,
            table,
        })
    }

    /// Makes the thread carry out a task after earlier ones. The thread itself reports the outcome to the coordinator.
    pub fn give(&self, task: Task) {
        // The thread lives as long as this does.
        let _ = self.tasks.send(task);
    }

    /// Lets the upper half run on; the rest of the checkpoint does not need it.
    ///
    /// # Errors
    /// The upper half cannot run on.
    pub fn let_go(&self) -> Result<(), String> {
        self.table.close();
        self.access.let_go();
        parts::release()
    }

    /// Ends everything that is under way: when this returns, the thread leaves the upper half alone.
    ///
    /// # Errors
    /// The upper half cannot run on.
    pub fn stop(self) -> Result<(), String> {
        self.table.close();
        let let_go = self.access.revoked();
        self.access.revoke();
        match let_go {
            true => Ok(()),
            false => parts::release(),
        }
    }
}

/// Strikes a fault point of this thread.
fn at(point: Point) -> Done {
    strike(point).map_err(|error| refusal!(FaultPoint, "{error}").into())
}

/// Returns the report to the coordinator about a task's end, if there is one.
fn told(done: Result<Progress, Failure>) -> Option<Progress> {
    match done {
        Ok(progress) => Some(progress),
        Err(Failure::Hindered(refusals)) => Some(Progress::CheckResult { refusals }),
        Err(Failure::Refused(reason)) => Some(Progress::WriteFailed { reason }),
        Err(Failure::GivenUp) => None,
    }
}

/// The thread's side.
struct Carrier {
    means: Means,
    access: Arc<Access>,
    table: Arc<SharedChunkTable>,
    seen: Seen,
}

impl Carrier {
    fn carry_out(&self, task: Task) {
        let done = match task {
            Task::Check => self.check(),
            Task::Drain { round } => self.drain(round),
            Task::Seal => self.seal(),
            Task::Size(planned) => self.size(planned),
            Task::Write(destination, behind) => self.write(destination, behind),
        };
        if self.access.given_up() {
            return;
        }
        if let Some(progress) = told(done) {
            self.say(progress);
        }
    }

    fn still(&self) -> Still<'_> {
        // SAFETY: from the end of `quiet` on, the caller of `start` keeps the upper half's threads stopped as long as the access is not revoked. Threads that run
        // before that change no mapping unnoticed by `seen`.
        unsafe { Still::new(&self.access, self.means.page, &self.seen) }
    }

    fn check(&self) -> Result<Progress, Failure> {
        at(Point::Check)?;
        parts::quiet(&|| self.access.revoked())?;
        let still = self.still();
        let Means { attempt, begin, .. } = &self.means;
        {
            let _inside = self.access.enter()?;
            self.table.keep(begin.dedup, *attempt);
        }
        let refusals = parts::hinders(&still)?;
        let sums = self.means.page.given_up();
        self.say(Progress::GivenUp { sums });
        if refusals.is_empty() {
            parts::each(&still, |part, still| part.quiesce(still))?;
        }
        Ok(Progress::CheckResult { refusals })
    }

    fn drain(&self, round: u32) -> Result<Progress, Failure> {
        at(Point::Drain)?;
        parts::each(&self.still(), |part, still| part.drain(still))?;
        let (sent, received) = stopping::counts(&self.means.page);
        Ok(Progress::Counts {
            round,
            sent,
            received,
        })
    }

    fn seal(&self) -> Result<Progress, Failure> {
        at(Point::Seal)?;
        let still = self.still();
        parts::each(&still, |part, still| part.seal(still))?;
        parts::each(&still, |part, still| part.save(still))?;
        Ok(Progress::Sealed)
    }

    fn size(&self, planned: Planned) -> Result<Progress, Failure> {
        at(Point::Size)?;
        let still = self.still();
        driver::hold(&still)?;
        // SAFETY: `driver::hold` has returned, so the driver thread holds.
        let bytes = unsafe { capture::size(&self.means.begin, &still) }?;
        Ok(planned(bytes, &self.access)?)
    }

    fn write(
        &self,
        mut destination: Box<dyn Destination>,
        behind: Option<Behind>,
    ) -> Result<Progress, Failure> {
        let begin = &self.means.begin;
        let path = PathBuf::from(&begin.directory).join(&begin.image);
        let store = destination.open(&path)?;
        let still = self.still();
        driver::hold(&still)?;
        let payloads = parts::capture(&still)?;
        let files = Syncing::start(&self.access)?;
        let known = self.table.open(begin.dedup, self.means.attempt);
        let apart = || self.say(Progress::Apart);
        let behind = behind.map(|behind| (behind, &apart as &dyn Fn()));
        // SAFETY: `driver::hold` has returned, so the driver thread holds.
        let written =
            unsafe { capture::write(&path, begin, store, &still, payloads, known, behind) }?;
        files.finish()?;
        Ok(destination.close(&path, written)?)
    }

    fn say(&self, progress: Progress) {
        // An agent whose coordinator has gone notices that by itself.
        let _ = self.means.sender.send(&FromAgent::Progress {
            attempt: self.means.attempt,
            progress,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_up_late_is_a_refusal_and_what_goes_wrong_is_a_failure() {
        assert_eq!(told(Ok(Progress::Sealed)), Some(Progress::Sealed));
        let refusals = vec![refusal!(MpiWindow, "an open window")];
        let late = told(Err(Failure::Hindered(refusals.clone())));
        assert_eq!(late, Some(Progress::CheckResult { refusals }));
        let reason = refusal!(NoSpace, "the disk is full");
        let failed = told(Err(Failure::Refused(reason.clone())));
        assert_eq!(failed, Some(Progress::WriteFailed { reason }));
        assert_eq!(told(Err(Failure::GivenUp)), None);
    }
}
