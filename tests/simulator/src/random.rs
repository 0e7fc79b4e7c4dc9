//! Correct programs, and interleavings, from a seed.
//!
//! A program is made as a sequence of happenings that is a correct execution as it stands: no rank waits for
//! a later happening. Each rank gets its part of it. So the program cannot deadlock, however it is
//! interleaved.

use crate::program::{Communicator, Kind, Op, Program, Shape, Until};

/// Numbers that follow from a seed (SplitMix64, Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.draw() % end as u64) as usize
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }
}

/// Two communicators with the same members, in different orders.
const SIMILAR: [usize; 2] = [1, 4];

/// An outstanding operation: due at that happening, for that rank.
struct Later {
    due: usize,
    rank: usize,
    op: Op,
}

/// A program under construction.
struct Maker {
    numbers: Numbers,
    program: Program,
    later: Vec<Later>,
    happening: usize,
    /// Communicators that have not been given up.
    live: Vec<usize>,
    style: Style,
}

/// The ingredients of a program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// Nonblocking operations are left out.
    pub blocking: bool,
    /// Members come late to operations that others have returned from.
    pub late: bool,
}

/// A correct program of `happenings` happenings on `ranks` ranks.
pub fn program(numbers: &mut Numbers, ranks: usize, happenings: usize, style: Style) -> Program {
    let mut maker = Maker {
        numbers: Numbers(numbers.draw()),
        program: Program::on(ranks, &[]),
        later: vec![],
        happening: 0,
        live: vec![],
        style,
    };
    maker.make_communicators(ranks);
    maker.live = (0..maker.program.communicators.len()).collect();
    for happening in 0..happenings {
        maker.happening = happening;
        maker.what_is_due(happening);
        maker.happens(ranks);
    }
    maker.what_is_due(usize::MAX);
    // MPI_Finalize.
    maker.collective(0, Shape::Synchronizing);
    maker.program
}

impl Maker {
    /// The world, three groups, and one that is similar to an earlier one.
    fn make_communicators(&mut self, ranks: usize) {
        let mut add = |members: Vec<usize>| {
            let communicators = &mut self.program.communicators;
            communicators.push(Communicator::of(members, true));
        };
        add((0..ranks).collect());
        let mut groups = vec![];
        for _ in 0..3 {
            let bits = self.numbers.draw();
            let members: Vec<usize> = (0..ranks).filter(|rank| bits >> rank & 1 == 1).collect();
            groups.push(match members.is_empty() {
                true => vec![self.numbers.below(ranks)],
                false => members,
            });
        }
        let mut similar = groups[0].clone();
        similar.reverse();
        groups.into_iter().for_each(&mut add);
        add(similar);
    }

    fn what_is_due(&mut self, now: usize) {
        let (due, later) = std::mem::take(&mut self.later)
            .into_iter()
            .partition(|later| later.due <= now);
        self.later = later;
        let due: Vec<Later> = due;
        for Later { rank, op, .. } in due {
            self.program.ranks[rank].push(op);
        }
    }

    fn happens(&mut self, ranks: usize) {
        let on = self.live[self.numbers.below(self.live.len())];
        if self.style.late && self.numbers.one_in(2) {
            return self.late(on, ranks);
        }
        let shape = match self.numbers.below(4) {
            0 => Shape::Rooted,
            1 => Shape::Neighbours,
            _ => Shape::Synchronizing,
        };
        match self.numbers.below(15) {
            0..4 => self.collective(on, shape),
            4..6 | 11 if self.style.blocking => self.collective(on, shape),
            4..6 => self.nonblocking(on, shape),
            6..9 => self.message(ranks),
            9 => self.rendezvous(ranks),
            10 => self.new_communicator(on),
            11 => self.crossing(shape),
            12..14 => self.give_up(on),
            _ => {
                let rank = self.numbers.below(ranks);
                self.program.ranks[rank].push(Op::Compute);
            }
        }
    }

    fn all(&mut self, on: usize, shape: Shape, op: Op) {
        self.program = std::mem::take(&mut self.program).all(on, shape, op);
    }

    /// Has some ranks compute for longer than a checkpoint takes, if no rank has to wait for them, before an operation that lets others return.
    fn late(&mut self, on: usize, ranks: usize) {
        for rank in 0..ranks {
            if self.numbers.one_in(3) {
                let until = Until::Refused;
                self.program.ranks[rank].push(Op::Linger { until });
            }
        }
        let shape = match self.numbers.below(4) {
            0 => Shape::Rooted,
            1 => Shape::Gathered,
            _ => Shape::Chained,
        };
        self.collective(on, shape);
    }

    fn collective(&mut self, on: usize, shape: Shape) {
        let kind = match self.numbers.below(8) {
            0 | 1 => Kind::Binding,
            2 => Kind::InPlace,
            _ => Kind::Repeatable,
        };
        self.all(on, shape, Op::Collective { on, kind });
    }

    /// Each member waits for it when it likes.
    fn nonblocking(&mut self, on: usize, shape: Shape) {
        let binds = self.numbers.one_in(4);
        self.all(on, shape, Op::Start { on, binds });
        let number = self.program.newest(on);
        for rank in self.program.communicators[on].members.clone() {
            let due = self.happening + 1 + self.numbers.below(5);
            let op = Op::Wait { on, number };
            self.later.push(Later { due, rank, op });
        }
    }

    /// Two nonblocking operations on similar communicators, which the members may begin in either order.
    fn crossing(&mut self, shape: Shape) {
        let similar = SIMILAR;
        let members = self.program.communicators[1].members.clone();
        for on in similar {
            self.program = std::mem::take(&mut self.program).shaped(on, shape);
        }
        for rank in members {
            let first = self.numbers.below(2);
            for on in [similar[first], similar[1 - first]] {
                self.program.ranks[rank].push(Op::Start { on, binds: false });
                let number = self.program.newest(on);
                let due = self.happening + 1 + self.numbers.below(5);
                let op = Op::Wait { on, number };
                self.later.push(Later { due, rank, op });
            }
        }
    }

    /// Received at once or after other things, collective operations among them. Messages between two ranks are
    /// received in their order.
    fn message(&mut self, ranks: usize) {
        let (from, to) = (self.numbers.below(ranks), self.numbers.below(ranks));
        self.program.ranks[from].push(Op::Send { to });
        let due = self.happening + self.numbers.below(5);
        let busy = self.numbers.one_in(4);
        let op = Op::Receive { from, busy };
        self.later.push(Later { due, rank: to, op });
    }

    fn rendezvous(&mut self, ranks: usize) {
        let (from, to) = (self.numbers.below(ranks), self.numbers.below(ranks));
        // Messages that the receiver still has to receive come first.
        let earlier = |later: &Later| {
            later.rank == to
                && matches!(later.op, Op::Receive { from: source, .. } if source == from)
        };
        if from == to || self.later.iter().any(earlier) {
            return;
        }
        self.program.ranks[from].push(Op::Deliver { to });
        self.program.ranks[to].push(Op::Receive { from, busy: false });
    }

    fn new_communicator(&mut self, on: usize) {
        let bits = self.numbers.draw();
        let parent = &self.program.communicators[on].members;
        let members: Vec<usize> = parent
            .iter()
            .copied()
            .filter(|rank| bits >> rank & 1 == 1)
            .collect();
        if members.is_empty() {
            return;
        }
        let new = self.program.communicators.len();
        let communicators = &mut self.program.communicators;
        communicators.push(Communicator::of(members, false));
        // The set of its members has a clock as soon as the communicator is made.
        self.program.set_of(new);
        self.all(on, Shape::Synchronizing, Op::Make { on, new });
        self.live.push(new);
    }

    /// With operations pending on it or not; the world and those that are used later stay.
    fn give_up(&mut self, on: usize) {
        if on == 0 || SIMILAR.contains(&on) {
            return;
        }
        let shape = match self.numbers.one_in(2) {
            true => Shape::Alone,
            false => Shape::Synchronizing,
        };
        self.program = std::mem::take(&mut self.program).free(on, shape);
        self.live.retain(|live| *live != on);
    }
}
