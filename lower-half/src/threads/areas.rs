//! Thread areas of the lower half for threads of the upper half.
//!
//! The real MPI keeps thread-local state, so every thread that calls it needs a thread area (an FS) of the lower half's libc. The main thread has the process's
//! own. Every other thread borrows one: the keeper, a thread of the lower half, makes a thread that only sleeps, and lends its area. The area is given back
//! when its borrower ends, and lent again.
//!
//! The keeper starts with the application's second thread, or at a restart. Until then, the application may use system calls that the kernel permits only to
//! single-threaded processes, such as most programs that a script starts.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use std::io;
use std::thread::JoinHandle;

use stillpoint_wrappers::gate::ThreadRecord;

use super::handler_stack;
use super::lending::Lending;
use super::registry::{MOST_THREADS, Thread};
use crate::arch::registers;
use crate::arch::syscall::{futex_wait, futex_wake};
use crate::ground::thread;

static AREAS: Lending<MOST_THREADS> = Lending::new();

/// Whether there is a keeper.
static KEPT: AtomicBool = AtomicBool::new(false);

/// Starts the keeper before the calling thread of the application, which has a lower FS, makes another thread; returns `false` if that fails. Runs in the
/// trap's handler with all signals blocked, but not on the stack for handlers.
pub fn before_threads(thread: Thread) -> bool {
    unsafe extern "C" fn start(area: usize) {
        let before = registers::fs();
        // SAFETY: the area is this thread's own and not in use, since the thread has come here from the application; the code that runs next belongs to it.
        unsafe { registers::set_fs(area as u64) };
        // Whether the keeper runs is checked below.
        let _ = start_keeper();
        // SAFETY: this is the area that was in place before, and the code that runs next belongs to it.
        unsafe { registers::set_fs(before) };
    }
    let area = thread.fs_lower();
    if area != 0 && !KEPT.load(Ordering::Acquire) {
        // SAFETY: the caller is not at work on its stack for handlers, and `start` returns.
        unsafe { handler_stack::work(Some(thread), start, area as usize) };
    }
    KEPT.load(Ordering::Acquire)
}

/// Starts the keeper. With the lower FS.
pub fn start_keeper() -> io::Result<()> {
    let keep = || {
        loop {
            let wanted = AREAS.wanted.load(Ordering::Acquire);
            while AREAS.made.load(Ordering::Acquire) < wanted {
                make_one();
            }
            futex_wait(&AREAS.wanted, wanted, 0);
        }
    };
    let _: JoinHandle<()> = thread::start("stillpoint-keep", thread::LEAST, keep)?;
    KEPT.store(true, Ordering::Release);
    Ok(())
}

/// Makes a thread that sleeps for ever, and notes its area.
fn make_one() {
    let sleep = || {
        AREAS.add(registers::fs());
        futex_wake(&AREAS.made);
        static NEVER: AtomicU32 = AtomicU32::new(0);
        loop {
            futex_wait(&NEVER, 0, 0);
        }
    };
    let made = AREAS.made.load(Ordering::Acquire);
    let started: io::Result<JoinHandle<()>> =
        thread::start("stillpoint-area", thread::LEAST, sleep);
    match started {
        Ok(_) => {
            while AREAS.made.load(Ordering::Acquire) == made {
                futex_wait(&AREAS.made, made, 0);
            }
        }
        // The process has reached its limit of threads, but may have fewer soon.
        Err(_) => std::thread::sleep(std::time::Duration::from_millis(10)),
    }
}

/// Implements `Services::borrow_thread_area`, with any FS. Returns when the record has an area.
///
/// # Safety
/// `record` must be the calling thread's.
pub unsafe extern "C" fn borrow(record: *mut ThreadRecord) {
    let Some(thread) = Thread::current().filter(|thread| thread.record_pointer() == record) else {
        return;
    };
    if thread.fs_lower() != 0 {
        return;
    }
    loop {
        match AREAS.take() {
            Ok((number, area)) => {
                thread
                    .notes()
                    .area
                    .store(number as u64 + 1, Ordering::Relaxed);
                // SAFETY: the record is the calling thread's own, and the area is lent to nothing else.
                unsafe { thread.set_fs_lower(area) };
                return;
            }
            Err(made) => {
                futex_wake(&AREAS.wanted);
                futex_wait(&AREAS.made, made, 0);
            }
        }
    }
}

/// Gives the area back when the borrower ends.
pub fn give_back(thread: Thread) {
    let number = thread.notes().area.swap(0, Ordering::Relaxed);
    if let Some(number) = (number as usize).checked_sub(1) {
        AREAS.give_back(number);
    }
}
