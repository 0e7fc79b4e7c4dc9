//! A system call that the stop signal interrupts must look uninterrupted.
//!
//! Most are restarted by the kernel (SA_RESTART); some return EINTR whatever the handler's flags (signal(7)), and no
//! register holds their number any more. A frame that stands just behind a `syscall` with that result is set back, so
//! that the call is made again. Its number comes from where it is certain, whenever the signal came:
//!
//! * a piece of the springboard keeps it on its stack;
//! * most code loads it in the instruction before: `mov eax, NUMBER; syscall`;
//! * else (the C library's `syscall()`) from the agent's look at the thread before it signalled it. Only there a
//!   thread that has gone to sleep between that look and the signal is seen to wake with EINTR.
//!
//! While the thread is stopped the application's own signals wait; one that the call would have ended must end it all the
//! same ([`by_handler`]).
//!
//! Rules of this place: all but [`note_call`] runs in signal handlers, on the application's stack.

use core::sync::atomic::Ordering;

use super::beneath;
use super::calls::{self, Ends};
use super::registry::Thread;
use crate::arch::PAGE;
use crate::arch::frame::{ARGUMENTS, BEHIND, Frame, PC, RESULT, SP, WORD};
use crate::arch::springboard::{self, SYSCALL};

const EINTR: isize = -(libc::EINTR as isize);
/// In r11 of a frame that stands before a call which the stop signal has interrupted. The call itself changes r11.
const STOPPED: usize = usize::from_le_bytes(*b"stopped!");
/// Bytes of `mov eax, NUMBER; syscall`.
const LOAD_AND_CALL: usize = 7;

/// Sets the frame back to a call that only the stop signal has interrupted, and marks it so.
pub fn make_again(thread: Thread, frame: Frame) {
    set_back(thread, frame);
    if stands_before_call(frame) {
        frame.set_register(WORD, STOPPED);
    }
}

fn set_back(thread: Thread, frame: Frame) {
    let noted = taken_note(thread);
    let rip = frame.register(PC);
    if frame.register(RESULT) as isize != EINTR || frame.register(BEHIND) != rip {
        return;
    }
    // SAFETY: both registers are the interrupted thread's.
    let number = unsafe { springboard::call_behind(rip, frame.register(SP)) }
        .or_else(|| number_before(rip))
        .or_else(|| noted.filter(|note| note.end == rip).map(|note| note.number));
    let Some(number) = number else { return };
    if number as i64 == libc::SYS_close {
        // Closed all the same: a second time would close somebody else's.
        return;
    }
    frame.set_register(RESULT, number);
    frame.set_register(PC, rip.wrapping_sub(SYSCALL.len()));
    // What is left of a sleep has been written where the caller wants it: it goes on with that.
    match number as i64 {
        libc::SYS_nanosleep if frame.register(ARGUMENTS[1]) != 0 => {
            frame.set_register(ARGUMENTS[0], frame.register(ARGUMENTS[1]))
        }
        libc::SYS_clock_nanosleep
            if frame.register(ARGUMENTS[1]) == 0 && frame.register(ARGUMENTS[3]) != 0 =>
        {
            frame.set_register(ARGUMENTS[2], frame.register(ARGUMENTS[3]));
        }
        _ => {}
    }
}

/// A handler of the application is about to run for `signal` on top of `frame`. A call that the signal interrupts, and
/// that this handler ends, returns EINTR - also where the signal came while the stop had the thread out of that call, so
/// that the frame stands before it.
pub fn by_handler(frame: Frame, signal: i32, restarts: bool) {
    let rip = frame.register(PC);
    if frame.register(BEHIND) == rip && frame.register(RESULT) as isize == EINTR {
        // Not the stop signal's doing: not to be made again. (The register is the kernel's to change.)
        frame.set_register(BEHIND, 0);
    } else if frame.register(WORD) == STOPPED && stands_before_call(frame) {
        let ends = match calls::ends(frame) {
            Ends::Always => true,
            Ends::UnlessRestarted => !restarts,
            // SAFETY: the springboard has put the mask there, on the thread's stack.
            Ends::UnlessMasked(mask) => 1u64 << (signal - 1) & unsafe { *mask } == 0,
            Ends::Never => false,
        };
        if ends {
            frame.set_register(PC, rip + SYSCALL.len());
            frame.set_register(RESULT, EINTR as usize);
            frame.set_register(BEHIND, 0);
        }
    }
}

/// Whether `frame` stands before a `syscall` that its thread has made already: the processor has put the address behind
/// it into rcx.
fn stands_before_call(frame: Frame) -> bool {
    let rip = frame.register(PC);
    frame.register(BEHIND) == rip.wrapping_add(SYSCALL.len())
        && beneath::stays(frame)
        // SAFETY: code that the thread has run, and is about to run again.
        && unsafe { (rip as *const [u8; 2]).read_unaligned() } == SYSCALL
}

/// The number in `mov eax, NUMBER; syscall`, if that is what ends at `rip`.
fn number_before(rip: usize) -> Option<usize> {
    if rip % PAGE < LOAD_AND_CALL {
        return None;
    }
    // SAFETY: on the page that the thread has just run code on.
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
}

/// The agent's note, which is then gone.
fn taken_note(thread: Thread) -> Option<Note> {
    let notes = thread.notes();
    let call = notes.call.swap(0, Ordering::Relaxed) as usize;
    let end = notes.call_end.swap(0, Ordering::Relaxed) as usize;
    (call != 0 && end != 0).then(|| Note {
        number: call - 1,
        end,
    })
}

/// Notes the system call that a thread is blocked in, from `/proc/self/task/TID/syscall`:
/// `number arguments... stack-pointer instruction-pointer`, or `running`.
pub fn note_call(thread: Thread, tid: u32) {
    let notes = thread.notes();
    let text =
        std::fs::read_to_string(format!("/proc/self/task/{tid}/syscall")).unwrap_or_default();
    let mut fields = text.split_whitespace();
    let number = fields.next().and_then(|number| number.parse::<u64>().ok());
    let end = fields
        .next_back()
        .and_then(|end| u64::from_str_radix(end.trim_start_matches("0x"), 16).ok());
    if let (Some(number), Some(end)) = (number, end) {
        notes.call_end.store(end, Ordering::Relaxed);
        notes.call.store(number + 1, Ordering::Release);
    } else {
        notes.call.store(0, Ordering::Relaxed);
    }
}
