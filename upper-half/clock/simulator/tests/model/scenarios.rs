//! Small jobs: everything that a program can do with communicators and messages, on two to four ranks.

use stillpoint_simulator::job::Circumstances;
use stillpoint_simulator::program::{Communicator, Op, Program, Shape};

use Shape::{Alone, Neighbours, Rooted, Synchronizing};

/// A program and what happens to it.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub program: Program,
    pub circumstances: Circumstances,
}

/// One checkpoint at any moment.
const ONCE: Circumstances = Circumstances {
    checkpoints: 1,
    aborts: 0,
    hasty_polls: 0,
    hasty_counts: 0,
    ends_early: true,
};
/// Two in a row.
const TWICE: Circumstances = Circumstances {
    checkpoints: 2,
    ..ONCE
};
/// One may be given up at any moment, and another one follows.
const GIVEN_UP: Circumstances = Circumstances {
    checkpoints: 2,
    aborts: 1,
    ..ONCE
};
/// Two rounds of counting that come too early.
const EARLY: Circumstances = Circumstances {
    hasty_counts: 2,
    ..ONCE
};
/// Polls that go out while something can still happen, and rounds of counting that come too early.
const HASTY: Circumstances = Circumstances {
    hasty_polls: 1,
    hasty_counts: 1,
    ..ONCE
};

fn start(on: usize) -> Op {
    Op::Start { on, binds: false }
}

fn wait(on: usize) -> Op {
    Op::Wait { on, number: 1 }
}

fn receive(from: usize) -> Op {
    Op::Receive { from, busy: false }
}

/// What the checker is to look at.
pub fn all() -> Vec<Scenario> {
    let given: [(&'static str, Circumstances, Program); 33] = [
        ("2 ranks, twice", TWICE, pair()),
        ("2 ranks, given up", GIVEN_UP, pair()),
        ("2 ranks, hasty", HASTY, pair()),
        ("2 ranks, nonblocking, twice", TWICE, nonblocking(2)),
        ("2 ranks, nonblocking, given up", GIVEN_UP, nonblocking(2)),
        ("messages that cross, hasty", HASTY, crossing_message()),
        ("messages that cross, twice", TWICE, crossing_message()),
        ("similar communicators", ONCE, similar(true)),
        ("a rendezvous across a collective", ONCE, rendezvous()),
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
    ];
    given
        .into_iter()
        .map(|(name, circumstances, program)| Scenario {
            name,
            program,
            circumstances,
        })
        .collect()
}

/// What a mutant has to go wrong in: the scenarios, and those that only a mutant can begin or that are for one alone.
pub fn for_mutants() -> Vec<Scenario> {
    let mut scenarios = all();
    let others = [
        ("two groups with one id", ONCE, colliding()),
        (
            "messages that cross, counted early",
            EARLY,
            crossing_message(),
        ),
        // Too large to be visited in full.
        ("2 ranks, a cell is used again", ONCE, used_again()),
    ];
    scenarios.extend(others.map(|(name, circumstances, program)| Scenario {
        name,
        program,
        circumstances,
    }));
    scenarios
}

/// Those that are small enough to be looked at without the reduction as well, with every step left out in turn.
pub fn for_comparison() -> Vec<Scenario> {
    let names = [
        "2 ranks, twice",
        "2 ranks, hasty",
        "2 ranks, nonblocking, twice",
        "messages that cross, twice",
        "messages that cross, counted early",
        "similar communicators",
        "2 ranks, a communicator is freed",
    ];
    names.map(named).into()
}

/// The scenario with that name.
pub fn named(name: &str) -> Scenario {
    let mut all = for_mutants().into_iter();
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

/// Blocking operations on one group.
fn pair() -> Program {
    Program::on(2, &[&[0, 1]])
        .collective(0, Rooted)
        .collective(0, Synchronizing)
}

/// A nonblocking operation that one rank is told the end of early.
fn nonblocking(ranks: usize) -> Program {
    let members: Vec<usize> = (0..ranks).collect();
    let program = Program::on(ranks, &[&members]).all(0, Rooted, start(0));
    (0..ranks).fold(program, |program, rank| program.then(rank, wait(0)))
}

/// An eager message that is received after a collective operation that was begun after it was sent.
fn crossing_message() -> Program {
    Program::on(2, &[&[0, 1]])
        .then(0, Op::Send { to: 1 })
        .collective(0, Rooted)
        .then(1, receive(0))
}

/// A synchronous send whose receiver is in a collective operation first.
fn rendezvous() -> Program {
    Program::on(3, &[&[1, 2]])
        .then(0, Op::Deliver { to: 1 })
        .collective(0, Synchronizing)
        .then(1, receive(0))
}

/// Two groups that share a rank.
fn overlapping() -> Program {
    Program::on(3, &[&[0, 1], &[1, 2]])
        .collective(0, Rooted)
        .collective(1, Rooted)
}

/// Rank 1 has a target ahead and waits for a message of rank 2, which has none.
fn needed() -> Program {
    Program::on(3, &[&[0, 1]])
        .then(1, receive(2))
        .then(2, Op::Send { to: 1 })
        .collective(0, Rooted)
}

/// The same, with a receiver that asks again and again.
fn busy() -> Program {
    Program::on(3, &[&[0, 1]])
        .then(
            1,
            Op::Receive {
                from: 2,
                busy: true,
            },
        )
        .then(2, Op::Send { to: 1 })
        .collective(0, Rooted)
}

fn neighbours(ranks: usize) -> Program {
    let members: Vec<usize> = (0..ranks).collect();
    Program::on(ranks, &[&members]).collective(0, Neighbours)
}

/// A communicator that one member uses before another knows it.
fn made() -> Program {
    let mut program = Program::on(3, &[&[0, 1]]);
    program.communicators.push(Communicator::of([0, 1], false));
    // The group is another one than its parent's.
    program.communicators[0].members = vec![0, 1, 2];
    program
        .all(0, Rooted, Op::Make { on: 0, new: 1 })
        .collective(1, Rooted)
}

/// A communicator that is given up after its last operation.
fn freed(shape: Shape) -> Program {
    Program::on(2, &[&[0, 1]])
        .collective(0, Rooted)
        .free(0, shape)
}

/// A nonblocking operation whose end is heard of after its communicator has been given up.
fn freed_while_pending() -> Program {
    let program = Program::on(2, &[&[0, 1]]).all(0, Rooted, start(0));
    let program = program.free(0, Alone);
    (0..2).fold(program, |program, rank| program.then(rank, wait(0)))
}

/// A communicator is given up, and another one made, which may get its cell.
fn made_again() -> Program {
    let mut program = Program::on(2, &[&[0, 1], &[0, 1]]);
    program.communicators.push(Communicator::of([0, 1], false));
    program
        .free(1, Alone)
        .all(0, Rooted, Op::Make { on: 0, new: 2 })
        .collective(2, Rooted)
}

fn freed_by_three() -> Program {
    Program::on(3, &[&[0, 1, 2]]).free(0, Alone)
}

/// Rank 0 gives a communicator up whose target rank 1 raises, and makes another one on its way to a target that is ahead.
fn used_again() -> Program {
    let (shared, of_one, of_other, alone, new) = (0, 1, 2, 3, 4);
    let begin = |on| Op::Start { on, binds: true };
    let mut program = Program::on(2, &[&[1, 0], &[0, 1], &[0, 1], &[0]]);
    program.communicators.push(Communicator::of([0], false));
    program
        .shaped(of_one, Rooted)
        .shaped(of_other, Rooted)
        .then(0, begin(of_one))
        .then(1, begin(of_other))
        .collective(shared, Rooted)
        .free(shared, Alone)
        .all(alone, Rooted, Op::Make { on: alone, new })
        .then(0, begin(of_other))
        .then(1, begin(of_one))
        .then(0, wait(of_one))
        .then(0, wait(of_other))
        .then(1, wait(of_one))
        .then(1, wait(of_other))
}

/// Blocking and nonblocking operations on overlapping groups, and a message that crosses them.
fn everything() -> Program {
    Program::on(3, &[&[0, 1], &[1, 2]])
        .all(0, Rooted, start(0))
        .then(2, Op::Send { to: 0 })
        .collective(1, Rooted)
        .then(0, receive(2))
        .then(0, wait(0))
        .then(1, wait(0))
}

/// Nonblocking operations on similar communicators, begun in another order by each member.
pub fn similar(own_clocks: bool) -> Program {
    let mut program = Program::on(2, &[&[0, 1], &[0, 1]])
        .shaped(0, Rooted)
        .shaped(1, Rooted)
        .then(0, start(0))
        .then(0, wait(0))
        .then(0, start(1))
        .then(0, wait(1))
        .then(1, start(1))
        .then(1, start(0))
        .then(1, wait(0))
        .then(1, wait(1));
    if !own_clocks {
        for communicator in &mut program.communicators {
            communicator.id = Some(7);
        }
    }
    program
}

/// Four ranks, each group sharing a rank with the next.
fn chain() -> Program {
    Program::on(4, &[&[0, 1], &[1, 2], &[2, 3]])
        .collective(0, Rooted)
        .collective(2, Rooted)
}

/// Four ranks in a square.
fn grid() -> Program {
    Program::on(4, &[&[0, 1], &[0, 2]])
        .collective(0, Rooted)
        .collective(1, Rooted)
}

/// Two ranks with a group of their own, and a message to one of them that crosses its operation; a fourth computes.
fn rows() -> Program {
    Program::on(4, &[&[2, 3]])
        .then(0, Op::Send { to: 3 })
        .then(1, Op::Compute)
        .collective(0, Rooted)
        .then(3, receive(0))
}

/// Four ranks in two rows: one row's operation is nonblocking.
fn nonblocking_rows() -> Program {
    Program::on(4, &[&[0, 1], &[2, 3]])
        .all(0, Rooted, start(0))
        .collective(1, Rooted)
        .then(1, wait(0))
}

/// Rank 1 goes past a target of one group on the way to another's (the paper's Figure 1b).
fn figure_1() -> Program {
    Program::on(3, &[&[0, 1], &[1, 2]])
        .collective(1, Rooted)
        .collective(0, Rooted)
}

/// Two groups with the same id.
fn colliding() -> Program {
    let mut program = Program::on(2, &[&[0, 1], &[1]])
        .collective(1, Rooted)
        .collective(0, Rooted);
    for communicator in &mut program.communicators {
        communicator.id = Some(7);
    }
    program
}
