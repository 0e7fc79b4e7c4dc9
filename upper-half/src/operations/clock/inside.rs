//! A thread that waits for others inside a blocking collective operation that can be begun again. While a checkpoint is pending and no rank
//! needs the operation, the thread stands still below the real MPI.
//!
//! A checkpoint that lets the job carry on returns to the real MPI, which has noticed nothing. After a restart, no trace of that call is left: the real MPI's
//! function returns [`AGAIN`] instead, and the stub begins anew. All members forget the messages that they have sent each other by then, since
//! no member has returned.
//!
//! Rules: both functions run on the application's stack, in the middle of the real MPI, with any FS; nothing here allocates.

use core::sync::atomic::Ordering;

use stillpoint_clock::rank::{self, Blocked, Pending};
use stillpoint_clock::steps::Every;
use stillpoint_wrappers::gate::{AGAIN, Caller, ClockCell, DriverState};

use crate::ground::crossing::{StayKind, gate, with_upper_fs};
use crate::ground::hooks::note_call;
use crate::ground::shared::several;
use crate::ground::{abi, arch};
use crate::operations::clock::collective::{self, all_reached, raise};
use crate::operations::clock::points::{self, pending, restarts, stand_aside, stand_still};

/// The next action of the calling thread, which waits in that operation.
///
/// # Safety
/// On a thread with a record.
unsafe fn due(cell: &ClockCell, number: u64) -> Blocked {
    let pending = pending();
    if pending != Pending::Targeted {
        return Blocked::GoOn;
    }
    if several() {
        // Another thread has called MPI since, and may wait for this one to make progress.
        return Blocked::Bind {
            uses_advance: false,
        };
    }
    // Permissions to pass a park point are the driver thread's.
    // SAFETY: the thread has a record, by the caller's promise.
    let advances = match unsafe { arch::is_driver() } {
        true => gate().advances.load(Ordering::SeqCst),
        false => 0,
    };
    let target = cell.target.load(Ordering::SeqCst);
    rank::blocked::<Every>(pending, all_reached(), advances, number, target)
}

/// `UpperHooks::stands`.
///
/// # Safety
/// On a thread that the real MPI waits on.
pub unsafe extern "C" fn stands() -> u32 {
    // SAFETY: the real MPI waits on this thread, by the caller's promise; so it is in a stay of a stub, no lock is held, and it has a record.
    unsafe {
        let Some((cell, number)) = collective::under_way() else {
            return u32::from(arch::waits());
        };
        match due(cell, number) {
            Blocked::GoOn => {
                // An operation of one member alone waits for something that other ranks hold, and they may be parked: it waits as a receive does.
                let alone = cell.size.load(Ordering::Relaxed) == 1;
                if alone && pending() == Pending::Targeted && arch::is_driver() {
                    points::say(DriverState::Waiting);
                }
                0
            }
            Blocked::Stand => 1,
            Blocked::Bind { uses_advance } => {
                if uses_advance {
                    points::use_advance();
                }
                with_upper_fs(|| raise(cell, number));
                0
            }
        }
    }
}

/// `UpperHooks::stand` for a thread in an operation. Returns false if it is in none.
///
/// # Safety
/// As [`stands`], which said so; `caller` must be where the real MPI was called from.
pub unsafe fn stand(caller: &Caller) -> bool {
    // SAFETY: `caller` is where the real MPI was called from. The frames between hold nothing that is needed after a restart, so `return_to` may leave them.
    unsafe {
        let Some((cell, number)) = collective::under_way() else {
            return false;
        };
        if arch::buffers_of(caller).any(abi::is_in_place) {
            with_upper_fs(|| raise(cell, number));
            return true;
        }
        let before = restarts();
        with_upper_fs(|| {
            let let_past = wait(cell, number);
            if restarts() != before {
                // Takes the increment back, as the table's functions do that are called while a checkpoint is pending.
                cell.count.take_back();
                arch::return_to(caller, AGAIN);
            }
            if let_past {
                raise(cell, number);
            }
        });
    }
    true
}

/// `UpperHooks::look_up`. A stub that has gone the long way has noted its name itself.
///
/// # Safety
/// As [`stand`]; `caller` must point to a live `Caller`.
pub unsafe extern "C" fn look_up(caller: *const Caller) {
    // SAFETY: `caller` points to where the real MPI was called from, and stays during the call, by the caller's promise.
    if let Some(name) = unsafe { arch::name_of(&*caller) } {
        note_call(name);
    }
}

/// Stands still until the operation has to go on. Returns whether it was let past although no other rank needs it.
///
/// Meanwhile the operation is not begun: so the thread goes on when it becomes a target, and the agent sees that it has to. While it is neither counted nor
/// taken back for good, the thread says that it is in a collective operation, but names no clock: then the agent reads no less than what binds.
///
/// # Safety
/// As [`stand`], with the upper half's FS in place; `cell` and `number` must be those of the operation that the thread is inside.
unsafe fn wait(cell: &ClockCell, number: u64) -> bool {
    // SAFETY: the thread is inside a stub and has a record; after a restart, `set_inside` finds the new one through GS.
    unsafe {
        let inside = arch::inside();
        arch::set_inside(StayKind::Collective as u32);
        cell.count.take_back();
        // An agent of another checkpoint may have taken the thread for inside until now.
        collective::returned(cell);
        let let_past = until_due(cell, number);
        cell.count.begin();
        arch::set_inside(inside);
        let_past
    }
}

/// [`wait`], once the operation is taken back.
///
/// # Safety
/// As [`wait`].
unsafe fn until_due(cell: &ClockCell, number: u64) -> bool {
    // SAFETY: the thread is inside a stub as `Place::Collective`, with no lock held, so it may be stopped.
    unsafe {
        if arch::is_driver() {
            points::ADVANCED.store(false, Ordering::Relaxed);
            stand_still();
            return points::ADVANCED.swap(false, Ordering::Relaxed);
        }
        let before = restarts();
        while restarts() == before {
            let bell = gate().bell.load(Ordering::SeqCst);
            if due(cell, number) != Blocked::Stand {
                break;
            }
            stand_aside(bell);
        }
        false
    }
}
