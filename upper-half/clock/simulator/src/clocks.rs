//! The clocks of a rank, in cells that are used again.

use stillpoint_clock::cells::Cells;
use stillpoint_clock::rank;

use crate::mutant::Mutant;

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Whose clock it is; `None`: nobody's any more.
    pub clock: Option<usize>,
    pub seq: u64,
    pub tentative: u64,
    pub committed_before: u64,
    pub target: u64,
}

impl Cell {
    /// Up to where `seq` binds the other members.
    pub fn committed(&self) -> u64 {
        rank::committed(self.seq, self.tentative, self.committed_before)
    }

    /// An operation begins that does not bind yet.
    pub fn initiate<S: Mutant>(&mut self) {
        if S::NOTE {
            self.committed_before = self.committed();
        }
        self.tentative = self.seq + 1;
        self.seq = self.tentative;
    }

    /// What has begun binds. False if it has.
    pub fn bind(&mut self) -> bool {
        let news = self.committed() < self.seq;
        if news {
            self.committed_before = self.seq;
        }
        news
    }
}

/// The cells of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Clocks {
    cells: Vec<Cell>,
    table: Cells,
}

impl Clocks {
    /// All cells, those that are nobody's included.
    pub fn all(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter()
    }

    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Cell> {
        self.cells.iter_mut()
    }

    /// The clocks that the rank has.
    pub fn known(&self) -> impl Iterator<Item = usize> {
        self.cells.iter().filter_map(|cell| cell.clock)
    }

    /// The index of a clock's cell.
    pub fn find(&self, clock: usize) -> Option<usize> {
        self.cells.iter().position(|cell| cell.clock == Some(clock))
    }

    /// A clock that the rank has.
    pub fn of(&self, clock: usize) -> &Cell {
        let index = self.find(clock);
        &self.cells[index.expect("programs use communicators that they have")]
    }

    pub fn of_mut(&mut self, clock: usize) -> &mut Cell {
        let index = self.find(clock);
        &mut self.cells[index.expect("programs use communicators that they have")]
    }

    pub fn at_mut(&mut self, index: usize) -> &mut Cell {
        &mut self.cells[index]
    }

    /// The rank comes to know a clock, unless it does.
    pub fn learn<S: Mutant>(&mut self, clock: usize, reuse: bool) {
        if self.find(clock).is_some() {
            return;
        }
        let index = self.table.take::<S>(reuse) as usize;
        if index == self.cells.len() {
            self.cells.push(Cell::default());
        }
        self.cells[index] = Cell {
            clock: Some(clock),
            ..Cell::default()
        };
    }

    /// The communicator is gone, and its clock with it.
    pub fn retire(&mut self, clock: usize) {
        if let Some(index) = self.find(clock) {
            self.cells[index].clock = None;
            self.cells[index].target = 0;
            self.table.give_back(index as u32);
        }
    }
}
