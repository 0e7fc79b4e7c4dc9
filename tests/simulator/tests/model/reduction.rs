//! The reduced search finds the same as the full search: with every step left out in turn, in the smallest jobs.
//! (Without pulling, the rounds of counting go on for ever: there is no end of states.)

use stillpoint_clock::steps::Every;
use stillpoint_simulator::mutant::*;

use crate::checker::{Search, check};
use crate::scenarios;

/// Counts the jobs in which both searches found a broken promise.
fn broken_in<S: Mutant>() -> usize {
    let mut broken = 0;
    for scenario in scenarios::for_comparison() {
        let reduced = check::<S>(&scenario, Search::Reduced);
        let full = check::<S>(&scenario, Search::Full);
        let name = scenario.name;
        assert_eq!(reduced.way.is_some(), full.way.is_some(), "{name}");
        broken += usize::from(full.way.is_some());
    }
    broken
}

macro_rules! compare {
    ($($mutant:ident)*) => {
        #[test]
        fn the_reduced_search_finds_what_the_full_one_finds() {
            assert_eq!(broken_in::<Every>(), 0);
            $(println!("{} is broken in {} jobs", stringify!($mutant), broken_in::<$mutant>());)*
        }
    };
}

compare! {
    NoMaximum NoRaise NoPassingOn NoAwaiting NoReaching NoTelling LooksOnce StaleReports NoAdvance EarlyDrain NoSums
    NoCollisions ReadsBeforeFlag RaisesLate NoTakingBack NoJoining
    NoNoting NoBinding NoCountOfGivingUp CountedOnWhatGoes NoRest
    NoReturning NoLettingOn NoTellingFirst StoppedOwing NoLeavingOut LeavesOutInPlace StandsBehind CountsTwice
}
