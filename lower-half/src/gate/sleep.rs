//! Waits with a timeout. A stop would restart them in full, so the springboard notes when they end, or gives a sleep a place for the remaining time.
//!
//! Rules of this place: runs in the trap's handler.

use super::call::Call;
use super::user;
use crate::arch::springboard::Piece;
use crate::threads::deadlines;

/// Answers `nanosleep` and `clock_nanosleep`; `rest` is the number of the argument with the place for the remaining time. `until`: the sleep ends at a fixed
/// time, and has no remaining time.
pub fn on_sleep(call: &mut Call, rest: usize, until: bool, piece: Piece) -> isize {
    // The filter has tested only half of the argument.
    if until || call.argument(rest) != 0 {
        call.redirect_plain()
    } else {
        call.redirect(piece, 0)
    }
}

/// `clock_nanosleep`.
pub fn on_clock_sleep(call: &mut Call) -> isize {
    let until = call.argument(1) & libc::TIMER_ABSTIME as usize != 0;
    on_sleep(call, 3, until, Piece::CallRest3)
}

/// Answers a wait for as many milliseconds as this argument says.
pub fn on_milliseconds(call: &mut Call, argument: usize) -> isize {
    until(call, milliseconds(call, argument))
}

/// Answers a wait for the `timespec` that this argument points to.
pub fn on_interval(call: &mut Call, argument: usize) -> isize {
    until(call, interval(call, argument))
}

fn until(call: &mut Call, nanoseconds: Option<u64>) -> isize {
    match nanoseconds.and_then(deadlines::end_after) {
        Some(end) => call.redirect_until(Piece::CallUntil, 0, end),
        None => call.redirect_plain(),
    }
}

/// Returns the time of a wait, in nanoseconds, or `None` if it does not wait, or waits for ever.
pub fn milliseconds(call: &Call, argument: usize) -> Option<u64> {
    let time = call.argument(argument) as i32;
    (time > 0).then(|| time as u64 * 1_000_000)
}

/// The same for a `timespec`; also `None` if it is not valid.
pub fn interval(call: &Call, argument: usize) -> Option<u64> {
    let place = call.argument(argument);
    let [seconds, nanoseconds] = match place {
        0 => return None,
        place => user::read::<[usize; 2]>(place).ok()?,
    };
    let good = seconds <= i64::MAX as usize && nanoseconds < 1_000_000_000;
    let time = (seconds as u64).saturating_mul(1_000_000_000);
    let time = time.saturating_add(nanoseconds as u64);
    (good && time != 0 && time < u64::MAX / 2).then_some(time)
}
