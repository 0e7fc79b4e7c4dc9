//! The clocks of a rank, in cells that are used again.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use stillpoint_clock::absent::Kind;
use stillpoint_clock::cells::Cells;
use stillpoint_clock::count::{Count, Word};

use crate::mutant::Mutant;

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cell {
    /// The clock that the cell belongs to, or `None` if it is free again.
    pub clock: Option<usize>,
    pub count: Count<Plain>,
    pub target: u64,
    pub log: Log,
}

/// Numbers of operations and what they are remembered as, by the number's last bit (in the runtime by its last byte).
pub type Log = [(u64, Kind); 2];

/// A word of one rank, which takes its steps and its agent's one at a time. It is atomic because the checker shows states to several threads. Only the owner of
/// the cell changes it: ranks share with the state before whatever they have not changed.
#[derive(Debug, Default)]
pub struct Plain(AtomicU64);

impl Clone for Plain {
    fn clone(&self) -> Plain {
        Plain(AtomicU64::new(self.load()))
    }
}

impl PartialEq for Plain {
    fn eq(&self, other: &Plain) -> bool {
        self.load() == other.load()
    }
}

impl Eq for Plain {}

impl Hash for Plain {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.load().hash(state);
    }
}

impl Word for Plain {
    fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn store(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn add(&self, value: u64) -> u64 {
        let before = self.load();
        self.store(before + value);
        before
    }

    fn subtract(&self, value: u64) {
        self.store(self.load() - value);
    }

    fn raise_to(&self, value: u64) {
        self.store(self.load().max(value));
    }
}

/// The cells of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Clocks {
    cells: Vec<Cell>,
    table: Cells,
}

impl Clocks {
    /// All cells, free ones included.
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

    pub fn at(&self, index: usize) -> &Cell {
        &self.cells[index]
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
