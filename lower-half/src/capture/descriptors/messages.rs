//! POSIX message queues, which cannot be carried.

use std::os::fd::RawFd;

use stillpoint_refusals::{Refusal, refusal};

/// Returns a refusal if the descriptor is a message queue, which looks like a file, by its type and by what is read from it.
pub fn queue(number: RawFd) -> Option<Refusal> {
    const MESSAGE_QUEUES: i64 = 0x1980_0202;
    let mut system = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: fstatfs fills the structure, for which zeros are valid too.
    let kind = unsafe {
        libc::fstatfs(number, system.as_mut_ptr());
        system.assume_init().f_type
    };
    (kind == MESSAGE_QUEUES).then(|| {
        refusal!(
            MessageQueue,
            "it has a message queue open, descriptor {number}: close it before a checkpoint"
        )
    })
}
