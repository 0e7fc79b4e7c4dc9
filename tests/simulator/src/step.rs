//! The next step of a rank's driver thread, among the other ranks.

use stillpoint_clock::rank::{Activity, Pending};

use crate::ahead;
use crate::barrier;
use crate::inside::InsideOn;
use crate::job::Job;
use crate::mutant::Mutant;
use crate::program::{Op, Shape, Until};
use crate::rank::Step;
use crate::ranks::Ranks;
use crate::wire::receive;

/// The rank's next operation, unless it is parked.
pub fn next_op<S: Mutant>(job: &Job<S>, ranks: &Ranks, number: usize) -> Option<Op> {
    let op = job.program.ranks[number].get(ranks[number].at).copied();
    op.filter(|_| ranks[number].doing != Activity::Parked)
}

/// Whether the rank's next step changes anything.
pub fn can_step<S: Mutant>(job: &Job<S>, ranks: &Ranks, number: usize) -> bool {
    let Some(op) = next_op(job, ranks, number) else {
        return false;
    };
    let rank = &ranks[number];
    if rank.ahead.stands || rank.step == Step::Carrying {
        return false;
    }
    match (rank.step, op) {
        (Step::Before, Op::Receive { from, busy }) => {
            rank.taken[from] < ranks[from].sent[number] || rank.would_block::<S>(busy)
        }
        (Step::Before, Op::Wait { on, number: which }) => {
            is_complete(job, ranks, number, on, which) || rank.would_block::<S>(false)
        }
        (Step::Before, Op::Look { on, number: which }) => {
            is_complete(job, ranks, number, on, which) || rank.would_block::<S>(true)
        }
        (Step::Before, Op::Linger { until }) => match until {
            Until::Targeted => rank.pending == Pending::Targeted || rank.carried,
            Until::Carried => rank.carried,
            Until::Refused => rank.carried || rank.ahead.refused || rank.let_on,
        },
        (Step::Barrier(barrier), _) => {
            rank.can_decide_in_barrier::<S>(barrier, job.clocks[barrier.on])
        }
        (Step::Sending, Op::Deliver { to }) => {
            is_delivered::<S>(ranks, number, to) || rank.would_block::<S>(false)
        }
        (Step::Deciding, _) => !S::AWAIT_TARGETS || rank.pending != Pending::Asked,
        (Step::Telling { .. } | Step::Binding { .. } | Step::TakenBack | Step::Returned, _) => {
            !S::AWAIT_TARGETS || rank.pending != Pending::Asked
        }
        (Step::Inside | Step::Open, _) => op
            .on()
            .is_some_and(|on| is_complete(job, ranks, number, on, rank.begun[on])),
        _ => true,
    }
}

/// The rank's next step.
pub fn step<S: Mutant>(job: &Job<S>, ranks: &mut Ranks, number: usize) {
    if !job.asks() {
        return take(job, ranks, number);
    }
    let before = (ranks[number].at, ranks[number].begun.clone());
    take(job, ranks, number);
    ahead::see_what_began(job, ranks, number, &before);
}

fn take<S: Mutant>(job: &Job<S>, ranks: &mut Ranks, number: usize) {
    let Some(op) = next_op(job, ranks, number) else {
        return;
    };
    let clock = op.on().map_or(0, |on| job.clocks[on]);
    if ranks[number].step == Step::Before && op.on().is_some() && job.asks() {
        if ahead::serve(job, ranks, number, op) {
            return over(job, ranks, number, op);
        }
        ahead::note(job, ranks, number, op);
    }
    match (ranks[number].step, op) {
        (Step::Leaving, _) => ranks[number].finish::<S>(),
        (Step::Before, Op::Compute | Op::Linger { .. }) => ranks[number].next(),
        (Step::Before, Op::Send { to }) => {
            ranks[number].sent[to] += 1;
            ranks[number].leave();
        }
        (Step::Before, Op::Deliver { to }) => {
            ranks[number].sent[to] += 1;
            ranks[number].step = Step::Sending;
        }
        (Step::Sending, Op::Deliver { to }) => match is_delivered::<S>(ranks, number, to) {
            true => {
                let early = ranks[to].taken[number] < ranks[number].sent[to];
                ranks[number].told_early |= early;
                ranks[number].leave();
            }
            false => ranks[number].blocked::<S>(false),
        },
        (Step::Before, Op::Receive { from, busy }) => receive::<S>(ranks, number, from, busy),
        (Step::Before, Op::Wait { on, number: which }) => {
            if is_complete(job, ranks, number, on, which) {
                ranks[number].tell::<S>(on, which, job.clocks[on]);
                retire_what_is_over(job, ranks, number);
            } else {
                ranks[number].blocked::<S>(false);
            }
        }
        (Step::Before, Op::Look { on, number: which }) => {
            if !is_complete(job, ranks, number, on, which) {
                ranks[number].blocked::<S>(true);
            } else if S::BIND_WHEN_SEEN {
                ranks[number].tell::<S>(on, which, job.clocks[on]);
            } else {
                ranks[number].bound[on] = which.max(ranks[number].bound[on]);
                ranks[number].leave();
            }
        }
        (Step::Telling { begun }, Op::Wait { on, .. } | Op::Look { on, .. }) => {
            if ranks[number].tells::<S>(job.clocks[on], begun) {
                ranks[number].leave();
                retire_what_is_over(job, ranks, number);
            }
        }
        (Step::Before, Op::Free { on, .. }) => ranks[number].bind::<S>(on, job.clocks[on], clock),
        (Step::Binding { begun }, Op::Free { on, .. }) => {
            if ranks[number].tells::<S>(job.clocks[on], begun) {
                ranks[number].count_giving_up::<S>(clock);
            }
        }
        (Step::Before, Op::Start { on, binds: false }) => {
            ranks[number].clocks.of_mut(clock).count.initiate::<S>();
            ranks[number].begun[on] += 1;
            ranks[number].nonblocking += 1;
            ranks[number].leave();
        }
        (Step::Before, Op::Collective { on, .. }) if barrier::stands_before(job, op) => {
            ranks[number].enter_barrier(on);
        }
        (Step::Barrier(barrier), _) => ranks[number].decide_in_barrier::<S>(barrier, clock, op),
        (Step::Calling(barrier), _) => ranks[number].announce(barrier, clock),
        (Step::Incremented, _) if barrier::stands_before(job, op) => {
            ranks[number].commit_in_barrier::<S>(clock, op);
        }
        (Step::Before, Op::Collective { on, .. }) if op.is_said() => {
            ranks[number].inside = Some(InsideOn { on, clock });
            ranks[number].step = Step::Said;
        }
        (Step::Before, Op::Collective { .. } | Op::Start { .. } | Op::Make { .. }) => {
            ranks[number].increment(clock);
        }
        (Step::Incremented, _) => {
            let rank = &mut ranks[number];
            if rank.pending != Pending::No && S::TAKE_BACK {
                rank.flag_is_seen(clock);
            } else if op.is_said() {
                rank.step = Step::Unsaid;
            } else {
                rank.enter(op, clock);
            }
        }
        (Step::Deciding, _) => ranks[number].decide::<S>(clock, op),
        (Step::Passing, _) => {
            // It goes on, whatever has become of the checkpoint meanwhile.
            ranks[number].go(clock, op, S::RAISE);
        }
        (Step::Inside, _) => over(job, ranks, number, op),
        (Step::Open, _) => {
            if ranks[number].returns(op) {
                over(job, ranks, number, op);
            }
        }
        (Step::Returned, _) => {
            if ranks[number].tells_committed::<S>(clock) {
                over(job, ranks, number, op);
            }
        }
        (
            Step::Said
            | Step::Counted
            | Step::TakenBack
            | Step::Unsaid
            | Step::Again
            | Step::LetPast,
            _,
        ) => ranks[number].step_inside::<S>(clock, op),
        (step, op) => unreachable!("{step:?} in {op:?}"),
    }
}

/// Whether the rank's newest message to another one has been received there, so that its synchronous send is over.
pub fn is_delivered<S: Mutant>(ranks: &Ranks, number: usize, to: usize) -> bool {
    let there = match S::UNTIL_TAKEN {
        true => &ranks[to].taken,
        false => &ranks[to].pulled,
    };
    there[number] >= ranks[number].sent[to]
}

/// A collective operation is over.
fn over<S: Mutant>(job: &Job<S>, ranks: &mut Ranks, number: usize, op: Op) {
    match op {
        Op::Make { new, .. } => make(job, ranks, number, new),
        Op::Free { on, .. } => ranks[number].given_up |= 1 << on,
        _ => {}
    }
    ranks[number].leave();
    retire_what_is_over(job, ranks, number);
}

/// A communicator is made: its members then have its clock and that of their set.
fn make<S: Mutant>(job: &Job<S>, ranks: &mut Ranks, number: usize, new: usize) {
    let communicator = &job.program.communicators[new];
    if !communicator.members.contains(&number) {
        return;
    }
    let rank = &mut ranks[number];
    let reuse = rank.pending == Pending::No;
    for on in communicator.set.into_iter().chain([new]) {
        rank.clocks.learn::<S>(job.clocks[on], reuse);
    }
}

/// Communicators that have been given up are gone when nothing is pending on them any more.
fn retire_what_is_over<S: Mutant>(job: &Job<S>, ranks: &mut Ranks, number: usize) {
    let rank = &ranks[number];
    if rank.given_up == 0 || matches!(rank.step, Step::Telling { .. }) {
        return;
    }
    let done = rank.at + usize::from(rank.step == Step::Leaving);
    let later = &job.program.ranks[number][done..];
    let clocks: Vec<usize> = (0..job.clocks.len())
        .filter(|on| rank.given_up >> on & 1 == 1)
        .filter(|on| {
            !later
                .iter()
                .any(|op| matches!(op, Op::Wait { on: other, .. } if other == on))
        })
        .map(|on| job.clocks[on])
        .filter(|clock| rank.clocks.find(*clock).is_some())
        .collect();
    for clock in clocks {
        ranks[number].clocks.retire(clock);
    }
}

/// Whether the communicator's operation with that number is over on a rank that has begun it.
fn is_complete<S: Mutant>(
    job: &Job<S>,
    ranks: &Ranks,
    number: usize,
    on: usize,
    which: u32,
) -> bool {
    lacking(job, ranks, number, on, which).next().is_none()
}

/// The ranks that have yet to begin the communicator's operation with that number before it is over on a rank.
pub fn lacking<'a, S: Mutant>(
    job: &'a Job<S>,
    ranks: &'a Ranks,
    number: usize,
    on: usize,
    which: u32,
) -> impl Iterator<Item = usize> + 'a {
    let communicator = &job.program.communicators[on];
    let members = &communicator.members;
    let shape = match which.checked_sub(1) {
        // Only a mutant begins an operation that does not exist.
        Some(index) => communicator
            .shapes
            .get(index as usize)
            .copied()
            .unwrap_or(Shape::Alone),
        // Nothing of it has been counted.
        None => Shape::Alone,
    };
    let count = members.len();
    let own = members.iter().position(|member| *member == number);
    let own = own.unwrap_or(0);
    let waits_for = move |place: usize| match shape {
        Shape::Synchronizing => true,
        Shape::Alone => false,
        Shape::Rooted => place == 0 && own != 0,
        Shape::Chained => place < own,
        Shape::Gathered => own == 0,
        Shape::Neighbours => place == (own + 1) % count || own == (place + 1) % count,
    };
    (0..count)
        .filter(move |place| waits_for(*place))
        .map(|place| members[place])
        .filter(move |member| ranks[*member].begun[on] < which)
}
