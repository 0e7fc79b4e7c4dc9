//! The agent: the one thread of a rank that talks to the coordinator.
//!
//! It carries out the coordinator's orders (`stillpoint_protocol::agent`) by means of the gate page and the thread registry, leaves long
//! work to the executor, and reports what it sees. It never calls MPI while the application lives.
//!
//! * [`late_operations`] - acts for an application that comes late
//! * [`aside`] - makes room while the process is to have one thread
//! * [`attempt`] - one attempt at a checkpoint, from Begin to its end
//! * [`ending`] - leaving after a suspend
//! * [`late`] - reports when the rank takes long to come to its still point
//! * [`lost`] - finds another coordinator when the last one has died
//! * [`member`] - joining the job
//! * [`replaced`] - stands back when another process is the rank
//! * [`successor`] - starts another coordinator
//! * [`user_messages`] - messages to the user

mod aside;
pub mod attempt;
pub mod ending;
mod late;
mod late_operations;
mod lost;
mod member;
mod replaced;
mod successor;
mod user_messages;

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use stillpoint_faults::Point;
use stillpoint_ids::Rank;
use stillpoint_protocol::agent::{FromAgent, Order, Progress, ToAgent};
use stillpoint_protocol::client::ClientError;
use stillpoint_protocol::job_file::{JobFile, JobState};
use stillpoint_protocol::launch::{Launch, LaunchError};
use stillpoint_protocol::namespace::Namespace;
use stillpoint_protocol::{Received, Receiver, Sender};
use stillpoint_refusals::{Code, Coded, Refusal};

use crate::capture::descriptors::outward;
use crate::capture::increment;
use crate::executor::staging::Staging;
use crate::ground::page::Page;
use crate::ground::{aside as stepping, thread, wake};
use crate::threads::lower;
use attempt::{Attempt, OrderOutcome};

pub use member::{becomes_unsplit, join, join_late, join_later};

/// How long a rank looks for its coordinator.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a rank that ends gives the coordinator to write down how the job has ended, and the time between two looks. The process waits
/// for its agent two seconds at most.
const LAST_WORD: Duration = Duration::from_millis(1500);
const LOOK: Duration = Duration::from_millis(5);

/// The reason why a rank could not join its job.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("the coordinator turned rank {rank} away: {}", reason.details())]
    Rejected { rank: Rank, reason: Refusal },
    #[error("the coordinator went away while rank {rank} waited for the other ranks ({barrier})")]
    Alone { rank: Rank, barrier: String },
    #[error("cannot prepare rank {rank} for its coordinator: {source}")]
    Prepare { rank: Rank, source: nix::Error },
    #[error("cannot start the agent's thread of rank {rank}: {source}")]
    Thread { rank: Rank, source: std::io::Error },
}

impl Coded for AgentError {
    fn code(&self) -> Code {
        match self {
            AgentError::Launch(_) | AgentError::Client(_) | AgentError::Alone { .. } => Code::NoJob,
            AgentError::Rejected { reason, .. } => reason.code(),
            AgentError::Prepare { .. } | AgentError::Thread { .. } => Code::NotSetUp,
        }
    }
}

/// Runs a function on the agent's thread.
fn on_a_thread(rank: Rank, run: impl FnOnce() + Send + 'static) -> Result<(), AgentError> {
    let started = thread::start("stillpoint", thread::USUAL, run);
    started.map_err(|source| AgentError::Thread { rank, source })?;
    Ok(())
}

struct Agent {
    page: Page,
    staging: Option<Staging>,
    sender: Sender<FromAgent>,
    receiver: Receiver<ToAgent>,
    attempt: Option<Attempt>,
    mpi: bool,
    launch: Launch,
    /// The process is a program that a process of the launch has started.
    late: bool,
    /// A signal that asks for a suspend, and that the coordinator may not have heard yet.
    suspend: Option<i32>,
    /// Orders that came before the agent ran.
    early: Vec<ToAgent>,
    /// Another process is this rank now.
    replaced: bool,
}

impl Agent {
    /// Continues where another thread was the agent.
    fn start(self) -> Result<(), AgentError> {
        on_a_thread(self.launch.rank, move || self.run())
    }

    /// Runs as long as the process, except for moments aside. When the coordinator goes, the application runs on, and so does the agent,
    /// with the next one.
    fn run(mut self) {
        // The reason is of no use to the application; the coordinator's log and the command report it.
        let _ = std::mem::take(&mut self.early)
            .into_iter()
            .try_for_each(|message| self.obey(message));
        loop {
            if self.replaced {
                self.stand_back();
            } else {
                // As above.
                let _ = self.serve();
                self.left_alone();
            }
            if self.is_to_step_aside() {
                return self.step_aside();
            }
            if !self.replaced {
                self.find_another();
            }
        }
    }

    /// Returns whether this thread is to step aside: never while an attempt is under way.
    fn is_to_step_aside(&self) -> bool {
        self.attempt.is_none() && stepping::is_wanted()
    }

    fn serve(&mut self) -> Result<(), ClientError> {
        loop {
            loop {
                match self.receiver.receive_within(Duration::ZERO)? {
                    Received::Message(message) => self.obey(message)?,
                    Received::Nothing => break,
                    Received::Closed => return Ok(()),
                }
            }
            if self.is_to_step_aside() {
                return Ok(());
            }
            self.mpi_came_or_went()?;
            if let Some(signal) = wake::take_suspend() {
                // Kept until an attempt has ended: a coordinator that has just died would not have heard it.
                self.suspend = Some(signal);
                self.sender.send(&FromAgent::SuspendWanted { signal })?;
            }
            self.last_words();
            let raises = wake::take_raises();
            if let Some(attempt) = &mut self.attempt {
                attempt.raise(raises, &self.sender)?;
                attempt.tick(&self.sender)?;
            }
            let patience = self.attempt.as_ref().and_then(Attempt::patience);
            self.wait_for_bell(patience);
        }
    }

    fn obey(&mut self, message: ToAgent) -> Result<(), ClientError> {
        let ToAgent::Checkpoint { attempt, order } = message else {
            self.hear(message);
            return Ok(());
        };
        if let Order::Begin(begin) = order {
            if let Some(earlier) = self.attempt.take() {
                earlier.abandon();
            }
            // The agent's thread is older than the application's handlers.
            lower::open_to_faults();
            self.attempt = Attempt::begin(
                attempt,
                begin,
                self.page,
                self.staging.clone(),
                &self.sender,
            )?;
            return Ok(());
        }
        let again = matches!(order, Order::Abort { again: true, .. });
        let Some(current) = self.attempt.as_mut().filter(|a| a.number() == attempt) else {
            // A rank that refused to take part runs already; the coordinator counts on its answer all the same.
            if matches!(order, Order::Abort { .. }) {
                self.suspend = self.suspend.filter(|_| again);
                self.sender.send(&FromAgent::Progress {
                    attempt,
                    progress: Progress::Released,
                })?;
            }
            return Ok(());
        };
        match current.obey(order, &self.sender)? {
            OrderOutcome::Continues => {}
            OrderOutcome::Released => {
                self.attempt = None;
                self.suspend = self.suspend.filter(|_| again);
                self.sender.send(&FromAgent::Progress {
                    attempt,
                    progress: Progress::Released,
                })?;
            }
            OrderOutcome::Ends => {
                outward::free_ports();
                stillpoint_faults::pass(Point::Terminated);
                self.leave_tiers();
                self.sender.send(&FromAgent::Exiting { status: 0 })?;
                ending::leave(self.launch.suspended_status);
            }
        }
        Ok(())
    }

    /// Handles a message outside of an attempt: a word for the user, and those about storage tiers.
    fn hear(&mut self, message: ToAgent) {
        match &message {
            ToAgent::Say { text } => return user_messages::say(text),
            ToAgent::Replaced => {
                self.replaced = true;
                return;
            }
            _ => {}
        }
        let Some(staging) = &self.staging else {
            return;
        };
        match message {
            ToAgent::Peers(peers) => staging.know(peers),
            ToAgent::Flush { epoch, directory } => staging.flush(epoch, directory.into()),
            ToAgent::Durable { epoch } => {
                staging.note_durable(epoch);
                increment::committed(epoch);
            }
            _ => {}
        }
    }

    fn leave_tiers(&self) {
        if let Some(staging) = &self.staging {
            staging.leave();
        }
    }

    fn mpi_came_or_went(&mut self) -> Result<(), ClientError> {
        let active = self.page.mpi_active();
        if active != self.mpi {
            self.mpi = active;
            self.sender.send(&if active {
                FromAgent::MpiReady
            } else {
                FromAgent::MpiFinalized
            })?;
        }
        Ok(())
    }

    /// Reports the end of the process, if it ends.
    fn last_words(&self) {
        let behind = self.attempt.as_ref().is_some_and(Attempt::is_behind);
        if let Some(status) = wake::ending().filter(|_| !behind) {
            self.leave_tiers();
            // A coordinator that has gone needs no message.
            let _ = self.sender.send(&FromAgent::Exiting { status });
            self.let_it_be_written();
            wake::told();
        }
    }

    /// Gives the coordinator time to write down how the job has ended. In a container everything ends with its first process,
    /// which may wait for this one; a coordinator in the same container writes first. If other ranks run on, it does not write
    /// now, and this rank ends all the same.
    fn let_it_be_written(&self) {
        let here = Namespace::here();
        if here.is_unknown() || here.is_of_the_host() {
            return;
        }
        // The coordinator waits for the closed connection.
        self.sender.close();
        let since = Instant::now();
        let running = |job: JobFile| {
            let ours = job.launch == self.launch.launch && job.state == JobState::Running;
            ours && job.coordinator.alive() == Some(true)
        };
        while JobFile::read(&self.launch.directory).is_ok_and(running)
            && since.elapsed() < LAST_WORD
        {
            std::thread::sleep(LOOK);
        }
    }

    /// Sleeps until the coordinator sends a message, the bell rings, or the time is over.
    fn wait_for_bell(&self, patience: Option<Duration>) {
        let limit = patience.map_or(PollTimeout::NONE, |time| {
            PollTimeout::from(time.as_millis().clamp(1, 60_000) as u16)
        });
        let Some(bell) = wake::bell() else {
            return;
        };
        let mut descriptors = [
            PollFd::new(bell, PollFlags::POLLIN),
            PollFd::new(self.receiver.as_fd(), PollFlags::POLLIN),
        ];
        // An interrupted or failed poll only makes the caller look around once more.
        let _ = poll(&mut descriptors, limit);
        wake::silence();
    }
}
