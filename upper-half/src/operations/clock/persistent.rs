//! The clock of each persistent collective operation.
//!
//! Members make these operations in one order, but may start them in any. So an operation is known by its number among those of
//! its communicator, and has a clock of its own, which counts its starts. A rank that has been told that one is over has all members start it,
//! and no other in its place, before a still point.
//!
//! The clock of an operation that this rank has freed stays until every member is known to have started it as often: at a still
//! point all have. If none comes for long, the members ask each other when they make the next operations.

use stillpoint_clock::group::Collision;
use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::HandleKind;

use crate::ground::abi;
use crate::ground::object::Object;
use crate::objects::communicator::{self, Body, Clock, Operations, all_of};
use crate::objects::outcome::{MpiResult, class};
use crate::operations::clock::collective;

/// After that many operations made, the members ask each other which ones all have freed.
const ASK: u64 = 1024;

/// The number of a new operation, and its clock.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    pub number: u64,
    pub cell: u32,
}

/// The cell of the clock of one persistent operation on a communicator, or `None` if some members are of other worlds.
///
/// # Safety
/// Inside a stub.
unsafe fn clock_within(body: &Body, number: u64) -> Option<Result<u32, Collision>> {
    let members = body.members.as_ref()?;
    let within = body.identity.operation(number);
    // SAFETY: the caller is inside a stub.
    Some(unsafe { collective::cell_of(within, &all_of(members)) })
}

/// Gives the operation that all members are about to make on a communicator its number and its clock.
///
/// # Safety
/// Inside a stub; `on` must be a live communicator.
pub unsafe fn name(on: *mut Object) -> MpiResult<Named> {
    // SAFETY: `on` is a live communicator, by the caller's promise; its notes are changed under their lock.
    unsafe {
        let Some(body) = communicator::body(on) else {
            return Err(class::COMM);
        };
        let number = body.notes.lock().operations.next_number();
        let cell = match clock_within(body, number) {
            // With processes of other worlds there is no checkpoint.
            None => (*on).clock,
            Some(cell) => {
                let cell = cell.map_err(|_| class::INTERN)?;
                let clock = Clock { cell, freed: false };
                body.notes.lock().operations.clocks.insert(number, clock);
                cell
            }
        };
        Ok(Named { number, cell })
    }
}

/// Notes that the application has freed an operation of a communicator, or that it could not be made.
///
/// # Safety
/// Inside a stub; `on` must be a live communicator.
pub unsafe fn freed(on: *mut Object, number: u64) {
    // SAFETY: `on` is a live communicator, by the caller's promise; its notes are locked while the clock is looked up and marked.
    unsafe {
        if let Some(body) = communicator::body(on)
            && let Some(clock) = (body.notes.lock().operations.clocks).get_mut(&number)
        {
            clock.freed = true;
        }
    }
}

/// Binds everything that has begun on the operations' clocks; see `collective::bind_all`.
///
/// # Safety
/// As `collective::bind_all`.
pub unsafe fn bind_all(on: *mut Object) {
    // SAFETY: the caller is inside a stub with no lock held, and `on` is a live communicator; the notes' lock is released before anything binds.
    unsafe {
        if let Some(body) = communicator::body(on) {
            let cells: Vec<u32> = {
                let notes = body.notes.lock();
                notes.operations.clocks.values().map(|c| c.cell).collect()
            };
            for cell in cells {
                collective::bind_cell(cell);
            }
        }
    }
}

/// Retires the clocks of operations that this rank has freed: all members have come to a still point, so they are not needed any more.
///
/// # Safety
/// `on` must be a live communicator.
pub unsafe fn at_still_point(on: *mut Object) {
    // SAFETY: `on` is a live communicator, by the caller's promise.
    if let Some(body) = unsafe { communicator::body(on) } {
        let cells = body.notes.lock().operations.take(|_, freed| freed);
        cells.into_iter().for_each(collective::retire);
    }
}

/// Retires all clocks: the communicator is gone.
pub fn retire_all(operations: &mut Operations) {
    let cells = operations.take(|_, _| true);
    cells.into_iter().for_each(collective::retire);
}

/// The operations that have a clock when it is time to ask about them, in order: the same on all members. The values say whether this rank
/// has not freed it yet.
pub fn to_ask(on: &Body, number: u64) -> Option<Vec<(u64, i32)>> {
    if !number.is_multiple_of(ASK) {
        return None;
    }
    let notes = on.notes.lock();
    let before = notes.operations.clocks.range(..number);
    Some(
        before
            .map(|(number, clock)| (*number, i32::from(!clock.freed)))
            .collect(),
    )
}

/// Asks all members which operations are freed everywhere, and gives up their clocks.
///
/// # Safety
/// Inside a collective operation's call to the lower half; all members call it with the same operations.
pub unsafe fn ask(on: *mut Object, lower: &'static Dispatch, asked: &[(u64, i32)]) -> i32 {
    // SAFETY: the caller is in a call of the lower half; the predefined handles have their words, and both buffers have a number for each operation.
    unsafe {
        let int = (*abi::predefined(HandleKind::Datatype, INT)).lower;
        let max = (*abi::predefined(HandleKind::Operator, MAX)).lower;
        let mut own: Vec<i32> = asked.iter().map(|(_, alive)| *alive).collect();
        // On an intercommunicator, one round gives the values of the other group's members; after two, all members know of all.
        for _ in 0..2 {
            let mut all = vec![0i32; own.len()];
            let (from, to) = (own.as_ptr().cast(), all.as_mut_ptr().cast());
            let code = (lower.allreduce)(from, to, own.len() as i32, int, max, (*on).lower);
            if code != 0 {
                return code;
            }
            for (own, all) in own.iter_mut().zip(all) {
                *own = (*own).max(all);
            }
        }
        let gone = asked.iter().zip(own).filter(|(_, alive)| *alive == 0);
        let gone: Vec<u64> = gone.map(|((number, _), _)| *number).collect();
        if let Some(body) = communicator::body(on) {
            let cells = body
                .notes
                .lock()
                .operations
                .take(|number, _| gone.contains(&number));
            cells.into_iter().for_each(collective::retire);
        }
        0
    }
}

/// Standard-ABI values of `MPI_INT` and `MPI_MAX`.
const INT: i32 = 521;
pub const MAX: i32 = 35;
