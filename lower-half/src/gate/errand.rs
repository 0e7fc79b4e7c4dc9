//! Errands: actions that only a thread itself can carry out, done by a stopped thread for the agent.
//!
//! The kernel lets no other thread take a thread's signals, or read some of its attributes. A stopped thread blocks every signal except those of crashes, which
//! include SIGSYS. The agent sends it SIGSYS with a value that no other sender uses, and the thread runs the errand in the handler.
//!
//! Rules of this place: [`run`] is called in a signal handler on the application's stack, with its FS. Errands run there too: they make system calls directly,
//! allocate nothing and do not panic.

use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::arch::syscall::{failed, futex_wait, futex_wake, syscall4};
use crate::gate::identity;
use crate::threads::registry::Thread;

/// An errand's function: it gets the agent's argument, and its result goes back to the agent.
pub type Errand = unsafe fn(usize) -> isize;

/// The upper half of the signal's value: `"errd"`; the lower half is the errand's number.
const MAGIC: u32 = u32::from_le_bytes(*b"errd");

/// How long a stopped thread may take; it has nothing else to do.
const PATIENCE: Duration = Duration::from_secs(10);

/// The number of the errand that has not been begun; 0: none.
static OFFERED: AtomicU64 = AtomicU64::new(0);
/// The number of the latest errand that was finished.
static FINISHED: AtomicU64 = AtomicU64::new(0);
static BELL: AtomicU32 = AtomicU32::new(0);
static FUNCTION: AtomicUsize = AtomicUsize::new(0);
static ARGUMENT: AtomicUsize = AtomicUsize::new(0);
static RESULT: AtomicU64 = AtomicU64::new(0);
static NUMBER: AtomicU64 = AtomicU64::new(0);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Has a stopped thread run an errand; returns `None` if it does not answer. Only threads of the lower half call this.
///
/// # Safety
/// The thread must be stopped, and stay so; the argument must be what the errand expects.
pub unsafe fn send(thread: Thread, errand: Errand, argument: usize) -> Option<isize> {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // The signal carries the low 32 bits, which are never 0.
    let number = u64::from(NUMBER.fetch_add(1, Ordering::Relaxed) as u32 | 1 << 31);
    FUNCTION.store(errand as usize, Ordering::Relaxed);
    ARGUMENT.store(argument, Ordering::Relaxed);
    OFFERED.store(number, Ordering::Release);
    if !signal(thread, number) {
        OFFERED.store(0, Ordering::Release);
        return None;
    }
    let deadline = Instant::now() + PATIENCE;
    while FINISHED.load(Ordering::Acquire) != number {
        let late = Instant::now() >= deadline;
        // An errand that has begun is waited for: its data must stay until it ends.
        if late
            && OFFERED
                .compare_exchange(number, 0, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
        {
            return None;
        }
        let seen = BELL.load(Ordering::Acquire);
        if FINISHED.load(Ordering::Acquire) != number {
            futex_wait(&BELL, seen, 10_000_000);
        }
    }
    Some(RESULT.load(Ordering::Relaxed) as isize)
}

fn signal(thread: Thread, number: u64) -> bool {
    // struct siginfo: signal, error, code, (padding), sender's process and user, value.
    let mut info = [0u32; 32];
    info[0] = libc::SIGSYS as u32;
    info[2] = libc::SI_QUEUE as u32;
    info[4] = identity::real_pid();
    info[6] = number as u32;
    info[7] = MAGIC;
    // SAFETY: the kernel reads the 128 bytes of the structure, which lives on this stack.
    let result = unsafe {
        syscall4(
            libc::SYS_rt_tgsigqueueinfo,
            identity::real_pid() as usize,
            thread.real_tid() as usize,
            libc::SIGSYS as usize,
            info.as_ptr() as usize,
        )
    };
    !failed(result)
}

/// Runs the errand that this signal asks for; returns `false` for any other signal. Called by SIGSYS's handler.
///
/// # Safety
/// `info` must be what the kernel gave the handler, which has not returned.
pub unsafe fn run(info: *const libc::siginfo_t) -> bool {
    // SAFETY: the caller gives the kernel's structure, which is alive while the handler runs; with this code it holds the sender's value.
    let number = unsafe {
        if (*info).si_code != libc::SI_QUEUE {
            return false;
        }
        let value = (*info).si_value().sival_ptr as u64;
        if value >> 32 != u64::from(MAGIC) {
            return false;
        }
        u64::from(value as u32)
    };
    let begun = OFFERED.compare_exchange(number, 0, Ordering::AcqRel, Ordering::Acquire);
    if begun.is_ok() {
        // SAFETY: the number is that of the errand on offer, so its sender has stored a function of this type with what it expects, and waits for its end.
        let result = unsafe {
            let errand: Errand = core::mem::transmute(FUNCTION.load(Ordering::Relaxed));
            errand(ARGUMENT.load(Ordering::Relaxed))
        };
        RESULT.store(result as u64, Ordering::Relaxed);
        FINISHED.store(number, Ordering::Release);
        BELL.fetch_add(1, Ordering::Release);
        futex_wake(&BELL);
    }
    true
}
