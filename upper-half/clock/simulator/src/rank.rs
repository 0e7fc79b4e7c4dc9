//! The application's side of a rank: its driver thread's way through the stubs.

use stillpoint_clock::rank::{
    Activity, Begin, Finish, Pending, Tell, all_reached, commit_begin, commit_finish, may_park,
    tell,
};

use crate::agent::Agent;
use crate::job::Job;
use crate::mutant::Mutant;
use crate::program::{Op, Shape};
use crate::ranks::Ranks;

/// Where a rank stands in its next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// In the application, or blocked in a call that waits for a message.
    Before,
    /// The optimistic increment is done, the flag not yet tested; what was committed before.
    Incremented { before: u64 },
    /// The flag was seen and the increment taken back.
    Deciding,
    /// Parked before a collective operation and let past by an advance.
    Passing,
    /// In a collective operation.
    Inside,
    /// In a synchronous send.
    Sending,
    /// About to tell the application that a nonblocking operation is over.
    Telling { begun: u64 },
    /// At the end of a call.
    Leaving,
}

/// One group's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cell {
    pub known: bool,
    pub seq: u64,
    pub committed: u64,
    pub target: u64,
}

/// A rank with its agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rank {
    /// The next operation's number.
    pub at: usize,
    pub step: Step,
    pub cells: Vec<Cell>,
    /// By communicator: operations begun, and the newest that every member has to come to.
    pub begun: Vec<u32>,
    pub bound: Vec<u32>,
    pub pending: Pending,
    pub advances: u32,
    /// What the driver thread says of itself.
    pub doing: Activity,
    /// Let past a park point: not stopped before it has done something.
    pub let_on: bool,
    /// Past the safe state: stays parked whatever the targets.
    pub held: bool,
    /// Raises that the agent has yet to send: clock and number.
    pub raises: Vec<(usize, u64)>,
    /// Messages by the other rank: sent to it, taken in from it, given to the application.
    pub sent: Vec<u32>,
    pub pulled: Vec<u32>,
    pub taken: Vec<u32>,
    pub agent: Agent,
}

impl Rank {
    pub fn new(ranks: usize, communicators: usize, known: Vec<bool>) -> Rank {
        let cell = |known| Cell {
            known,
            ..Cell::default()
        };
        Rank {
            at: 0,
            step: Step::Before,
            cells: known.into_iter().map(cell).collect(),
            begun: vec![0; communicators],
            bound: vec![0; communicators],
            pending: Pending::No,
            advances: 0,
            doing: Activity::Running,
            let_on: false,
            held: false,
            raises: vec![],
            sent: vec![0; ranks],
            pulled: vec![0; ranks],
            taken: vec![0; ranks],
            agent: Agent::default(),
        }
    }

    pub fn reached<S: Mutant>(&self) -> bool {
        all_reached::<S>(self.cells.iter().map(|cell| (cell.seq, cell.target)))
    }

    pub fn begun(&self) -> u64 {
        self.cells.iter().map(|cell| cell.seq).sum()
    }

    pub fn counts(&self) -> (u64, u64) {
        let sum = |counts: &[u32]| counts.iter().map(|count| u64::from(*count)).sum();
        (sum(&self.sent), sum(&self.pulled))
    }

    /// What the agent makes of the driver's state.
    pub fn activity(&self) -> Activity {
        let collective = matches!(
            self.step,
            Step::Incremented { .. } | Step::Deciding | Step::Passing | Step::Inside
        );
        match self.doing {
            Activity::Running if collective => Activity::InCollective,
            doing => doing,
        }
    }

    /// Whether the stop signal would park it; `busy` while it has something left to do.
    pub fn can_stop<S: Mutant>(&self, busy: bool) -> bool {
        self.step == Step::Before
            && self.doing == Activity::Running
            && !(self.let_on && busy)
            && may_park(self.pending, self.reached::<S>(), self.advances)
    }

    /// Whether a parked rank has to go on.
    pub fn can_wake<S: Mutant>(&self) -> bool {
        self.doing == Activity::Parked && !self.held && (!self.reached::<S>() || self.advances > 0)
    }

    /// A parked rank goes on, because a target is ahead or because it is let past.
    pub fn wake<S: Mutant>(&mut self) {
        let advanced = self.reached::<S>();
        self.advances -= u32::from(advanced);
        self.doing = Activity::Running;
        match self.step {
            Step::Leaving => self.next(),
            Step::Deciding if advanced => self.step = Step::Passing,
            _ => {}
        }
        self.let_on = advanced;
    }

    /// The checkpoint is over.
    pub fn release(&mut self) {
        self.pending = Pending::No;
        self.advances = 0;
        self.held = false;
        if self.doing == Activity::Parked && self.step == Step::Leaving {
            self.next();
        }
        self.doing = Activity::Running;
    }

    fn next(&mut self) {
        self.at += 1;
        self.step = Step::Before;
        self.let_on = false;
    }

    /// The call has done what it is for.
    fn leave(&mut self) {
        self.doing = Activity::Running;
        match self.pending {
            Pending::No => self.next(),
            _ => self.step = Step::Leaving,
        }
    }

    /// The park point at the end of a call.
    fn finish<S: Mutant>(&mut self) {
        match commit_finish(self.pending, self.reached::<S>(), self.advances) {
            Finish::Park => self.doing = Activity::Parked,
            Finish::Return { uses_advance } => {
                self.advances -= u32::from(uses_advance);
                self.next();
                self.let_on = uses_advance;
            }
        }
    }

    /// What a call comes to that has to wait for others.
    fn when_blocked<S: Mutant>(&self, busy: bool) -> Activity {
        match self.pending {
            Pending::Targeted if self.reached::<S>() => Activity::Parked,
            Pending::No => self.doing,
            _ if busy => self.doing,
            _ => Activity::Waiting,
        }
    }

    fn would_block<S: Mutant>(&self, busy: bool) -> bool {
        self.when_blocked::<S>(busy) != self.doing
    }

    fn blocked<S: Mutant>(&mut self, busy: bool) {
        self.doing = self.when_blocked::<S>(busy);
    }

    /// The increment of a collective operation that binds, before the flag is tested.
    fn increment(&mut self, clock: usize) {
        let cell = &mut self.cells[clock];
        let before = cell.committed;
        cell.seq += 1;
        cell.committed = cell.seq;
        self.step = Step::Incremented { before };
    }

    fn flag_is_seen(&mut self, clock: usize, before: u64) {
        let cell = &mut self.cells[clock];
        cell.seq -= 1;
        cell.committed = before;
        self.step = Step::Deciding;
    }

    fn decide<S: Mutant>(&mut self, clock: usize, op: Op) {
        let Cell { seq, target, .. } = self.cells[clock];
        match commit_begin::<S>(
            self.pending,
            self.reached::<S>(),
            self.advances,
            seq,
            target,
        ) {
            Begin::AwaitTargets => {}
            Begin::Park => self.doing = Activity::Parked,
            Begin::Go {
                raise,
                uses_advance,
            } => {
                self.doing = Activity::Running;
                self.advances -= u32::from(uses_advance);
                self.go(clock, op, raise);
            }
        }
    }

    fn go(&mut self, clock: usize, op: Op, raise: bool) {
        let cell = &mut self.cells[clock];
        cell.seq += 1;
        cell.committed = cell.seq;
        if raise {
            let begun = cell.seq;
            self.raise(clock, begun);
        }
        self.enter(op);
    }

    fn raise(&mut self, clock: usize, begun: u64) {
        let cell = &mut self.cells[clock];
        if cell.target < begun {
            cell.target = begun;
            self.raises.push((clock, begun));
        }
    }

    /// The operation begins, and binds.
    fn enter(&mut self, op: Op) {
        if let Some(on) = op.on() {
            self.begun[on] += 1;
            self.bound[on] = self.begun[on];
        }
        match op {
            Op::Start { .. } => self.leave(),
            _ => self.step = Step::Inside,
        }
    }

    /// A nonblocking operation is over, and the application is about to be told.
    fn tell<S: Mutant>(&mut self, on: usize, number: u32, clock: usize) {
        self.doing = Activity::Running;
        self.bound[on] = number.max(self.bound[on]);
        let cell = &mut self.cells[clock];
        if !S::TELL || cell.committed >= cell.seq {
            return self.leave();
        }
        cell.committed = cell.seq;
        match self.pending {
            Pending::No => self.leave(),
            _ => self.step = Step::Telling { begun: cell.seq },
        }
    }

    fn telling<S: Mutant>(&mut self, clock: usize, begun: u64) {
        match tell::<S>(self.pending, begun, self.cells[clock].target) {
            Tell::AwaitTargets => return,
            Tell::Raise => self.raise(clock, begun),
            Tell::Return => {}
        }
        self.leave();
    }
}

/// What the rank is to do next, unless it is parked.
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
    match (rank.step, op) {
        (Step::Before, Op::Receive { from, busy }) => {
            rank.taken[from] < ranks[from].sent[number] || rank.would_block::<S>(busy)
        }
        (Step::Before, Op::Wait { on, number: which }) => {
            is_complete(job, ranks, number, on, which) || rank.would_block::<S>(false)
        }
        (Step::Sending, Op::Deliver { to }) => ranks[to].pulled[number] >= rank.sent[to],
        (Step::Deciding, _) => !S::AWAIT_TARGETS || rank.pending != Pending::Asked,
        (Step::Telling { .. }, _) => !S::AWAIT_TARGETS || rank.pending != Pending::Asked,
        (Step::Inside, _) => op
            .on()
            .is_some_and(|on| is_complete(job, ranks, number, on, rank.begun[on])),
        _ => true,
    }
}

/// The rank's next step.
pub fn step<S: Mutant>(job: &Job<S>, ranks: &mut Ranks, number: usize) {
    let Some(op) = next_op(job, ranks, number) else {
        return;
    };
    let clock = op.on().map_or(0, |on| job.clocks[on]);
    match (ranks[number].step, op) {
        (Step::Leaving, _) => ranks[number].finish::<S>(),
        (Step::Before, Op::Compute) => ranks[number].next(),
        (Step::Before, Op::Send { to }) => {
            ranks[number].sent[to] += 1;
            ranks[number].leave();
        }
        (Step::Before, Op::Deliver { to }) => {
            ranks[number].sent[to] += 1;
            ranks[number].step = Step::Sending;
        }
        (Step::Sending, Op::Deliver { .. }) => ranks[number].leave(),
        (Step::Before, Op::Receive { from, busy }) => receive::<S>(ranks, number, from, busy),
        (Step::Before, Op::Wait { on, number: which }) => {
            if is_complete(job, ranks, number, on, which) {
                ranks[number].tell::<S>(on, which, job.clocks[on]);
            } else {
                ranks[number].blocked::<S>(false);
            }
        }
        (Step::Telling { begun }, Op::Wait { on, .. }) => {
            ranks[number].telling::<S>(job.clocks[on], begun);
        }
        (Step::Before, Op::Start { on, binds: false }) => {
            ranks[number].cells[clock].seq += 1;
            ranks[number].begun[on] += 1;
            ranks[number].leave();
        }
        (Step::Before, Op::Collective { .. } | Op::Start { .. } | Op::Make { .. }) => {
            ranks[number].increment(clock);
        }
        (Step::Incremented { before }, _) => {
            let rank = &mut ranks[number];
            if rank.pending == Pending::No || !S::TAKE_BACK {
                rank.enter(op);
            } else {
                rank.flag_is_seen(clock, before);
            }
        }
        (Step::Deciding, _) => ranks[number].decide::<S>(clock, op),
        (Step::Passing, _) => {
            let raise = S::RAISE && ranks[number].pending == Pending::Targeted;
            ranks[number].go(clock, op, raise);
        }
        (Step::Inside, _) => inside(job, ranks, number, op),
        (step, op) => unreachable!("{step:?} in {op:?}"),
    }
}

fn receive<S: Mutant>(ranks: &mut Ranks, number: usize, from: usize, busy: bool) {
    let there = ranks[from].sent[number];
    let rank = &mut ranks[number];
    if rank.taken[from] < there {
        rank.taken[from] += 1;
        rank.pulled[from] = rank.pulled[from].max(rank.taken[from]);
        rank.leave();
    } else {
        rank.blocked::<S>(busy);
    }
}

/// In a collective operation, and those have come whom it waits for.
fn inside<S: Mutant>(job: &Job<S>, ranks: &mut Ranks, number: usize, op: Op) {
    if let Op::Make { new, .. } = op
        && job.program.communicators[new].members.contains(&number)
    {
        ranks[number].cells[job.clocks[new]].known = true;
    }
    ranks[number].leave();
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
    let shape = communicator.shapes[which as usize - 1];
    let count = members.len();
    let own = members.iter().position(|member| *member == number);
    let own = own.unwrap_or(0);
    let waits_for = move |place: usize| match shape {
        Shape::Synchronizing => true,
        Shape::Rooted => place == 0 && own != 0,
        Shape::Neighbours => place == (own + 1) % count || own == (place + 1) % count,
    };
    (0..count)
        .filter(move |place| waits_for(*place))
        .map(|place| members[place])
        .filter(move |member| ranks[*member].begun[on] < which)
}

/// Whether a message is on the wire for a rank that pulls.
pub fn can_pull<S: Mutant>(ranks: &Ranks, number: usize) -> bool {
    S::PULL
        && matches!(ranks[number].doing, Activity::Parked | Activity::Waiting)
        && (0..ranks.len()).any(|from| ranks[from].sent[number] > ranks[number].pulled[from])
}

/// What is on the wire for a rank comes in.
pub fn pull(ranks: &mut Ranks, number: usize) {
    for from in 0..ranks.len() {
        ranks[number].pulled[from] = ranks[from].sent[number];
    }
}
