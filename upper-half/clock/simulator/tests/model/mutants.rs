//! Every essential step, left out, is missed: the checker finds what goes wrong.

use stillpoint_clock::steps::Every;
use stillpoint_simulator::job::Circumstances;
use stillpoint_simulator::mutant::*;
use stillpoint_simulator::random_run::run;

use crate::checker::check;
use crate::scenarios::{self, Scenario};

/// Far more than any of them needs.
const MOST: usize = 200_000;

/// Finds what a mutant does wrong, in the first scenario in which it does.
fn is_caught<S: Mutant>() {
    let name = std::any::type_name::<S>().rsplit("::").next().unwrap_or("");
    for scenario in scenarios::for_mutants() {
        let found = check::<S>(&scenario, Some(MOST));
        if let Some(way) = found.way {
            let summary = way.lines().next().unwrap_or("");
            println!(
                "{name}: {} ({} states): {summary}",
                scenario.name, found.states
            );
            return;
        }
    }
    panic!("{name} was not noticed");
}

/// Finds what a mutant does wrong only after more steps than the checker can look at, in random jobs.
fn is_caught_in_a_random_job<S: Mutant>() {
    let name = std::any::type_name::<S>().rsplit("::").next().unwrap_or("");
    for seed in 0..2000 {
        if let Err(error) = run::<S>(seed, 100_000) {
            let summary = error.lines().next().unwrap_or("");
            println!("{name}: random job {seed}: {summary}");
            return;
        }
    }
    panic!("{name} was not noticed");
}

macro_rules! caught_later {
    ($($test:ident: $mutant:ident,)*) => {$(
        #[test]
        fn $test() {
            is_caught_in_a_random_job::<$mutant>();
        }
    )*};
}

caught_later! {
    parked_ranks_have_to_pull: NoPulling,
    without_advances_ranks_park_for_ever: NoAdvance,
}

macro_rules! caught {
    ($($test:ident: $mutant:ident,)*) => {$(
        #[test]
        fn $test() {
            is_caught::<$mutant>();
        }
    )*};
}

caught! {
    targets_are_maxima: NoMaximum,
    raises_that_are_not_passed_on_are_missed: NoPassingOn,
    beginning_before_the_targets_are_known_is_wrong: NoAwaiting,
    what_the_application_is_told_has_to_bind: NoTelling,
    an_agent_that_looks_once_is_wrong: LooksOnce,
    reports_that_crossed_an_order_are_wrong: StaleReports,
    a_drain_that_begins_early_is_wrong: EarlyDrain,
    a_collision_must_not_be_ignored: NoCollisions,
    clocks_read_before_the_flag_is_set_are_wrong: ReadsBeforeFlag,
    reports_that_overtake_a_raise_are_wrong: RaisesLate,
    an_increment_has_to_be_taken_back: NoTakingBack,
}

/// The price of one clock for all communicators of a group: nonblocking operations on two of them, begun in another order
/// by each member, are taken for each other.
#[test]
fn similar_communicators_that_share_a_clock_are_mistaken() {
    let scenario = Scenario {
        name: "similar",
        program: scenarios::similar(false),
        circumstances: Circumstances {
            checkpoints: 1,
            aborts: 0,
            hasty_polls: 0,
            hasty_counts: 0,
            ends_early: true,
        },
        small: true,
    };
    let found = check::<Every>(&scenario, Some(MOST));
    assert!(found.way.is_some_and(|way| way.contains("NotBegunByAll")));
}
