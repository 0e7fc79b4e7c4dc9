//! The exact optimum: parametric maximum flow, Newton steps on the blocking time, whole numbers only.
//!
//! With blocking time `t` a plan exists if and only if the flow network with link capacities `bandwidth * t` carries all
//! remainders. A minimum cut that is too small has a capacity `pieces + bandwidth * t` that grows linearly in `t`. The `t`
//! at which it reaches the demand is a lower bound for every plan, and the next `t`. The sequence rises and ends at the
//! optimum, after two or three steps as a rule, and the last cut is the proof. (M. Dinkelbach 1967 for the principle;
//! Gallo, Grigoriadis and Tarjan 1989 for parametric flows.)
//!
//! Three searches follow each other:
//!
//! 1. **optimum**: the exact rational `t`, with fractions of bytes. It works in whole bytes as long as these show that `t`
//!    is too short, keeps the flow from step to step, and counts in fractions only to tell whether the rest is a matter of
//!    rounding.
//! 2. **whole chunks**: the smallest `t` at which whole bytes, or chunks, can be sent in time.
//! 3. **least peer traffic**: at that `t`, first all that the slow tiers can take, then the peers. Augmenting never takes
//!    flow away from an edge into the sink, so this is the most that the slow tiers can take in any plan that fast.

mod certificate;
mod newton;

pub use certificate::Bottleneck;

use crate::plan::Plan;
use crate::problem::{Problem, ScheduleError};
use crate::ratio::Seconds;
use crate::schedule::Scheduler;

/// The exact scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exact {
    /// Transfers are multiples of this many bytes, but for the last one of each sender.
    pub chunk: u64,
}

impl Default for Exact {
    fn default() -> Exact {
        Exact { chunk: 1 }
    }
}

/// The shortest time, its proof, and a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Optimum {
    /// The lower bound for all plans, even with fractions of bytes.
    pub time: Seconds,
    /// The proof, or `None` if there is nothing to send or a local write takes longest.
    pub bottleneck: Option<Bottleneck>,
    /// One of the fastest plans of whole chunks, with the least traffic to peers among these.
    pub plan: Plan,
}

impl Exact {
    /// Finds the optimum, its certificate and a plan.
    pub fn solve(&self, problem: &Problem<'_>) -> Result<Optimum, ScheduleError> {
        if self.chunk == 0 {
            return Err(ScheduleError::NoChunk);
        }
        newton::solve(problem, self.chunk)
    }
}

impl Scheduler for Exact {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn schedule(&self, problem: &Problem<'_>) -> Result<Plan, ScheduleError> {
        self.solve(problem).map(|optimum| optimum.plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SharedResource;
    use crate::topology::{End, Topology};

    const MB: u64 = 1_000_000;

    /// The paper's Figure 1.
    fn example(topology: &Topology) -> Problem<'_> {
        let (mut remainder, mut spare) = (vec![0; 8], vec![0; 8]);
        (remainder[0], remainder[6]) = (480 * MB, 240 * MB);
        (spare[4], spare[1]) = (480 * MB, 137 * MB);
        Problem::from_remainders(topology, remainder, spare).expect("example")
    }

    #[test]
    fn the_papers_example_takes_two_thirds_of_ten_milliseconds_and_the_cut_says_why() {
        let dgx1 = Topology::dgx1();
        let problem = example(&dgx1);
        let optimum = Exact::default().solve(&problem).expect("plan");
        assert_eq!(optimum.time, Seconds::new(20, 3000));
        optimum.plan.validate(&problem).expect("valid");
        let bottleneck = optimum.bottleneck.expect("cut");
        assert!(bottleneck.verify(&problem));
        assert_eq!(bottleneck.time(), optimum.time);
        assert_eq!(
            bottleneck.explain(&problem),
            "G6 has 240 MB to send, and the only ways for it are link G6 -> G4 and link G6 -> host: \
             240 MB at 36 GB/s take 6.67 ms"
        );
        assert!(optimum.plan.blocking_time() <= Seconds::new(20_000_001, 3_000_000_000));
    }

    #[test]
    fn a_full_receiver_belongs_to_the_cut() {
        let dgx1 = Topology::dgx1();
        let (mut remainder, mut spare) = (vec![0; 8], vec![0; 8]);
        (remainder[0], spare[4]) = (480 * MB, 120 * MB);
        let problem = Problem::from_remainders(&dgx1, remainder, spare).expect("problem");
        let optimum = Exact::default().solve(&problem).expect("plan");
        let bottleneck = optimum.bottleneck.expect("cut");
        assert_eq!(bottleneck.full, [End::Process(4)]);
        assert_eq!(optimum.time, Seconds::new(360 * MB, 12_000 * MB));
    }

    #[test]
    fn a_switch_that_all_share_is_named() {
        let machine = Topology::dgx1_shared_pcie();
        let mut remainder = vec![0; 8];
        (remainder[2], remainder[3]) = (120 * MB, 120 * MB);
        let problem = Problem::from_remainders(&machine, remainder, vec![0; 8]).expect("problem");
        let optimum = Exact::default().solve(&problem).expect("plan");
        let bottleneck = optimum.bottleneck.expect("cut");
        assert_eq!(bottleneck.shared.len(), 1);
        assert!(bottleneck.explain(&problem).contains("link PCIe1 -> host"));
        assert_eq!(optimum.time, Seconds::new(20, 1000));
    }

    #[test]
    fn peers_get_nothing_where_they_gain_nothing() {
        let dgx1 = Topology::dgx1();
        let mut remainder = vec![60 * MB; 8];
        remainder[0] = 1200 * MB;
        remainder[7] = 0;
        let mut spare = vec![0; 8];
        spare[7] = 480 * MB;
        // G0 cannot reach G7: host only, 100 ms; by then the others are done without peers.
        let problem = Problem::from_remainders(&dgx1, remainder, spare).expect("problem");
        let optimum = Exact::default().solve(&problem).expect("plan");
        assert_eq!(optimum.time, Seconds::new(1, 10));
        assert_eq!(optimum.plan.peer_traffic(), 0);
    }

    #[test]
    fn what_fits_nowhere_is_refused_with_names_and_sizes() {
        let cluster = Topology::cluster(2);
        let tiers = cluster.tiers().to_vec();
        let links = cluster
            .links()
            .iter()
            .filter(|link| link.to != End::Tier(2))
            .copied()
            .collect();
        let small = Topology::new(
            "small",
            cluster.processes().to_vec(),
            tiers,
            cluster.switches().to_vec(),
            links,
        );
        let small = small.expect("topology");
        let problem = Problem::new(&small, &[3_000_000 * MB, 6000 * MB]).expect("problem");
        let error = Exact::default()
            .solve(&problem)
            .expect_err("too much")
            .to_string();
        assert_eq!(
            error,
            "sizes[0]: more than the tiers hold: node0 has 2.99 TB that does not fit on its own fast tier, and every place \
             within reach together takes 2 TB; make room for 990 GB more, or add a link to a tier with room"
        );
    }

    #[test]
    fn an_unreachable_peer_is_no_help() {
        let dgx1 = Topology::dgx1();
        let links = dgx1
            .links()
            .iter()
            .filter(|link| link.to != End::Tier(0))
            .copied()
            .collect();
        let machine = Topology::new(
            "no host",
            dgx1.processes().to_vec(),
            Vec::new(),
            Vec::new(),
            links,
        );
        let machine = machine.expect("topology");
        let (mut remainder, mut spare) = (vec![0; 8], vec![0; 8]);
        (remainder[6], spare[1]) = (MB, 100 * MB);
        let problem = Problem::from_remainders(&machine, remainder, spare).expect("problem");
        assert!(matches!(
            Exact::default().solve(&problem),
            Err(ScheduleError::DoesNotFit { room: 0, .. })
        ));
    }

    #[test]
    fn nothing_to_send_takes_no_time_and_local_writes_count() {
        let cluster = Topology::cluster(3);
        let problem = Problem::new(&cluster, &[2000 * MB, 4000 * MB, 0]).expect("problem");
        let optimum = Exact::default().solve(&problem).expect("plan");
        assert_eq!(optimum.time, Seconds::new(1, 1));
        assert_eq!(optimum.plan.busiest(&problem), [SharedResource::Local(1)]);
        assert!(optimum.bottleneck.is_none() && optimum.plan.transfers().is_empty());
    }

    #[test]
    fn chunks_stay_whole_but_for_the_last_of_each_sender() {
        let dgx1 = Topology::dgx1();
        let problem = example(&dgx1);
        let optimum = Exact { chunk: MB }.solve(&problem).expect("plan");
        optimum.plan.validate(&problem).expect("valid");
        assert!(
            optimum
                .plan
                .transfers()
                .iter()
                .all(|transfer| transfer.bytes % MB == 0)
        );
        assert_eq!(optimum.plan.blocking_time(), Seconds::new(20, 3000));
        assert_eq!(
            Exact { chunk: 0 }.solve(&problem),
            Err(ScheduleError::NoChunk)
        );
    }
}
