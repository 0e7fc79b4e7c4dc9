//! Delays the start of a child process while a checkpoint is about to be tried again.
//!
//! A program that runs one child after the other is without a child only for moments. A checkpoint that only children hinder would hardly hit such a moment,
//! let alone one that all ranks of a job share. So the next child of a rank waits, for a time that covers the pause before the next try. A rank that must run
//! on before it can stop waits no longer than that.
//!
//! [`wait`] runs in the trap's handler: atomics and raw system calls only.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::arch::syscall::{syscall3, syscall4};

/// The words of a refusal for a child process.
pub const CHILD: &str = "it has a child process";
/// The words of a refusal that passes when a process ends: for example, for a pipe to a child.
pub const ENDS: &str = "let that process end";

/// Longer than the pause before the next try.
const NANOSECONDS: u64 = 1_200_000_000;
/// The time until a thread that waits can be stopped.
const PAUSE: i64 = 2_000_000;

/// For how long tries may follow each other until children no longer wait: a child that lives on must not delay all others.
const LONGEST: u64 = 20_000_000_000;

/// The time until which no child is started; 0: there is no reason to wait.
static UNTIL: AtomicU64 = AtomicU64::new(0);
/// The time since when tries have followed each other.
static SINCE: AtomicU64 = AtomicU64::new(0);

/// Called when a try has been given up for these reasons.
pub fn given_up(reasons: &str) {
    let of_children = |reason: &str| reason.contains(CHILD) || reason.contains(ENDS);
    if !reasons.contains(CHILD) || !reasons.split("; ").all(of_children) {
        return over();
    }
    let (now, until) = (now(), UNTIL.load(Ordering::Relaxed));
    if until + NANOSECONDS < now {
        SINCE.store(now, Ordering::Relaxed);
    }
    if now < SINCE.load(Ordering::Relaxed) + LONGEST {
        UNTIL.store(now + NANOSECONDS, Ordering::Relaxed);
    } else {
        // As long as further tries follow, this is not over.
        UNTIL.store(now, Ordering::Relaxed);
    }
}

/// Called when the next try begins.
pub fn tried_again() {
    let now = now();
    if now < UNTIL.load(Ordering::Relaxed) {
        UNTIL.store(now + NANOSECONDS, Ordering::Relaxed);
    }
}

/// Ends the waiting.
pub fn over() {
    UNTIL.store(0, Ordering::Relaxed);
}

/// Waits a moment, if there is a reason; returns true if the child must not be started yet.
pub fn wait() -> bool {
    let until = UNTIL.load(Ordering::Relaxed);
    if until == 0 || now() >= until {
        return false;
    }
    let pause = libc::timespec {
        tv_sec: 0,
        tv_nsec: PAUSE,
    };
    // SAFETY: the kernel reads the structure, which lives on this stack; null says that the remaining time is not asked for.
    unsafe {
        syscall4(
            libc::SYS_clock_nanosleep,
            libc::CLOCK_MONOTONIC as usize,
            0,
            &raw const pause as usize,
            0,
        )
    };
    true
}

fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let clock = libc::CLOCK_MONOTONIC as usize;
    // SAFETY: the kernel fills the structure, which lives on this stack.
    unsafe { syscall3(libc::SYS_clock_gettime, clock, &raw mut time as usize, 0) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_child_waits_for_a_try_that_children_alone_hindered() {
        given_up(
            "rank 0: descriptor 5 is a pipe whose other end process 7 (sh) has: let that process end before a checkpoint; \
             rank 0: it has a child process, 7 (sh); rank 1: it has a child process, 8 (sh)",
        );
        assert!(wait());
        tried_again();
        assert!(wait());
        given_up("rank 0: it has a child process, 7 (sh); rank 1: an open window");
        assert!(!wait());
        tried_again();
        assert!(!wait());
        given_up("it has a child process, 7 (sh)");
        SINCE.store(now() - LONGEST, Ordering::Relaxed);
        given_up("it has a child process, 7 (sh)");
        assert!(!wait(), "one child that lives on does not keep the others");
    }
}
