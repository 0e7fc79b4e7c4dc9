//! What depends on the processor: thread pointers, the record behind GS, system calls.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
#[cfg(target_arch = "x86_64")]
#[cfg_attr(application = "mpich", expect(unused_imports))]
pub(crate) use x86_64::{
    asked, collective, go_to, probed, receive_begun, received, resumable_receive, send_begun, sent,
    waited,
};
