//! Joins a rank to its job: at once, or when the program that is the rank starts MPI.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use stillpoint_protocol::agent::{FromAgent, Hello, KnownAs, Neighbour, ToAgent};
use stillpoint_protocol::client::AgentConnection;
use stillpoint_protocol::launch::Launch;
use stillpoint_protocol::namespace::Namespace;
use stillpoint_protocol::{Received, Receiver, Sender};
use stillpoint_refusals::{Coded, Refusal, refusal};

use super::{Agent, AgentError, PATIENCE, on_a_thread, user_messages};
use crate::executor::staging::Staging;
use crate::ground::page::Page;
use crate::ground::{say, wake};
use crate::restore::job::Job;

/// A rank that belongs to its job, but whose application does not run yet.
pub struct Member {
    sender: Sender<FromAgent>,
    receiver: Receiver<ToAgent>,
    launch: Launch,
    late: bool,
    /// Orders that came while this rank waited for the others: a checkpoint may be asked for at any time.
    early: Vec<ToAgent>,
    neighbours: Vec<Neighbour>,
}

/// Joins the job: connects, introduces this process, waits for the welcome.
pub fn join(launch: &Launch) -> Result<Member, AgentError> {
    join_as(launch, false)
}

fn join_as(launch: &Launch, late: bool) -> Result<Member, AgentError> {
    let rank = launch.rank;
    stillpoint_faults::this_is(rank.0);
    wake::prepare().map_err(|source| AgentError::Prepare { rank, source })?;
    user_messages::remember();
    let connection = launch.connect(PATIENCE)?;
    let (sender, receiver) = enter(
        launch,
        connection,
        Coming {
            returns: false,
            late,
        },
    )?;
    Ok(Member {
        sender,
        receiver,
        late,
        launch: launch.clone(),
        early: Vec::new(),
        neighbours: Vec::new(),
    })
}

/// How long a process that becomes another program waits for its coordinator.
const BRIEF: Duration = Duration::from_secs(5);

/// Tells the coordinator that this process is about to become a program without an agent. If another process is the rank, the coordinator turns this one away.
pub fn becomes_unsplit(launch: &Launch, program: &Path) -> Result<(), AgentError> {
    let coming = Coming {
        returns: true,
        late: false,
    };
    let (sender, _receiver) = enter(launch, launch.try_connect(BRIEF)?, coming)?;
    let program = program.display().to_string();
    Ok(sender.send(&FromAgent::BecomesUnsplit { program })?)
}

/// The way in which a process comes to its coordinator, for its [`Hello`].
pub(super) struct Coming {
    pub returns: bool,
    pub late: bool,
}

/// Introduces this process, and waits for the welcome.
pub(super) fn enter(
    launch: &Launch,
    connection: AgentConnection,
    coming: Coming,
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
        namespace: Namespace::here(),
        launch: launch.launch.clone(),
        restarted_from: launch.restart.as_ref().map(|restart| restart.epoch),
        returns: coming.returns,
        late: coming.late,
    }))?;
    match receiver.receive_within(PATIENCE)? {
        Received::Message(ToAgent::Welcome) => Ok((sender, receiver)),
        Received::Message(ToAgent::Rejected { reason }) => {
            Err(AgentError::Rejected { rank, reason })
        }
        _ => Err(AgentError::Rejected {
            rank,
            reason: refusal!(NoJob, "it did not answer"),
        }),
    }
}

/// The launch of a process that joins its job when it starts MPI.
static LATE: Mutex<Option<Launch>> = Mutex::new(None);

/// Puts joining off until the program starts MPI: a script may run many programs, and the one that uses MPI is the rank.
pub fn join_later(launch: Launch) {
    *LATE.lock().unwrap_or_else(PoisonError::into_inner) = Some(launch);
}

/// Joins now, if joining was put off. A program that cannot join runs all the same, but cannot be checkpointed.
pub fn join_late() {
    let launch = LATE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(launch) = launch
        && let Err(error) = join_as(&launch, true).and_then(Member::start)
    {
        let error = error.refusal();
        say::line(format_args!("this rank cannot be checkpointed: {error}"));
    }
}

impl Job for Member {
    fn is_known_as(&mut self, known: KnownAs) -> Result<(), Refusal> {
        let said = self.sender.send(&FromAgent::KnownAs(known));
        said.map_err(|error| AgentError::from(error).refusal())
    }

    fn neighbours(&self) -> &[Neighbour] {
        &self.neighbours
    }

    /// Waits until every rank of the job has come here. If a rank fails before, the job ends, and with it this wait.
    fn barrier(&mut self, name: &str) -> Result<(), Refusal> {
        self.pass(name).map_err(|error| error.refusal())
    }

    fn start(self) -> Result<(), Refusal> {
        Member::start(self).map_err(|error| error.refusal())
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
                Received::Message(ToAgent::Neighbours(all)) => self.neighbours = all,
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

    /// Starts the agent's thread. The gate page must be filled, and all signals blocked.
    pub fn start(self) -> Result<(), AgentError> {
        let Member {
            sender,
            receiver,
            launch,
            late,
            early,
            neighbours: _,
        } = self;
        on_a_thread(launch.rank, move || {
            let reachable_at = receiver.local_ip().ok();
            let staging = reachable_at.and_then(|at| Staging::open(&launch, at, sender.clone()));
            Agent {
                // SAFETY: the caller that starts the agent has filled the gate page.
                page: unsafe { Page::mapped() },
                staging,
                sender,
                receiver,
                attempt: None,
                mpi: false,
                launch,
                late,
                suspend: None,
                early,
                replaced: false,
            }
            .run();
        })
    }
}
