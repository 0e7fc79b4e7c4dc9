//! Pending signals of the process and of each thread, which wait to be unblocked, with all their information.
//!
//! The kernel shows which signals are pending, but tells the details only to the thread that takes a signal, and a thread's own
//! signals go to that thread alone. Only a thread that sends to itself can keep a sender's id. So the stopped threads themselves
//! take their signals, and the main one the process's too (`gate::errand`), and send them again at once. All threads of the upper
//! half are stopped in a handler that blocks these signals, and the lower half's threads block them for ever, so the application
//! does not notice.

use serde::{Deserialize, Serialize};
use stillpoint_part::Kind;

use super::{CaptureError, launch_signals};
use crate::arch::syscall::{syscall3, syscall4};
use crate::gate::{errand, identity, signals, timers};
use crate::ground::proc_files;
use crate::threads::Thread;

/// The payload of an image with pending signals: JSON, [`Waiting`].
pub const KIND: Kind = Kind {
    name: "signals",
    version: 1,
    always: true,
};

/// The pending signals, each list in the order of sending.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    pub process: Vec<Pending>,
    /// A thread's signals, with the id that the application knows.
    pub threads: Vec<(u32, Vec<Pending>)>,
}

/// A pending signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    pub signal: i32,
    /// The kernel's `siginfo_t`; a sender in this process has the id that the application knows.
    pub information: Vec<u8>,
}

/// The bytes of `siginfo_t`, and the offsets of its fields.
const INFORMATION_BYTES: usize = 128;
const CODE_AT: usize = 8;
/// The offset of the sender's id, or the timer's.
const SENDER_AT: usize = 16;

/// The most signals that are taken: more than a process may have pending by default (`RLIMIT_SIGPENDING`) on a machine of 512 GiB.
const MOST: usize = 1 << 21;

/// Returns the signals that are not taken.
fn kept_out() -> u64 {
    let bit = |signal: i32| 1u64 << (signal - 1);
    // The kernel sends these two to the thread whose own write fails: here, the thread that writes images.
    let own = bit(libc::SIGXFSZ) | bit(libc::SIGPIPE);
    signals::ours() | bit(libc::SIGKILL) | bit(libc::SIGSTOP) | own
}

impl Pending {
    fn word(&self, at: usize) -> i32 {
        let bytes = self.information.get(at..at + 4);
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, i32::from_ne_bytes)
    }

    fn set_word(&mut self, at: usize, value: i32) {
        if let Some(place) = self.information.get_mut(at..at + 4) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
    }

    fn new(signal: i32, information: [u8; INFORMATION_BYTES]) -> Pending {
        let mut pending = Pending {
            signal,
            information: information.to_vec(),
        };
        let id = pending.word(SENDER_AT);
        match pending.word(CODE_AT) {
            libc::SI_USER | libc::SI_TKILL | libc::SI_QUEUE | libc::SI_MESGQ => {
                pending.set_word(SENDER_AT, identity::known_process(id as u32) as i32);
            }
            libc::SI_TIMER => pending.set_word(SENDER_AT, timers::known(id)),
            _ => {}
        }
        pending
    }

    /// Returns the application's id of the timer whose expiry this is.
    fn timer(&self) -> Option<i32> {
        (self.word(CODE_AT) == libc::SI_TIMER).then(|| self.word(SENDER_AT))
    }

    /// Returns the sender, with the id that the application knows, or nothing if the kernel or a timer has sent the signal.
    pub(super) fn sender(&self) -> Option<u32> {
        let sent = matches!(
            self.word(CODE_AT),
            libc::SI_USER | libc::SI_TKILL | libc::SI_QUEUE
        );
        sent.then(|| self.word(SENDER_AT) as u32)
    }

    /// Returns whether the kernel's interval timer with this signal has sent it.
    fn is_from_interval_timer(&self, signal: i32) -> bool {
        self.signal == signal && self.word(CODE_AT) == libc::SI_KERNEL
    }
}

impl Waiting {
    /// Returns whether an expiry of the interval timer with this signal is pending.
    pub fn holds_expiry(&self, signal: i32) -> bool {
        self.process
            .iter()
            .any(|pending| pending.is_from_interval_timer(signal))
    }

    pub fn of_thread(&self, virtual_tid: u32) -> &[Pending] {
        let mut threads = self.threads.iter();
        threads
            .find(|(tid, _)| *tid == virtual_tid)
            .map_or(&[], |(_, pending)| pending)
    }

    /// Returns the signals that are pending for a thread alone; bit 0 is signal 1.
    pub fn numbers_of_thread(&self, virtual_tid: u32) -> u64 {
        let pending = self.of_thread(virtual_tid).iter();
        pending.fold(0, |all, pending| all | 1 << (pending.signal - 1))
    }
}

/// The input and the output of one take.
#[repr(C)]
struct Take {
    set: u64,
    information: [u8; INFORMATION_BYTES],
}

/// Takes, as an errand, one signal of a set that is pending for the calling thread or the process, the thread's own first.
///
/// # Safety
/// `argument` must lead to a `Take` that nothing else uses until this returns.
unsafe fn take(argument: usize) -> isize {
    let at_once = [0u64; 2];
    // SAFETY: the agent gave a pointer to a `Take`, waits in `errand::send` until this ends, and does not touch it before.
    unsafe {
        let take = argument as *mut Take;
        syscall4(
            libc::SYS_rt_sigtimedwait,
            &raw const (*take).set as usize,
            &raw mut (*take).information as usize,
            at_once.as_ptr() as usize,
            8,
        )
    }
}

/// Sends, as an errand, a signal to the calling thread's process (`Send::process`) or to the thread itself.
///
/// # Safety
/// `argument` must lead to a `Send` that nothing changes until this returns.
unsafe fn send_own(argument: usize) -> isize {
    // SAFETY: the agent gave a pointer to a `Send`, waits in `errand::send` until this ends, and does not touch it before.
    let send = unsafe { &*(argument as *const Send) };
    send_here(send.process, send.signal, &send.information)
}

struct Send {
    process: bool,
    signal: i32,
    information: [u8; INFORMATION_BYTES],
}

/// Sends a signal as it was sent before. The kernel allows this only to the thread that the signal is for, and to the main thread for the
/// process.
fn send_here(process: bool, signal: i32, information: &[u8; INFORMATION_BYTES]) -> isize {
    use crate::arch::syscall::{getpid, gettid};
    // SAFETY: the kernel reads one siginfo of INFORMATION_BYTES bytes, which the reference leads to.
    unsafe {
        if process {
            syscall3(
                libc::SYS_rt_sigqueueinfo,
                getpid() as usize,
                signal as usize,
                information.as_ptr() as usize,
            )
        } else {
            syscall4(
                libc::SYS_rt_tgsigqueueinfo,
                getpid() as usize,
                gettid() as usize,
                signal as usize,
                information.as_ptr() as usize,
            )
        }
    }
}

/// Returns the signals that are pending for the process and for these threads, the main one first. Signals that belong to the launch
/// (`launch_signals`) are left out, and go on waiting in this launch.
///
/// # Safety
/// The threads must be stopped, and stay so.
pub unsafe fn survey(threads: &[Thread]) -> Result<Waiting, CaptureError> {
    let mut waiting = Waiting::default();
    let mut outcome = Ok(());
    for (index, thread) in threads.iter().enumerate() {
        let mut own = Vec::new();
        // SAFETY: the caller keeps the threads stopped.
        outcome = unsafe { take_all(*thread, index == 0, &mut own, &mut waiting.process) };
        if !own.is_empty() {
            waiting.threads.push((thread.virtual_tid(), own));
        }
        if outcome.is_err() {
            break;
        }
    }
    // Signals that have been taken go back in any case.
    for thread in threads {
        for pending in waiting.of_thread(thread.virtual_tid()) {
            // SAFETY: the caller keeps the threads stopped.
            unsafe { send_again(*thread, false, pending) };
        }
    }
    if let Some(main) = threads.first() {
        for pending in &waiting.process {
            // SAFETY: the caller keeps the threads stopped, the main one included.
            unsafe { send_again(*main, true, pending) };
        }
    }
    outcome?;
    let frames = threads.iter().map(|t| (t.virtual_tid(), t.stop_frame()));
    // SAFETY: the caller keeps the threads stopped, so each stands in the frame at its stop frame's address, or that address is 0.
    waiting.leave_out_launchs(&unsafe { launch_signals::masks(frames) });
    Ok(waiting)
}

/// Makes a thread take the signals that are pending for it, and for the process if it is the main one.
///
/// # Safety
/// The thread must be stopped, and stay so.
unsafe fn take_all(
    thread: Thread,
    main: bool,
    own: &mut Vec<Pending>,
    process: &mut Vec<Pending>,
) -> Result<(), CaptureError> {
    while own.len() + process.len() < MOST {
        let (mine, shared) = masks(thread.real_tid());
        let (from_own, set) = match (mine, shared) {
            (0, 0) => return Ok(()),
            (0, _) if !main => return Ok(()),
            (0, shared) => (false, shared),
            (mine, _) => (true, mine),
        };
        let mut told = Take {
            set,
            information: [0; INFORMATION_BYTES],
        };
        // SAFETY: the caller keeps the thread stopped; `take` expects a pointer to a `Take`, which lives on this stack until `send` returns.
        let taken = unsafe { errand::send(thread, take, &raw mut told as usize) };
        match taken {
            Some(signal @ 1..) => {
                let list = if from_own { &mut *own } else { &mut *process };
                list.push(Pending::new(signal as i32, told.information));
            }
            // The signal has gone by itself: SIGCONT takes SIGTSTP away.
            Some(_) => {}
            None => {
                let source = std::io::Error::other("a stopped thread does not answer");
                return Err(CaptureError::process("pending signals")(source));
            }
        }
    }
    Ok(())
}

/// Returns the signals that are pending for a thread alone and for its process; bit 0 is signal 1.
fn masks(tid: u32) -> (u64, u64) {
    let status = proc_files::by(&format!("/proc/self/task/{tid}/status")).unwrap_or_default();
    let mask = |key: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix(key));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or(0)
            & !kept_out()
    };
    (mask("SigPnd:"), mask("ShdPnd:"))
}

/// Makes a stopped thread send itself, or the process, a signal that it has taken.
///
/// # Safety
/// The thread must be stopped, and stay so.
unsafe fn send_again(thread: Thread, process: bool, pending: &Pending) {
    // A timer that has ended sends its signal once more: only timers' own signals of one number can wait twice.
    if pending.timer().is_some_and(timers::expire_again) {
        return;
    }
    let send = Send {
        process,
        signal: pending.signal,
        information: pending.bytes(),
    };
    // SAFETY: the caller keeps the thread stopped; `send_own` expects a pointer to a `Send`, which lives on this stack until `send` returns.
    unsafe { errand::send(thread, send_own, &raw const send as usize) };
}

impl Pending {
    /// Returns the structure in the kernel's form.
    pub fn bytes(&self) -> [u8; INFORMATION_BYTES] {
        let mut information = [0u8; INFORMATION_BYTES];
        for (to, from) in information.iter_mut().zip(&self.information) {
            *to = *from;
        }
        information
    }

    /// Sends the signal as it was sent before. A restart calls this on the thread that the signal was pending for, or on the main one for
    /// the process, when timers are there again. It makes system calls without the C library, and allocates nothing.
    pub fn restore(&self, process: bool) {
        if !self.timer().is_some_and(timers::expire_again) {
            signals::given_back(self.signal, self.word(CODE_AT), self.word(SENDER_AT));
            send_here(process, self.signal, &self.bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timers_expiry_is_told_from_a_sender() {
        let mut information = [0u8; INFORMATION_BYTES];
        information[CODE_AT..CODE_AT + 4].copy_from_slice(&libc::SI_TIMER.to_ne_bytes());
        information[SENDER_AT..SENDER_AT + 4].copy_from_slice(&7i32.to_ne_bytes());
        let pending = Pending::new(libc::SIGALRM, information);
        assert_eq!(pending.timer(), Some(7));
        assert!(!pending.is_from_interval_timer(libc::SIGALRM));
        information[CODE_AT..CODE_AT + 4].copy_from_slice(&libc::SI_KERNEL.to_ne_bytes());
        let pending = Pending::new(libc::SIGALRM, information);
        assert_eq!(pending.timer(), None);
        assert!(pending.is_from_interval_timer(libc::SIGALRM));
        assert!(!pending.is_from_interval_timer(libc::SIGPROF));
        assert_eq!(pending.bytes(), information);
    }
}
