//! The parts that depend on the processor: thread pointers, the record behind GS, system calls.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(all(target_arch = "x86_64", not(application = "mpich")))]
pub(crate) use x86_64::received;
#[cfg(all(target_arch = "x86_64", application = "mpich"))]
pub(crate) use x86_64::received_if_there;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{
    asked, collective, fails, go_to, object_of, probed, receive_begun, resumable_receive,
    send_begun, sent, steps, waited,
};
