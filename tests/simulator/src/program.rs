//! Programs: the operations of a job's ranks.

use stillpoint_clock::absent;
use stillpoint_clock::group::{Collision, Ggid, Groups, ascending};
use stillpoint_clock::steps::Steps;

/// The ranks that a collective operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Every member, as a barrier does.
    Synchronizing,
    /// The first member, which waits for no other, as in a broadcast.
    Rooted,
    /// Every earlier member: each hands the first one's data on to the next.
    Chained,
    /// The first member waits for every other one, and these wait for no one, as in a gather.
    Gathered,
    /// The neighbours on the ring of the members.
    Neighbours,
    /// No member: the lower half frees a communicator later.
    Alone,
}

/// How long a rank computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Until {
    /// Until a checkpoint's targets are known: operations that it begins then are not among them.
    Targeted,
    /// Longer than a checkpoint takes.
    Carried,
    /// ... unless it turns out that it has to be waited for: then it comes.
    Refused,
}

/// How much of its input a blocking collective operation leaves intact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It cannot be begun again, and its stub knows that: it binds the others when it is begun.
    Binding,
    /// It cannot be begun again (`MPI_IN_PLACE`), and its stub finds that out only when the rank is to stand still inside.
    InPlace,
    /// All of it: it can be begun again after a restart, and binds when a member returns from it.
    Repeatable,
}

/// One operation of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    Compute,
    /// Computes for as long as it takes.
    Linger {
        until: Until,
    },
    /// A blocking collective operation; `MPI_Finalize` is one too.
    Collective {
        on: usize,
        kind: Kind,
    },
    /// Begins a nonblocking collective operation, or starts a persistent one. One that `binds` cannot be begun
    /// again after a restart (`MPI_IN_PLACE`).
    Start {
        on: usize,
        binds: bool,
    },
    /// Waits for the communicator's operation with that number, counted from 1.
    Wait {
        on: usize,
        number: u32,
    },
    /// Asks whether that operation is over until it is (`MPI_Request_get_status`), which ends nothing.
    Look {
        on: usize,
        number: u32,
    },
    /// A collective operation on `on` that makes the communicator `new`; it can be begun again.
    Make {
        on: usize,
        new: usize,
    },
    /// Gives the communicator up (`MPI_Comm_free`, `MPI_Comm_disconnect`), which is an operation of the `set` of its members.
    Free {
        on: usize,
        set: usize,
    },
    /// Sends a message, which the wire takes.
    Send {
        to: usize,
    },
    /// Sends a message and waits until its receive has begun (`MPI_Ssend`).
    Deliver {
        to: usize,
    },
    /// A busy one asks again and again instead of waiting (`MPI_Test`, `MPI_Iprobe`).
    Receive {
        from: usize,
        busy: bool,
    },
}

impl Op {
    /// The communicator, or the set of members, that a collective operation is on.
    pub fn on(self) -> Option<usize> {
        match self {
            Op::Collective { on, .. } | Op::Start { on, .. } | Op::Make { on, .. } => Some(on),
            Op::Free { set, .. } => Some(set),
            _ => None,
        }
    }

    /// Whether the thread says that it is inside. One that cannot be begun again counts as begun in vain only by mistake.
    pub fn is_said(self) -> bool {
        match self {
            Op::Collective { kind, .. } => kind != Kind::Binding,
            Op::Make { .. } => true,
            _ => false,
        }
    }

    /// Whether it can be begun again after a restart that finds the rank inside.
    pub fn is_repeatable(self) -> bool {
        match self {
            Op::Collective { kind, .. } => kind == Kind::Repeatable,
            Op::Make { .. } => true,
            _ => false,
        }
    }
}

/// A communicator; an intercommunicator has the members of both groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Communicator {
    pub members: Vec<usize>,
    /// The set of its members, which has a clock and operations like a communicator.
    pub set: Option<usize>,
    /// There from the beginning, not made by an [`Op::Make`].
    pub given: bool,
    /// A rank that does not know it yet all the same.
    pub unknown_to: Option<usize>,
    /// The shapes of its operations in their order.
    pub shapes: Vec<Shape>,
    /// A group id other than the true one, for tests of colliding ids.
    pub id: Option<Ggid>,
}

impl Communicator {
    pub fn of(members: impl IntoIterator<Item = usize>, given: bool) -> Communicator {
        Communicator {
            members: members.into_iter().collect(),
            set: None,
            given,
            unknown_to: None,
            shapes: vec![],
            id: None,
        }
    }
}

/// A job's program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    pub communicators: Vec<Communicator>,
    /// The operations of each rank.
    pub ranks: Vec<Vec<Op>>,
}

impl Program {
    /// For that many ranks, on communicators that are there from the beginning.
    pub fn on(ranks: usize, groups: &[&[usize]]) -> Program {
        let given = |members: &&[usize]| Communicator::of(members.iter().copied(), true);
        Program {
            communicators: groups.iter().map(given).collect(),
            ranks: vec![vec![]; ranks],
        }
    }

    /// Adds what one rank does.
    pub fn then(mut self, rank: usize, op: Op) -> Program {
        self.ranks[rank].push(op);
        self
    }

    /// Every member does it; the shape is of the communicator's next operation.
    pub fn all(mut self, on: usize, shape: Shape, op: Op) -> Program {
        for rank in self.communicators[on].members.clone() {
            self.ranks[rank].push(op);
        }
        self.shaped(on, shape)
    }

    /// The set of a communicator's members, which exists if the communicator does.
    pub fn set_of(&mut self, on: usize) -> usize {
        let communicator = &self.communicators[on];
        if let Some(set) = communicator.set {
            return set;
        }
        let set = self.communicators.len();
        let members = Communicator::of(communicator.members.iter().copied(), communicator.given);
        self.communicators.push(members);
        self.communicators[on].set = Some(set);
        set
    }

    /// All members give a communicator up, and wait for each other or not.
    pub fn free(mut self, on: usize, shape: Shape) -> Program {
        let set = self.set_of(on);
        self.all(set, shape, Op::Free { on, set })
    }

    /// Gives the communicator's next operation that shape; the ranks' operations are added separately.
    pub fn shaped(mut self, on: usize, shape: Shape) -> Program {
        self.communicators[on].shapes.push(shape);
        self
    }

    /// A blocking collective operation that binds when it is begun.
    pub fn collective(self, on: usize, shape: Shape) -> Program {
        let kind = Kind::Binding;
        self.all(on, shape, Op::Collective { on, kind })
    }

    /// A blocking collective operation that can be begun again.
    pub fn repeatable(self, on: usize, shape: Shape) -> Program {
        let kind = Kind::Repeatable;
        self.all(on, shape, Op::Collective { on, kind })
    }

    /// The number, on its communicator, of the operation with which a rank goes on.
    pub fn number_of(&self, rank: usize, at: usize) -> u32 {
        let on = self.ranks[rank][at].on();
        let before = self.ranks[rank][..at].iter();
        1 + before.filter(|op| op.on() == on).count() as u32
    }

    /// The kind under which ranks that have begun an operation remember it.
    pub fn remembered_as(&self, op: Op, number: u32) -> absent::Kind {
        match op {
            Op::Collective { on, kind } if kind != Kind::InPlace => {
                match self.communicators[on].shapes[number as usize - 1] {
                    Shape::Rooted => absent::Kind::Scatter,
                    Shape::Chained => absent::Kind::Bcast,
                    Shape::Gathered => absent::Kind::Gather,
                    Shape::Synchronizing | Shape::Neighbours | Shape::Alone => {
                        absent::Kind::Unknown
                    }
                }
            }
            _ => absent::Kind::Unknown,
        }
    }

    /// Has communicators given up on clocks of their own, which is wrong: a mutant does it.
    pub fn free_on_own_clocks(&mut self) {
        for op in self.ranks.iter_mut().flatten() {
            if let Op::Free { on, set } = op {
                *set = *on;
            }
        }
        for on in 0..self.communicators.len() {
            if let Some(set) = self.communicators[on].set {
                let shapes = self.communicators[set].shapes.clone();
                self.communicators[on].shapes.extend(shapes);
            }
        }
    }

    /// The number that the communicator's newest operation has.
    pub fn newest(&self, on: usize) -> u32 {
        self.communicators[on].shapes.len() as u32
    }

    /// The clock of each communicator, counted from 0; every one has its own, unless ids are given that collide.
    pub fn clocks<S: Steps>(&self) -> Result<Vec<usize>, Collision> {
        let mut groups: Groups<S> = Groups::new();
        let clock = |(number, communicator): (usize, &Communicator)| {
            let members = ascending(communicator.members.iter().map(|rank| *rank as u32));
            let registered = match communicator.id {
                Some(id) => groups.register_as(id, &members, false),
                None => groups.register_communicator(number as u128, &members, false),
            };
            Ok(registered?.cell as usize)
        };
        self.communicators.iter().enumerate().map(clock).collect()
    }
}
