//! Functions that libraries of the lower half register for the process's end. The application's libc ends the process and does not know these functions, so
//! they are called earlier, when their library's work is over.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::own_area::{in_own_area, next};

/// Libraries that have registered functions, by the handles that they pass to `__cxa_atexit`. If there are more, their functions are not called.
static ASKED: [AtomicPtr<c_void>; 64] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 64];

#[cfg(not(library = "openmpi"))]
unsafe extern "C" {
    fn __cxa_finalize(library: *mut c_void);
}

/// `__cxa_atexit`, which `atexit` is in a library.
///
/// # Safety
/// As the function itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cxa_atexit(
    call: *mut c_void,
    argument: *mut c_void,
    library: *mut c_void,
) -> c_int {
    type Next = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void) -> c_int;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    note(library);
    in_own_area(|| {
        let address = next(&NEXT, c"__cxa_atexit");
        if address == 0 {
            return -1;
        }
        // SAFETY: libc's function has this type, and the caller gives what it takes.
        unsafe { core::mem::transmute::<usize, Next>(address)(call, argument, library) }
    })
}

fn note(library: *mut c_void) {
    for place in &ASKED {
        let free = core::ptr::null_mut();
        let taken = place.compare_exchange(free, library, Ordering::AcqRel, Ordering::Acquire);
        if taken.is_ok() || taken == Err(library) {
            return;
        }
    }
}

/// Calls the functions that the library of `function` has registered, once.
///
/// # Safety
/// The library's work must be over; on any thread with the lower half's area.
#[cfg(not(library = "openmpi"))]
pub unsafe fn over(function: *const c_void) {
    let Some(library) = file_of(function) else {
        return;
    };
    let asked = ASKED.iter().map(|place| place.load(Ordering::Acquire));
    for handle in asked.filter(|handle| file_of(*handle) == Some(library)) {
        // SAFETY: the handle is a library's own, which it gave when it registered its functions; libc forgets what it has called.
        unsafe { __cxa_finalize(handle) };
    }
}

/// Returns the address at which the file that contains an address is mapped.
#[cfg(not(library = "openmpi"))]
fn file_of(address: *const c_void) -> Option<*mut c_void> {
    // SAFETY: the structure consists of numbers and pointers, for which zeros are valid.
    let mut about: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: dladdr only reads, and writes to the structure, which lives on this stack.
    let found = !address.is_null() && unsafe { libc::dladdr(address, &raw mut about) } != 0;
    found.then_some(about.dli_fbase)
}
