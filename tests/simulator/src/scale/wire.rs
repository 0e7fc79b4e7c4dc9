//! Messages between agents and the coordinator, and how many bytes they take in the real protocol.

use stillpoint_clock::rank::Activity;
use stillpoint_ids::Epoch;
use stillpoint_protocol::agent::{FromAgent, Order, Progress, State, ToAgent};
use stillpoint_protocol::codec;

/// To an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentInput {
    Begin,
    Targets(u64, Vec<(u64, u64)>),
    Raised(u64, u64, u64),
    Advance(u64),
    Poll(u32),
}

/// From an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentReport {
    Clocks(Vec<(u64, u64)>),
    Raise(u64, u64),
    Report(Activity, u64, u32, [u64; 3]),
}

/// A real group id is 64 bits of a hash: as many bytes as that takes.
fn id(ggid: u64) -> u64 {
    ggid | 1 << 63
}

fn ids(pairs: &[(u64, u64)]) -> Vec<(u64, u64)> {
    pairs.iter().map(|(ggid, seq)| (id(*ggid), *seq)).collect()
}

impl AgentInput {
    pub fn bytes(&self) -> u64 {
        let order = match self {
            AgentInput::Begin => Order::Begin(stillpoint_protocol::agent::Begin {
                epoch: Epoch(1),
                directory: "/scratch/project/run/stillpoint.d/epoch-000001.part".into(),
                image: "/scratch/project/run/stillpoint.d/epoch-000001.part/rank-000001.image"
                    .into(),
                compress: "none".into(),
                incremental: stillpoint_protocol::agent::Incremental::Off,
                dedup: stillpoint_protocol::agent::Dedup::Node { keeper: 1 << 20 },
            }),
            AgentInput::Targets(version, targets) => Order::Targets {
                version: *version,
                targets: ids(targets),
            },
            AgentInput::Raised(version, ggid, target) => Order::Raised {
                version: *version,
                ggid: id(*ggid),
                target: *target,
            },
            AgentInput::Advance(version) => Order::Advance { version: *version },
            AgentInput::Poll(poll) => Order::Poll { poll: *poll },
        };
        frame(&ToAgent::Checkpoint { attempt: 1, order })
    }
}

impl AgentReport {
    pub fn bytes(&self) -> u64 {
        let progress = match self {
            AgentReport::Clocks(clocks) => Progress::Clocks {
                clocks: ids(clocks),
            },
            AgentReport::Raise(ggid, seq) => Progress::Raise {
                ggid: id(*ggid),
                seq: *seq,
            },
            AgentReport::Report(activity, seen, poll, [sent, received, begun]) => {
                Progress::State(State {
                    doing: (*activity).into(),
                    seen: *seen,
                    poll: *poll,
                    sent: *sent,
                    received: *received,
                    begun: *begun,
                })
            }
        };
        frame(&FromAgent::Progress {
            attempt: 1,
            progress,
        })
    }
}

fn frame<M: codec::Encode>(message: &M) -> u64 {
    codec::encode(message).map_or(0, |frame| frame.len() as u64)
}
