//! The choice of a clock cell for a new clock.

use alloc::vec::Vec;

use crate::steps::Steps;

/// The cells of one rank, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cells {
    /// Cells that have ever been in use.
    used: u32,
    /// Those of them that are free again.
    free: Vec<u32>,
}

impl Cells {
    pub const fn new() -> Self {
        Cells {
            used: 0,
            free: Vec::new(),
        }
    }

    /// Cells in use, or used before.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// A cell for a new clock: one that is free again if `reuse` allows it, else the next one.
    ///
    /// While a checkpoint is pending no cell must be used again: the agent may have found it by the id of the clock
    /// before, and is about to store that one's target.
    pub fn take<S: Steps>(&mut self, reuse: bool) -> u32 {
        let free = match reuse || !S::REST {
            true => self.free.pop(),
            false => None,
        };
        let cell = free.unwrap_or(self.used);
        self.used = self.used.max(cell + 1);
        cell
    }

    /// Gives the cell of a clock back that is gone.
    pub fn give_back(&mut self, cell: u32) {
        self.free.push(cell);
    }
}
