//! The moment when the application begins to use a GPU: the driver reserves the device window. From then on the application may pass device memory to an MPI
//! call, so every call checks its buffers (`upper-half/src/operations/devices`).
//!
//! Rules of this place: runs in the trap's handler.

use core::sync::atomic::Ordering;

use stillpoint_wrappers::devices::{IN_USE, WINDOW};
use stillpoint_wrappers::gate::{self, Reach, SHUT};

use crate::threads::registry;

/// Called when memory is mapped at an address: checks whether that lies in the device window.
#[inline(always)]
pub fn look(address: usize) {
    if WINDOW.contains(&address) {
        begins();
    }
}

/// Closes the shortest way down to MPI, once.
#[cold]
fn begins() {
    // SAFETY: this runs only where there is a gate, so the gate page is mapped and filled.
    let page = unsafe { gate::page() };
    let hooks = page.hooks.load(Ordering::Acquire) as *const gate::UpperHooks;
    // SAFETY: the pointer is null or that of the hooks, which the upper half never frees; before it registers them, it checks for devices itself.
    let Some(hooks) = (unsafe { hooks.as_ref() }).filter(|hooks| hooks.is_whole()) else {
        return;
    };
    if hooks.long_way.fetch_or(IN_USE, Ordering::SeqCst) & IN_USE != 0 {
        return;
    }
    page.direct.store(hooks.again, Ordering::SeqCst);
    // A thread that becomes direct at this very moment checks the bit afterwards.
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
