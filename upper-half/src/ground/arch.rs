//! What depends on the processor: thread pointers, the record behind GS, system calls.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{asked, collective, go_to, resumable_receive};
