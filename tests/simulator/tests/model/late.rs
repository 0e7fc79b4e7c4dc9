//! Members that come late to operations from which others have returned: these are carried out ahead of their applications.

use stillpoint_clock::steps::Every;
use stillpoint_simulator::job::Circumstances;
use stillpoint_simulator::mutant::*;
use stillpoint_simulator::program::{Kind, Op, Program, Shape, Until};

use crate::checker::{Search, check};
use crate::look_at_all;
use crate::mutants::is_caught;
use crate::programs::*;
use crate::scenarios::{self, Scenario};
use Shape::{Chained, Gathered, Rooted, Synchronizing};

/// One checkpoint at any moment and a restart from it or none; late members ask when nothing else can happen.
const ONCE: Circumstances = Circumstances {
    asks: Some(0),
    ..scenarios::ONCE_AGAIN
};
/// Two in a row.
const TWICE: Circumstances = Circumstances {
    checkpoints: 2,
    restarts: 2,
    ..ONCE
};
/// One may be given up at any moment.
const GIVEN_UP: Circumstances = Circumstances {
    checkpoints: 2,
    aborts: 1,
    ..ONCE
};
/// The only one may be given up.
const GIVEN_UP_FOR_GOOD: Circumstances = Circumstances {
    restarts: 0,
    aborts: 1,
    ..ONCE
};
/// A rank asks while something else can still happen.
const HASTY: Circumstances = Circumstances {
    asks: Some(1),
    ..ONCE
};
const HASTY_ONCE: Circumstances = Circumstances {
    restarts: 0,
    ..HASTY
};
const HASTY_GIVEN_UP: Circumstances = Circumstances {
    asks: Some(1),
    ..GIVEN_UP
};

/// The scenarios that the checker looks at.
fn all() -> Vec<Scenario> {
    scenarios::given([
        ("2 ranks, twice", TWICE, scattered()),
        ("2 ranks, asked early", HASTY, scattered()),
        ("2 ranks, given up", HASTY_GIVEN_UP, scattered()),
        ("2 ranks, given up for good", GIVEN_UP_FOR_GOOD, short()),
        ("2 ranks, comes by itself", HASTY, by_itself()),
        ("2 ranks, a target rises", HASTY, rising()),
        ("2 ranks, one stands inside", HASTY, stands_inside()),
        ("2 ranks, late for two", HASTY, two_at_once()),
        ("2 ranks, late on two clocks", HASTY, alone_on_two()),
        (
            "2 ranks, behind a nonblocking one",
            ONCE,
            nonblocking_third(),
        ),
        (
            "3 ranks, the root of a gather",
            ONCE,
            gathered(0, Until::Carried),
        ),
        (
            "3 ranks, another of a gather",
            ONCE,
            gathered(1, Until::Refused),
        ),
        ("3 ranks, two in a chain", ONCE, chain_of(3, Until::Carried)),
        (
            "3 ranks, two in a chain, given up",
            GIVEN_UP_FOR_GOOD,
            chain_of(3, Until::Refused),
        ),
        ("3 ranks, two clocks in either order", ONCE, either_order()),
        ("3 ranks, two on a clock each", ONCE, clock_each()),
        ("3 ranks, one has to be waited for", ONCE, one_unable()),
        ("3 ranks, one is called elsewhere", ONCE, called_elsewhere()),
        ("3 ranks, one waits for a message", ONCE, message_first()),
        ("3 ranks, one is in a send", ONCE, in_a_send()),
    ])
}

fn named(name: &str) -> Scenario {
    // Takes as long as all the others together.
    let large = ("3 ranks, one has yet to know", HASTY_ONCE, yet_to_know());
    let mut all = all().into_iter().chain(scenarios::given([large]));
    all.find(|scenario| scenario.name == name)
        .unwrap_or_else(|| panic!("no scenario is called {name}"))
}

/// The root returns at once; the other one computes for longer than a checkpoint takes, and comes to another operation then.
fn scattered() -> Program {
    Program::on(2, &[&[0, 1]])
        .then(1, linger(Until::Carried))
        .repeatable(0, Rooted)
        .repeatable(0, Synchronizing)
}

fn short() -> Program {
    Program::on(2, &[&[0, 1]])
        .then(1, linger(Until::Refused))
        .repeatable(0, Rooted)
}

/// The other one computes, but not for long.
fn by_itself() -> Program {
    Program::on(2, &[&[0, 1]])
        .then(1, Op::Compute)
        .repeatable(0, Rooted)
        .repeatable(0, Rooted)
}

/// The root returns when the other one may stand still inside.
fn stands_inside() -> Program {
    Program::on(2, &[&[0, 1]]).repeatable(0, Rooted)
}

/// The root returns from a second one when the targets are known.
fn rising() -> Program {
    let kind = Kind::Repeatable;
    let collective = Op::Collective { on: 0, kind };
    Program::on(2, &[&[0, 1]])
        .shaped(0, Rooted)
        .shaped(0, Chained)
        .then(0, collective)
        .then(0, linger(Until::Targeted))
        .then(0, collective)
        .then(1, linger(Until::Carried))
        .then(1, collective)
        .then(1, collective)
}

fn two_at_once() -> Program {
    Program::on(2, &[&[0, 1]])
        .then(1, linger(Until::Carried))
        .repeatable(0, Rooted)
        .collective(0, Chained)
}

/// The application first comes to the operation whose clock is the second.
fn alone_on_two() -> Program {
    Program::on(2, &[&[0, 1], &[0, 1]])
        .then(1, linger(Until::Carried))
        .repeatable(1, Rooted)
        .repeatable(0, Chained)
}

/// No rank knows the kind of a nonblocking operation.
fn nonblocking_third() -> Program {
    let wait = Op::Wait { on: 0, number: 3 };
    Program::on(2, &[&[0, 1]])
        .repeatable(0, Rooted)
        .repeatable(0, Synchronizing)
        .then(1, linger(Until::Refused))
        .all(0, Rooted, start(0))
        .then(0, wait)
        .then(1, wait)
}

/// One is late for a gather, from which all but the root return at once.
fn gathered(late: usize, until: Until) -> Program {
    Program::on(3, &[&[0, 1, 2]])
        .then(late, linger(until))
        .repeatable(0, Gathered)
}

/// All but the first are late, and need each other.
fn chain_of(ranks: usize, until: Until) -> Program {
    let members: Vec<usize> = (0..ranks).collect();
    let program = Program::on(ranks, &[&members]);
    let late = |program: Program, rank| program.then(rank, linger(until));
    (1..ranks).fold(program, late).repeatable(0, Chained)
}

/// Two are late for the same two operations, on a clock each.
fn either_order() -> Program {
    Program::on(3, &[&[0, 1, 2], &[0, 2, 1]])
        .then(1, linger(Until::Carried))
        .then(2, linger(Until::Carried))
        .repeatable(0, Chained)
        .repeatable(1, Chained)
}

/// Two are late, for operations that the other one has nothing to do with.
fn clock_each() -> Program {
    Program::on(3, &[&[0, 1], &[0, 2]])
        .then(1, linger(Until::Carried))
        .then(2, linger(Until::Carried))
        .repeatable(0, Rooted)
        .repeatable(1, Rooted)
}

/// Two ranks are late for a gather: its root, and a member that gives, which waits for a message from the root.
fn one_unable() -> Program {
    Program::on(3, &[&[1, 0, 2]])
        .then(1, linger(Until::Refused))
        .then(1, Op::Send { to: 2 })
        .then(2, receive(1))
        .repeatable(0, Gathered)
}

/// Both late ones come to an operation of their own first.
fn called_elsewhere() -> Program {
    Program::on(3, &[&[0, 1, 2], &[1, 2]])
        .then(2, linger(Until::Refused))
        .repeatable(1, Synchronizing)
        .repeatable(0, Chained)
}

/// One late member waits for a message of the other, whose application sends it later.
fn message_first() -> Program {
    Program::on(3, &[&[0, 1, 2]])
        .then(2, linger(Until::Carried))
        .then(2, Op::Send { to: 1 })
        .then(1, receive(2))
        .repeatable(0, Chained)
}

/// One rank is late on a communicator that another member does not know yet: it is still in the operation that makes the communicator.
fn yet_to_know() -> Program {
    let (new, pair) = (0, 1);
    let kind = Kind::InPlace;
    let mut program = Program::on(3, &[&[0, 1, 2], &[0, 2]]);
    program.communicators[new].unknown_to = Some(2);
    program
        .shaped(pair, Rooted)
        .then(0, Op::Collective { on: pair, kind })
        .then(2, Op::Make { on: pair, new })
        .then(1, linger(Until::Refused))
        .repeatable(new, Chained)
}

/// One late member has a send to finish, which the other, whose application takes it later, has to receive first.
fn in_a_send() -> Program {
    Program::on(3, &[&[0, 1, 2]])
        .then(2, linger(Until::Refused))
        .then(2, receive(1))
        .then(1, Op::Deliver { to: 2 })
        .repeatable(0, Chained)
}

#[test]
fn every_state_with_late_members_keeps_its_promises() {
    look_at_all("late: ", all());
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
    who_is_late_has_to_stand: NoStanding in "3 ranks, one is in a send",
    who_is_somewhere_else_has_to_be_waited_for: AnySomewhereElse in "3 ranks, one is in a send",
    who_is_in_an_operation_must_not_carry_out: StandsInOne in "2 ranks, one stands inside",
    who_has_something_to_give_has_to_be_waited_for: AnyUnable in "3 ranks, one has to be waited for",
    who_has_yet_to_know_has_to_be_waited_for: AnyUnknown in "3 ranks, one has yet to know",
    who_has_not_answered_has_to_be_waited_for: AnyUnanswered in "3 ranks, one is in a send",
    all_have_to_take_one_order: NoOrder in "3 ranks, two clocks in either order",
    what_is_noted_is_noted_with_its_number: TellsOlder in "2 ranks, behind a nonblocking one",
    what_is_carried_out_has_to_be_counted: NoCountAhead in "2 ranks, twice",
    what_is_carried_out_counts_when_it_is_over: CountsEarly in "3 ranks, two in a chain",
    what_is_served_must_not_be_counted_again: CountsServed in "2 ranks, twice",
    what_was_carried_out_has_to_be_served: NoServing in "2 ranks, twice",
    what_was_carried_out_has_to_be_kept: NoKeeping in "2 ranks, twice",
    what_was_granted_has_to_be_carried_out: NoCarryingOn in "3 ranks, two in a chain, given up",
    who_stands_has_to_be_let_go: NoLettingGo in "2 ranks, given up for good",
}

/// The reduced search finds what the full one finds.
#[test]
fn the_reduced_search_loses_nothing_with_late_members() {
    assert!(!is_broken_in::<Every>("2 ranks, a target rises"));
    assert!(!is_broken_in::<Every>("2 ranks, asked early"));
    assert!(is_broken_in::<NoServing>("2 ranks, a target rises"));
    assert!(is_broken_in::<NoCountAhead>("2 ranks, asked early"));
    assert!(is_broken_in::<NoLettingGo>("2 ranks, given up for good"));
    assert!(is_broken_in::<NoOrder>(
        "3 ranks, two clocks in either order"
    ));
}

fn is_broken_in<S: Mutant>(name: &str) -> bool {
    let found = |search| check::<S>(&named(name), search).way.is_some();
    let (reduced, full) = (found(Search::Reduced), found(Search::Full));
    assert_eq!(reduced, full, "{name}");
    full
}
