//! This process as a rank that is about to start: its messages to and from the coordinator.

use std::net::IpAddr;

use stillpoint_ids::Epoch;
use stillpoint_protocol::agent::{FromAgent, Hello, ToAgent};
use stillpoint_protocol::client::AgentConnection;
use stillpoint_protocol::job_file::{JobFile, host_name};
use stillpoint_protocol::namespace::Namespace;
use stillpoint_protocol::tier::{Announced, Gathered};
use stillpoint_protocol::{Received, Receiver, Sender};

use super::super::launch::LaunchPosition;
use super::PATIENCE;
use super::error::GatherError;

pub struct Member {
    sender: Sender<FromAgent>,
    receiver: Receiver<ToAgent>,
}

impl Member {
    pub fn enter(place: &LaunchPosition, job: &JobFile) -> Result<Member, GatherError> {
        let connection = AgentConnection::open(&job.addresses, &job.terms(), PATIENCE);
        let (sender, receiver) = connection.and_then(AgentConnection::split)?;
        let mut member = Member { sender, receiver };
        member.say(&FromAgent::Hello(Hello {
            rank: place.rank,
            size: place.size,
            pid: std::process::id(),
            host: host_name(),
            namespace: Namespace::here(),
            launch: place.launch.clone(),
            restarted_from: None,
            returns: false,
            late: false,
        }))?;
        member.wait(|message| match message {
            ToAgent::Welcome => Some(Ok(())),
            ToAgent::Rejected { reason } => Some(Err(GatherError::Rejected(reason))),
            _ => None,
        })??;
        Ok(member)
    }

    /// The address of this host that the coordinator sees, so that others can use it too.
    pub fn local_ip(&self) -> Result<IpAddr, GatherError> {
        self.receiver.local_ip().map_err(GatherError::OwnAddress)
    }

    /// Announces this rank's address. Returns those of all ranks, by rank.
    pub fn peers(&mut self, me: Announced) -> Result<Vec<Announced>, GatherError> {
        self.say(&FromAgent::Tier(me))?;
        self.wait(|message| match message {
            ToAgent::Peers(peers) => Some(peers),
            _ => None,
        })
    }

    pub fn barrier(&mut self, barrier: &str) -> Result<(), GatherError> {
        self.say(&FromAgent::AtBarrier {
            name: barrier.to_owned(),
        })?;
        self.wait(|message| match message {
            ToAgent::BarrierPassed { name } if name == barrier => Some(()),
            _ => None,
        })
    }

    /// Reports the result. Returns the epoch to restart from, or the reason why there is none.
    pub fn recovered(
        &mut self,
        epoch: Epoch,
        gathered: Gathered,
        problem: Option<String>,
    ) -> Result<(Option<Epoch>, String), GatherError> {
        self.say(&FromAgent::Recovered {
            epoch,
            gathered,
            problem,
        })?;
        self.wait(|message| match message {
            ToAgent::CarryOn { epoch, reason } => Some((epoch, reason)),
            _ => None,
        })
    }

    fn say(&self, message: &FromAgent) -> Result<(), GatherError> {
        Ok(self.sender.send(message)?)
    }

    /// Waits for the first message that is wanted, without a limit, since other hosts may have much to copy.
    fn wait<T>(&mut self, mut wanted: impl FnMut(ToAgent) -> Option<T>) -> Result<T, GatherError> {
        loop {
            match self.receiver.receive()? {
                Received::Message(message) => {
                    if let Some(answer) = wanted(message) {
                        return Ok(answer);
                    }
                }
                Received::Nothing => {}
                Received::Closed => return Err(GatherError::Closed),
            }
        }
    }
}
