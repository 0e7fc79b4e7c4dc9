//! The members of each group, and the turns that every rank takes.

/// The structure of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A plane-wave code: bands along rows, plane waves along columns, much within nodes, now and then all ranks.
    Vasp,
    /// A stencil: messages to four neighbours, now and then all ranks.
    Stencil,
    /// A spectral code: transposes along rows and columns in turn, now and then all ranks.
    Spectral,
}

/// The next thing that a rank does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A collective operation on its group of that kind.
    World,
    Row,
    Column,
    Node,
    /// A message to each neighbour, and one from each.
    Exchange,
}

use Turn::{Column, Exchange, Node, Row, World};

/// The turns that are collective operations.
pub const TURNS: [Turn; 4] = [World, Row, Column, Node];

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Vasp, Kind::Stencil, Kind::Spectral];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Vasp => "VASP-like",
            Kind::Stencil => "stencil",
            Kind::Spectral => "spectral",
        }
    }

    fn turns(self) -> &'static [Turn] {
        match self {
            Kind::Vasp => &[
                Node, Row, Node, Column, Row, Node, Row, Column, Row, Node, Column, World,
            ],
            Kind::Stencil => &[
                Exchange, Exchange, Exchange, Exchange, Exchange, Exchange, Exchange, World,
            ],
            Kind::Spectral => &[Row, Column, Row, Column, Row, Column, Row, Column, World],
        }
    }

    /// The turn that every rank takes as its `step`th.
    pub fn turn(self, step: u32) -> Turn {
        let turns = self.turns();
        turns[step as usize % turns.len()]
    }
}

/// Ranks of a node.
const NODE: u32 = 32;

/// The groups of a job: the world, rows and columns of a square, nodes.
#[derive(Clone, Debug)]
pub struct Layout {
    pub ranks: u32,
    side: u32,
    rows: u32,
}

impl Layout {
    pub fn new(ranks: u32) -> Layout {
        let side = f64::from(ranks).sqrt().ceil().max(1.0) as u32;
        Layout {
            ranks,
            side,
            rows: ranks.div_ceil(side),
        }
    }

    pub fn groups(&self) -> u32 {
        1 + self.rows + self.side + self.ranks.div_ceil(NODE)
    }

    /// The group that a rank meets in that turn; not for exchanges.
    pub fn group(&self, rank: u32, turn: Turn) -> u32 {
        match turn {
            World | Exchange => 0,
            Row => 1 + rank / self.side,
            Column => 1 + self.rows + rank % self.side,
            Node => 1 + self.rows + self.side + rank / NODE,
        }
    }

    /// The clock of the communicator on which a rank meets the others of that group.
    pub fn clock(&self, rank: u32, turn: Turn) -> u64 {
        u64::from(self.group(rank, turn)) + 1
    }

    /// The other clocks that a rank has: those of the sets of members of its communicators, and the two of
    /// `MPI_COMM_SELF`. Nothing has been counted there.
    pub fn idle_clocks(&self, rank: u32) -> impl Iterator<Item = u64> + '_ {
        let groups = u64::from(self.groups());
        let alone = 2 * groups + 2 * u64::from(rank);
        let sets = TURNS.map(|turn| self.clock(rank, turn) + groups);
        sets.into_iter().chain([alone + 1, alone + 2])
    }

    /// The clocks that more than one rank has.
    pub fn shared_clocks(&self) -> impl Iterator<Item = u64> + use<> {
        1..=2 * u64::from(self.groups())
    }

    /// The ranks of every group.
    pub fn members(&self) -> Vec<Vec<u32>> {
        let mut members = vec![vec![]; self.groups() as usize];
        for rank in 0..self.ranks {
            for turn in TURNS {
                members[self.group(rank, turn) as usize].push(rank);
            }
        }
        members
    }

    /// The neighbours on the torus of rows and columns; fewer where it has a ragged edge.
    pub fn neighbours(&self, rank: u32) -> impl Iterator<Item = u32> + use<> {
        let (row, column) = (rank / self.side, rank % self.side);
        let (side, rows, ranks) = (self.side, self.rows, self.ranks);
        [
            row * side + (column + 1) % side,
            row * side + (column + side - 1) % side,
            (row + 1) % rows * side + column,
            (row + rows - 1) % rows * side + column,
        ]
        .into_iter()
        .filter(move |other| *other < ranks && *other != rank)
    }
}
