//! Properties of every scheduler on every machine, checked against a linear-programming oracle on random instances.
//!
//! `STILLPOINT_TEST_SEED` repeats one instance.

mod oracle;
mod random;

use oracle::Oracle;
use random::Dice;
use std::cell::Cell;
use stillpoint_multilevel::{
    Exact, Greedy, LocalOnly, MinTime, Problem, ScheduleError, Scheduler, Seconds, Topology,
    Transfer,
};

/// Runs `check` on that many instances, with sizes that are multiples of `unit`. A failure names its seed.
fn on_instances(count: u64, unit: u64, check: impl Fn(&Problem<'_>)) {
    let seeds = match std::env::var("STILLPOINT_TEST_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("a seed is a number");
            seed..seed + 1
        }
        Err(_) => 0..count,
    };
    for seed in seeds {
        let (topology, sizes) = Dice::new(seed).instance(unit);
        let problem = Problem::new(&topology, &sizes).expect("sizes for each process");
        let named = std::panic::AssertUnwindSafe(|| check(&problem));
        if let Err(failure) = std::panic::catch_unwind(named) {
            eprintln!("with STILLPOINT_TEST_SEED={seed}");
            std::panic::resume_unwind(failure);
        }
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()) + 1e-15
}

#[test]
fn the_exact_optimum_is_the_oracles_and_its_cut_proves_it() {
    let (fit, peers, switches) = (Cell::new(0), Cell::new(0), Cell::new(0));
    on_instances(10_000, 1, |problem| {
        let oracle = Oracle.solve(problem);
        let optimum = match Exact::default().solve(problem) {
            Ok(optimum) => optimum,
            Err(ScheduleError::DoesNotFit {
                remainder, room, ..
            }) => {
                assert!(oracle.is_none() && room < remainder);
                return;
            }
            Err(other) => panic!("{other}"),
        };
        let oracle = oracle.expect("the exact scheduler found a plan");
        assert!(
            close(optimum.time.as_secs_f64(), oracle.time),
            "{} and {}",
            optimum.time.as_secs_f64(),
            oracle.time
        );
        match &optimum.bottleneck {
            Some(bottleneck) => {
                assert!(bottleneck.verify(problem));
                assert_eq!(bottleneck.time(), optimum.time);
            }
            None => assert_eq!(optimum.time, problem.local_time().0),
        }
        optimum.plan.validate(problem).expect("valid");
        let byte = problem.topology().links().len() as f64 / 1e8;
        let (time, best) = (optimum.plan.blocking_time(), optimum.time);
        assert!(time >= best && time.as_secs_f64() <= best.as_secs_f64() + byte);
        fit.set(fit.get() + 1);
        peers.set(peers.get() + u64::from(optimum.plan.peer_traffic() > 0));
        let long = |transfer: &Transfer| optimum.plan.route(transfer).len() > 1;
        switches.set(switches.get() + u64::from(optimum.plan.transfers().iter().any(long)));
    });
    // The instances are varied enough: many fit, need peers, or need switches, and some do not fit.
    println!(
        "{} fit, {} use peers, {} use switches",
        fit.get(),
        peers.get(),
        switches.get()
    );
    if std::env::var_os("STILLPOINT_TEST_SEED").is_none() {
        assert!(
            (5_000..9_900).contains(&fit.get()) && peers.get() > 4_000 && switches.get() > 4_000
        );
    }
}

#[test]
fn no_scheduler_beats_the_exact_one_and_every_plan_is_valid() {
    on_instances(10_000, 1, |problem| {
        let Ok(optimum) = Exact::default().solve(problem) else {
            return;
        };
        let chunk = (problem.total_remainder() / 100).max(1);
        let chunked = Exact { chunk };
        for scheduler in [
            &LocalOnly as &dyn Scheduler,
            &Greedy,
            &MinTime { chunk },
            &chunked,
        ] {
            // Other schedulers may find no room, or no room for whole chunks.
            if let Ok(plan) = scheduler.schedule(problem) {
                plan.validate(problem)
                    .unwrap_or_else(|error| panic!("{}: {error}", scheduler.name()));
                assert!(
                    plan.blocking_time() >= optimum.plan.blocking_time(),
                    "{}",
                    scheduler.name()
                );
            }
        }
    });
}

#[test]
fn algorithm_2_is_the_optimum_in_whole_chunks() {
    const CHUNK: u64 = 4_000_000;
    on_instances(1_500, CHUNK, |problem| {
        let exact = Exact { chunk: CHUNK }.solve(problem);
        let min_time = MinTime { chunk: CHUNK }.schedule(problem);
        match (exact, min_time) {
            (Ok(exact), Ok(min_time)) => {
                let local = problem.local_time().0;
                assert_eq!(
                    exact.plan.blocking_time().max(local),
                    min_time.blocking_time()
                );
            }
            (Err(_), Err(_)) => {}
            (exact, min_time) => panic!("{exact:?} and {min_time:?}"),
        }
    });
}

#[test]
fn among_the_fastest_plans_the_exact_one_sends_least_to_peers() {
    on_instances(1_500, 1, |problem| {
        let Ok(optimum) = Exact::default().solve(problem) else {
            return;
        };
        // The oracle gets slightly more time than the plan takes, so that its rounding does not make the problem
        // infeasible.
        let seconds = optimum.plan.blocking_time().as_secs_f64() * (1.0 + 1e-9);
        let least = Oracle
            .least_peer_traffic(problem, seconds)
            .expect("the plan is that fast");
        // The slack covers whole bytes on every link, and the extra time.
        let rounding = problem.topology().links().len() as f64 + 4.0;
        let slack = rounding
            + 2e-9 * problem.total_remainder() as f64 * problem.topology().links().len() as f64;
        let found = optimum.plan.peer_traffic() as f64;
        assert!(found <= least + slack, "{found} and {least}");
    });
}

#[test]
fn the_oracles_own_plan_is_valid_and_as_fast() {
    let plans = Cell::new(0);
    on_instances(500, 1, |problem| {
        let Ok(optimum) = Exact::default().solve(problem) else {
            return;
        };
        if let Ok(plan) = Oracle.schedule(problem) {
            let (oracle, exact) = (
                plan.blocking_time().as_secs_f64(),
                optimum.time.as_secs_f64(),
            );
            assert!(
                oracle >= exact * (1.0 - 1e-12) && oracle <= exact + 1e-6,
                "{oracle} and {exact}"
            );
            plans.set(plans.get() + 1);
        }
    });
    if std::env::var_os("STILLPOINT_TEST_SEED").is_none() {
        assert!(plans.get() > 300, "{} plans", plans.get());
    }
}

#[test]
fn all_five_agree_on_the_papers_example() {
    let dgx1 = Topology::dgx1();
    let (mut remainder, mut spare) = (vec![0; 8], vec![0; 8]);
    (remainder[0], remainder[6]) = (480_000_000, 240_000_000);
    (spare[4], spare[1]) = (480_000_000, 137_000_000);
    let problem = Problem::from_remainders(&dgx1, remainder, spare).expect("example");
    let seconds = |scheduler: &dyn Scheduler| {
        let plan = scheduler.schedule(&problem).expect("plan");
        plan.validate(&problem).expect("valid");
        plan.blocking_time().as_secs_f64()
    };
    assert_eq!(seconds(&LocalOnly), 0.040);
    assert_eq!(seconds(&Greedy), 0.020);
    let best = Seconds::new(240, 36_000).as_secs_f64();
    assert!((seconds(&Exact::default()) - best).abs() < 1e-9);
    assert!((seconds(&Oracle) - best).abs() < 1e-9);
    assert!(seconds(&MinTime::default()) - best < 1e6 / 12e9);
}
