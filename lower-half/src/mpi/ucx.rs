//! UCX, which both families of libraries may use: it is told not to complain of what a suspend leaves open.
//!
//! A collective operation that only some ranks have begun has sent messages, and nothing receives them: all its ranks begin it again after a restart. UCX warns
//! of each such message, and of each receive, when it ends.

use std::ffi::{c_char, c_void};

/// `ucs_status_t ucs_global_opts_set_value(const char *name, const char *value)` of ucs/config/global_opts.h.
type Set = unsafe extern "C" fn(*const c_char, *const c_char) -> i8;

/// Has UCX report errors only, if this process has loaded it.
pub fn only_errors() {
    // Open MPI's parts keep their libraries' symbols to themselves, so that these are found in the library alone.
    // SAFETY: looks for a library that is loaded, and in it for a name; what has this one is such a function, and both texts end in NUL.
    unsafe {
        let library = libc::dlopen(c"libucs.so.0".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        if library.is_null() {
            return;
        }
        let found = libc::dlsym(library, c"ucs_global_opts_set_value".as_ptr());
        if !found.is_null() {
            let set = core::mem::transmute::<*mut c_void, Set>(found);
            set(c"LOG_LEVEL".as_ptr(), c"error".as_ptr());
        }
    }
}
