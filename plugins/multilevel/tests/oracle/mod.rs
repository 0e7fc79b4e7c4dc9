//! The linear programme of a staging problem, made from the problem alone and solved by an independent solver.
//!
//! There is one variable for each link that can carry data, and one for the blocking time. Bytes are counted in MB and
//! seconds in ms, so that the coefficients stay near one.

use microlp::{ComparisonOp, Error, OptimizationDirection, Variable};
use std::ops::Range;
use stillpoint_multilevel::{End, Plan, Problem, ScheduleError, Scheduler};

const BYTES: f64 = 1e6;
const BANDWIDTH: f64 = 1e9;
const SECONDS: f64 = 1e-3;

/// The linear-programming oracle.
pub struct Oracle;

/// The solver's answer.
pub struct Solution {
    /// Seconds.
    pub time: f64,
    /// Bytes on each link.
    pub flows: Vec<f64>,
}

impl Oracle {
    /// Returns the optimum with fractions of bytes, or `None` if the data does not fit.
    pub fn solve(&self, problem: &Problem<'_>) -> Option<Solution> {
        let mut programme = microlp::Problem::new(OptimizationDirection::Minimize);
        let local = problem.local_time().0.as_secs_f64() / SECONDS;
        let time = programme.add_var(1.0, (local, f64::INFINITY));
        let flows = build(problem, &mut programme, time, 0.0);
        let solution = solved(programme)?;
        let flow = |variable: &Option<Variable>| {
            variable.map_or(0.0, |variable| solution.var_value(variable) * BYTES)
        };
        Some(Solution {
            time: solution.var_value(time) * SECONDS,
            flows: flows.iter().map(flow).collect(),
        })
    }

    /// Returns the fewest bytes that go to peers in any plan of at most `seconds`, or `None` if no plan is that fast.
    pub fn least_peer_traffic(&self, problem: &Problem<'_>, seconds: f64) -> Option<f64> {
        let mut programme = microlp::Problem::new(OptimizationDirection::Minimize);
        let time = programme.add_var(0.0, (0.0, seconds / SECONDS));
        build(problem, &mut programme, time, 1.0);
        Some(solved(programme)?.objective() * BYTES)
    }
}

fn solved(programme: microlp::Problem) -> Option<microlp::Solution> {
    match programme.solve() {
        Ok(outcome) => Some(outcome.into_solution().expect("no limit was set")),
        Err(Error::Infeasible) => None,
        Err(other) => panic!("the solver failed: {other}"),
    }
}

/// Adds constraints and variables, and returns the variable of each link. `peer_cost` is the price of a MB that ends at
/// a peer.
fn build(
    problem: &Problem<'_>,
    programme: &mut microlp::Problem,
    time: Variable,
    peer_cost: f64,
) -> Vec<Option<Variable>> {
    let topology = problem.topology();
    let useful = |end: End| !matches!(end, End::Process(at) if problem.remainder()[at] == 0);
    let mut flows = Vec::new();
    for link in topology.links() {
        let cost = if matches!(link.to, End::Process(_)) {
            peer_cost
        } else {
            0.0
        };
        let flow = useful(link.from).then(|| programme.add_var(cost, (0.0, f64::INFINITY)));
        if let Some(flow) = flow {
            let bandwidth = link.bandwidth as f64 / BANDWIDTH;
            programme.add_constraint([(flow, 1.0), (time, -bandwidth)], ComparisonOp::Le, 0.0);
        }
        flows.push(flow);
    }
    let sum = |wanted: &dyn Fn(usize) -> bool| -> Vec<(Variable, f64)> {
        let wanted = (0..flows.len()).filter(|&at| wanted(at));
        wanted
            .filter_map(|at| flows[at].map(|flow| (flow, 1.0)))
            .collect()
    };
    for sender in problem.senders() {
        let out = sum(&|at| topology.links()[at].from == End::Process(sender));
        let remainder = problem.remainder()[sender] as f64 / BYTES;
        programme.add_constraint(&out, ComparisonOp::Eq, remainder);
    }
    for (at, switch) in topology.switches().iter().enumerate() {
        let into = sum(&|link| topology.links()[link].to == End::Switch(at));
        let out = sum(&|link| topology.links()[link].from == End::Switch(at));
        within(programme, &into, time, switch.bandwidth);
        let balance: Vec<_> = into
            .into_iter()
            .chain(out.into_iter().map(|(flow, _)| (flow, -1.0)))
            .collect();
        programme.add_constraint(&balance, ComparisonOp::Eq, 0.0);
    }
    let tiers = topology
        .tiers()
        .iter()
        .enumerate()
        .map(|(at, tier)| (End::Tier(at), tier.bandwidth));
    let processes = (0..topology.processes().len()).map(|at| (End::Process(at), None));
    for (place, bandwidth) in tiers.chain(processes) {
        let into = sum(&|link| topology.links()[link].to == place);
        within(programme, &into, time, bandwidth);
        if let Some(room) = problem.room(place) {
            programme.add_constraint(&into, ComparisonOp::Le, room as f64 / BYTES);
        }
    }
    flows
}

fn within(
    programme: &mut microlp::Problem,
    flows: &[(Variable, f64)],
    time: Variable,
    bandwidth: Option<u64>,
) {
    if let Some(bandwidth) = bandwidth {
        let mut row = flows.to_vec();
        row.push((time, -(bandwidth as f64 / BANDWIDTH)));
        programme.add_constraint(&row, ComparisonOp::Le, 0.0);
    }
}

impl Scheduler for Oracle {
    fn name(&self) -> &'static str {
        "oracle"
    }

    /// Rounds the solver's flows to whole bytes: rounds down path by path, and puts the missing bytes where there is room. Gives up if whole
    /// bytes do not fit into places that fractions had filled.
    fn schedule(&self, problem: &Problem<'_>) -> Result<Plan, ScheduleError> {
        let (senders, remainder) = ("all senders".to_owned(), problem.total_remainder());
        let does_not_fit = ScheduleError::DoesNotFit {
            first: 0,
            senders,
            count: 2,
            remainder,
            room: 0,
        };
        let Some(solution) = self.solve(problem) else {
            return Err(does_not_fit);
        };
        let mut left = solution.flows;
        let mut transfers = Vec::new();
        let mut short = Vec::new();
        for sender in problem.senders() {
            let first = transfers.len();
            let mut missing = problem.remainder()[sender];
            while let Some((to, route)) = path(problem, sender, &left) {
                let amount = route
                    .iter()
                    .map(|&link| left[link as usize])
                    .fold(f64::INFINITY, f64::min);
                route.iter().for_each(|&link| left[link as usize] -= amount);
                let bytes = (amount as u64).min(missing);
                missing -= bytes;
                transfers.push((sender, to, bytes, route));
            }
            short.push((first..transfers.len(), missing));
        }
        for (own, missing) in short {
            if !lay_down(problem, missing, own, &mut transfers) {
                return Err(does_not_fit);
            }
        }
        transfers.retain(|transfer| transfer.2 > 0);
        Ok(Plan::from_transfers(problem, transfers).expect("a rounded solution is a plan"))
    }
}

type Route = (usize, End, u64, Vec<u32>);

/// Adds `missing` bytes to a sender's own transfers, one at a time, where the place has room. Tells whether all found
/// room.
fn lay_down(
    problem: &Problem<'_>,
    mut missing: u64,
    own: Range<usize>,
    transfers: &mut [Route],
) -> bool {
    assert!(missing < 1000, "{missing} bytes are more than rounding");
    while missing > 0 {
        let before = missing;
        for at in own.clone() {
            let to = transfers[at].1;
            let used: u64 = transfers
                .iter()
                .filter(|transfer| transfer.1 == to)
                .map(|transfer| transfer.2)
                .sum();
            if missing > 0 && problem.room(to).is_none_or(|room| used < room) {
                transfers[at].2 += 1;
                missing -= 1;
            }
        }
        if missing == before {
            return false;
        }
    }
    true
}

/// Finds a path of at least half a byte from the sender to a place.
fn path(problem: &Problem<'_>, sender: usize, left: &[f64]) -> Option<(End, Vec<u32>)> {
    let topology = problem.topology();
    let mut seen = vec![false; topology.switches().len()];
    let mut open = vec![(End::Process(sender), Vec::new())];
    while let Some((from, route)) = open.pop() {
        for &number in topology.outgoing(from) {
            if left[number as usize] < 0.5 {
                continue;
            }
            let mut route: Vec<u32> = route.clone();
            route.push(number);
            match topology.links()[number as usize].to {
                End::Switch(at) if std::mem::replace(&mut seen[at], true) => {}
                End::Switch(at) => open.push((End::Switch(at), route)),
                place => return Some((place, route)),
            }
        }
    }
    None
}
