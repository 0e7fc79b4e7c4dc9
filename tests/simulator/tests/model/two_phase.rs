//! Two-phase commit (`--safe-state barrier`), in every interleaving of small jobs, as for the clock, with restarts: the steps of a rank
//! in its trivial barrier, and what remains of that barrier after a restart.

use stillpoint_clock::steps::Every;
use stillpoint_simulator::job::Circumstances;
use stillpoint_simulator::mutant::*;
use stillpoint_simulator::program::{Op, Program, Shape, Until};

use crate::checker::{Search, check};
use crate::look_at_all;
use crate::mutants::is_caught;
use crate::programs::*;
use crate::scenarios::{self, Scenario};

/// One checkpoint at any moment, and a restart from it or none.
const ONCE: Circumstances = Circumstances {
    two_phase: true,
    restarts: 1,
    ..scenarios::ONCE
};
const TWICE: Circumstances = Circumstances {
    two_phase: true,
    restarts: 2,
    ..scenarios::TWICE
};
const GIVEN_UP: Circumstances = Circumstances {
    two_phase: true,
    restarts: 1,
    ..scenarios::GIVEN_UP
};
const HASTY: Circumstances = Circumstances {
    two_phase: true,
    restarts: 1,
    ..scenarios::HASTY
};
const EARLY: Circumstances = Circumstances {
    two_phase: true,
    ..scenarios::EARLY
};
const HELD_BACK: Circumstances = Circumstances {
    two_phase: true,
    ..scenarios::HELD_BACK
};
/// Ranks are let on for no reason, and the checkpoint is given up.
const LET_ON: Circumstances = Circumstances {
    restarts: 0,
    hasty_polls: 2,
    ..GIVEN_UP
};

/// The scenarios that the checker looks at.
fn all() -> Vec<Scenario> {
    scenarios::given([
        ("2 ranks, twice", TWICE, pair()),
        ("2 ranks, given up", GIVEN_UP, pair()),
        ("2 ranks, hasty", HASTY, pair()),
        ("2 ranks, let on and given up", LET_ON, one()),
        ("2 ranks, called into a barrier", ONCE, called()),
        ("2 ranks, nonblocking, twice", TWICE, nonblocking(2)),
        ("messages that cross, twice", TWICE, crossing_message()),
        ("3 ranks, overlapping groups", ONCE, overlapping()),
        ("3 ranks, a message, twice", TWICE, needed()),
        ("3 ranks, a busy receive", ONCE, busy()),
        ("3 ranks, one stays away", HELD_BACK, away(3)),
        ("4 ranks, one stays away", HELD_BACK, away(4)),
        ("4 ranks, a message that crosses", ONCE, crossing_four()),
    ])
}

/// A scenario in which a mutant has to go wrong, by its name.
fn named(name: &str) -> Scenario {
    let early = (
        "messages that cross, counted early",
        EARLY,
        crossing_message(),
    );
    let mut all = all().into_iter().chain(scenarios::given([early]));
    all.find(|scenario| scenario.name == name)
        .unwrap_or_else(|| panic!("no scenario is called {name}"))
}

/// One operation that lets its root go at once.
fn one() -> Program {
    Program::on(2, &[&[0, 1]])
        .then(0, linger(Until::Targeted))
        .collective(0, Shape::Rooted)
}

/// A rank that computes for longer than a checkpoint takes, while the others have come to an operation with it.
fn away(ranks: usize) -> Program {
    let members: Vec<usize> = (0..ranks).collect();
    let program = Program::on(ranks, &[&members]).then(ranks - 1, linger(Until::Carried));
    program.collective(0, Shape::Synchronizing)
}

/// A message that crosses an operation which the last rank stays away from.
fn crossing_four() -> Program {
    Program::on(4, &[&[0, 1, 2, 3]])
        .then(0, Op::Send { to: 1 })
        .then(3, linger(Until::Carried))
        .collective(0, Shape::Rooted)
        .then(1, receive(0))
}

/// Rank 1 has a target ahead, and the way to it is through a barrier that rank 0 has not come to.
fn called() -> Program {
    let begin = Op::Start { on: 0, binds: true };
    Program::on(2, &[&[0, 1], &[0, 1]])
        .shaped(0, Shape::Rooted)
        .then(0, begin)
        .collective(1, Shape::Rooted)
        .then(1, begin)
}

#[test]
fn every_state_under_two_phase_commit_keeps_its_promises() {
    look_at_all("two-phase commit: ", all());
}

macro_rules! caught {
    ($($test:ident: $mutant:ident in $scenario:literal,)*) => {$(
        #[test]
        fn $test() {
            is_caught::<$mutant>(&named($scenario));
        }
    )*};
}

caught! {
    who_is_past_the_barrier_must_not_park: ParksPast in "2 ranks, twice",
    who_gets_past_the_barrier_has_to_raise: NoRaise in "2 ranks, twice",
    raises_have_to_be_passed_on: NoPassingOn in "2 ranks, twice",
    barriers_have_to_be_entered_again: NoEnteringAgain in "2 ranks, twice",
    an_increment_past_the_barrier_has_to_be_taken_back: NoTakingBack in "2 ranks, twice",
    the_flag_has_to_be_set_before_the_clocks_are_read: ReadsBeforeFlag in "2 ranks, twice",
    targets_have_to_be_maxima: NoMaximum in "2 ranks, twice",
    targets_are_there_to_be_reached: NoReaching in "2 ranks, twice",
    who_waits_in_a_barrier_has_to_call: NoAnnouncing in "2 ranks, called into a barrier",
    agents_have_to_look_twice: LooksOnce in "2 ranks, twice",
    reports_must_not_cross_orders: StaleReports in "2 ranks, twice",
    raises_have_to_come_before_reports: RaisesLate in "2 ranks, twice",
    the_drain_must_not_begin_early: EarlyDrain in "2 ranks, twice",
    the_drain_has_to_compare_its_sums: NoSums in "messages that cross, counted early",
    nonblocking_operations_have_to_be_refused: NoRefusing in "2 ranks, nonblocking, twice",
    who_stays_away_must_not_be_called_in_vain: NoEndOfCollectives in "3 ranks, one stays away",
    what_is_raised_has_to_be_reached: NoOwnRaises in "2 ranks, let on and given up",
}

/// Just one operation.
fn plain() -> Program {
    Program::on(2, &[&[0, 1]]).collective(0, Shape::Rooted)
}

/// The reduced search finds what the full one finds, in the smallest job.
fn is_broken<S: Mutant>() -> bool {
    let [scenario] = scenarios::given([("one operation", ONCE, plain())])
        .try_into()
        .expect("one");
    let found = |search| check::<S>(&scenario, search).way.is_some();
    let (reduced, full) = (found(Search::Reduced), found(Search::Full));
    assert_eq!(reduced, full, "{}", std::any::type_name::<S>());
    full
}

#[test]
fn the_reduced_search_loses_nothing_under_two_phase_commit() {
    assert!(!is_broken::<Every>());
    assert!(is_broken::<NoRaise>());
    assert!(is_broken::<ParksPast>());
    assert!(is_broken::<NoEnteringAgain>());
    assert!(is_broken::<NoTakingBack>());
}
