//! Makes threads again in another launch: each returns through the signal frame that it was stopped in.
//!
//! The memory must be in place, frames included. A thread that is made again waits for [`go`], so that none runs before everything is restored.

use core::sync::atomic::{AtomicU32, Ordering};
use std::io;

use stillpoint_image::Thread as Record;
use stillpoint_image::tables::thread_flags;

use crate::arch::frame::{self, Frame};
use crate::arch::syscall::{failed, futex_wait, futex_wake, syscall3};
use crate::arch::{enter, registers};
use crate::capture::signals::Pending;
use crate::gate::signals;
use crate::restore::attributes::{self, OfThread};
use crate::restore::credentials::Change;
use crate::threads::interrupted;
use crate::threads::registry::{Thread, flag};

/// A thread that is to be made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returning {
    /// The thread's record in the image.
    pub record: Record,
    /// The thread's credentials, if they differ from this launch's.
    pub credentials: Option<Change>,
    /// The attributes that the thread had set for itself.
    pub attributes: OfThread,
    /// Signals that are pending for it alone.
    pub pending: Vec<Pending>,
    /// Timer slack of its own, in nanoseconds; 0: that of the thread that makes it.
    pub timer_slack: u64,
}

impl Returning {
    /// Fills a record that was taken for this thread.
    fn fill(&self, thread: Thread) {
        let (record, saved) = (thread.record(), &self.record);
        record
            .virtual_tid
            .store(saved.virtual_tid, Ordering::Relaxed);
        record.sent.store(saved.sent, Ordering::Relaxed);
        record.received.store(saved.received, Ordering::Relaxed);
        let flag = |flag: u32| saved.flags & flag != 0;
        record
            .driver
            .store(u32::from(flag(thread_flags::DRIVER)), Ordering::Relaxed);
        thread
            .notes()
            .clear_tid
            .store(saved.clear_child_tid, Ordering::Relaxed);
        let believes = [thread_flags::BELIEVES_SIGSYS, thread_flags::BELIEVES_STOP];
        signals::believe_again(thread, believes.map(flag));
        // SAFETY: the record has just been taken, and its thread does not run yet.
        unsafe { thread.set_fs_upper(saved.thread_pointer) };
    }
}

/// The kernel's error if a thread did not get its credentials.
static FAILED: AtomicU32 = AtomicU32::new(0);

/// Returns the kernel's error if a running thread did not get its credentials.
pub fn failed_credentials() -> Option<i32> {
    match FAILED.load(Ordering::Acquire) {
        0 => None,
        error => Some(error as i32),
    }
}

/// 1 when threads that were made again may run.
static GO: AtomicU32 = AtomicU32::new(0);
/// How many times some of them have been let run; the threads sleep on this word.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// Wakes all waiting threads, so that they check whether they may run.
fn call() {
    CALLS.fetch_add(1, Ordering::AcqRel);
    futex_wake(&CALLS);
}

/// The arguments of a new thread's first steps.
struct Beginning {
    thread: Thread,
    saved: Returning,
}

/// The size of a thread's stack for its first steps.
const STEPS_BYTES: usize = 64 * 1024;

/// Makes a thread again. It waits for [`go`], then returns through its frame.
///
/// # Errors
/// If the kernel makes no thread, or all records are taken.
///
/// # Safety
/// The upper half's memory must be in place, as it was when the thread was saved.
pub unsafe fn recreate(saved: Returning) -> io::Result<Thread> {
    let thread = Thread::take().ok_or_else(|| io::Error::from_raw_os_error(libc::EAGAIN))?;
    saved.fill(thread);
    let flags = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_SETTLS
        | libc::CLONE_CHILD_CLEARTID;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let mapping = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the kernel chooses a free address for this memory. It is never unmapped: it cannot be told when the thread has left it, and it holds one page or
    // two.
    let stack = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            STEPS_BYTES,
            protection,
            mapping,
            -1,
            0,
        )
    };
    if stack == libc::MAP_FAILED {
        thread.give_back();
        return Err(io::Error::last_os_error());
    }
    let (tls, clear_tid) = (
        saved.record.thread_pointer as usize,
        saved.record.clear_child_tid as usize,
    );
    let beginning = Box::into_raw(Box::new(Beginning { thread, saved }));
    // No signal may find the thread before it has its record: it inherits a mask that blocks all.
    let mask = crate::arch::syscall::set_mask(u64::MAX);
    // SAFETY: the stack is mapped for this thread alone, `begin` does not return, and the caller says that the upper half's memory is in place, to which the
    // other addresses lead.
    let result = unsafe {
        enter::clone_into(
            flags as usize,
            stack as usize + STEPS_BYTES,
            0,
            clear_tid,
            tls,
            begin,
            beginning as usize,
        )
    };
    crate::arch::syscall::set_mask(mask);
    if failed(result) {
        // SAFETY: no thread was made, so the box and the stack are still this function's own.
        unsafe {
            drop(Box::from_raw(beginning));
            libc::munmap(stack, STEPS_BYTES);
        }
        thread.give_back();
        return Err(io::Error::from_raw_os_error(-result as i32));
    }
    Ok(thread)
}

/// First steps, on a stack of the lower half but with the upper FS: no libc, no thread-local storage. (The memory at
/// `beginning` is never freed: freeing is the lower libc's.)
unsafe extern "C" fn begin(beginning: usize) -> ! {
    // SAFETY: `recreate` made the structure for this thread, does not touch it again, and never frees it.
    let beginning = unsafe { &*(beginning as *const Beginning) };
    let saved = &beginning.saved;
    if let Some(change) = &saved.credentials
        && let Err(error) = change.make()
    {
        FAILED.store(error as u32, Ordering::Release);
    }
    // The kernel forgets some of these at a change of users.
    attributes::give_thread(&saved.attributes);
    // SAFETY: the record was taken for this thread.
    unsafe { beginning.thread.adopt() };
    // SAFETY: the name ends in NUL and lives as long as the process; the list's head is the application's own, of this thread.
    unsafe {
        syscall3(
            libc::SYS_prctl,
            libc::PR_SET_NAME as usize,
            saved.record.name.as_ptr() as usize,
            0,
        );
        if saved.timer_slack != 0 {
            syscall3(
                libc::SYS_prctl,
                libc::PR_SET_TIMERSLACK as usize,
                saved.timer_slack as usize,
                0,
            );
        }
        if saved.record.robust_list != 0 {
            syscall3(
                libc::SYS_set_robust_list,
                saved.record.robust_list as usize,
                saved.record.robust_list_bytes as usize,
                0,
            );
        }
    }
    let notes = beginning.thread.notes();
    loop {
        // Read before the flags: a thread that lets this one run changes the flags first, then this counter.
        let calls = CALLS.load(Ordering::Acquire);
        let runs = notes.flags.load(Ordering::Acquire) & flag::RUNS != 0;
        if runs || GO.load(Ordering::Acquire) != 0 {
            break;
        }
        futex_wait(&CALLS, calls, 0);
    }
    // The signals stay pending until the frame's own mask is back.
    for pending in &saved.pending {
        pending.restore(false);
    }
    // SAFETY: the caller of `recreate` says that the upper half's memory is in place, and with it the frame that the thread was stopped in.
    interrupted::carried_on(unsafe { Frame::at(saved.record.stop_frame as usize) });
    // SAFETY: `clone` has set FS and `adopt` GS; the caller of `recreate` says that the frame is in place.
    unsafe { frame::sigreturn(saved.record.stop_frame as usize) }
}

/// Lets one of the threads that were made again run before the others.
pub fn go_alone(thread: Thread) {
    thread.notes().flags.fetch_or(flag::RUNS, Ordering::AcqRel);
    call();
}

/// Lets every thread that was made again run.
pub fn go() {
    GO.store(1, Ordering::Release);
    call();
}

/// Gives the calling (main) thread a saved thread's record, for a restart: from now on it may be called a thread of the
/// upper half, its FS still the lower one's.
///
/// # Errors
/// If all records are taken.
///
/// # Safety
/// Only on the process's main thread, once.
pub unsafe fn adopt_main(saved: &Returning) -> io::Result<Thread> {
    let thread = Thread::take().ok_or_else(|| io::Error::from_raw_os_error(libc::EAGAIN))?;
    saved.fill(thread);
    // SAFETY: the record was taken for this thread; the area in place is the process's own, and no other thread borrows it.
    unsafe {
        thread.set_fs_lower(registers::fs());
        thread.adopt();
    }
    Ok(thread)
}

/// Returns the main thread into the application, through the frame that it was stopped in.
///
/// # Safety
/// After [`adopt_main`], on the same thread, with the upper half's memory in place and the process's state restored.
pub unsafe fn resume_main(saved: &Returning) -> ! {
    // Blocks all signals until the frame's own mask is back.
    crate::arch::syscall::set_mask(u64::MAX);
    // SAFETY: the caller says that the upper half's memory is in place, and with it the frame that the thread was stopped in.
    interrupted::carried_on(unsafe { Frame::at(saved.record.stop_frame as usize) });
    // SAFETY: the kernel is told the application's own addresses; then FS becomes the upper half's, and nothing of the
    // lower half is needed on this thread any more.
    unsafe {
        syscall3(
            libc::SYS_set_tid_address,
            saved.record.clear_child_tid as usize,
            0,
            0,
        );
        if saved.record.robust_list != 0 {
            syscall3(
                libc::SYS_set_robust_list,
                saved.record.robust_list as usize,
                saved.record.robust_list_bytes as usize,
                0,
            );
        }
        registers::set_fs(saved.record.thread_pointer);
        frame::sigreturn(saved.record.stop_frame as usize)
    }
}
