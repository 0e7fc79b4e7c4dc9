//! Programs: the operations of the ranks of small jobs.

use stillpoint_simulator::program::{Communicator, Kind, Op, Program, Shape, Until};

use Shape::{Alone, Neighbours, Rooted, Synchronizing};

pub fn start(on: usize) -> Op {
    Op::Start { on, binds: false }
}

pub fn wait(on: usize) -> Op {
    Op::Wait { on, number: 1 }
}

pub fn linger(until: Until) -> Op {
    Op::Linger { until }
}

pub fn receive(from: usize) -> Op {
    Op::Receive { from, busy: false }
}

/// Blocking operations on one group.
pub fn pair() -> Program {
    Program::on(2, &[&[0, 1]])
        .collective(0, Rooted)
        .collective(0, Synchronizing)
}

/// A nonblocking operation whose end one rank is told of early.
pub fn nonblocking(ranks: usize) -> Program {
    let members: Vec<usize> = (0..ranks).collect();
    let program = Program::on(ranks, &[&members]).all(0, Rooted, start(0));
    (0..ranks).fold(program, |program, rank| program.then(rank, wait(0)))
}

/// A nonblocking operation after a blocking one on the same communicator. The root may have left the blocking one before others come.
pub fn nonblocking_after_blocking() -> Program {
    let wait = Op::Wait { on: 0, number: 2 };
    Program::on(2, &[&[0, 1]])
        .collective(0, Rooted)
        .all(0, Rooted, start(0))
        .then(0, wait)
        .then(1, wait)
}

/// An eager message that is received after a collective operation, which began after the message was sent.
pub fn crossing_message() -> Program {
    Program::on(2, &[&[0, 1]])
        .then(0, Op::Send { to: 1 })
        .collective(0, Rooted)
        .then(1, receive(0))
}

/// A synchronous send whose receiver is in a collective operation first.
pub fn rendezvous() -> Program {
    Program::on(3, &[&[1, 2]])
        .then(0, Op::Deliver { to: 1 })
        .collective(0, Synchronizing)
        .then(1, receive(0))
}

/// A sparse exchange: a synchronous send, and a nonblocking barrier that is begun when it is over. The receiver has begun the barrier, and computes.
pub fn exchange() -> Program {
    Program::on(2, &[&[0, 1]])
        .then(0, Op::Deliver { to: 1 })
        .all(0, Synchronizing, start(0))
        .then(1, linger(Until::Targeted))
        .then(1, receive(0))
        .then(0, wait(0))
        .then(1, wait(0))
}

/// A nonblocking operation that a rank looks at, and whose buffers it uses again before it waits.
pub fn looked_at() -> Program {
    let look = Op::Look { on: 0, number: 1 };
    let program = Program::on(2, &[&[0, 1]]).all(0, Rooted, start(0));
    (0..2).fold(program, |program, rank| {
        program
            .then(rank, look)
            .then(rank, Op::Compute)
            .then(rank, wait(0))
    })
}

/// Two groups that share a rank.
pub fn overlapping() -> Program {
    Program::on(3, &[&[0, 1], &[1, 2]])
        .collective(0, Rooted)
        .collective(1, Rooted)
}

/// Rank 1 has a target ahead and waits for a message of rank 2, which has none.
pub fn needed() -> Program {
    Program::on(3, &[&[0, 1]])
        .then(1, receive(2))
        .then(2, Op::Send { to: 1 })
        .collective(0, Rooted)
}

/// The same, with a receiver that asks again and again.
pub fn busy() -> Program {
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

pub fn neighbours(ranks: usize) -> Program {
    let members: Vec<usize> = (0..ranks).collect();
    Program::on(ranks, &[&members]).collective(0, Neighbours)
}

/// A communicator that one member uses before another knows it.
pub fn made() -> Program {
    let mut program = Program::on(3, &[&[0, 1]]);
    program.communicators.push(Communicator::of([0, 1], false));
    // The communicator's group differs from its parent's.
    program.communicators[0].members = vec![0, 1, 2];
    program
        .all(0, Rooted, Op::Make { on: 0, new: 1 })
        .collective(1, Rooted)
}

/// A communicator that is given up after its last operation.
pub fn freed(shape: Shape) -> Program {
    Program::on(2, &[&[0, 1]])
        .collective(0, Rooted)
        .free(0, shape)
}

/// A nonblocking operation whose end is told after its communicator has been given up.
pub fn freed_while_pending() -> Program {
    let program = Program::on(2, &[&[0, 1]]).all(0, Rooted, start(0));
    let program = program.free(0, Alone);
    (0..2).fold(program, |program, rank| program.then(rank, wait(0)))
}

/// A communicator is given up, and another one made, which may get its cell.
pub fn made_again() -> Program {
    let mut program = Program::on(2, &[&[0, 1], &[0, 1]]);
    program.communicators.push(Communicator::of([0, 1], false));
    program
        .free(1, Alone)
        .all(0, Rooted, Op::Make { on: 0, new: 2 })
        .collective(2, Rooted)
}

pub fn freed_by_three() -> Program {
    Program::on(3, &[&[0, 1, 2]]).free(0, Alone)
}

/// Rank 0 gives a communicator up while rank 1 raises its target, and makes another one on its way to a target that is ahead.
pub fn used_again() -> Program {
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
pub fn everything() -> Program {
    Program::on(3, &[&[0, 1], &[1, 2]])
        .all(0, Rooted, start(0))
        .then(2, Op::Send { to: 0 })
        .collective(1, Rooted)
        .then(0, receive(2))
        .then(0, wait(0))
        .then(1, wait(0))
}

/// Nonblocking operations on similar communicators, which the members begin in different orders.
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
pub fn chain() -> Program {
    Program::on(4, &[&[0, 1], &[1, 2], &[2, 3]])
        .collective(0, Rooted)
        .collective(2, Rooted)
}

/// Four ranks in a square.
pub fn grid() -> Program {
    Program::on(4, &[&[0, 1], &[0, 2]])
        .collective(0, Rooted)
        .collective(1, Rooted)
}

/// Two ranks with a group of their own, and a message to one of them that crosses its operation; a fourth computes.
pub fn rows() -> Program {
    Program::on(4, &[&[2, 3]])
        .then(0, Op::Send { to: 3 })
        .then(1, Op::Compute)
        .collective(0, Rooted)
        .then(3, receive(0))
}

/// Four ranks in two rows: one row's operation is nonblocking.
pub fn nonblocking_rows() -> Program {
    Program::on(4, &[&[0, 1], &[2, 3]])
        .all(0, Rooted, start(0))
        .collective(1, Rooted)
        .then(1, wait(0))
}

/// Rank 1 goes past a target of one group on the way to another's (the paper's Figure 1b).
pub fn figure_1() -> Program {
    Program::on(3, &[&[0, 1], &[1, 2]])
        .collective(1, Rooted)
        .collective(0, Rooted)
}

/// Two groups with the same id.
pub fn colliding() -> Program {
    let mut program = Program::on(2, &[&[0, 1], &[1]])
        .collective(1, Rooted)
        .collective(0, Rooted);
    for communicator in &mut program.communicators {
        communicator.id = Some(7);
    }
    program
}

/// Rank 0 comes to an operation with rank 1 after the request; rank 1 is in one of its own, and comes much later.
pub fn stays_away() -> Program {
    Program::on(2, &[&[0, 1], &[1]])
        .collective(1, Synchronizing)
        .then(0, linger(Until::Targeted))
        .then(1, linger(Until::Carried))
        .collective(0, Synchronizing)
}

/// Operations that can be begun again; the first one lets its root go at once.
pub fn repeatable_pair() -> Program {
    Program::on(2, &[&[0, 1]])
        .repeatable(0, Rooted)
        .repeatable(0, Synchronizing)
}

/// A rank comes to an operation whose other member computes for longer than a checkpoint takes.
pub fn repeatable_late() -> Program {
    Program::on(2, &[&[0, 1]])
        .repeatable(0, Rooted)
        .then(1, linger(Until::Carried))
        .repeatable(0, Synchronizing)
}

/// The same with nothing before it.
pub fn repeatable_away(ranks: usize) -> Program {
    let members: Vec<usize> = (0..ranks).collect();
    Program::on(ranks, &[&members])
        .then(ranks - 1, linger(Until::Carried))
        .repeatable(0, Synchronizing)
}

/// The root comes and goes on after a checkpoint has been asked for, and the other member comes when it is over.
pub fn repeatable_root_returns() -> Program {
    Program::on(2, &[&[0, 1]])
        .then(0, linger(Until::Targeted))
        .repeatable(0, Rooted)
}

/// Rank 1 is needed by a target of another group while it is inside an operation that rank 0 has not come to.
pub fn repeatable_needed_elsewhere() -> Program {
    Program::on(3, &[&[0, 1], &[1, 2]])
        .repeatable(0, Synchronizing)
        .repeatable(1, Rooted)
}

/// Rank 2 begins an operation on one group and comes to another that binds; rank 1 is inside a third between the two.
pub fn repeatable_called() -> Program {
    let begin = Op::Start { on: 1, binds: true };
    let wait = Op::Wait { on: 1, number: 1 };
    Program::on(2, &[&[0, 1], &[0, 1]])
        .shaped(1, Rooted)
        .then(0, begin)
        .repeatable(0, Synchronizing)
        .then(1, begin)
        .then(0, wait)
        .then(1, wait)
}

/// A message that its receiver waits for comes from a rank that is inside an operation before.
pub fn repeatable_before_message() -> Program {
    Program::on(3, &[&[1, 2], &[0, 1]])
        .repeatable(0, Synchronizing)
        .then(2, Op::Send { to: 0 })
        .then(0, receive(2))
        .collective(1, Rooted)
}

/// Three on a ring of neighbours.
pub fn repeatable_neighbours() -> Program {
    Program::on(3, &[&[0, 1, 2]]).repeatable(0, Neighbours)
}

/// An operation in place that one member comes to later.
pub fn in_place(shape: Shape) -> Program {
    let kind = Kind::InPlace;
    Program::on(2, &[&[0, 1]]).all(0, shape, Op::Collective { on: 0, kind })
}

/// A nonblocking operation, and a blocking one that can be begun again behind it.
pub fn repeatable_behind_nonblocking() -> Program {
    let program = Program::on(2, &[&[0, 1]])
        .all(0, Rooted, start(0))
        .repeatable(0, Rooted);
    (0..2).fold(program, |program, rank| program.then(rank, wait(0)))
}

/// A message that crosses an operation which can be begun again.
pub fn repeatable_crossed() -> Program {
    Program::on(2, &[&[0, 1]])
        .then(0, Op::Send { to: 1 })
        .repeatable(0, Rooted)
        .then(1, receive(0))
}

/// A communicator that is made, and an operation on it.
pub fn repeatable_made() -> Program {
    let mut program = Program::on(2, &[&[0, 1]]);
    program.communicators.push(Communicator::of([0, 1], false));
    program
        .all(0, Rooted, Op::Make { on: 0, new: 1 })
        .repeatable(1, Synchronizing)
}

/// Four ranks, each group sharing a rank with the next; the last rank stays away.
pub fn repeatable_chain() -> Program {
    Program::on(4, &[&[0, 1], &[1, 2], &[2, 3]])
        .repeatable(0, Rooted)
        .then(3, linger(Until::Carried))
        .repeatable(2, Synchronizing)
}
