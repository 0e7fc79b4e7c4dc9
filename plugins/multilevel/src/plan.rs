//! Plans: transfers between processes and places, their loads, and the rules that every plan keeps.

use crate::problem::Problem;
use crate::ratio::Seconds;
use crate::topology::End;
use serde::Serialize;

/// A number of bytes from one process to one place, along one route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    pub from: usize,
    /// A process or a tier.
    pub to: End,
    pub bytes: u64,
    /// The beginning and end of its links in the plan's list.
    route: (u32, u32),
}

/// Transfers that all start at once, and their blocking time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    transfers: Vec<Transfer>,
    routes: Vec<u32>,
    blocking_time: Seconds,
}

/// A part with a bandwidth that several transfers can share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SharedResource {
    Link(usize),
    Switch(usize),
    Tier(usize),
    /// A process's writes to its own fast tier.
    Local(usize),
}

/// A rule that a plan breaks.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlanError {
    #[error("process {process} sends {sent} bytes, but its remainder is {remainder}")]
    Incomplete {
        process: usize,
        sent: u64,
        remainder: u64,
    },
    #[error("{place:?} gets {sent} bytes but has room for {room}")]
    TooMuch { place: End, sent: u64, room: u64 },
    #[error("transfer {transfer}: its route does not lead from its process to its place")]
    Route { transfer: usize },
    #[error("transfer {transfer}: no bytes")]
    Nothing { transfer: usize },
    #[error("the blocking time is {right:?}, but the plan says {said:?}")]
    Time { said: Seconds, right: Seconds },
}

impl Plan {
    /// Makes a plan from elsewhere: sender, place, bytes and links of each transfer. It must keep every rule.
    pub fn from_transfers(
        problem: &Problem<'_>,
        transfers: impl IntoIterator<Item = (usize, End, u64, Vec<u32>)>,
    ) -> Result<Plan, PlanError> {
        let mut plan = PlanBuilder::new();
        for (number, (from, to, bytes, route)) in transfers.into_iter().enumerate() {
            let links = problem.topology().links().len();
            if from >= problem.remainder().len() || route.iter().any(|&link| link as usize >= links)
            {
                return Err(PlanError::Route { transfer: number });
            }
            plan.push(from, to, bytes, route);
        }
        let plan = plan.finish(problem);
        plan.validate(problem).map(|()| plan)
    }

    /// Returns the transfers, in no particular order.
    pub fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    /// Returns the links of a transfer of this plan, in order.
    pub fn route(&self, transfer: &Transfer) -> &[u32] {
        &self.routes[transfer.route.0 as usize..transfer.route.1 as usize]
    }

    /// Returns the time of the slowest link, switch or tier with the load of this plan, `t_ckpt` in the paper.
    pub fn blocking_time(&self) -> Seconds {
        self.blocking_time
    }

    /// Counts the bytes that go to the fast tiers of other processes.
    pub fn peer_traffic(&self) -> u64 {
        let peers = self
            .transfers
            .iter()
            .filter(|transfer| matches!(transfer.to, End::Process(_)));
        peers.map(|transfer| transfer.bytes).sum()
    }

    /// Returns the parts that take the whole blocking time.
    pub fn busiest(&self, problem: &Problem<'_>) -> Vec<SharedResource> {
        let mut busiest = Vec::new();
        for_each_load(problem, self, |shared, time| {
            if time == self.blocking_time && time > Seconds::ZERO {
                busiest.push(shared);
            }
        });
        busiest
    }

    /// Checks every rule: all remainders sent, no place overfilled, routes that exist, the time as loaded.
    pub fn validate(&self, problem: &Problem<'_>) -> Result<(), PlanError> {
        let topology = problem.topology();
        let mut sent = vec![0u64; topology.processes().len()];
        let mut into_processes = vec![0u64; topology.processes().len()];
        let mut into_tiers = vec![0u64; topology.tiers().len()];
        for (number, transfer) in self.transfers.iter().enumerate() {
            if transfer.bytes == 0 {
                return Err(PlanError::Nothing { transfer: number });
            }
            let mut at = End::Process(transfer.from);
            for (place, &link) in self.route(transfer).iter().enumerate() {
                let link = topology.links()[link as usize];
                if link.from != at || (place > 0 && !matches!(at, End::Switch(_))) {
                    return Err(PlanError::Route { transfer: number });
                }
                at = link.to;
            }
            if at != transfer.to || transfer.to == End::Process(transfer.from) {
                return Err(PlanError::Route { transfer: number });
            }
            sent[transfer.from] += transfer.bytes;
            match transfer.to {
                End::Process(to) => into_processes[to] += transfer.bytes,
                End::Tier(to) => into_tiers[to] += transfer.bytes,
                End::Switch(_) => return Err(PlanError::Route { transfer: number }),
            }
        }
        for (process, (&sent, &remainder)) in sent.iter().zip(problem.remainder()).enumerate() {
            if sent != remainder {
                return Err(PlanError::Incomplete {
                    process,
                    sent,
                    remainder,
                });
            }
        }
        let processes = into_processes
            .iter()
            .enumerate()
            .map(|(at, &sent)| (End::Process(at), sent));
        let tiers = into_tiers
            .iter()
            .enumerate()
            .map(|(at, &sent)| (End::Tier(at), sent));
        for (place, sent) in processes.chain(tiers) {
            if let Some(room) = problem.room(place).filter(|&room| sent > room) {
                return Err(PlanError::TooMuch { place, sent, room });
            }
        }
        let right = time_of(problem, self);
        if right != self.blocking_time {
            return Err(PlanError::Time {
                said: self.blocking_time,
                right,
            });
        }
        Ok(())
    }

    /// Describes the plan with names, for people and `--json`.
    pub fn describe(&self, problem: &Problem<'_>) -> Vec<DescribedTransfer> {
        let topology = problem.topology();
        let describe = |transfer: &Transfer| DescribedTransfer {
            from: topology.processes()[transfer.from].name.clone(),
            to: topology.end_name(transfer.to).to_owned(),
            bytes: transfer.bytes,
            via: self
                .route(transfer)
                .iter()
                .skip(1)
                .map(|&link| via(problem, link))
                .collect(),
        };
        self.transfers.iter().map(describe).collect()
    }
}

fn via(problem: &Problem<'_>, link: u32) -> String {
    let topology = problem.topology();
    topology
        .end_name(topology.links()[link as usize].from)
        .to_owned()
}

/// A transfer in words.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DescribedTransfer {
    pub from: String,
    pub to: String,
    pub bytes: u64,
    /// Switches on the way.
    pub via: Vec<String>,
}

impl SharedResource {
    /// Returns a name such as `link G0 -> G4` or `switch PCIe0`.
    pub fn name(self, problem: &Problem<'_>) -> String {
        let topology = problem.topology();
        match self {
            SharedResource::Link(at) => format!("link {}", topology.link_name(at)),
            SharedResource::Switch(at) => format!("switch {}", topology.switches()[at].name),
            SharedResource::Tier(at) => format!("tier {}", topology.tiers()[at].name),
            SharedResource::Local(at) => {
                format!("local writes of {}", topology.processes()[at].name)
            }
        }
    }
}

/// Collects transfers into a plan.
pub(crate) struct PlanBuilder {
    transfers: Vec<Transfer>,
    routes: Vec<u32>,
}

impl PlanBuilder {
    pub(crate) fn new() -> PlanBuilder {
        PlanBuilder {
            transfers: Vec::new(),
            routes: Vec::new(),
        }
    }

    pub(crate) fn push(
        &mut self,
        from: usize,
        to: End,
        bytes: u64,
        route: impl IntoIterator<Item = u32>,
    ) {
        let start = self.routes.len() as u32;
        self.routes.extend(route);
        self.transfers.push(Transfer {
            from,
            to,
            bytes,
            route: (start, self.routes.len() as u32),
        });
    }

    /// Returns the transfers that have been pushed, so that the caller can make them smaller.
    pub(crate) fn transfers_mut(&mut self) -> &mut [Transfer] {
        &mut self.transfers
    }

    /// Removes empty transfers, from `first` on.
    pub(crate) fn drop_empty(&mut self, first: usize) {
        if self.transfers[first..]
            .iter()
            .any(|transfer| transfer.bytes == 0)
        {
            self.transfers.retain(|transfer| transfer.bytes > 0);
        }
    }

    pub(crate) fn finish(self, problem: &Problem<'_>) -> Plan {
        let (transfers, routes) = (self.transfers, self.routes);
        let mut plan = Plan {
            transfers,
            routes,
            blocking_time: Seconds::ZERO,
        };
        plan.blocking_time = time_of(problem, &plan);
        plan
    }
}

fn time_of(problem: &Problem<'_>, plan: &Plan) -> Seconds {
    // Finds the largest quotient without reducing every one to lowest terms.
    let mut longest = (0u64, 1u64);
    for_each_quotient(problem, plan, |_, bytes, bandwidth| {
        if u128::from(bytes) * u128::from(longest.1) > u128::from(longest.0) * u128::from(bandwidth)
        {
            longest = (bytes, bandwidth);
        }
    });
    Seconds::new(longest.0, longest.1).max(problem.local_time().0)
}

fn for_each_load(
    problem: &Problem<'_>,
    plan: &Plan,
    mut visit: impl FnMut(SharedResource, Seconds),
) {
    for_each_quotient(problem, plan, |shared, bytes, bandwidth| {
        visit(shared, Seconds::new(bytes, bandwidth))
    });
    if let (time, Some(process)) = problem.local_time() {
        visit(SharedResource::Local(process), time);
    }
}

/// Visits every loaded part, with its load and bandwidth.
fn for_each_quotient(
    problem: &Problem<'_>,
    plan: &Plan,
    mut visit: impl FnMut(SharedResource, u64, u64),
) {
    let topology = problem.topology();
    let mut links = vec![0u64; topology.links().len()];
    let mut switches = vec![0u64; topology.switches().len()];
    let mut tiers = vec![0u64; topology.tiers().len()];
    for transfer in &plan.transfers {
        for &link in plan.route(transfer) {
            links[link as usize] += transfer.bytes;
            match topology.links()[link as usize].to {
                End::Switch(at) => switches[at] += transfer.bytes,
                End::Tier(at) => tiers[at] += transfer.bytes,
                End::Process(_) => {}
            }
        }
    }
    for (at, (&bytes, link)) in links.iter().zip(topology.links()).enumerate() {
        if bytes > 0 {
            visit(SharedResource::Link(at), bytes, link.bandwidth);
        }
    }
    for (at, (&bytes, switch)) in switches.iter().zip(topology.switches()).enumerate() {
        if let (true, Some(bandwidth)) = (bytes > 0, switch.bandwidth) {
            visit(SharedResource::Switch(at), bytes, bandwidth);
        }
    }
    for (at, (&bytes, tier)) in tiers.iter().zip(topology.tiers()).enumerate() {
        if let (true, Some(bandwidth)) = (bytes > 0, tier.bandwidth) {
            visit(SharedResource::Tier(at), bytes, bandwidth);
        }
    }
}
