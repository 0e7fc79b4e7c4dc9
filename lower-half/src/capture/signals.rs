//! Signals that wait for somebody to unblock them: the process's with everything that came with them, a
//! thread's by number.
//!
//! The kernel shows what is pending, but tells the details only to who takes a signal. So the process's
//! are taken and sent again at once: all threads of the upper half are stopped in a handler that blocks them,
//! and the lower half's block them for ever, so that nobody can tell.

use serde::{Deserialize, Serialize};

use super::told;
use crate::gate::{identity, signals};

/// A signal that is pending for the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    pub signal: i32,
    /// The kernel's `siginfo_t`.
    pub information: Vec<u8>,
    /// Whether the process has sent it itself: its id will be another one.
    pub own: bool,
}

/// Bytes of `siginfo_t`, and where the sender's id is in it.
const INFORMATION_BYTES: usize = 128;
const SENDER_AT: usize = 16;

/// Signals that are never the application's to wait for.
fn kept_out() -> u64 {
    let bit = |signal: i32| 1u64 << (signal - 1);
    // The last two are sent to the thread whose own write fails: here that is the one that writes images.
    let own = bit(libc::SIGXFSZ) | bit(libc::SIGPIPE);
    signals::ours() | bit(libc::SIGKILL) | bit(libc::SIGSTOP) | own
}

/// What is pending for the process.
pub fn of_process() -> Vec<Pending> {
    let set = !kept_out();
    let at_once = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut taken = Vec::new();
    loop {
        let mut information = [0u8; INFORMATION_BYTES];
        // SAFETY: the kernel reads the set and the time, and writes one siginfo.
        let signal = unsafe {
            libc::syscall(
                libc::SYS_rt_sigtimedwait,
                &raw const set,
                information.as_mut_ptr(),
                &raw const at_once,
                8,
            )
        };
        if signal <= 0 {
            break;
        }
        let own = sender(&information) == std::process::id();
        taken.push(Pending {
            signal: signal as i32,
            information: information.to_vec(),
            own,
        });
    }
    for pending in &taken {
        send(pending);
    }
    taken
}

fn sender(information: &[u8]) -> u32 {
    let bytes = information
        .get(SENDER_AT..SENDER_AT + 4)
        .and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_ne_bytes)
}

/// Sends a signal to this process as it was sent before.
pub fn send(pending: &Pending) {
    let mut information = [0u8; INFORMATION_BYTES];
    for (to, from) in information.iter_mut().zip(&pending.information) {
        *to = *from;
    }
    if pending.own
        && let Some(place) = information.get_mut(SENDER_AT..SENDER_AT + 4)
    {
        // As the application knows it: `sigtimedwait` shows what stands here.
        place.copy_from_slice(&identity::virtual_pid().to_ne_bytes());
    }
    // SAFETY: the kernel reads one siginfo; `kill` touches no memory.
    unsafe {
        let process = libc::getpid();
        let sent = libc::syscall(
            libc::SYS_rt_sigqueueinfo,
            process,
            pending.signal,
            information.as_ptr(),
        );
        if sent != 0 {
            // What `kill` or the kernel itself (`setitimer`) has sent only the main thread may send as it was. From the
            // agent's thread it comes as from a `kill` by the process itself: that is better than not at all.
            libc::kill(process, pending.signal);
        }
    }
}

/// What is pending for one thread alone, by number: bit 0 is signal 1.
pub fn of_thread(tid: u32) -> u64 {
    let status = told::by(&format!("/proc/self/task/{tid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
        & !kept_out()
}

/// Sends a thread what was pending for it.
pub fn send_to_thread(tid: u32, pending: u64) {
    for signal in (1..=64).filter(|signal| pending >> (signal - 1) & 1 == 1) {
        // SAFETY: a signal to a thread of this process, which had it pending.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, signal) };
    }
}
