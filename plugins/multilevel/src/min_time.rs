//! The paper's Algorithm 2: min-time max-flow, one chunk at a time along the path that ends soonest.
//!
//! The cost of a path is the longest time on it, not the sum. The price of an edge on the path assumes all the chunks
//! that it would then carry; for a backward edge, all but one of its current chunks. A queued Bellman-Ford finds the path
//! anew in every round.
//!
//! The code follows the printed algorithm, except for these slips:
//!
//! * line 2 sets the distance of every node to infinity; the source's is zero, or no path ever starts;
//! * the text links "the source to the receivers" with capacity `C_i`; these are the senders;
//! * lines 9 to 11 read the chunks on a backward edge as its own residual capacity, which is right, and those on a forward
//!   edge as the residual capacity of its reverse; on edges of cost zero either gives a time of zero;
//! * lines 24 to 26 go over all edges; counted are the forward ones that carry something (a backward edge's cost is
//!   negative), and the source's and the sink's edges have no cost;
//! * remainders are whole chunks to the algorithm: they are rounded up, spare capacities are rounded down, and the last chunk
//!   of a sender carries what there is.
//!
//! Times are compared as fractions of whole numbers. On machines with switches every link of a route is priced.
//!
//! One search for each chunk takes long if there are many chunks or many links. [`MinTime::schedule_within`] counts the edges
//! that it looks at and gives up after a limit, so the outcome is the same on every machine.

use crate::flow::forward;
use crate::graph::{Limit, SINK, SOURCE, StagingGraph};
use crate::plan::Plan;
use crate::problem::{Problem, ScheduleError};
use crate::schedule::Scheduler;
use std::collections::VecDeque;

/// Algorithm 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MinTime {
    /// Bytes that move in one round: 1 MB in the paper. The time grows with the number of rounds.
    pub chunk: u64,
}

impl Default for MinTime {
    fn default() -> MinTime {
        MinTime { chunk: 1_000_000 }
    }
}

impl Scheduler for MinTime {
    fn name(&self) -> &'static str {
        "min-time"
    }

    fn schedule(&self, problem: &Problem<'_>) -> Result<Plan, ScheduleError> {
        let plan = self.schedule_within(problem, &mut { u64::MAX })?;
        Ok(plan.expect("so many steps take longer than the universe has had"))
    }
}

impl MinTime {
    /// Does the same as [`Scheduler::schedule`] in at most `steps` steps, and subtracts the used ones. Returns `None` if they
    /// do not suffice.
    pub fn schedule_within(
        &self,
        problem: &Problem<'_>,
        steps: &mut u64,
    ) -> Result<Option<Plan>, ScheduleError> {
        if self.chunk == 0 {
            return Err(ScheduleError::NoChunk);
        }
        // Building the graph takes about as long as looking at every link once.
        if !spend(steps, problem.topology().links().len() as u64) {
            return Ok(None);
        }
        let mut graph = StagingGraph::new(problem, self.chunk);
        open_all(&mut graph);
        let mut search = Search::new(&graph);
        for _ in 0..graph.demand {
            match search.soonest_path(&graph, steps) {
                None => return Ok(None),
                Some(true) => search.push_one(&mut graph),
                Some(false) => {
                    let senders: Vec<usize> = problem.senders().collect();
                    let room = problem.total_remainder().min(sent(&graph) * self.chunk);
                    return Err(problem.does_not_fit(&senders, room));
                }
            }
        }
        Ok(Some(graph.plan(problem)))
    }
}

/// Subtracts steps from those that are left, and tells whether there were enough.
fn spend(left: &mut u64, steps: u64) -> bool {
    let enough = *left >= steps;
    *left = left.saturating_sub(steps);
    enough
}

/// Sets the capacity of links to the whole demand, since only time is short.
fn open_all(graph: &mut StagingGraph) {
    for edge in 0..graph.limits.len() {
        let capacity = match graph.limits[edge] {
            Limit::Pieces(pieces) => pieces,
            Limit::Bandwidth(_) => graph.demand,
        };
        graph.network.raise(edge, capacity);
    }
}

fn sent(graph: &StagingGraph) -> u64 {
    graph
        .network
        .arcs(SOURCE)
        .map(|(arc, _)| graph.network.flow(arc / 2))
        .sum()
}

/// The state of lines 2 to 4.
struct Search {
    /// `d` of the paper; `None` is infinity.
    soonest: Vec<Option<Time>>,
    /// `p` of the paper: the arc that leads to each vertex.
    parent: Vec<usize>,
    queue: VecDeque<u32>,
    queued: Vec<bool>,
    /// The bandwidth of each edge, or `None` if crossing takes no time.
    bandwidth: Vec<Option<u64>>,
}

/// Chunks over bandwidth: a time in chunks, not reduced to lowest terms.
#[derive(Clone, Copy)]
struct Time {
    chunks: u64,
    bandwidth: u64,
}

impl Time {
    const ZERO: Time = Time {
        chunks: 0,
        bandwidth: 1,
    };

    fn later_than(self, other: Time) -> bool {
        u128::from(self.chunks) * u128::from(other.bandwidth)
            > u128::from(other.chunks) * u128::from(self.bandwidth)
    }
}

impl Search {
    fn new(graph: &StagingGraph) -> Search {
        let vertices = graph.network.vertices();
        let bandwidth = graph.limits.iter().map(|limit| match limit {
            Limit::Pieces(_) => None,
            Limit::Bandwidth(bandwidth) => Some(*bandwidth),
        });
        Search {
            soonest: vec![None; vertices],
            parent: vec![0; vertices],
            queue: VecDeque::with_capacity(vertices),
            queued: vec![false; vertices],
            bandwidth: bandwidth.collect(),
        }
    }

    /// Lines 2 to 15. Tells whether the sink can be reached, or returns `None` when the steps have run out.
    fn soonest_path(&mut self, graph: &StagingGraph, steps: &mut u64) -> Option<bool> {
        self.soonest.fill(None);
        self.soonest[SOURCE as usize] = Some(Time::ZERO);
        self.queue.push_back(SOURCE);
        while let Some(vertex) = self.queue.pop_front() {
            self.queued[vertex as usize] = false;
            let Some(so_far) = self.soonest[vertex as usize] else {
                continue;
            };
            let mut looked_at = 0;
            for (arc, next) in graph.network.arcs(vertex) {
                looked_at += 1;
                if graph.network.residual(arc) == 0 {
                    continue;
                }
                let time = self.time_with_one_more(graph, arc);
                let time = if time.later_than(so_far) {
                    time
                } else {
                    so_far
                };
                if self.soonest[next as usize].is_none_or(|before| before.later_than(time)) {
                    self.soonest[next as usize] = Some(time);
                    self.parent[next as usize] = arc;
                    if !std::mem::replace(&mut self.queued[next as usize], true) {
                        self.queue.push_back(next);
                    }
                }
            }
            if !spend(steps, looked_at) {
                return None;
            }
        }
        Some(self.soonest[SINK as usize].is_some())
    }

    /// Returns the time of the edge with one chunk more, or with one less if the arc leads backwards.
    fn time_with_one_more(&self, graph: &StagingGraph, arc: usize) -> Time {
        let edge = arc / 2;
        let Some(bandwidth) = self.bandwidth[edge] else {
            return Time::ZERO;
        };
        let carried = graph.network.flow(edge);
        Time {
            chunks: if forward(arc) {
                carried + 1
            } else {
                carried - 1
            },
            bandwidth,
        }
    }

    /// Lines 18 to 23.
    fn push_one(&self, graph: &mut StagingGraph) {
        let mut vertex = SINK;
        while vertex != SOURCE {
            let arc = self.parent[vertex as usize];
            graph.network.push(arc, 1);
            vertex = graph.network.tail(arc);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::Exact;
    use crate::greedy::Greedy;
    use crate::local_only::LocalOnly;
    use crate::ratio::Seconds;
    use crate::topology::Topology;

    const MB: u64 = 1_000_000;

    #[test]
    fn the_papers_example_gives_the_papers_times() {
        let dgx1 = Topology::dgx1();
        let (mut remainder, mut spare) = (vec![0; 8], vec![0; 8]);
        (remainder[0], remainder[6]) = (480 * MB, 240 * MB);
        (spare[4], spare[1]) = (480 * MB, 137 * MB);
        let problem = Problem::from_remainders(&dgx1, remainder, spare).expect("example");
        let time = |scheduler: &dyn Scheduler| {
            let plan = scheduler.schedule(&problem).expect("plan");
            plan.validate(&problem).expect("valid");
            plan.blocking_time()
        };
        assert_eq!(time(&LocalOnly), Seconds::new(40, 1000));
        assert_eq!(time(&Greedy), Seconds::new(20, 1000));
        let chunk = Seconds::new(MB, 12_000 * MB).as_secs_f64();
        let (best, found) = (
            time(&Exact::default()).as_secs_f64(),
            time(&MinTime::default()).as_secs_f64(),
        );
        assert!(
            found >= best - 1e-12 && found <= best + chunk,
            "{found} and {best}"
        );
    }

    #[test]
    fn steps_that_do_not_suffice_give_no_plan_and_those_that_do_the_same() {
        let ports = Topology::nvswitch(16).with_free(80 * MB);
        let sizes: Vec<u64> = (1..=16).map(|gpu| 10 * gpu * MB).collect();
        let problem = Problem::new(&ports, &sizes).expect("sizes");
        let scheduler = MinTime::default();
        let mut left = u64::MAX;
        let plan = scheduler.schedule_within(&problem, &mut left);
        let taken = u64::MAX - left;
        // There are 480 chunks, and each has to look at a sender's two links at least.
        assert!((1_000..1_000_000).contains(&taken), "{taken}");
        assert_eq!(scheduler.schedule(&problem).map(Some), plan);
        let mut exactly = taken;
        let within = |steps: &mut u64| scheduler.schedule_within(&problem, steps);
        assert_eq!((within(&mut exactly), exactly), (plan, 0));
        for too_few in [0, 47, 48, taken / 2, taken - 1] {
            assert_eq!(within(&mut { too_few }), Ok(None), "{too_few}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_and_a_chunk_is_at_least_a_byte() {
        let links = Topology::dgx1()
            .links()
            .iter()
            .filter(|link| link.to != crate::End::Tier(0))
            .copied()
            .collect();
        let processes = Topology::dgx1().processes().to_vec();
        let machine =
            Topology::new("no host", processes, Vec::new(), Vec::new(), links).expect("topology");
        let (mut remainder, mut spare) = (vec![0; 8], vec![0; 8]);
        (remainder[0], spare[1]) = (10 * MB, 4 * MB);
        let problem = Problem::from_remainders(&machine, remainder, spare).expect("problem");
        let refused = MinTime::default().schedule(&problem);
        assert!(matches!(refused, Err(ScheduleError::DoesNotFit { room, .. }) if room == 4 * MB));
        assert_eq!(
            MinTime { chunk: 0 }.schedule(&problem),
            Err(ScheduleError::NoChunk)
        );
    }
}
