//! The paper's Algorithm 1: the largest remainder first, to the fastest peer with spare capacity.
//!
//! The code follows the printed algorithm, except for two slips: line 14 sets `C_i` to zero before line 15 records it as the
//! transfer to the host, and line 16 divides the `k` of an earlier transfer by `B_h`; the transfer to the host is the
//! remaining `C_i`.
//!
//! On machines with switches `B_ij` is the bandwidth of the widest route, and the blocking time takes shared links into
//! account.

use crate::plan::{Plan, PlanBuilder};
use crate::problem::{Problem, ScheduleError};
use crate::routes::{Routes, SlowTiers};
use crate::schedule::Scheduler;
use crate::topology::End;
use std::cmp::Reverse;

/// Algorithm 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Greedy;

impl Scheduler for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn schedule(&self, problem: &Problem<'_>) -> Result<Plan, ScheduleError> {
        let topology = problem.topology();
        let mut tiers = SlowTiers::new(topology);
        let mut spare = problem.spare().to_vec();
        let mut plan = PlanBuilder::new();
        let mut senders: Vec<usize> = problem.senders().collect();
        senders.sort_by_key(|&sender| Reverse(problem.remainder()[sender]));
        for sender in senders {
            let routes = Routes::from(topology, sender);
            let mut left = problem.remainder()[sender];
            let reachable = |&peer: &usize| spare[peer] > 0 && routes.width(End::Process(peer)) > 0;
            let mut peers: Vec<usize> = (0..spare.len()).filter(reachable).collect();
            peers.sort_by_key(|&peer| Reverse(routes.width(End::Process(peer))));
            for peer in peers {
                let amount = left.min(spare[peer]);
                if amount == 0 {
                    break;
                }
                plan.push(
                    sender,
                    End::Process(peer),
                    amount,
                    routes.links(End::Process(peer)),
                );
                left -= amount;
                spare[peer] -= amount;
            }
            tiers.send(problem, &routes, sender, left, &mut plan)?;
        }
        Ok(plan.finish(problem))
    }
}
