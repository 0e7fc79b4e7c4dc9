//! The park point within a call that waits for a message.

use core::sync::atomic::Ordering;

use stillpoint_clock::rank::Pending;
use stillpoint_wrappers::gate::{Command, DriverState};

use crate::ground::arch;
use crate::ground::crossing::gate;
use crate::operations::ahead;
use crate::operations::clock::collective::all_reached;
use crate::operations::clock::points::{pending, say, sleep, stand_aside, stand_still};
use crate::operations::messages::drain;

/// Nanoseconds that the driver thread sleeps between two looks for messages of others.
const LOOK: u64 = 50_000;

/// The park point within a call that waits for a message: called whenever an interruptible function has
/// given up. Returns for the caller to look at its own operation again.
///
/// # Safety
/// As [`stand_still`].
#[cold]
pub unsafe fn blocked() {
    let gate = gate();
    // SAFETY: the caller is inside a stub with no lock held and nothing of the lower half on its stack, so the thread may stand still.
    unsafe {
        let bell = gate.bell.load(Ordering::SeqCst);
        if !arch::is_driver() {
            if pending() == Pending::Targeted && all_reached() {
                stand_aside(bell);
            } else {
                arch::yield_processor();
            }
            return;
        }
        let pending = pending();
        if pending == Pending::Targeted && all_reached() {
            // An advance, if there is one, is used up inside.
            stand_still();
        } else if pending != Pending::No {
            while gate.command.load(Ordering::SeqCst) == Command::CarryOut as u32 {
                let bell = gate.bell.load(Ordering::SeqCst);
                ahead::held();
                if !drain::pull() {
                    sleep(bell, LOOK);
                }
            }
            say(DriverState::Waiting);
            if !drain::pull() {
                sleep(bell, LOOK);
            }
        }
    }
}

/// Says that a call which was [`blocked`] has its message.
#[cold]
pub fn unblocked() {
    // SAFETY: the thread is inside a stub.
    if unsafe { arch::is_driver() } {
        say(DriverState::Running);
    }
}
