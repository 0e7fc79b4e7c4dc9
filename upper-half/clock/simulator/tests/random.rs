//! Random programs, random interleavings, checkpoints at random moments: the still point is found and is one,
//! nothing is lost, and every program comes to its end.
//!
//! A seed that fails is printed; `STILLPOINT_TEST_SEED=<seed>` runs it alone.

use stillpoint_clock::steps::Every;
use stillpoint_simulator::random_run::{run, run_two_phase};

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

fn all_seeds(run: fn(u64, usize) -> Result<u32, String>) {
    let given = std::env::var("STILLPOINT_TEST_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seeds = given.map_or(0..SEEDS, |seed| seed..seed + 1);
    let mut done = 0;
    for seed in seeds {
        match run(seed, MAX_STEPS) {
            Ok(checkpoints) => done += checkpoints,
            Err(error) => panic!("STILLPOINT_TEST_SEED={seed}: {error}"),
        }
    }
    println!("{done} checkpoints");
    assert!(given.is_some() || done > 4000, "only {done} checkpoints");
}
