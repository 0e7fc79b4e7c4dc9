//! A rank of a large job: its cells, its place in the program, and the last word of its agent.

use stillpoint_clock::rank::{Activity, Pending, all_reached};
use stillpoint_clock::steps::Every;

use super::layout::Turn;

/// A rank's place in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramPosition {
    Computing,
    /// About to begin the collective operation of its turn.
    Before,
    Inside,
    /// Waits for its neighbours' messages.
    Exchanging,
    /// At the end of a call.
    After,
}

/// One group's clock: every operation here is blocking, so each one that has begun is committed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cell {
    pub seq: u64,
    pub target: u64,
}

/// The rank and its agent.
#[derive(Clone, Debug)]
pub struct Rank {
    pub step: u32,
    pub place: ProgramPosition,
    pub parked: bool,
    /// Let on where it was: not stopped again before its next call.
    pub let_on: bool,
    /// World, row, column, node.
    pub cells: [Cell; 4],
    pub pending: Pending,
    pub advances: u32,
    /// Exchanges begun.
    pub exchanges: u32,
    pub sent: u64,
    pub received: u64,
    pub seen: u64,
    pub said: Option<Activity>,
    /// Changes with every step, so that a plan made for an earlier one is not carried out.
    pub age: u32,
}

impl Rank {
    pub fn new() -> Rank {
        Rank {
            step: 0,
            place: ProgramPosition::Computing,
            parked: false,
            let_on: false,
            cells: [Cell::default(); 4],
            pending: Pending::No,
            advances: 0,
            exchanges: 0,
            sent: 0,
            received: 0,
            seen: 0,
            said: None,
            age: 0,
        }
    }

    pub fn reached(&self) -> bool {
        all_reached::<Every>(self.cells.iter().map(|cell| (cell.seq, cell.target)))
    }

    pub fn begun(&self) -> u64 {
        self.cells.iter().map(|cell| cell.seq).sum()
    }

    pub fn cell(&mut self, turn: Turn) -> &mut Cell {
        let index = match turn {
            Turn::World | Turn::Exchange => 0,
            Turn::Row => 1,
            Turn::Column => 2,
            Turn::Node => 3,
        };
        &mut self.cells[index]
    }

    pub fn activity(&self) -> Activity {
        match self.place {
            _ if self.parked => Activity::Parked,
            ProgramPosition::Before | ProgramPosition::Inside => Activity::InCollective,
            ProgramPosition::Exchanging => Activity::Waiting,
            ProgramPosition::Computing | ProgramPosition::After => Activity::Running,
        }
    }
}

impl Default for Rank {
    fn default() -> Rank {
        Rank::new()
    }
}
