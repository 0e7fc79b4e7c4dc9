//! Thread areas of the lower half for threads of the upper half.
//!
//! The real MPI keeps thread-local state, so every thread that calls it needs a thread area (an FS) of the lower half's
//! libc. The main thread has the process's own. Every other borrows one: the keeper, a thread of the lower half, makes
//! a thread that does nothing but sleep, and lends its area. An area is given back when its borrower ends, and lent again.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use stillpoint_wrappers::gate::ThreadRecord;

use super::registry::{MOST_THREADS, Thread};
use crate::arch::registers;
use crate::arch::syscall::{futex_wait, futex_wake};

/// The areas that have been made, by number; 0: none yet.
static AREAS: [AtomicU64; MOST_THREADS] = [const { AtomicU64::new(0) }; MOST_THREADS];
/// Whether an area is lent, by number.
static LENT: [AtomicU32; MOST_THREADS] = [const { AtomicU32::new(0) }; MOST_THREADS];
/// Areas that have been made.
static MADE: AtomicU32 = AtomicU32::new(0);
/// Areas that have been asked for: the keeper makes as many.
static WANTED: AtomicU32 = AtomicU32::new(0);

/// Starts the keeper. With the lower FS.
pub fn start_keeper() -> std::io::Result<()> {
    let keep = || {
        loop {
            let wanted = WANTED.load(Ordering::Acquire);
            while MADE.load(Ordering::Acquire) < wanted.min(MOST_THREADS as u32) {
                make_one();
            }
            futex_wait(&WANTED, wanted, 0);
        }
    };
    std::thread::Builder::new()
        .name("stillpoint-keep".into())
        .stack_size(64 * 1024)
        .spawn(keep)?;
    Ok(())
}

/// Makes a thread that sleeps for ever, and notes its area.
fn make_one() {
    let sleep = || {
        let number = MADE.load(Ordering::Acquire) as usize;
        if let Some(area) = AREAS.get(number) {
            area.store(registers::fs(), Ordering::Release);
        }
        MADE.store(number as u32 + 1, Ordering::Release);
        futex_wake(&MADE);
        static NEVER: AtomicU32 = AtomicU32::new(0);
        loop {
            futex_wait(&NEVER, 0, 0);
        }
    };
    let made = MADE.load(Ordering::Acquire);
    let spawned = std::thread::Builder::new()
        .name("stillpoint-area".into())
        .stack_size(64 * 1024)
        .spawn(sleep);
    match spawned {
        Ok(_) => {
            while MADE.load(Ordering::Acquire) == made {
                futex_wait(&MADE, made, 0);
            }
        }
        // The process may have as many threads as it is allowed: it may have fewer soon.
        Err(_) => std::thread::sleep(std::time::Duration::from_millis(10)),
    }
}

/// `Services::borrow_thread_area`: any FS. Returns when the record has an area.
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
    let mut asked = false;
    loop {
        let made = MADE.load(Ordering::Acquire);
        for number in 0..(made as usize).min(MOST_THREADS) {
            let (Some(lent), Some(area)) = (LENT.get(number), AREAS.get(number)) else {
                continue;
            };
            if lent
                .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                thread
                    .notes()
                    .area
                    .store(number as u64 + 1, Ordering::Relaxed);
                // SAFETY: the calling thread's own record; the area is lent to nobody else.
                unsafe { thread.set_fs_lower(area.load(Ordering::Acquire)) };
                return;
            }
        }
        if !asked {
            asked = true;
            WANTED.fetch_add(1, Ordering::AcqRel);
            futex_wake(&WANTED);
        }
        futex_wait(&MADE, made, 0);
    }
}

/// The borrower ends.
pub fn give_back(thread: Thread) {
    let number = thread.notes().area.swap(0, Ordering::Relaxed);
    if let Some(lent) = (number as usize)
        .checked_sub(1)
        .and_then(|number| LENT.get(number))
    {
        lent.store(0, Ordering::Release);
    }
}
