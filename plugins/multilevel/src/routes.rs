//! The widest route from a process to every place: `B_ij` and `B_h` on machines with switches.

use crate::plan::PlanBuilder;
use crate::problem::{Problem, ScheduleError};
use crate::topology::{End, Topology};

/// Widest routes from one process, each through switches only.
pub(crate) struct Routes<'t> {
    topology: &'t Topology,
    /// By process, then tier: the narrowest bandwidth on the widest route, or zero without a route.
    width: Vec<u64>,
    /// The last link of that route.
    last: Vec<u32>,
    /// The same for switches.
    switches: Vec<(u64, u32)>,
}

impl<'t> Routes<'t> {
    pub(crate) fn from(topology: &'t Topology, process: usize) -> Routes<'t> {
        let places = topology.processes().len() + topology.tiers().len();
        let mut routes = Routes {
            topology,
            width: vec![0; places],
            last: vec![0; places],
            switches: vec![(0, 0); topology.switches().len()],
        };
        let mut open = vec![(End::Process(process), u64::MAX)];
        while let Some((from, width)) = open.pop() {
            for &number in topology.outgoing(from) {
                let link = topology.links()[number as usize];
                let width = width.min(link.bandwidth);
                match link.to {
                    End::Switch(at) => {
                        let width =
                            width.min(topology.switches()[at].bandwidth.unwrap_or(u64::MAX));
                        if width > routes.switches[at].0 {
                            routes.switches[at] = (width, number);
                            open.push((link.to, width));
                        }
                    }
                    End::Process(at) if at != process => routes.arrive(at, width, number),
                    End::Process(_) => {}
                    End::Tier(at) => {
                        let width = width.min(topology.tiers()[at].bandwidth.unwrap_or(u64::MAX));
                        routes.arrive(topology.processes().len() + at, width, number);
                    }
                }
            }
        }
        routes
    }

    fn arrive(&mut self, place: usize, width: u64, link: u32) {
        if width > self.width[place] {
            self.width[place] = width;
            self.last[place] = link;
        }
    }

    fn place(&self, to: End) -> usize {
        match to {
            End::Process(at) => at,
            End::Tier(at) => self.topology.processes().len() + at,
            End::Switch(_) => unreachable!("no data ends in a switch"),
        }
    }

    /// Returns the bandwidth of the widest route, or zero without a route.
    pub(crate) fn width(&self, to: End) -> u64 {
        self.width[self.place(to)]
    }

    /// Returns the links of the widest route, in order.
    pub(crate) fn links(&self, to: End) -> Vec<u32> {
        let mut links = vec![self.last[self.place(to)]];
        while let End::Switch(at) = self.topology.links()[links[links.len() - 1] as usize].from {
            links.push(self.switches[at].1);
        }
        links.reverse();
        links
    }
}

/// The room on the slow tiers while a plan grows.
pub(crate) struct SlowTiers {
    room: Vec<u64>,
}

impl SlowTiers {
    pub(crate) fn new(topology: &Topology) -> SlowTiers {
        SlowTiers {
            room: topology
                .tiers()
                .iter()
                .map(|tier| tier.capacity.unwrap_or(u64::MAX))
                .collect(),
        }
    }

    /// Sends `bytes` of a sender to the tier with the widest route, and the rest that does not fit there to the next.
    pub(crate) fn send(
        &mut self,
        problem: &Problem<'_>,
        routes: &Routes<'_>,
        sender: usize,
        bytes: u64,
        plan: &mut PlanBuilder,
    ) -> Result<(), ScheduleError> {
        let mut left = bytes;
        while left > 0 {
            let open = (0..self.room.len())
                .filter(|&tier| self.room[tier] > 0 && routes.width(End::Tier(tier)) > 0);
            // The first of the widest, as an argmax finds it.
            let Some(tier) = open.rev().max_by_key(|&tier| routes.width(End::Tier(tier))) else {
                return Err(problem.does_not_fit(&[sender], problem.remainder()[sender] - left));
            };
            let amount = left.min(self.room[tier]);
            plan.push(
                sender,
                End::Tier(tier),
                amount,
                routes.links(End::Tier(tier)),
            );
            left -= amount;
            self.room[tier] -= amount;
        }
        Ok(())
    }
}
