//! The real MPI's own blocking receive, interruptible: Open MPI calls functions that were registered for it again and again while it
//! waits (`opal_progress_register_lp` of opal/runtime/opal_progress.h, one in eight rounds of progress; its libraries export it,
//! and its own nonblocking collectives call MPI from there).

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use mpi_sys as ffi;
use stillpoint_wrappers::gate::{self, UpperHooks};

/// `int opal_progress_register_lp(opal_progress_callback_t)`.
type Register = unsafe extern "C" fn(unsafe extern "C" fn() -> c_int) -> c_int;

/// `Services::receive`. MPI must be running.
///
/// # Safety
/// With the lower FS.
pub unsafe extern "C" fn receive() -> u64 {
    static FUNCTION: OnceLock<u64> = OnceLock::new();
    *FUNCTION.get_or_init(|| {
        if register() {
            ffi::MPI_Recv as *const () as u64
        } else {
            0
        }
    })
}

/// Has [`waiting`] called. Whether that is possible.
fn register() -> bool {
    // SAFETY: looks for a name; what has this one is such a function.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, c"opal_progress_register_lp".as_ptr());
        if found.is_null() {
            return false;
        }
        std::mem::transmute::<*mut libc::c_void, Register>(found)(waiting) == 0
    }
}

/// Called by the real MPI on a thread that waits, with whatever FS it has. Answers that nothing has happened.
unsafe extern "C" fn waiting() -> c_int {
    // SAFETY: the gate page is mapped; what the upper half registered there lives as long as the process.
    unsafe {
        let page = gate::page();
        if page.pending.load(Ordering::Relaxed) != 0
            && let Some(hooks) = (page.hooks.load(Ordering::Acquire) as *const UpperHooks).as_ref()
            && let Some(waiting) = hooks.waiting
        {
            waiting();
        }
    }
    0
}
