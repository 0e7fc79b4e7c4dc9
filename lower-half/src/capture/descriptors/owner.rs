//! The process that the kernel signals when data arrives (`F_SETOWN`), and the signal (`F_SETSIG`).

use std::os::fd::RawFd;

use stillpoint_image::descriptors::Owner;
use stillpoint_refusals::{Refusal, refusal};

use super::OpenDescriptor;
use crate::gate::naming::F_GETOWN_EX;
use crate::threads;

/// `struct f_owner_ex`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawOwner {
    pub kind: i32,
    pub id: i32,
}

pub const THREAD: i32 = 0;
pub const PROCESS: i32 = 1;
pub const GROUP: i32 = 2;

/// Returns owner and signal of a descriptor, or why they cannot be carried.
pub fn of(open: &OpenDescriptor) -> Result<(Option<Owner>, i32), Refusal> {
    if open.flags & libc::O_PATH != 0 {
        return Ok((None, 0));
    }
    let signal = signal(open.number);
    let Some(raw) = raw(open.number) else {
        return Ok((None, signal));
    };
    if open.file_type() == libc::S_IFDIR {
        return Err(refusal!(
            DirectoryNotices,
            "the directory {}, which the kernel reports changes of (F_NOTIFY): close it before a checkpoint",
            open.link
        ));
    }
    let own = std::process::id() as i32;
    let owner = match raw {
        RawOwner { kind: PROCESS, id } if id == own => Owner::Process,
        RawOwner { kind: GROUP, id } if id == own => Owner::Group,
        RawOwner { kind: THREAD, id } => {
            let thread = threads::list()
                .into_iter()
                .find(|thread| thread.real_tid() == id as u32);
            match thread {
                Some(thread) => Owner::Thread {
                    virtual_tid: thread.virtual_tid(),
                },
                None => return Err(elsewhere(open, id)),
            }
        }
        RawOwner { id, .. } => return Err(elsewhere(open, id)),
    };
    Ok((Some(owner), signal))
}

fn elsewhere(open: &OpenDescriptor, id: i32) -> Refusal {
    refusal!(
        SignalOwner,
        "{}, about which the kernel signals {id} (F_SETOWN), which is not part of the program: take that back before a checkpoint",
        open.link
    )
}

/// Returns the process or thread that the kernel signals, if there is one.
pub fn raw(number: RawFd) -> Option<RawOwner> {
    let mut owner = RawOwner::default();
    // SAFETY: the kernel writes the structure, which lives on this stack.
    let result = unsafe { libc::fcntl(number, F_GETOWN_EX, &raw mut owner) };
    (result == 0 && owner.id != 0).then_some(owner)
}

/// Returns the signal; 0 stands for the usual one.
pub fn signal(number: RawFd) -> i32 {
    const F_GETSIG: libc::c_int = 11;
    // SAFETY: F_GETSIG has no argument.
    unsafe { libc::fcntl(number, F_GETSIG) }.max(0)
}

/// Sets the signal; returns whether that succeeded.
pub fn set_signal(number: RawFd, signal: i32) -> bool {
    const F_SETSIG: libc::c_int = 10;
    // SAFETY: F_SETSIG takes a number.
    unsafe { libc::fcntl(number, F_SETSIG, signal) == 0 }
}
