//! Small jobs in every possible interleaving, by the model checker `stateright`: checkpoints asked for at every
//! moment, one after the other, given up at every moment, with arbitrarily slow agents and channels.
//!
//! A state is broken if the still point is not one (invariants 1 and 2 of the paper), or if the drain loses or
//! invents a message. A state is dead if nothing can happen any more although the job has not come to its end: a rank
//! parks for ever while another needs it, or a nonblocking operation never completes.

mod checker;
mod late;
mod mutants;
mod programs;
mod reduction;
mod scenarios;
mod two_phase;

use checker::{Found, Search, check};
use scenarios::Scenario;
use stillpoint_clock::steps::Every;

/// Every state of every scenario keeps every promise.
#[test]
fn every_state_of_every_small_job_keeps_its_promises() {
    look_at_all("", scenarios::all());
}

#[test]
fn every_state_with_operations_that_are_begun_again_keeps_its_promises() {
    look_at_all("begun again: ", scenarios::repeatable());
}

fn look_at_all(kind: &str, scenarios: Vec<Scenario>) {
    for scenario in scenarios {
        let begun = std::time::Instant::now();
        let Found { states, depth, way } = check::<Every>(&scenario, Search::Reduced);
        let seconds = begun.elapsed().as_secs_f64();
        let name = format!("{kind}{}", scenario.name);
        println!("{name:<54} {states:>9} states, {depth:>3} steps deep, {seconds:>6.1} s");
        assert_eq!(way, None, "{name}");
    }
}
