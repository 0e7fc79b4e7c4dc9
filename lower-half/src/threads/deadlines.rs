//! Waits with a timeout: their end, and their remaining time.
//!
//! Some waits do not return their remaining time when they are interrupted. These waits pass the gate (`gate::sleep`): a piece of the springboard makes it,
//! and keeps its end on its stack. A wait on a socket with a timeout of its own (`SO_RCVTIMEO`, `SO_SNDTIMEO`) does not pass the gate: from its first
//! interruption on, a piece waits in its place for the remaining time.
//!
//! Rules of this place: runs in signal handlers, on the application's stack.

use super::calls::{self, Goes, Moves, argument};
use crate::arch::frame::{ARGUMENTS, BEHIND, Frame, PC, RESULT, SP, WORD};
use crate::arch::springboard::{self, Piece, SYSCALL, Standing};
use crate::arch::syscall::{failed, syscall3, syscall6};

/// The offsets on the piece's stack of the wait's end, and of the space for the remaining time.
const END_AT: usize = 28;
const ROOM_AT: usize = 48;

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// The longest wait whose end is kept, which has 32 bits; longer ones are made again with their full time.
const LONGEST: u64 = i32::MAX as u64;

/// `CLOCK_MONOTONIC` in nanoseconds.
pub fn now() -> u64 {
    let mut time = [0u64; 2];
    let place = time.as_mut_ptr() as usize;
    // SAFETY: the kernel writes seconds and nanoseconds to two words, which live on this stack.
    unsafe {
        syscall3(
            libc::SYS_clock_gettime,
            libc::CLOCK_MONOTONIC as usize,
            place,
            0,
        )
    };
    time[0] * SECOND + time[1]
}

/// Returns the end of a wait of so many nanoseconds that begins now, in the springboard's format.
pub fn end_after(nanoseconds: u64) -> Option<u32> {
    let short = nanoseconds.div_ceil(MILLISECOND) <= LONGEST;
    short.then(|| (now() + nanoseconds).div_ceil(MILLISECOND) as u32)
}

/// Returns the time until then, in nanoseconds.
fn left(end: u32) -> u64 {
    let now = now();
    let milliseconds = end.wrapping_sub((now / MILLISECOND) as u32) as i32;
    (i64::from(milliseconds) * MILLISECOND as i64 - (now % MILLISECOND) as i64).max(0) as u64
}

/// Returns the piece with a timeout whose call `frame` stands before.
fn piece(frame: Frame) -> Option<Piece> {
    match springboard::standing(frame.register(PC)) {
        Standing::Calls(piece) if piece.is_until() => Some(piece),
        _ => None,
    }
}

fn end(frame: Frame) -> &'static mut u32 {
    // SAFETY: the piece that the thread stands in keeps this word on the thread's stack; the thread is interrupted, so nothing else uses it.
    unsafe { &mut *((frame.register(SP) + END_AT) as *mut u32) }
}

/// Called after an interruption, when the frame stands before the call: has the call continue with its remaining time. `since`: when a wait on a socket began.
pub fn note(frame: Frame, since: Option<u64>) {
    let wait = calls::wait(frame.register(RESULT));
    if piece(frame).is_some() {
        return set_left(frame, left(*end(frame)));
    }
    match wait.goes {
        // The remaining time of a sleep has been written where the caller wants it: the sleep continues with that.
        Goes::Sleeps(time, rest) if argument(frame, Some(rest)) != 0 && !is_until(frame, time) => {
            set(frame, time, argument(frame, Some(rest)));
        }
        _ => wait_for_socket(frame, since),
    }
}

/// Whether a sleep ends at a fixed time.
fn is_until(frame: Frame, time: u8) -> bool {
    time == 2 && argument(frame, Some(1)) != 0
}

fn set(frame: Frame, index: u8, value: usize) {
    if let Some(register) = ARGUMENTS.get(usize::from(index)) {
        frame.set_register(*register, value);
    }
}

/// Sets the timeout of the call that `frame` stands before, in a piece that keeps its end.
fn set_left(frame: Frame, nanoseconds: u64) {
    match calls::wait(frame.register(RESULT)).goes {
        Goes::Milliseconds(index) => {
            set(frame, index, nanoseconds.div_ceil(MILLISECOND) as usize);
        }
        Goes::Interval(index) => {
            let room = frame.register(SP) + ROOM_AT;
            // SAFETY: the piece that the thread stands in has left room for two words there, on the thread's stack.
            unsafe { *(room as *mut [u64; 2]) = [nanoseconds / SECOND, nanoseconds % SECOND] };
            set(frame, index, room);
        }
        _ => {}
    }
}

/// Shortens the remaining time by the nanoseconds that the thread was kept since [`note`].
pub fn shorten(frame: Frame, kept: u64) {
    if piece(frame).is_some() {
        return set_left(frame, left(*end(frame)));
    }
    let (time, unit) = match calls::wait(frame.register(RESULT)).goes {
        Goes::Left(index, unit) => (argument(frame, Some(index)), unit),
        // Clocks of processor time stand still while the process does not run.
        Goes::Sleeps(2, _) if is_until(frame, 2) || processor_time(argument(frame, Some(0))) => {
            return;
        }
        Goes::Sleeps(time, rest) if argument(frame, Some(time)) == argument(frame, Some(rest)) => {
            (argument(frame, Some(time)), 1)
        }
        _ => return,
    };
    if time != 0 {
        // SAFETY: the kernel has written the remaining time to this place when it ended the call, and reads it when the call is made again.
        let place = unsafe { &mut *(time as *mut [u64; 2]) };
        let all = place[0]
            .saturating_mul(SECOND)
            .saturating_add(place[1].saturating_mul(unit));
        let rest = all.saturating_sub(kept);
        *place = [rest / SECOND, rest % SECOND / unit];
    }
}

fn processor_time(clock: usize) -> bool {
    let clock = clock as i32;
    clock < 0
        || [
            libc::CLOCK_PROCESS_CPUTIME_ID,
            libc::CLOCK_THREAD_CPUTIME_ID,
        ]
        .contains(&clock)
}

/// Sets a new end from the remaining time of an earlier launch.
pub fn begin_anew(frame: Frame) {
    if piece(frame).is_none() {
        return;
    }
    let left = match calls::wait(frame.register(RESULT)).goes {
        Goes::Milliseconds(index) => argument(frame, Some(index)) as u64 * MILLISECOND,
        Goes::Interval(_) => {
            // SAFETY: `set_left` has put two words there, in the piece's room on the thread's stack.
            let [seconds, nanoseconds] =
                unsafe { *((frame.register(SP) + ROOM_AT) as *const [u64; 2]) };
            seconds * SECOND + nanoseconds
        }
        _ => return,
    };
    *end(frame) = end_after(left).unwrap_or(0);
}

/// Returns the socket option with the timeout of a call with this number, and the events that it waits for.
fn of_kind(number: usize) -> Option<(i32, i16)> {
    match calls::wait(number).moves {
        Moves::Receives | Moves::ReceivesMessage | Moves::FromDevice => {
            Some((libc::SO_RCVTIMEO, libc::POLLIN))
        }
        Moves::Sends | Moves::SendsMessage | Moves::Buffer | Moves::Vector | Moves::Count => {
            Some((libc::SO_SNDTIMEO, libc::POLLOUT))
        }
        _ if calls::receives(number) => Some((libc::SO_RCVTIMEO, libc::POLLIN)),
        _ => None,
    }
}

/// Returns the timeout of a call on a socket, in nanoseconds, or `None` if there is no socket or no timeout.
fn time_of(fd: usize, option: i32) -> Option<u64> {
    let (mut time, mut bytes) = ([0u64; 2], 16u32);
    // SAFETY: the kernel writes at most 16 bytes to the array, and their number; both live on this stack.
    let result = unsafe {
        syscall6(
            libc::SYS_getsockopt,
            [
                fd,
                libc::SOL_SOCKET as usize,
                option as usize,
                time.as_mut_ptr() as usize,
                &raw mut bytes as usize,
                0,
            ],
        )
    };
    let nanoseconds = time[0]
        .saturating_mul(SECOND)
        .saturating_add(time[1] * 1000);
    (!failed(result) && nanoseconds != 0).then_some(nanoseconds)
}

/// Returns the timeout of a call on a socket with one of its own, in nanoseconds.
pub fn of_socket(number: usize, fd: usize) -> Option<u64> {
    of_kind(number).and_then(|(option, _)| time_of(fd, option))
}

/// After the interruption of a call on a socket with a timeout of its own, has a piece wait for the rest of it.
fn wait_for_socket(frame: Frame, since: Option<u64>) {
    let number = frame.register(RESULT);
    let Some((option, events)) = of_kind(number) else {
        return;
    };
    let Some(time) = time_of(frame.register(ARGUMENTS[0]), option) else {
        return;
    };
    let waited = since.map_or(0, |since| now().saturating_sub(since));
    let left = time.saturating_sub(waited);
    let Some(end) = end_after(left) else { return };
    if !leave_piece(frame) {
        return;
    }
    let milliseconds = left.div_ceil(MILLISECOND) as usize;
    frame.set_register(RESULT, number | (end as usize) << 32);
    frame.set_register(WORD, events as usize | milliseconds << 32);
    frame.set_register(PC, Piece::CallPolled.address());
}

/// Called before a handler of the application runs on top of `frame`: ends a wait for a socket that is still to continue. Returns whether it was one.
pub fn ended(frame: Frame) -> bool {
    let waits = frame.register(PC) == Piece::CallPolled.address();
    if waits {
        frame.set_register(RESULT, -(libc::EINTR as isize) as usize);
        frame.set_register(PC, frame.register(BEHIND));
        frame.set_register(BEHIND, 0);
    }
    waits
}

/// Moves a frame that stands before a call, with all arguments unchanged, out of the piece that makes it; rcx then holds the address behind the trapped call,
/// or behind this one. Returns `false` if the call is not the application's, or more has been prepared than can be undone.
pub fn leave_piece(frame: Frame) -> bool {
    let rip = frame.register(PC);
    match springboard::standing(rip) {
        Standing::Elsewhere => {
            frame.set_register(BEHIND, rip + SYSCALL.len());
            stillpoint_wrappers::gate::is_upper(rip)
        }
        Standing::Calls(piece) => piece.takes().is_some_and(|bytes| {
            let stack = frame.register(SP);
            // SAFETY: the piece that the thread stands in has put the way back on top of the thread's stack.
            frame.set_register(BEHIND, unsafe { *(stack as *const usize) });
            frame.set_register(SP, stack + bytes);
            true
        }),
        _ => false,
    }
}
