//! Sleeps for a time, without a place for what is left of it when a signal ends them. A stop would begin such a sleep again
//! from its start; so the springboard gives it a place.
//!
//! Rules of this place: runs in the trap's handler.

use super::call::Call;
use crate::arch::springboard::Piece;

/// `nanosleep` and `clock_nanosleep`, with the number of the argument that leads to the place for the rest. `until`: the sleep
/// ends at a time, and has no rest.
pub fn on_sleep(call: &mut Call, rest: usize, until: bool, piece: Piece) -> isize {
    // The filter has looked at half of the argument only.
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
