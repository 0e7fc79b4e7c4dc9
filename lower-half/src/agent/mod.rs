//! The agent: the one thread of a rank that talks to the coordinator.
//!
//! It carries out the coordinator's orders (`stillpoint_protocol::agent`) by means of the gate page and
//! the thread registry, has the executor do what takes long, and reports what it sees. It never calls MPI while the application lives.
//!
//! * [`absent`] - what it does for an application that comes late
//! * [`attempt`] - one attempt at a checkpoint, from Begin to its end
//! * [`ending`] - leaving after a suspend
//! * [`late`] - what it says when it takes long to come to its still point
//! * [`lost`] - what it does when the coordinator has died
//! * [`successor`] - starts another coordinator
//! * [`voice`] - what the user is told

mod absent;
pub mod attempt;
pub mod ending;
mod late;
mod lost;
mod successor;
mod voice;

use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use stillpoint_faults::Point;
use stillpoint_protocol::agent::{FromAgent, Hello, Order, Progress, ToAgent};
use stillpoint_protocol::client::{AgentConnection, ClientError};
use stillpoint_protocol::launch::{Launch, LaunchError};
use stillpoint_protocol::{Received, Receiver, Sender};

use crate::capture::increment;
use crate::executor::staging::Staging;
use crate::ground::page::Page;
use crate::ground::{say, wake};
use crate::restore::job::Job;
use crate::threads::lower;
use attempt::{Attempt, Outcome};

/// How long a rank looks for its coordinator.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often an attempt looks at the threads when no message comes.
const TICK: Duration = Duration::from_millis(1);

/// Why a rank could not join its job.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("the coordinator turned rank {rank} away: {reason}")]
    Rejected { rank: u32, reason: String },
    #[error("the coordinator went away while rank {rank} waited for the other ranks ({barrier})")]
    Alone { rank: u32, barrier: String },
    #[error("cannot prepare rank {rank} for its coordinator: {source}")]
    Prepare { rank: u32, source: nix::Error },
    #[error("cannot start the agent's thread of rank {rank}: {source}")]
    Thread { rank: u32, source: std::io::Error },
}

/// A rank that belongs to its job, but whose application does not run yet.
pub struct Member {
    sender: Sender<FromAgent>,
    receiver: Receiver<ToAgent>,
    launch: Launch,
    /// Orders that came while this rank waited for the others: a checkpoint may be asked for at any time.
    early: Vec<ToAgent>,
}

/// Joins the job: connects, says who this is, waits for the welcome.
pub fn join(launch: &Launch) -> Result<Member, AgentError> {
    let rank = launch.rank;
    stillpoint_faults::this_is(rank);
    wake::prepare().map_err(|source| AgentError::Prepare { rank, source })?;
    voice::remember();
    let (sender, receiver) = enter(launch, launch.connect(PATIENCE)?)?;
    Ok(Member {
        sender,
        receiver,
        launch: launch.clone(),
        early: Vec::new(),
    })
}

/// Says who this is, and waits for the welcome.
fn enter(
    launch: &Launch,
    connection: AgentConnection,
) -> Result<(Sender<FromAgent>, Receiver<ToAgent>), AgentError> {
    let rank = launch.rank;
    let (sender, mut receiver) = connection.split()?;
    sender.send(&FromAgent::Hello(Hello {
        rank,
        size: launch.size,
        pid: std::process::id(),
        host: nix::unistd::gethostname()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        launch: launch.launch.clone(),
        restarted_from: launch.restart.as_ref().map(|restart| restart.epoch),
    }))?;
    match receiver.receive_within(PATIENCE)? {
        Received::Message(ToAgent::Welcome) => Ok((sender, receiver)),
        Received::Message(ToAgent::Rejected { reason }) => {
            Err(AgentError::Rejected { rank, reason })
        }
        _ => Err(AgentError::Rejected {
            rank,
            reason: "it did not answer".to_owned(),
        }),
    }
}

/// The launch of a process that joins its job when it starts MPI.
static LATE: Mutex<Option<Launch>> = Mutex::new(None);

/// Puts joining off until the program starts MPI: a script may run many programs, and the one that uses MPI is the rank.
pub fn join_later(launch: Launch) {
    *LATE.lock().unwrap_or_else(PoisonError::into_inner) = Some(launch);
}

/// Joins now, if it was put off. A program that cannot join runs all the same, but cannot be checkpointed.
pub fn join_late() {
    let launch = LATE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(launch) = launch
        && let Err(error) = join(&launch).and_then(Member::start)
    {
        say::line(format_args!("this rank cannot be checkpointed: {error}"));
    }
}

impl Job for Member {
    /// Waits until every rank of the job has come here. A rank that failed before ends the job, and with it
    /// this wait.
    fn barrier(&mut self, name: &str) -> Result<(), String> {
        self.pass(name).map_err(|error| error.to_string())
    }

    fn start(self) -> Result<(), String> {
        Member::start(self).map_err(|error| error.to_string())
    }
}

impl Member {
    fn pass(&mut self, name: &str) -> Result<(), AgentError> {
        self.sender.send(&FromAgent::AtBarrier {
            name: name.to_owned(),
        })?;
        loop {
            match self.receiver.receive()? {
                Received::Message(ToAgent::BarrierPassed { name: passed }) if passed == name => {
                    return Ok(());
                }
                Received::Message(message) => self.early.push(message),
                Received::Nothing => {}
                Received::Closed => {
                    return Err(AgentError::Alone {
                        rank: self.launch.rank,
                        barrier: name.to_owned(),
                    });
                }
            }
        }
    }

    /// Starts the agent's thread. The gate page must be filled, all signals blocked.
    pub fn start(self) -> Result<(), AgentError> {
        let rank = self.launch.rank;
        std::thread::Builder::new()
            .name("stillpoint".to_owned())
            .stack_size(1 << 20)
            .spawn(move || {
                let reachable_at = self.receiver.local_ip().ok();
                let staging = reachable_at
                    .and_then(|at| Staging::open(&self.launch, at, self.sender.clone()));
                Agent {
                    // SAFETY: whoever starts the agent has filled the gate page.
                    page: unsafe { Page::mapped() },
                    staging,
                    sender: self.sender,
                    receiver: self.receiver,
                    attempt: None,
                    mpi: false,
                    launch: self.launch,
                    suspend: None,
                }
                .run(self.early);
            })
            .map(|_| ())
            .map_err(|source| AgentError::Thread { rank, source })
    }
}

struct Agent {
    page: Page,
    staging: Option<Staging>,
    sender: Sender<FromAgent>,
    receiver: Receiver<ToAgent>,
    attempt: Option<Attempt>,
    mpi: bool,
    launch: Launch,
    /// A signal that asks for a suspend, and may not have been heard yet.
    suspend: Option<i32>,
}

impl Agent {
    /// Runs as long as the process. When the coordinator goes, the application runs on; so does this, with the next one.
    fn run(mut self, early: Vec<ToAgent>) {
        // The reason is of no use to the application; the coordinator's log and the command tell it.
        let _ = early
            .into_iter()
            .try_for_each(|message| self.obey(message))
            .and_then(|()| self.serve());
        loop {
            self.left_alone();
            self.find_another();
            // As above.
            let _ = self.serve();
        }
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
            self.mpi_came_or_went()?;
            if let Some(signal) = wake::take_suspend() {
                // Until an attempt has ended: a coordinator that has just died would not have heard it.
                self.suspend = Some(signal);
                self.sender.send(&FromAgent::SuspendWanted { signal })?;
            }
            self.last_words();
            let raises = wake::take_raises();
            if let Some(attempt) = &mut self.attempt {
                attempt.raise(raises, &self.sender)?;
                attempt.tick(&self.sender)?;
            }
            let ticks = self.attempt.as_ref().is_some_and(Attempt::ticks);
            let patience = ticks.then_some(TICK);
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
            // It is older than the application's handlers.
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
        let Some(current) = self.attempt.as_mut().filter(|a| a.number() == attempt) else {
            // A rank that refused to take part runs already; the coordinator counts on its word all the same.
            if matches!(order, Order::Abort { .. }) {
                self.suspend = None;
                self.sender.send(&FromAgent::Progress {
                    attempt,
                    progress: Progress::Released,
                })?;
            }
            return Ok(());
        };
        match current.obey(order, &self.sender)? {
            Outcome::Continues => {}
            Outcome::Released => {
                self.attempt = None;
                self.suspend = None;
                self.sender.send(&FromAgent::Progress {
                    attempt,
                    progress: Progress::Released,
                })?;
            }
            Outcome::Ends => {
                stillpoint_faults::pass(Point::Terminated);
                self.leave_tiers();
                self.sender.send(&FromAgent::Exiting { status: 0 })?;
                ending::leave(self.launch.suspended_status);
            }
        }
        Ok(())
    }

    /// What is said outside of an attempt: a word for the user, and of storage tiers.
    fn hear(&self, message: ToAgent) {
        if let ToAgent::Say { text } = &message {
            return voice::say(text);
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

    /// Passes on that the process ends, if it does.
    fn last_words(&self) {
        let behind = self.attempt.as_ref().is_some_and(Attempt::is_behind);
        if let Some(status) = wake::ending().filter(|_| !behind) {
            self.leave_tiers();
            // A coordinator that has gone needs no message.
            let _ = self.sender.send(&FromAgent::Exiting { status });
            wake::told();
        }
    }

    /// Sleeps until the coordinator or the bell has something, or the time is over.
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
