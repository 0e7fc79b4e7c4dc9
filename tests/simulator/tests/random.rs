//! Random programs, random interleavings, checkpoints at random moments: the still point is found and is one,
//! nothing is lost, and every program comes to its end.
//!
//! A seed that fails is printed; `STILLPOINT_TEST_SEED=<seed>` runs it alone.

use stillpoint_clock::steps::Every;
use stillpoint_simulator::random_run::{Figures, run, run_late, run_two_phase};

const SEEDS: u64 = 2000;
/// Far more than any of these jobs needs.
const MAX_STEPS: usize = 1_000_000;

#[test]
fn the_still_point_is_found_and_is_one() {
    all_seeds(run::<Every>);
}

/// Under two-phase commit as well, with restarts.
#[test]
fn two_phase_commit_finds_a_still_point_too() {
    all_seeds(run_two_phase::<Every>);
}

/// With members that come late, as well.
#[test]
fn late_members_are_carried_out_for() {
    let Figures { ahead, .. } = all_seeds(run_late::<Every>);
    assert!(is_one_seed() || ahead > 300, "only {ahead} operations");
}

fn given() -> Option<u64> {
    let text = std::env::var("STILLPOINT_TEST_SEED").ok()?;
    text.parse().ok()
}

fn is_one_seed() -> bool {
    given().is_some()
}

fn all_seeds(run: fn(u64, usize) -> Result<Figures, String>) -> Figures {
    let seeds = given().map_or(0..SEEDS, |seed| seed..seed + 1);
    let mut all = Figures::default();
    for seed in seeds {
        match run(seed, MAX_STEPS) {
            Ok(figures) => {
                all.checkpoints += figures.checkpoints;
                all.ahead += figures.ahead;
            }
            Err(error) => panic!("STILLPOINT_TEST_SEED={seed}: {error}"),
        }
    }
    println!("{all:?}");
    let enough = is_one_seed() || all.checkpoints > 4000;
    assert!(enough, "only {} checkpoints", all.checkpoints);
    all
}
