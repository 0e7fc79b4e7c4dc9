//! The collective clock around every collective operation (section 4 of "Collective Vector Clocks"); the
//! decisions are the clock crate's, the cells and the waiting are here.
//!
//! Nonblocking operations count as begun when they begin (section 4.3.1), but bind the other members only
//! when the application has been told that one is over. Until then its buffers are as they were, and all
//! members that have begun it begin it again after a restart. So the job need not wait for a rank that has yet to
//! begin an operation that others already have pending. In the restart, the members of a communicator agree on the
//! operations that are begun again (`Object::told`). Operations whose buffers MPI itself changes on the way
//! (`MPI_IN_PLACE`) bind at once; of blocking ones see `kept.rs`.
//!
//! Blocking operations bind when a member returns from them ([`repeatable`], and the direct way): a thread that waits inside stands still below the real
//! MPI (`inside.rs`), and begins anew after a restart. Operations that cannot be begun again bind when they are begun ([`begin`]).
//!
//! Without a checkpoint an operation costs one increment and one test more. The agent sets the flag,
//! calls `membarrier`, and only then reads the cells; so no fence is needed here.

use core::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use stillpoint_clock::rank::{self, Begin, Pending, Tell};
use stillpoint_clock::steps::Every;
use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::{AGAIN, ClockCell, Command, DriverState};

use crate::ground::arch;
use crate::ground::crossing::{self, StayKind, cross, cross_near, cross_service, gate};
use crate::ground::object::Object;
use crate::ground::shared::{concurrent, several};
use crate::operations::clock::log::Note;
use crate::operations::clock::{persistent, points};

pub use super::cells::{
    address_of, all_reached, call_clock, cell, cell_for, cell_of, index_of, map_cells, map_names,
    note_given_up, retire,
};

/// COMMIT_BEGIN: to be called before every collective operation on the group with that cell.
///
/// # Safety
/// Inside a stub, with no lock held.
#[inline(always)]
pub unsafe fn begin(index: u32) {
    // SAFETY: the caller is inside a stub, with no lock held.
    unsafe { begin_noted(index, &Note::NOTHING) };
}

/// [`begin`] of an operation that may be carried out in advance by members that come late.
///
/// # Safety
/// As [`begin`].
#[inline(always)]
unsafe fn begin_noted(index: u32, note: &Note) {
    let cell = cell(index);
    note.write(index);
    if concurrent() {
        cell.count.begin_shared();
    } else {
        cell.count.begin();
    }
    compiler_fence(Ordering::SeqCst);
    if crossing::pending() {
        // SAFETY: the caller is inside a stub with no lock held, so the thread may sleep or park.
        unsafe { begin_pending(index, note) };
    }
}

/// Counts a nonblocking operation that has begun on a communicator. Returns its numbers there and in the group's clock.
///
/// # Safety
/// Inside a stub; `communicator` must be a live communicator.
#[inline(always)]
pub unsafe fn initiated(communicator: *mut Object) -> (u32, u64) {
    // SAFETY: the communicator is alive, so its fields may be read; other threads count in `begun` by atomic operations only, while several call MPI.
    unsafe {
        if !concurrent() {
            return initiated_on(communicator, cell((*communicator).clock));
        }
        let begun = cell((*communicator).clock).count.initiate_shared();
        let number = AtomicU32::from_ptr(&raw mut (*communicator).begun);
        (number.fetch_add(1, Ordering::SeqCst) + 1, begun)
    }
}

/// Counts an operation on a clock that does not bind yet. Returns its number there.
pub fn initiated_in(index: u32) -> u64 {
    let cell = cell(index);
    if concurrent() {
        cell.count.initiate_shared()
    } else {
        cell.count.initiate::<Every>()
    }
}

/// Binds all operations that have begun on a clock, because the application is about to be told of the end of one.
///
/// # Safety
/// Inside a stub.
pub unsafe fn bind_cell(index: u32) {
    // SAFETY: the caller is inside a stub.
    unsafe { bind(cell(index)) };
}

/// [`initiated`] if only one thread calls MPI.
///
/// # Safety
/// As [`initiated`]; the communicator has a cell.
#[inline(always)]
pub unsafe fn initiated_alone(communicator: *mut Object) -> (u32, u64) {
    // SAFETY: the communicator is alive and has a cell, by the caller's promise; cells stay mapped as long as the process lives.
    unsafe { initiated_on(communicator, &*(*communicator).cell) }
}

/// [`initiated_alone`] on a communicator with that cell.
///
/// # Safety
/// `communicator` must be a live communicator, and no other thread may call MPI.
#[inline(always)]
unsafe fn initiated_on(communicator: *mut Object, cell: &ClockCell) -> (u32, u64) {
    let begun = cell.count.initiate::<Every>();
    // SAFETY: the communicator is alive, and no other thread calls MPI that could change `begun` at the same time.
    unsafe {
        (*communicator).begun += 1;
        ((*communicator).begun, begun)
    }
}

/// [`tell`] if only one thread calls MPI.
///
/// # Safety
/// As [`tell`]; the communicator has a cell.
#[inline(always)]
pub unsafe fn tell_alone(communicator: *mut Object, number: u32) {
    // SAFETY: the communicator is alive and has a cell, by the caller's promise; no other thread calls MPI that could change `told`.
    unsafe {
        if (*communicator).told < number {
            (*communicator).told = number;
        }
        let cell = &*(*communicator).cell;
        if let Some(begun) = cell.count.bind()
            && arch::gate_pending()
        {
            tell_pending(cell, begun, rank::tell::<Every>);
        }
    }
}

/// The application is about to be told that nonblocking operation `number` of a communicator is over: that operation,
/// and all that have begun before, bind from now on.
///
/// # Safety
/// Inside a stub; `communicator` must be a live communicator.
#[inline(always)]
pub unsafe fn tell(communicator: *mut Object, number: u32) {
    // SAFETY: the communicator is alive by the caller's promise; `told` is an aligned `u32` that threads change by atomic operations only while several call
    // MPI.
    unsafe {
        let told = AtomicU32::from_ptr(&raw mut (*communicator).told);
        told.fetch_max(number, Ordering::Relaxed);
        bind(cell((*communicator).clock));
    }
}

/// Binds everything that has begun on a clock.
#[inline(always)]
unsafe fn bind(cell: &ClockCell) {
    let news = if concurrent() {
        Some(cell.count.bind_shared())
    } else {
        cell.count.bind()
    };
    compiler_fence(Ordering::SeqCst);
    if let Some(begun) = news
        && crossing::pending()
    {
        // SAFETY: the caller is inside a stub.
        unsafe { tell_pending(cell, begun, rank::tell::<Every>) };
    }
}

/// Binds everything that has begun on a communicator. To be called before the communicator is given up, because a restart cannot begin anything again
/// there without the ranks that have forgotten it. The clock of the set of its members counts the giving up. That clock
/// still exists when this rank has forgotten the communicator and others have not.
///
/// # Safety
/// Inside a stub, with no lock held; `communicator` must be a live communicator.
pub unsafe fn bind_all(communicator: *mut Object) {
    // SAFETY: the caller is inside a stub with no lock held, and `communicator` is alive until the caller gives it up.
    unsafe {
        bind(cell((*communicator).clock));
        persistent::bind_all(communicator);
    }
}

/// A blocking operation on a clock is over, and a checkpoint is pending: it binds before the application hears of it. Or the operation has been taken back,
/// after the agent may have taken the thread for one that is inside: then the thread tells of the operations that bind and that the agent has left out.
///
/// The thread must not be stopped before that: its `inside` says that it is in a stub, or in a collective operation, and names no clock.
///
/// # Safety
/// Inside a stub.
#[cold]
pub unsafe fn returned(cell: &ClockCell) {
    // SAFETY: the caller is inside a stub, so the thread may sleep until the targets are known.
    unsafe { tell_pending(cell, cell.count.committed(), rank::returned::<Every>) };
}

/// Runs a blocking operation of a clock that can be begun again: it binds when it is over. `call` is run anew after a restart that finds the thread
/// inside it ([`AGAIN`]).
///
/// If several threads have called MPI, the operation binds when it is begun: Open MPI lets only one of the waiting threads make progress, and the others cannot
/// stand still inside.
///
/// # Safety
/// Inside a stub, as `StayKind::Collective`, with no lock held; `call` does nothing but call the lower half.
#[inline(always)]
pub unsafe fn repeatable(index: u32, note: &Note, mut call: impl FnMut() -> i32) -> i32 {
    // SAFETY: the caller is inside a stub with no lock held, so the thread has a record, which is always found anew through GS.
    unsafe {
        begin_noted(index, note);
        if several() {
            return call();
        }
        let cell = cell(index);
        let code = loop {
            // The record is another one after a restart.
            arch::set_inside(address_of(index));
            match call() {
                // The increment was taken back.
                AGAIN => cell.count.begin(),
                code => break code,
            }
        };
        arch::set_inside(StayKind::Collective as u32);
        if crossing::pending() {
            returned(cell);
        }
        code
    }
}

/// Waits until all members have come to an operation that none of them has begun yet: a barrier, which the clock counts as an operation of its own.
///
/// # Safety
/// As [`repeatable`]; `communicator` must be a live communicator, whose members all do the same.
#[cold]
pub unsafe fn meet(communicator: *mut Object) -> i32 {
    // SAFETY: the communicator is alive, by the caller's promise, and its word is read anew after a restart.
    unsafe {
        repeatable((*communicator).clock, &Note::NOTHING, || {
            cross_near(|d| (d.barrier)((*communicator).lower))
        })
    }
}

/// The cell and the number of the operation that the calling thread is inside, or `None` if it is in no operation that can be begun again.
///
/// # Safety
/// The thread must have a record.
pub unsafe fn under_way() -> Option<(&'static ClockCell, u64)> {
    // SAFETY: the thread has a record, by the caller's promise; `index_of` gives indices of existing cells only.
    unsafe {
        let inside = arch::inside();
        if inside <= StayKind::Collective as u32 {
            return None;
        }
        let cell = cell(index_of(inside)?);
        Some((cell, cell.count.seq()))
    }
}

/// [`tell`] while a checkpoint is pending: the others may have to come after.
///
/// # Safety
/// Inside a stub, with no lock held that the agent might wait for.
#[cold]
unsafe fn tell_pending(cell: &ClockCell, begun: u64, tell: fn(Pending, u64, u64) -> Tell) {
    let gate = gate();
    loop {
        let bell = gate.bell.load(Ordering::SeqCst);
        let pending = Pending::from_word(gate.pending.load(Ordering::SeqCst));
        let target = cell.target.load(Ordering::SeqCst);
        match tell(pending, begun, target) {
            Tell::Return => return,
            Tell::AwaitTargets => points::sleep(bell, points::SHORT),
            Tell::Raise => break,
        }
    }
    // SAFETY: the caller is inside a stub.
    unsafe { raise(cell, begun) };
}

/// Tells the other members of a target that this rank has gone past.
///
/// # Safety
/// Inside a stub.
pub unsafe fn raise(cell: &ClockCell, begun: u64) {
    if cell.target.fetch_max(begun, Ordering::SeqCst) >= begun {
        return;
    }
    let ggid = cell.ggid.load(Ordering::Relaxed);
    // SAFETY: the caller is inside a stub; the service takes numbers only.
    unsafe {
        cross_service(|services| {
            if let Some(tell) = services.raise {
                tell(ggid, begun);
            }
        });
    }
}

/// Whether every member has to finish an operation with that number in a clock.
pub fn binding(index: u32, begun: u64) -> bool {
    rank::binds(begun, cell(index).target.load(Ordering::SeqCst))
}

/// [`begin`] while a checkpoint is pending: the decision comes before the increment.
///
/// # Safety
/// Inside a stub, with no lock held.
#[cold]
unsafe fn begin_pending(index: u32, note: &Note) {
    let cell = cell(index);
    cell.count.take_back();
    // SAFETY: `begin_noted` is called only inside a stub with no lock held: so the thread has a record and may park.
    unsafe {
        let gate = gate();
        let driver = arch::is_driver();
        loop {
            let bell = gate.bell.load(Ordering::SeqCst);
            if !driver && gate.command.load(Ordering::SeqCst) == Command::CarryOut as u32 {
                // It may be this very operation that the driver thread carries out.
                points::sleep(bell, points::SHORT);
                continue;
            }
            let seq = cell.count.seq();
            let pending = Pending::from_word(gate.pending.load(Ordering::SeqCst));
            let target = cell.target.load(Ordering::SeqCst);
            let advances = gate.advances.load(Ordering::SeqCst);
            let uses_advance =
                match rank::commit_begin::<Every>(pending, all_reached(), advances, seq, target) {
                    Begin::Go { uses_advance, .. } => uses_advance,
                    Begin::AwaitTargets => {
                        points::sleep(bell, points::SHORT);
                        continue;
                    }
                    Begin::Park => {
                        if !points::at_collective(bell) {
                            continue;
                        }
                        // An advance, which the park point has used up, lets the thread past.
                        false
                    }
                };
            if driver {
                gate.driver_state
                    .store(DriverState::Running as u32, Ordering::SeqCst);
            }
            if uses_advance {
                points::use_advance();
            }
            // Operations that came between may have been carried out in advance.
            note.write(index);
            let begun = cell.count.begin_shared();
            // Another checkpoint may have been asked for since, whose agent has read the clock before.
            match points::pending() {
                Pending::No => {}
                Pending::Asked => {
                    cell.count.take_back();
                    continue;
                }
                Pending::Targeted => raise(cell, begun),
            }
            return;
        }
    }
}

/// Runs a collective operation within a stub of the caller's: no error handler. Like [`repeatable`], so `call` takes words of handles from their objects.
///
/// # Safety
/// Inside a stub, no lock held; `clock` a group's cell; `call` does nothing but call the lower half.
pub unsafe fn clocked(clock: u32, mut call: impl FnMut(&'static Dispatch) -> i32) -> i32 {
    // SAFETY: the caller is inside a stub with no lock held, and `call` only calls the lower half, as `repeatable` demands.
    unsafe {
        let before = arch::inside();
        arch::set_inside(StayKind::Collective as u32);
        let code = repeatable(clock, &Note::NOTHING, || cross(&mut call));
        arch::set_inside(before);
        code
    }
}

/// [`clocked`] for an operation that cannot be begun again: it binds when it is begun. A restart may come before that: so `work` takes words of handles from
/// their objects too.
///
/// # Safety
/// Inside a stub, no lock held; `clock` a group's cell.
pub unsafe fn clocked_once<T>(clock: u32, work: impl FnOnce() -> T) -> T {
    // SAFETY: the caller is inside a stub with no lock held, so the thread has a record and `begin` may park.
    unsafe {
        let before = arch::inside();
        arch::set_inside(StayKind::Collective as u32);
        begin(clock);
        let done = work();
        arch::set_inside(before);
        done
    }
}
