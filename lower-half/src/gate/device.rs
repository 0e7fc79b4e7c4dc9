//! The moment at which the application begins to use a GPU: the driver reserves the device window. From then on an MPI call may be
//! given a device's memory, and every call looks at its buffers (`upper-half/src/operations/devices`).
//!
//! Rules of this place: runs in the trap's handler.

use core::sync::atomic::Ordering;

use stillpoint_wrappers::devices::{IN_USE, WINDOW};
use stillpoint_wrappers::gate::{self, Reach, SHUT};

use crate::threads::registry;

/// Memory has been asked for at an address: whether that is in the device window.
#[inline(always)]
pub fn look(address: usize) {
    if WINDOW.contains(&address) {
        begins();
    }
}

/// Closes the shortest way down to MPI, once.
#[cold]
fn begins() {
    // SAFETY: the gate page is mapped wherever there is a gate.
    let page = unsafe { gate::page() };
    let hooks = page.hooks.load(Ordering::Acquire) as *const gate::UpperHooks;
    // SAFETY: the upper half registers a structure that it never frees. Where it has not done so yet, it looks by itself when it does.
    let Some(hooks) = (unsafe { hooks.as_ref() }).filter(|hooks| hooks.is_whole()) else {
        return;
    };
    if hooks.long_way.fetch_or(IN_USE, Ordering::SeqCst) & IN_USE != 0 {
        return;
    }
    page.direct.store(hooks.again, Ordering::SeqCst);
    // A thread that becomes direct at this very moment looks at the bit afterwards.
    for thread in registry::each() {
        let record = thread.record();
        let no_longer_direct = |reach: u32| {
            (reach & !SHUT == Reach::Direct as u32).then_some(reach | Reach::Near as u32)
        };
        let _ = record
            .reach
            .fetch_update(Ordering::SeqCst, Ordering::Relaxed, no_longer_direct);
        record.receive.store(0, Ordering::SeqCst);
    }
}
