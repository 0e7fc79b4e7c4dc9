//! The code that depends on the processor: system calls, thread pointers, signal frames, the code at fixed addresses.
//!
//! Rules of this place: everything here may run in the application's context, inside a signal handler, with either half's thread pointer in place. So it uses
//! no libc, no thread-local storage, no allocation, no panics and no `errno`.

pub mod layout;
mod x86_64;

pub(crate) use x86_64::go_where;
pub use x86_64::*;
