//! Direct system calls: the result is the kernel's own, `-errno` on failure.

use core::arch::asm;

/// Makes a system call with six arguments.
///
/// # Safety
/// The call must be sound with these arguments, as the kernel defines it.
#[inline(always)]
pub unsafe fn syscall6(number: i64, a: [usize; 6]) -> isize {
    let result;
    // SAFETY: the caller vouches for the call with these arguments; the kernel changes only rax, rcx, r11 and the memory that the arguments lead to.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a[0],
            in("rsi") a[1],
            in("rdx") a[2],
            in("r10") a[3],
            in("r8") a[4],
            in("r9") a[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Makes a system call with up to three arguments.
///
/// # Safety
/// As [`syscall6`].
#[inline(always)]
pub unsafe fn syscall3(number: i64, a: usize, b: usize, c: usize) -> isize {
    // SAFETY: the caller vouches for the call with these three arguments; the kernel ignores the others.
    unsafe { syscall6(number, [a, b, c, 0, 0, 0]) }
}

/// Makes a system call with four arguments.
///
/// # Safety
/// As [`syscall6`].
#[inline(always)]
pub unsafe fn syscall4(number: i64, a: usize, b: usize, c: usize, d: usize) -> isize {
    // SAFETY: the caller vouches for the call with these four arguments; the kernel ignores the others.
    unsafe { syscall6(number, [a, b, c, d, 0, 0]) }
}

/// Whether a system call's result is an error.
#[inline(always)]
pub fn failed(result: isize) -> bool {
    (-4095..0).contains(&result)
}

/// Yields the processor for a moment.
#[inline(always)]
pub fn yield_now() {
    // SAFETY: sched_yield has no arguments and no effect on memory.
    unsafe { syscall3(libc::SYS_sched_yield, 0, 0, 0) };
}

/// Returns the calling thread's id in the kernel.
#[inline(always)]
pub fn gettid() -> u32 {
    // SAFETY: gettid has no arguments and cannot fail.
    unsafe { syscall3(libc::SYS_gettid, 0, 0, 0) as u32 }
}

/// Returns the process's id in the kernel.
#[inline(always)]
pub fn getpid() -> u32 {
    // SAFETY: getpid has no arguments and cannot fail.
    unsafe { syscall3(libc::SYS_getpid, 0, 0, 0) as u32 }
}

/// Sends a signal to one thread of this process.
#[inline(always)]
pub fn tgkill(pid: u32, tid: u32, signal: i32) -> isize {
    // SAFETY: tgkill takes numbers and touches no memory; the signal goes to a thread of the process that is named.
    unsafe {
        syscall3(
            libc::SYS_tgkill,
            pid as usize,
            tid as usize,
            signal as usize,
        )
    }
}

/// Waits until the word no longer holds `expected`, at most `nanoseconds` (0: for ever). May return early.
pub fn futex_wait(word: &core::sync::atomic::AtomicU32, expected: u32, nanoseconds: u64) {
    wait(word, expected, nanoseconds, libc::FUTEX_PRIVATE_FLAG);
}

/// The same for a word that another process has as well.
pub fn futex_wait_shared(word: &core::sync::atomic::AtomicU32, expected: u32, nanoseconds: u64) {
    wait(word, expected, nanoseconds, 0);
}

fn wait(word: &core::sync::atomic::AtomicU32, expected: u32, nanoseconds: u64, whose: i32) {
    let timeout = libc::timespec {
        tv_sec: (nanoseconds / 1_000_000_000) as i64,
        tv_nsec: (nanoseconds % 1_000_000_000) as i64,
    };
    let timeout = if nanoseconds == 0 {
        0
    } else {
        &raw const timeout as usize
    };
    // SAFETY: the word is alive (a reference), and the timeout lives on this stack or is absent.
    unsafe {
        syscall6(
            libc::SYS_futex,
            [
                word as *const _ as usize,
                (libc::FUTEX_WAIT | whose) as usize,
                expected as usize,
                timeout,
                0,
                0,
            ],
        )
    };
}

/// Wakes all threads that wait on the word.
pub fn futex_wake(word: &core::sync::atomic::AtomicU32) {
    wake(word, libc::FUTEX_PRIVATE_FLAG);
}

/// The same for a word that another process has as well.
pub fn futex_wake_shared(word: &core::sync::atomic::AtomicU32) {
    wake(word, 0);
}

fn wake(word: &core::sync::atomic::AtomicU32, whose: i32) {
    // SAFETY: FUTEX_WAKE only looks the address up, and the word is alive (a reference).
    unsafe {
        syscall3(
            libc::SYS_futex,
            word as *const _ as usize,
            (libc::FUTEX_WAKE | whose) as usize,
            i32::MAX as usize,
        )
    };
}

/// Changes the calling thread's signal mask in the kernel; returns the old one.
#[inline(always)]
pub fn set_mask(mask: u64) -> u64 {
    let mut old = 0u64;
    // SAFETY: both masks live on this stack and have the size that is given.
    unsafe {
        syscall4(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK as usize,
            &raw const mask as usize,
            &raw mut old as usize,
            8,
        )
    };
    old
}
