//! The events that wake the agent besides a message from the coordinator: raised targets, signals that request a suspend, the start and end of MPI, the end of
//! the process.
//!
//! The functions here run on the application's threads. Some are marked as running in a trap or signal handler with the upper half's FS: these use only atomics
//! and raw system calls, no libc, no TLS, no allocation.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::arch::syscall;

/// The eventfd's number, for handlers; -1 before the agent runs.
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);
/// The signal that requested a suspend, 0: none.
static SUSPEND: AtomicI32 = AtomicI32::new(0);
/// The exit status plus one while the process is ending, 0: it is not.
static ENDING: AtomicU32 = AtomicU32::new(0);
/// 1 when the agent has told the coordinator about the end (futex word).
static TOLD: AtomicU32 = AtomicU32::new(0);
/// (ggid, seq) raises not yet sent.
static RAISES: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());
/// Whether the process's end is delayed.
static PUT_OFF: AtomicU32 = AtomicU32::new(0);
static BELL: OnceLock<EventFd> = OnceLock::new();

/// How many times a process that ends waits for its agent to report the end to the coordinator.
const LAST_WAITS: u32 = 20;
const LAST_WAIT_NANOSECONDS: u64 = 100_000_000;

/// Makes the bell; called once, before the agent's thread starts.
pub fn prepare() -> nix::Result<()> {
    let bell = EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
    DESCRIPTOR.store(bell.as_fd().as_raw_fd(), Ordering::Release);
    // Set twice only by a second call, whose descriptor is then just unused.
    let _ = BELL.set(bell);
    Ok(())
}

/// The bell, to poll on.
pub fn bell() -> Option<BorrowedFd<'static>> {
    BELL.get().map(AsFd::as_fd)
}

/// Empties the bell.
pub fn silence() {
    if let Some(bell) = BELL.get() {
        // If nothing can be read, the bell is silent already.
        let _ = bell.read();
    }
}

/// `Services::raise`: this rank went past a target. `ggid` 0 only rings. Runs with the lower FS.
///
/// # Safety
/// The calling thread must have the lower half's FS.
pub unsafe extern "C" fn raise(ggid: u64, seq: u64) {
    if ggid != 0 {
        RAISES
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((ggid, seq));
    }
    ring();
}

/// Returns the raises since the last call.
pub fn take_raises() -> Vec<(u64, u64)> {
    std::mem::take(&mut *RAISES.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Notes a signal that requests a suspend. Runs in a signal handler, with any FS.
pub fn suspend_wanted(signal: i32) {
    SUSPEND.store(signal, Ordering::SeqCst);
    ring();
}

/// Returns the signal that has requested a suspend and has not been taken yet. Atomics only.
pub fn asked_for_suspend() -> Option<i32> {
    Some(SUSPEND.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
}

/// Returns the signal that has requested a suspend since the last call.
pub fn take_suspend() -> Option<i32> {
    match SUSPEND.swap(0, Ordering::SeqCst) {
        0 => None,
        signal => Some(signal),
    }
}

/// Called when the application ends its process: gives the agent a moment to tell the coordinator. Runs in a trap handler with the upper FS.
pub fn process_ends(status: i32) {
    if DESCRIPTOR.load(Ordering::Acquire) < 0 {
        return;
    }
    ENDING.store((status as u32 & 0xff) + 1, Ordering::SeqCst);
    ring();
    // A signal ends a wait early; a dead agent must not keep the process for ever.
    let mut waits = 0;
    while waits < LAST_WAITS && TOLD.load(Ordering::SeqCst) == 0 {
        syscall::futex_wait(&TOLD, 0, LAST_WAIT_NANOSECONDS);
        // While an image is being written, the process waits longer; the wait ends with that too.
        if PUT_OFF.load(Ordering::SeqCst) == 0 {
            waits += 1;
        }
    }
}

/// Delays the process's end, or no longer.
pub fn put_off_end(put_off: bool) {
    PUT_OFF.store(u32::from(put_off), Ordering::SeqCst);
}

/// Returns the exit status, once the process is ending.
pub fn ending() -> Option<i32> {
    match ENDING.load(Ordering::SeqCst) {
        0 => None,
        status => Some(status as i32 - 1),
    }
}

/// Notes that the coordinator knows of the end: the process may end.
pub fn told() {
    TOLD.store(1, Ordering::SeqCst);
    syscall::futex_wake(&TOLD);
}

/// Rings the bell. Any FS.
pub fn ring() {
    let descriptor = DESCRIPTOR.load(Ordering::Acquire);
    if descriptor >= 0 {
        let one = 1u64;
        // SAFETY: the kernel reads eight bytes, which live on this stack; a full counter rings as well.
        unsafe {
            syscall::syscall3(
                libc::SYS_write,
                descriptor as usize,
                &raw const one as usize,
                8,
            );
        }
    }
}
