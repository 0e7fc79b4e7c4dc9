//! A system call that a handler of ours interrupts must look uninterrupted: it ends when it would have ended without the signal.
//!
//! The kernel restarts most calls (SA_RESTART). Some return EINTR whatever the handler's flags (signal(7)), some return the bytes transferred so far, and no
//! register holds their number any more. A frame that stands just behind a `syscall` with such a result is set back, so that the call is made again, with the
//! rest of its time (`deadlines`) or of its bytes (`partial_transfers`); `calls` says which. The call's number comes from a source that is reliable at any time
//! of the signal:
//!
//! * a piece of the springboard keeps it on its stack;
//! * most code loads it in the instruction before: `mov eax, NUMBER; syscall`;
//! * otherwise (the C library's `syscall()`), from the agent's look at the thread before it signalled it. In this case alone a thread sees EINTR, if it goes
//!   to sleep between that look and the signal, or if another signal of ours interrupts it there.
//!
//! While the thread is stopped, the application's own signals wait. A signal that would have ended the call must end it all the same ([`by_handler`]).
//!
//! Rules of this place: everything except [`note_calls`] runs in signal handlers, on the application's stack.

use core::sync::atomic::Ordering;

use super::calls::{self, Goes};
use super::registry::Thread;
use super::{beneath, deadlines, partial_transfers};
use crate::arch::PAGE;
use crate::arch::frame::{BEHIND, Frame, PC, RESULT, SP, WORD};
use crate::arch::springboard::{self, Piece, SYSCALL, Standing};
use crate::ground::proc_files;

const EINTR: isize = -(libc::EINTR as isize);
/// The value in r11 of a frame that stands before a call which the stop signal has interrupted. The call itself changes r11.
const STOPPED: usize = usize::from_le_bytes(*b"stopped!");
/// The same for a call that the kernel has ended with EINTR.
const ENDED: usize = usize::from_le_bytes(*b"stopped.");
/// Bytes of `mov eax, NUMBER; syscall`.
const LOAD_AND_CALL: usize = 7;

/// Has a call continue that only a handler of ours has interrupted, and marks it. Every handler of ours calls this first.
pub fn make_again(thread: Thread, frame: Frame) {
    if set_back(thread, frame).is_none() && stands_before_call(frame) {
        frame.set_register(WORD, STOPPED);
    }
    leave_plain(frame);
}

/// Moves a call that a piece of the springboard makes unchanged back to before its trap. In another launch, its answer may differ: children that ended before a
/// restart are not known to the kernel any more.
fn leave_plain(frame: Frame) {
    let stands = springboard::standing(frame.register(PC));
    if !is_marked(frame) || stands != Standing::Calls(Piece::CallPlain) {
        return;
    }
    let (stack, bytes) = (frame.register(SP), Piece::CallPlain.takes());
    // SAFETY: the piece that the thread stands in has put the return address on top of the thread's stack.
    let behind = unsafe { *(stack as *const usize) };
    let call = behind.wrapping_sub(SYSCALL.len());
    // SAFETY: the bytes before the return address are code through which the thread has come here, so they can be read.
    let is_call = unsafe { (call as *const [u8; SYSCALL.len()]).read_unaligned() } == SYSCALL;
    if let Some(bytes) = bytes.filter(|_| is_call) {
        frame.set_register(BEHIND, behind);
        frame.set_register(SP, stack + bytes);
        frame.set_register(PC, call);
    }
}

/// Sets the frame back, if the kernel has not.
fn set_back(thread: Thread, frame: Frame) -> Option<()> {
    let noted = taken_note(thread);
    let rip = frame.register(PC);
    let result = frame.register(RESULT) as isize;
    if frame.register(BEHIND) != rip || !(result == EINTR || result > 0) {
        return None;
    }
    let noted = noted.filter(|note| note.end == rip);
    // SAFETY: both registers are those of the interrupted thread, whose stack stays while it is interrupted.
    let number = unsafe { springboard::call_behind(rip, frame.register(SP)) }
        .or_else(|| number_before(rip))
        .or_else(|| noted.as_ref().map(|note| note.number))?;
    let wait = calls::wait(number);
    if result > 0 {
        partial_transfers::go_on(frame, number, wait.moves);
        return None;
    }
    if wait.goes == Goes::Never {
        return None;
    }
    frame.set_register(RESULT, number);
    frame.set_register(PC, rip.wrapping_sub(SYSCALL.len()));
    frame.set_register(WORD, ENDED);
    deadlines::note(frame, noted.and_then(|note| note.since));
    Some(())
}

/// Called when a handler of ours that has kept the thread for a while returns: shortens the thread's wait, so that it ends as it would have.
pub fn goes_on(frame: Frame, kept: u64) {
    if is_marked(frame) && frame.register(WORD) == ENDED {
        deadlines::shorten(frame, kept);
    }
}

/// Called when the thread continues in another launch, through this frame: its remaining time begins now.
pub fn carried_on(frame: Frame) {
    if is_marked(frame) && frame.register(WORD) == ENDED {
        deadlines::begin_anew(frame);
    }
}

fn is_marked(frame: Frame) -> bool {
    [STOPPED, ENDED].contains(&frame.register(WORD)) && stands_before_call(frame)
}

/// Called before a handler of the application runs for `signal` on top of `frame`. A call that the signal interrupts, and that this handler ends, returns
/// EINTR, or the bytes transferred so far. This also holds if the signal came while the stop had the thread out of that call, so that the frame stands before
/// it.
pub fn by_handler(frame: Frame, signal: i32, restarts: bool) {
    if partial_transfers::ended(frame) || deadlines::ended(frame) {
        return;
    }
    let rip = frame.register(PC);
    if frame.register(BEHIND) == rip {
        // Not for us to make again. (The kernel may change this register.)
        frame.set_register(BEHIND, 0);
    } else if is_marked(frame) && calls::ends(frame, signal, restarts) {
        frame.set_register(PC, rip + SYSCALL.len());
        frame.set_register(RESULT, EINTR as usize);
        frame.set_register(BEHIND, 0);
    }
}

/// Whether `frame` stands before a `syscall` that its thread has already made: the processor has then put the address behind it into rcx.
fn stands_before_call(frame: Frame) -> bool {
    let rip = frame.register(PC);
    frame.register(BEHIND) == rip.wrapping_add(SYSCALL.len())
        && beneath::stays(frame)
        // SAFETY: the thread has run this code and is about to run it again, so it can be read.
        && unsafe { (rip as *const [u8; 2]).read_unaligned() } == SYSCALL
}

/// Returns the number in `mov eax, NUMBER; syscall`, if that is the code that ends at `rip`.
fn number_before(rip: usize) -> Option<usize> {
    if rip % PAGE < LOAD_AND_CALL {
        return None;
    }
    // SAFETY: the bytes lie on the page that the thread has just run code on, so they can be read.
    let code = unsafe { ((rip - LOAD_AND_CALL) as *const [u8; LOAD_AND_CALL]).read() };
    let [0xb8, a, b, c, d, ref call @ ..] = code else {
        return None;
    };
    (*call == SYSCALL).then(|| u32::from_le_bytes([a, b, c, d]) as usize)
}

/// The call that a thread was seen to be blocked in, and the address behind its instruction.
struct Note {
    number: usize,
    end: usize,
    /// The time, by `CLOCK_MONOTONIC`, since when it waits; only if its timeout is a socket's.
    since: Option<u64>,
}

/// Takes the agent's note, and clears it.
fn taken_note(thread: Thread) -> Option<Note> {
    let notes = thread.notes();
    let call = notes.call.swap(0, Ordering::Relaxed) as usize;
    let end = notes.call_end.swap(0, Ordering::Relaxed) as usize;
    let since = thread.waits_since().swap(0, Ordering::Relaxed);
    (call != 0 && end != 0).then(|| Note {
        number: call - 1,
        end,
        since: (since != 0).then_some(since),
    })
}

/// Reads a file of `/proc`. A thread that notes calls has a descriptor table of its own (`ground::proc_files`).
fn text_of(path: &str) -> std::io::Result<String> {
    Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
}

/// Notes the system calls that threads are blocked in, and the time since when, if their timeout is a socket's. Runs on a thread of the lower half.
pub fn note_calls(threads: &[Thread]) {
    let seen: Vec<_> = proc_files::apart(|| threads.iter().map(|it| note_call(*it)).collect());
    // The application's descriptors exist only in this table.
    let of_socket = |call: Option<[u64; 2]>| {
        call.and_then(|[number, fd]| deadlines::of_socket(number as usize, fd as usize))
    };
    let both = threads.iter().zip(seen);
    let timed: Vec<(Thread, u64)> = both
        .filter_map(|(thread, call)| Some((*thread, of_socket(call)?)))
        .collect();
    if !timed.is_empty() {
        proc_files::apart(|| {
            for (thread, timeout) in &timed {
                let since = asleep_since(thread.real_tid(), *timeout).unwrap_or(0);
                thread.waits_since().store(since, Ordering::Relaxed);
            }
        });
    }
}

/// Notes the system call that a thread is blocked in, from `/proc/self/task/TID/syscall`: `number arguments... stack-pointer instruction-pointer`, or
/// `running`. Returns its number and first argument.
fn note_call(thread: Thread) -> Option<[u64; 2]> {
    let notes = thread.notes();
    let text = text_of(&format!("/proc/self/task/{}/syscall", thread.real_tid()));
    let text = text.unwrap_or_default();
    let mut fields = text.split_whitespace();
    let number = fields.next().and_then(|number| number.parse::<u64>().ok());
    let first = fields.clone().next().and_then(hexadecimal);
    let end = fields.next_back().and_then(hexadecimal);
    thread.waits_since().store(0, Ordering::Relaxed);
    let (Some(number), Some(end)) = (number, end) else {
        notes.call.store(0, Ordering::Relaxed);
        return None;
    };
    notes.call_end.store(end, Ordering::Relaxed);
    notes.call.store(number + 1, Ordering::Release);
    first.map(|first| [number, first])
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

/// Returns the time since when a thread sleeps, by the scheduler's record of when it ran last, if that is not longer ago than `at_most` nanoseconds. Each
/// processor has its own clock for that, which stands still while another machine or an interrupt has the processor: the clocks may be seconds apart. So the
/// present time on that clock is read from this thread's record, after it has run there too. The scheduler may have moved the sleeping thread to another
/// processor since; then the time is implausible there, and the other processors are tried.
fn asleep_since(tid: u32, at_most: u64) -> Option<u64> {
    let then = ran_last(tid)?;
    let stat = text_of(&format!("/proc/self/task/{tid}/stat")).ok()?;
    // The 39th field; the name before the third ends in a parenthesis.
    let here: usize = stat
        .rsplit(')')
        .next()?
        .split_whitespace()
        .nth(36)?
        .parse()
        .ok()?;
    let slept_by = |processor| {
        let now = on_processor(processor, || {
            crate::arch::syscall::yield_now();
            ran_last(crate::arch::syscall::gettid())
        })?;
        let slept = now?.checked_sub(then)?;
        (slept <= at_most).then_some(slept)
    };
    // A wait that ends too late does less harm than one that ends too early.
    let slept = slept_by(here).or_else(|| {
        let others = processors_of(tid).filter(|it| *it != here);
        others.take(TRIED).filter_map(slept_by).min()
    })?;
    Some(deadlines::now().saturating_sub(slept))
}

/// Processors that are tried at most.
const TRIED: usize = 16;

/// Returns the processors that a thread may run on.
fn processors_of(tid: u32) -> impl Iterator<Item = usize> {
    // SAFETY: the set lives on this stack, and any bits are a set; the kernel writes as many bytes as it has.
    let all = unsafe {
        let mut all: libc::cpu_set_t = core::mem::zeroed();
        libc::sched_getaffinity(tid.cast_signed(), size_of::<libc::cpu_set_t>(), &mut all);
        all
    };
    // SAFETY: the number is below that of the set's bits.
    (0..8 * size_of::<libc::cpu_set_t>()).filter(move |it| unsafe { libc::CPU_ISSET(*it, &all) })
}

/// Returns when a thread ran last, in nanoseconds, by the clock of the processor that it ran on.
fn ran_last(tid: u32) -> Option<u64> {
    let text = text_of(&format!("/proc/self/task/{tid}/sched")).ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("se.exec_start"))?;
    let milliseconds: f64 = line.rsplit(':').next()?.trim().parse().ok()?;
    Some((milliseconds * 1e6) as u64)
}

/// Runs an action on this processor; returns `None` if this thread may not run there.
fn on_processor<R>(processor: usize, action: impl FnOnce() -> R) -> Option<R> {
    // SAFETY: both sets live on this stack, and any bits are a set; the kernel reads and writes as many bytes as they have.
    unsafe {
        let bytes = size_of::<libc::cpu_set_t>();
        let mut before: libc::cpu_set_t = core::mem::zeroed();
        let mut one: libc::cpu_set_t = core::mem::zeroed();
        if processor >= 8 * bytes || libc::sched_getaffinity(0, bytes, &mut before) != 0 {
            return None;
        }
        libc::CPU_SET(processor, &mut one);
        if libc::sched_setaffinity(0, bytes, &one) != 0 {
            return None;
        }
        let result = action();
        libc::sched_setaffinity(0, bytes, &before);
        Some(result)
    }
}
