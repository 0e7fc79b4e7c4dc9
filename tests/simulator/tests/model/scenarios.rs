//! Small jobs: everything that a program can do with communicators and messages, on two to four ranks.

use stillpoint_simulator::job::Circumstances;
use stillpoint_simulator::program::{Program, Shape};

use crate::programs::*;
use Shape::{Alone, Rooted, Synchronizing};

/// A program and its circumstances.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub program: Program,
    pub circumstances: Circumstances,
}

/// One checkpoint at any moment.
pub const ONCE: Circumstances = Circumstances {
    checkpoints: 1,
    aborts: 0,
    hasty_polls: 0,
    hasty_counts: 0,
    two_phase: false,
    restarts: 0,
    patient: false,
    ends_early: true,
    asks: None,
};
/// Two in a row.
pub const TWICE: Circumstances = Circumstances {
    checkpoints: 2,
    ..ONCE
};
/// One may be given up at any moment, and another one follows.
pub const GIVEN_UP: Circumstances = Circumstances {
    checkpoints: 2,
    aborts: 1,
    ..ONCE
};
/// Two rounds of counting that come too early.
pub const EARLY: Circumstances = Circumstances {
    hasty_counts: 2,
    ..ONCE
};
/// Polls that go out while something can still happen, and rounds of counting that come too early.
pub const HASTY: Circumstances = Circumstances {
    hasty_polls: 1,
    hasty_counts: 1,
    ..ONCE
};

/// Ranks may get no processor for longer than a short pause before a poll takes, but not for longer than a long one.
pub const HELD_BACK: Circumstances = Circumstances {
    hasty_polls: 2,
    patient: true,
    ..ONCE
};

/// One checkpoint at any moment, and a restart from it or none.
pub const ONCE_AGAIN: Circumstances = Circumstances {
    restarts: 1,
    ..ONCE
};
const AGAIN: Circumstances = Circumstances {
    restarts: 2,
    ..TWICE
};
const GIVEN_UP_AGAIN: Circumstances = Circumstances {
    restarts: 1,
    ..GIVEN_UP
};
const HASTY_AGAIN: Circumstances = Circumstances {
    restarts: 1,
    ..HASTY
};
const STAYS_AWAY: Circumstances = Circumstances {
    restarts: 1,
    ..HELD_BACK
};

/// The scenarios that the checker looks at.
pub fn all() -> Vec<Scenario> {
    given([
        ("2 ranks, twice", TWICE, pair()),
        ("2 ranks, given up", GIVEN_UP, pair()),
        ("2 ranks, hasty", HASTY, pair()),
        ("2 ranks, nonblocking, twice", TWICE, nonblocking(2)),
        ("2 ranks, nonblocking, given up", GIVEN_UP, nonblocking(2)),
        (
            "2 ranks, nonblocking after blocking, twice",
            TWICE,
            nonblocking_after_blocking(),
        ),
        ("messages that cross, hasty", HASTY, crossing_message()),
        ("messages that cross, twice", TWICE, crossing_message()),
        ("similar communicators", ONCE, similar(true)),
        ("a rendezvous across a collective", ONCE, rendezvous()),
        (
            "a rendezvous across a collective, begun again",
            ONCE_AGAIN,
            rendezvous(),
        ),
        ("2 ranks, a sparse exchange, twice", AGAIN, exchange()),
        ("2 ranks, a sparse exchange, given up", GIVEN_UP, exchange()),
        ("2 ranks, looked at, twice", AGAIN, looked_at()),
        ("3 ranks, overlapping groups", ONCE, overlapping()),
        ("3 ranks, overlapping groups, twice", TWICE, overlapping()),
        (
            "3 ranks, overlapping groups, given up",
            GIVEN_UP,
            overlapping(),
        ),
        ("3 ranks, a target is raised", ONCE, figure_1()),
        ("3 ranks, a message for the one ahead", ONCE, needed()),
        ("3 ranks, a message, twice", TWICE, needed()),
        ("3 ranks, a busy receive", ONCE, busy()),
        ("3 ranks, nonblocking", ONCE, nonblocking(3)),
        ("3 ranks, nonblocking, twice", TWICE, nonblocking(3)),
        ("3 ranks, neighbours", ONCE, neighbours(3)),
        ("3 ranks, neighbours, twice", TWICE, neighbours(3)),
        ("3 ranks, a communicator is made", ONCE, made()),
        ("3 ranks, everything", ONCE, everything()),
        ("2 ranks, a communicator is freed", TWICE, freed(Alone)),
        (
            "2 ranks, a communicator is freed, given up",
            GIVEN_UP,
            freed(Alone),
        ),
        (
            "2 ranks, a communicator is disconnected",
            TWICE,
            freed(Synchronizing),
        ),
        (
            "2 ranks, freed with an operation pending",
            TWICE,
            freed_while_pending(),
        ),
        ("2 ranks, freed and made again", ONCE, made_again()),
        ("3 ranks, a communicator is freed", ONCE, freed_by_three()),
        ("4 ranks, a chain of groups", ONCE, chain()),
        ("4 ranks, a chain of groups, twice", TWICE, chain()),
        ("4 ranks, a row and a column", ONCE, grid()),
        ("4 ranks, a message that crosses", ONCE, rows()),
        ("4 ranks, nonblocking rows", ONCE, nonblocking_rows()),
        ("2 ranks, one stays away", HELD_BACK, stays_away()),
    ])
}

/// Blocking operations that bind when a member returns from them, each checkpoint followed by a restart or not.
pub fn repeatable() -> Vec<Scenario> {
    given([
        ("2 ranks, twice", AGAIN, repeatable_pair()),
        ("2 ranks, given up", GIVEN_UP_AGAIN, repeatable_pair()),
        ("2 ranks, hasty", HASTY_AGAIN, repeatable_pair()),
        ("2 ranks, one is late", AGAIN, repeatable_late()),
        ("2 ranks, one stays away", STAYS_AWAY, repeatable_late()),
        (
            "2 ranks, the root returns",
            AGAIN,
            repeatable_root_returns(),
        ),
        ("2 ranks, in place", AGAIN, in_place(Synchronizing)),
        ("2 ranks, in place, rooted", AGAIN, in_place(Rooted)),
        ("2 ranks, needed elsewhere", AGAIN, repeatable_called()),
        (
            "2 ranks, behind a nonblocking one",
            AGAIN,
            repeatable_behind_nonblocking(),
        ),
        ("2 ranks, a message crosses", AGAIN, repeatable_crossed()),
        ("2 ranks, a communicator is made", AGAIN, repeatable_made()),
        ("3 ranks, one is late", ONCE_AGAIN, repeatable_away(3)),
        ("3 ranks, one stays away", STAYS_AWAY, repeatable_away(3)),
        (
            "3 ranks, needed elsewhere",
            ONCE_AGAIN,
            repeatable_needed_elsewhere(),
        ),
        (
            "3 ranks, a message from inside",
            ONCE_AGAIN,
            repeatable_before_message(),
        ),
        ("3 ranks, neighbours", ONCE_AGAIN, repeatable_neighbours()),
        ("4 ranks, one stays away", ONCE_AGAIN, repeatable_chain()),
    ])
}

/// Names, circumstances and programs as scenarios.
pub fn given(
    given: impl IntoIterator<Item = (&'static str, Circumstances, Program)>,
) -> Vec<Scenario> {
    let scenario = |(name, circumstances, program)| Scenario {
        name,
        program,
        circumstances,
    };
    given.into_iter().map(scenario).collect()
}

/// Scenarios for mutants, which have to go wrong there: all of them, and some that only a mutant can begin or that are for one mutant alone.
pub fn for_mutants() -> Vec<Scenario> {
    let mut scenarios = all();
    let others = given([
        ("two groups with one id", ONCE, colliding()),
        (
            "messages that cross, counted early",
            EARLY,
            crossing_message(),
        ),
        // Too large to be visited in full.
        ("2 ranks, a cell is used again", ONCE, used_again()),
    ]);
    scenarios.extend(others);
    scenarios
}

/// Scenarios that are small enough to be searched without the reduction as well, with every step left out in turn.
pub fn for_comparison() -> Vec<Scenario> {
    let names = [
        "2 ranks, twice",
        "2 ranks, hasty",
        "2 ranks, nonblocking, twice",
        "2 ranks, nonblocking after blocking, twice",
        "messages that cross, twice",
        "messages that cross, counted early",
        "similar communicators",
        "2 ranks, a communicator is freed",
    ];
    let mut scenarios: Vec<Scenario> = names.map(named).into();
    scenarios.extend(given([
        ("begun again, once", ONCE_AGAIN, repeatable_root_returns()),
        ("in place, once", ONCE_AGAIN, in_place(Rooted)),
    ]));
    scenarios
}

/// The scenario with that name.
pub fn named(name: &str) -> Scenario {
    let mut all = for_mutants().into_iter();
    all.find(|scenario| scenario.name == name)
        .unwrap_or_else(|| panic!("no scenario is called {name}"))
}

/// The scenario of [`repeatable`] with that name.
pub fn named_repeatable(name: &str) -> Scenario {
    let mut all = repeatable().into_iter();
    all.find(|scenario| scenario.name == name)
        .unwrap_or_else(|| panic!("no scenario is called {name}"))
}

/// Similar communicators with one clock for both.
pub fn sharing() -> Scenario {
    Scenario {
        name: "similar communicators that share a clock",
        program: similar(false),
        circumstances: ONCE,
    }
}
