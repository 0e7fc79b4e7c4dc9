//! The library that each program of a job preloads, whether the program uses MPI or not.
//!
//! It defines no name of MPI, so it changes nothing about which library a program's call reaches. The library with the stubs stands where the program's own
//! libmpi would be (`lower-half/src/gate/stand_in.rs`), and may be loaded late or never. Two things must be done at the program's start:
//!
//! * [`room`]: static thread-local storage is given out once, in the order in which libraries are loaded.
//! * [`environment`]: the program must not see the variables that are for its loader alone.
//!
//! Every program that a job starts loads it, so it is small: without the standard library, and without other libraries.

#![cfg_attr(not(test), no_std)]

mod arch;
mod environment;
mod room;

use core::ffi::{c_char, c_int};

/// Run by the dynamic loader, before any code of the program.
unsafe extern "C" fn construct(
    _arguments: c_int,
    _vector: *const *const c_char,
    environment: *mut *mut c_char,
) {
    // SAFETY: the loader gives the environment that the program was started with; no other thread exists yet.
    unsafe { environment::leave(environment) };
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: unsafe extern "C" fn(c_int, *const *const c_char, *mut *mut c_char) = construct;

/// Nothing here panics; a library without the standard library must say what would happen.
#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
