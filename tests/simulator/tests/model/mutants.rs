//! Mutants: for every essential step, the checker finds the fault in a job without it.

use stillpoint_clock::steps::Every;
use stillpoint_simulator::mutant::*;
use stillpoint_simulator::random_run::run;

use crate::checker::{Search, check};
use crate::scenarios::{self, Scenario};

/// Finds the fault of a mutant in a scenario.
pub fn is_caught<S: Mutant>(scenario: &Scenario) {
    let name = std::any::type_name::<S>().rsplit("::").next().unwrap_or("");
    let found = check::<S>(scenario, Search::Reduced);
    let Some(way) = found.way else {
        panic!("{name} was not noticed in {} states", found.states);
    };
    let summary = way.lines().next().unwrap_or("");
    let scenario = scenario.name;
    println!("{name}: {scenario} ({} states): {summary}", found.states);
}

/// Finds, in random jobs, the fault of a mutant that shows only after more steps than the checker can look at.
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
    ($($test:ident: $mutant:ident in $scenario:literal,)*) => {$(
        #[test]
        fn $test() {
            is_caught::<$mutant>(&scenarios::named($scenario));
        }
    )*};
}

caught! {
    targets_are_maxima: NoMaximum in "2 ranks, twice",
    targets_have_to_be_reached: NoReaching in "2 ranks, twice",
    targets_have_to_be_raised: NoRaise in "3 ranks, a target is raised",
    raises_that_are_not_passed_on_are_missed: NoPassingOn in "2 ranks, nonblocking, twice",
    a_new_group_has_to_be_announced: NoJoining in "3 ranks, a communicator is made",
    beginning_before_the_targets_are_known_is_wrong: NoAwaiting in "2 ranks, twice",
    what_the_application_is_told_has_to_bind: NoTelling in "2 ranks, nonblocking, twice",
    an_agent_that_looks_once_is_wrong: LooksOnce in "2 ranks, nonblocking, twice",
    reports_that_crossed_an_order_are_wrong: StaleReports in "2 ranks, nonblocking, twice",
    a_drain_that_begins_early_is_wrong: EarlyDrain in "2 ranks, twice",
    a_drain_that_does_not_compare_its_sums_is_wrong: NoSums in "messages that cross, counted early",
    a_collision_must_not_be_ignored: NoCollisions in "two groups with one id",
    clocks_read_before_the_flag_is_set_are_wrong: ReadsBeforeFlag in "2 ranks, twice",
    reports_that_overtake_a_raise_are_wrong: RaisesLate in "2 ranks, nonblocking, twice",
    an_increment_has_to_be_taken_back: NoTakingBack in "2 ranks, twice",
    what_was_begun_before_binds_still: NoNoting in "2 ranks, nonblocking after blocking, twice",
    what_is_pending_has_to_bind_before_giving_up: NoBinding in "2 ranks, freed with an operation pending",
    giving_up_has_to_be_counted: NoCountOfGivingUp in "2 ranks, a communicator is freed",
    giving_up_is_counted_by_a_clock_that_stays: CountedOnWhatGoes in "2 ranks, a communicator is freed",
    ranks_must_not_be_let_on_for_collectives: NoEndOfCollectives in "2 ranks, one stays away",
    a_synchronous_send_is_over_when_its_receive_has_begun: OverWhenDrained in "2 ranks, a sparse exchange, twice",
    what_a_look_tells_has_to_bind: NoBindingWhenSeen in "2 ranks, looked at, twice",
    a_cell_has_to_rest_while_a_checkpoint_is_pending: NoRest in "2 ranks, a cell is used again",
}

macro_rules! caught_again {
    ($($test:ident: $mutant:ident in $scenario:literal,)*) => {$(
        #[test]
        fn $test() {
            is_caught::<$mutant>(&scenarios::named_repeatable($scenario));
        }
    )*};
}

caught_again! {
    who_returns_has_to_tell: NoReturning in "2 ranks, the root returns",
    who_is_needed_elsewhere_has_to_call: NoCalling in "2 ranks, needed elsewhere",
    who_has_taken_back_has_to_tell_first: NoTellingFirst in "2 ranks, twice",
    who_owes_a_word_must_not_be_stopped: StoppedOwing in "2 ranks, the root returns",
    what_a_thread_is_inside_must_be_left_out: NoLeavingOut in "2 ranks, one is late",
    what_is_in_place_must_not_be_begun_again: LeavesOutInPlace in "2 ranks, in place",
    who_stands_inside_has_to_take_its_count_back: StandsBehind in "2 ranks, twice",
    who_stood_inside_has_not_begun_after_a_restart: CountsTwice in "2 ranks, one is late",
    who_is_inside_what_binds_has_to_go_on: NoLettingOn in "2 ranks, twice",
}

/// A clock for each group would not be enough: nonblocking operations on two communicators of the same members, begun in different orders
/// by these, would be taken for each other.
#[test]
fn similar_communicators_have_to_have_clocks_of_their_own() {
    let found = check::<Every>(&scenarios::sharing(), Search::Reduced);
    assert!(found.way.is_some_and(|way| way.contains("NotBegunByAll")));
}
