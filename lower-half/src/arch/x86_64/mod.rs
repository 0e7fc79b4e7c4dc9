//! x86-64: FS is the thread pointer of a libc, GS leads to our own record of the thread.

pub mod enter;
pub mod frame;
pub mod registers;
pub mod springboard;
pub mod syscall;
