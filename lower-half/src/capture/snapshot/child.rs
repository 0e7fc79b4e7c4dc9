//! The process that holds memory as it was. Only the code here runs in it. It allocates nothing, takes no lock and touches none
//! of the descriptors that it shares with its parent, since other threads may have been at any point when it was made. It
//! competes for a processor as the application does; but it works only when a writer asks, and the writers give way to others
//! (`ground/background.rs`).

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::super::reading;
use super::shared_slots::{ASKED, DONE, FAILED, SharedSlots, Slot};
use crate::arch::syscall::{self, failed, syscall3};

/// Its out-of-memory score: if memory is short, the kernel is to end the child rather than the application.
const FIRST_TO_GO: &[u8] = b"1000";

/// Runs the child. Everything here is system calls without the C library, and memory that exists already.
///
/// # Safety
/// The caller is in a process of its own, which has one thread.
pub unsafe fn serve(room: SharedSlots, parent: u32, without: &[Range<usize>]) -> ! {
    // SAFETY: each call concerns this process alone, which the caller says has one thread; the pointers lead to constant texts, and nothing here uses the
    // memory that is unmapped.
    unsafe {
        let kill = libc::SIGKILL as usize;
        syscall3(libc::SYS_prctl, libc::PR_SET_PDEATHSIG as usize, kill, 0);
        if syscall3(libc::SYS_getppid, 0, 0, 0) as u32 != parent {
            leave();
        }
        syscall3(
            libc::SYS_prctl,
            libc::PR_SET_NAME as usize,
            c"stillpoint-copy".as_ptr() as usize,
            0,
        );
        let adjust = syscall::syscall4(
            libc::SYS_openat,
            libc::AT_FDCWD as usize,
            c"/proc/self/oom_score_adj".as_ptr() as usize,
            (libc::O_WRONLY | libc::O_CLOEXEC) as usize,
            0,
        );
        if !syscall::failed(adjust) {
            let text = FIRST_TO_GO;
            syscall3(
                libc::SYS_write,
                adjust as usize,
                text.as_ptr() as usize,
                text.len(),
            );
            syscall3(libc::SYS_close, adjust as usize, 0, 0);
        }
        syscall3(libc::SYS_prctl, libc::PR_SET_DUMPABLE as usize, 0, 0);
        for range in without {
            syscall3(libc::SYS_munmap, range.start, range.len(), 0);
        }
    }
    // SAFETY: getpid has no arguments and touches no memory.
    let own = unsafe { syscall3(libc::SYS_getpid, 0, 0, 0) } as usize;
    let head = room.head();
    head.ready.store(1, Ordering::Release);
    syscall::futex_wake_shared(&head.ready);
    loop {
        let seen = head.asked.load(Ordering::SeqCst);
        let mut found = false;
        for index in 0..room.slots {
            let slot = room.slot(index);
            if slot.state.load(Ordering::Acquire) != ASKED {
                continue;
            }
            found = true;
            slot.state.store(fill(room, index, own), Ordering::Release);
            syscall::futex_wake_shared(&slot.state);
        }
        if !found {
            syscall::futex_wait_shared(&head.asked, seen, 0);
        }
    }
}

/// Copies the memory that a slot asks for. Returns the slot's state after that.
fn fill(room: SharedSlots, index: usize, own: usize) -> u32 {
    let slot: &Slot = room.slot(index);
    let mut into = room.bytes(index);
    for number in 0..slot.stretches.load(Ordering::Relaxed) as usize {
        let stretch = room.stretch(index, number);
        let from = stretch.from.load(Ordering::Relaxed) as usize;
        let length = stretch.length.load(Ordering::Relaxed) as usize;
        if stretch.loadable.load(Ordering::Relaxed) != 0 {
            // SAFETY: the asking thread knows the memory to be there since the snapshot was taken, and asks for no more than there is room
            // for; nothing changes it here.
            unsafe { std::ptr::copy_nonoverlapping(from as *const u8, into, length) };
        } else {
            // SAFETY: the asking thread asks for no more than there is room for.
            let read = unsafe { reading::by_kernel(own, from, into, length) };
            let (at, error) = match read {
                _ if failed(read) => (from, -read as u32),
                _ => (from + read as usize, libc::EFAULT as u32),
            };
            if read != length as isize {
                slot.failed_at.store(at as u64, Ordering::Relaxed);
                slot.error.store(error, Ordering::Relaxed);
                return FAILED;
            }
        }
        into = into.wrapping_add(length);
    }
    DONE
}

fn leave() -> ! {
    loop {
        // SAFETY: the call takes a number and ends this process.
        unsafe { syscall3(libc::SYS_exit_group, 0, 0, 0) };
    }
}
