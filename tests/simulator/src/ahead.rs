//! Operations that late members carry out ahead of their applications ([`stillpoint_clock::absent`]): which rank asks, which ranks stand and what they tell,
//! what follows from it, and what the application gets when it comes.

use stillpoint_clock::absent::{Behind, Kind, MemberAnswer, Operation};
use stillpoint_clock::rank::{Activity, Pending};

use crate::agent::{FromRank, ToRank};
use crate::job::Job;
use crate::mutant::Mutant;
use crate::program::Op;
use crate::rank::{Rank, Step};
use crate::ranks::Ranks;
use crate::step;

/// A clock, and where a rank is behind on it: operations begun, and operations that all members have to begin.
pub type Asked = (u64, u64, u64);

/// A rank's part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ahead {
    /// Begins nothing by itself: a question is out, or has been answered with what it is to carry out.
    pub stands: bool,
    /// It has been told that it has to be waited for, or the checkpoint is over.
    pub refused: bool,
    pub granted: Vec<Operation>,
    /// Operations that have been carried out and that the application has yet to come to.
    pub kept: Vec<Operation>,
    /// Where its application is while something is carried out.
    back: Option<Step>,
    /// It has begun an operation that a member does not come to.
    pub alone: bool,
    /// It has begun or got another operation than the one that it was to.
    pub astray: bool,
    /// By communicator: its members in their order.
    members: Vec<(u64, i32, i32)>,
}

impl Ahead {
    /// The coordinator has answered.
    pub fn given(&mut self, operations: Vec<Operation>) {
        match operations.is_empty() {
            true => {
                self.refused = true;
                self.stands &= !self.granted.is_empty();
            }
            false => self.granted = operations,
        }
    }

    /// The checkpoint is over. Granted operations are carried out all the same: other ranks count on them.
    pub fn answered<S: Mutant>(&mut self) {
        if !S::CARRY_ON {
            self.granted.truncate(0);
        }
        if S::LET_GO && self.granted.is_empty() {
            self.stands = false;
        }
        self.refused = true;
    }
}

impl<S: Mutant> Job<S> {
    /// The position of a rank in each communicator, by clock.
    pub fn places(&self, number: usize) -> Ahead {
        let place = |(on, clock): (usize, &usize)| {
            let communicator = &self.program.communicators[on];
            let mut sets = self.program.communicators.iter();
            let is_set = sets.any(|it| it.set == Some(on));
            let place = communicator.members.iter().position(|it| *it == number)?;
            let size = communicator.members.len() as i32;
            Some((*clock as u64, if is_set { -1 } else { place as i32 }, size))
        };
        let members = self.clocks.iter().enumerate().filter_map(place).collect();
        Ahead {
            members,
            ..Ahead::default()
        }
    }
}

impl Rank {
    fn behind(&self) -> Vec<Behind> {
        let behind = |&(ggid, rank, size): &(u64, i32, i32)| {
            let cell = self.clocks.at(self.clocks.find(ggid as usize)?);
            let (begun, target) = (cell.count.seq(), cell.target);
            (begun < target).then_some(Behind {
                ggid,
                begun,
                target,
                rank,
                size,
            })
        };
        self.ahead.members.iter().filter_map(behind).collect()
    }

    /// Whether it is somewhere where it can be stopped, or waits for a message, and would go on.
    fn is_outside(&self) -> bool {
        let outside = matches!(self.doing, Activity::Running | Activity::Waiting);
        self.step == Step::Before && outside && self.pending == Pending::Targeted
    }

    /// The same when the checkpoint is over.
    fn is_outside_after_all(&self) -> bool {
        self.step == Step::Before && matches!(self.doing, Activity::Running | Activity::Waiting)
    }

    /// ... or, for a mutant, stands still inside a collective operation, or before one.
    fn can_stand<S: Mutant>(&self) -> bool {
        let parked = self.doing == Activity::Parked && !self.held;
        let inside = matches!(self.step, Step::Open | Step::Deciding) && parked;
        self.is_outside() || inside && !S::STAND_OUTSIDE
    }

    /// Whether its agent finds that it is late.
    pub fn can_inquire<S: Mutant>(&self) -> bool {
        self.can_stand::<S>()
            && !self.ahead.stands
            && self.agent.due.is_none()
            && self.agent.seen > 0
            && !self.reached::<S>()
    }

    /// Its agent asks what it is late for.
    pub fn inquire(&mut self) {
        let asked = |it: &Behind| (it.ggid, it.begun, it.target);
        let asked = self.behind().iter().map(asked).collect();
        self.say(FromRank::Ask(asked));
    }

    /// Its agent tells what it knows, and stops the rank if it is late.
    pub fn tell_what_it_knows<S: Mutant>(&mut self, asked: &[Asked]) {
        let mut behind = self.behind();
        // A rank that still has to carry out an earlier operation has no time.
        let stands = !behind.is_empty() && self.can_stand::<S>() && self.ahead.granted.is_empty();
        self.ahead.stands |= stands && S::STAND;
        if !stands && S::STAND && S::ALL_STAND {
            behind.iter_mut().for_each(|it| it.rank = -1);
        }
        let mut operations = vec![];
        for &(ggid, begun, target) in asked {
            let known = (begun + 1..=target).filter_map(|it| self.remembers::<S>(ggid, it));
            operations.extend(known);
        }
        self.say(FromRank::Told(MemberAnswer { behind, operations }));
    }

    fn remembers<S: Mutant>(&self, ggid: u64, number: u64) -> Option<Operation> {
        let mut places = self.ahead.members.iter();
        let &(_, teller, _) = places.find(|it| it.0 == ggid)?;
        let index = self.clocks.find(ggid as usize)?;
        let cell = self.clocks.at(index);
        let seq = cell.count.seq();
        if number > seq || teller < 0 {
            return None;
        }
        let (noted, kind) = cell.log[number as usize % cell.log.len()];
        let is_remembered =
            number + cell.log.len() as u64 > seq && (!S::OWN_NUMBER || noted == number);
        let kind = if is_remembered { kind } else { Kind::Unknown };
        Some(Operation {
            ggid,
            number,
            kind: kind as u32,
            teller,
            count: number as i32,
            size: 1,
            ..Operation::default()
        })
    }

    /// Takes the granted operations out of the orders that are on their way: they stay whatever becomes of the other orders.
    pub fn hear_what_was_given(&mut self) {
        let orders = std::mem::take(&mut self.agent.inbox);
        for order in orders {
            if let ToRank::CarryOut(operations) = order
                && !operations.is_empty()
            {
                self.ahead.given(operations);
            }
        }
    }
}

/// A stub notes the operation that it is about to count.
pub fn note<S: Mutant>(job: &Job<S>, ranks: &mut Ranks, number: usize, op: Op) {
    let Some(on) = op.on() else { return };
    let which = job.program.number_of(number, ranks[number].at);
    let kind = job.program.remembered_as(op, which);
    if kind != Kind::Unknown {
        let cell = ranks[number].clocks.of_mut(job.clocks[on]);
        let counts = cell.count.seq() + 1;
        cell.log[counts as usize % cell.log.len()] = (counts, kind);
    }
}

/// The communicator of the operation that a rank carries out, or is about to.
pub fn carries_on<S: Mutant>(job: &Job<S>, rank: &Rank) -> Option<usize> {
    let ggid = rank.ahead.granted.first()?.ggid as usize;
    job.clocks.iter().position(|clock| *clock == ggid)
}

/// Whether a rank gets on with what it carries out ahead of its application.
pub fn can_carry<S: Mutant>(job: &Job<S>, ranks: &Ranks, number: usize) -> bool {
    let rank = &ranks[number];
    let Some(on) = carries_on(job, rank) else {
        return false;
    };
    match rank.step {
        Step::Carrying => {
            let mut lacking = step::lacking(job, ranks, number, on, rank.begun[on]);
            lacking.next().is_none()
        }
        _ => rank.can_stand::<S>() || rank.is_outside_after_all(),
    }
}

/// Begins the next operation that has been granted, or finds it over.
pub fn carry<S: Mutant>(job: &Job<S>, ranks: &mut Ranks, number: usize) {
    let Some(on) = carries_on(job, &ranks[number]) else {
        return;
    };
    let rank = &mut ranks[number];
    let clock = job.clocks[on];
    if rank.step == Step::Carrying {
        let operation = rank.ahead.granted.remove(0);
        rank.ahead.kept.push(operation);
        if S::COUNT_AHEAD && S::COUNT_WHEN_OVER {
            rank.clocks.of_mut(clock).count.begin();
        }
        rank.step = rank.ahead.back.take().unwrap_or(Step::Before);
        rank.doing = Activity::Running;
        rank.ahead.stands &= !rank.ahead.granted.is_empty();
        return;
    }
    let operation = rank.ahead.granted[0];
    let counted = rank.clocks.of(clock).count.seq();
    if operation.number != counted + 1 {
        // The number differs only if the rank went on while it waited for an answer, and so came to the operation by itself.
        rank.ahead.granted.remove(0);
        return;
    }
    let come = all_come(job, ranks, on, operation);
    let rank = &mut ranks[number];
    rank.ahead.alone |= !come;
    rank.begun[on] += 1;
    rank.bound[on] = rank.begun[on];
    rank.ahead.astray |= !is_that(job, number, on, rank.begun[on], operation);
    rank.ahead.back = Some(rank.step).filter(|_| !S::STAND_OUTSIDE);
    rank.step = Step::Carrying;
    rank.doing = Activity::Running;
    if S::COUNT_AHEAD && !S::COUNT_WHEN_OVER {
        rank.clocks.of_mut(clock).count.begin();
        rank.doing = Activity::Parked;
    }
}

/// Whether every member has begun the given operation, is about to in its stub, or stands and carries it out.
fn all_come<S: Mutant>(job: &Job<S>, ranks: &Ranks, on: usize, operation: Operation) -> bool {
    let which = operation.number as u32;
    let is_that = |it: &Operation| (it.ggid, it.number) == (operation.ggid, operation.number);
    let comes = |number: &usize| {
        let rank = &ranks[*number];
        let op = job.program.ranks[*number].get(rank.at);
        let begins = rank.step != Step::Before
            && op.is_some_and(|op| op.on() == Some(on))
            && job.program.number_of(*number, rank.at) == which;
        let granted = |order: &ToRank| matches!(order, ToRank::CarryOut(operations) if operations.iter().any(is_that));
        rank.begun[on] >= which
            || begins
            || rank.ahead.granted.iter().any(is_that)
            || rank.agent.inbox.iter().any(granted)
    };
    job.program.communicators[on].members.iter().all(comes)
}

/// Whether a rank's operation with that number is the given one.
fn is_that<S: Mutant>(
    job: &Job<S>,
    number: usize,
    on: usize,
    which: u32,
    operation: Operation,
) -> bool {
    let mut ops = job.program.ranks[number].iter();
    let op = ops.by_ref().filter(|op| op.on() == Some(on));
    let kind = |op: &Op| job.program.remembered_as(*op, which) as u32;
    let op = op.skip(which as usize - 1).map(kind).next();
    op == Some(operation.kind)
        && (operation.number, operation.count) == (which.into(), which as i32)
}

/// Gives the application the operation that was carried out ahead of it, if there is one.
pub fn serve<S: Mutant>(job: &Job<S>, ranks: &mut Ranks, number: usize, op: Op) -> bool {
    let (Op::Collective { on, .. }, true) = (op, S::SERVE) else {
        return false;
    };
    let which = job.program.number_of(number, ranks[number].at);
    let rank = &mut ranks[number];
    let clock = job.clocks[on];
    let mut kept = rank.ahead.kept.iter();
    let Some(first) = kept.position(|it| it.ggid == clock as u64) else {
        return false;
    };
    let operation = rank.ahead.kept.remove(first);
    rank.ahead.astray |= !is_that(job, number, on, which, operation);
    if !S::COUNT_ONCE {
        rank.clocks.of_mut(clock).count.begin();
    }
    true
}

/// Sees whether the operation that an application has begun with its newest step is the one that it was to begin.
pub fn see_what_began<S: Mutant>(
    job: &Job<S>,
    ranks: &mut Ranks,
    number: usize,
    (at, before): &(usize, Vec<u32>),
) {
    for (on, before) in before.iter().enumerate() {
        let begun = ranks[number].begun[on];
        let is_next = || {
            let op = job.program.ranks[number][*at];
            op.on() == Some(on) && begun == job.program.number_of(number, *at)
        };
        if begun > *before && !is_next() {
            ranks[number].ahead.astray = true;
        }
    }
}
