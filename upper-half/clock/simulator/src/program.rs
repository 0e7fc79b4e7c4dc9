//! What the ranks of a job do.

use stillpoint_clock::group::{Collision, Ggid, Groups, ascending};
use stillpoint_clock::steps::Steps;

/// Who a collective operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Every member, as a barrier does.
    Synchronizing,
    /// The first member, which waits for nobody, as in a broadcast.
    Rooted,
    /// The neighbours on the ring of the members.
    Neighbours,
}

/// One operation of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    Compute,
    /// A blocking collective operation; freeing a communicator and `MPI_Finalize` are ones too.
    Collective {
        on: usize,
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
    /// A collective operation on `on` that makes the communicator `new`.
    Make {
        on: usize,
        new: usize,
    },
    /// Sends a message, which the wire takes.
    Send {
        to: usize,
    },
    /// Sends a message and waits until the receiver has taken it in (`MPI_Ssend`, a rendezvous).
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
    /// The communicator that a collective operation is on.
    pub fn on(self) -> Option<usize> {
        match self {
            Op::Collective { on } | Op::Start { on, .. } | Op::Make { on, .. } => Some(on),
            _ => None,
        }
    }
}

/// A communicator; an intercommunicator has the members of both groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Communicator {
    pub members: Vec<usize>,
    /// There from the beginning, not made by an [`Op::Make`].
    pub given: bool,
    /// The shapes of its operations in their order.
    pub shapes: Vec<Shape>,
    /// A group id other than the true one: so that ids collide.
    pub id: Option<Ggid>,
}

impl Communicator {
    pub fn of(members: impl IntoIterator<Item = usize>, given: bool) -> Communicator {
        Communicator {
            members: members.into_iter().collect(),
            given,
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

    /// The communicator's next operation has that shape; who does it when is said elsewhere.
    pub fn shaped(mut self, on: usize, shape: Shape) -> Program {
        self.communicators[on].shapes.push(shape);
        self
    }

    /// A blocking collective operation.
    pub fn collective(self, on: usize, shape: Shape) -> Program {
        self.all(on, shape, Op::Collective { on })
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
