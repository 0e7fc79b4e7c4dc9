//! The peculiarities of Open MPI.
//!
//! While it starts, it watches `munmap` by writing a jump over the first bytes of the libc's function, and over all others that free memory. A thread of the
//! lower half that is in one of them at that moment (a peer connection frees its stack) would execute half of a jump. This is switched off, together with
//! the features that need it.

use std::ffi::{c_char, c_int, c_void};
use std::time::Duration;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::{Backend, Calls, Waiting};

pub const BACKEND: Backend = Backend {
    near: true,
    environment: &[
        // Its handlers of crashes.
        ("OMPI_MCA_opal_signal", ""),
        // Its caches of registered memory, and the code that watches memory for them.
        ("OMPI_MCA_mpi_leave_pinned", "0"),
        ("OMPI_MCA_mpi_leave_pinned_pipeline", "0"),
        ("OMPI_MCA_memory", "^patcher"),
        // Data about the job comes from its launcher by messages: shared memory would lie at an address that is free in the launcher, and that is where the
        // upper half lies here.
        ("PMIX_MCA_gds", "^shmem,shmem2"),
    ],
    unless_told: &[],
    loaded: None,
    fatal: Some(fatal),
    while_it_waits: Some(while_it_waits),
    pending: None,
    alone: Some(alone),
    // pmix_client.c gives up after that long.
    answers_within: Some(Duration::from_secs(2)),
    told: Some(told),
};

// Its own `MPI_ERRORS_ARE_FATAL`; a null object means that MPI is not running.
unsafe extern "C" {
    fn ompi_mpi_errors_are_fatal_comm_handler(object: *mut Word, error: *mut i32, ...);
    fn ompi_mpi_errors_are_fatal_file_handler(object: *mut Word, error: *mut i32, ...);
    fn ompi_mpi_errors_are_fatal_win_handler(object: *mut Word, error: *mut i32, ...);
}

/// [`Backend::fatal`].
///
/// # Safety
/// `function` must be a name that ends in NUL, and `object` an object of that kind.
unsafe fn fatal(on: Option<HandleKind>, mut object: Word, mut code: i32, function: *const c_char) {
    let null = core::ptr::null_mut();
    // SAFETY: the caller gives a function's name and an object of that kind; the handlers have the types of `mpi.h`, and the places live on this stack.
    unsafe {
        match on {
            Some(HandleKind::Window) => {
                ompi_mpi_errors_are_fatal_win_handler(&mut object, &mut code, function);
            }
            Some(HandleKind::File) => {
                ompi_mpi_errors_are_fatal_file_handler(&mut object, &mut code, function);
            }
            Some(_) => ompi_mpi_errors_are_fatal_comm_handler(&mut object, &mut code, function),
            None => ompi_mpi_errors_are_fatal_comm_handler(null, null.cast(), function),
        }
    }
}

/// `int opal_progress_register_lp(opal_progress_callback_t)` of opal/runtime/opal_progress.h.
type Register = unsafe extern "C" fn(Waiting) -> c_int;

/// Implements [`Backend::while_it_waits`]: called in one of eight rounds of progress. Its libraries export the function, and its own nonblocking collectives
/// call MPI from there.
///
/// # Safety
/// MPI must be running; `function` must be one that may be called at any moment while MPI waits.
unsafe fn while_it_waits(function: Waiting) -> Calls {
    // SAFETY: the name ends in NUL, and a symbol with this name is such a function; `function` may be called where MPI waits.
    let registered = unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, c"opal_progress_register_lp".as_ptr());
        !found.is_null() && core::mem::transmute::<*mut c_void, Register>(found)(function) == 0
    };
    match registered {
        true => Calls::Always,
        false => Calls::Never,
    }
}

/// Implements [`Backend::alone`]. In a program of several threads, the thread that has waited longest makes progress for all, and the others sleep until it is
/// done. A thread behind one that was stopped in its wait would sleep for ever. In a program of one thread, each wait makes its own progress.
///
/// # Safety
/// No other thread may call MPI any more.
unsafe fn alone() {
    // SAFETY: the name ends in NUL, and the symbol is the `bool` of opal/threads/thread_usage.h, which the library's functions read before they wait.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, c"opal_uses_threads".as_ptr()).cast::<bool>();
        if !found.is_null() {
            found.write_volatile(false);
        }
    }
}

/// [`Backend::told`]. The launcher knows processes by PMIx, which goes on by threads of its own.
unsafe fn told() {
    type Finalize = unsafe extern "C" fn(*const c_void, usize) -> c_int;
    // SAFETY: looks for a library that is loaded, and in it for a name; what has this one is such a function, and takes no information.
    unsafe {
        let library = libc::dlopen(
            c"libpmix.so.2".as_ptr(),
            libc::RTLD_NOLOAD | libc::RTLD_LAZY,
        );
        if library.is_null() {
            return;
        }
        let found = libc::dlsym(library, c"PMIx_Finalize".as_ptr());
        if !found.is_null() {
            core::mem::transmute::<*mut c_void, Finalize>(found)(core::ptr::null(), 0);
        }
    }
}
