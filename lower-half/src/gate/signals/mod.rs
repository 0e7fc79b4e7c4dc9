//! Signals: the application's handlers, and the masks that must never hold back SIGSYS or the stop signal.
//!
//! Rules of this place: runs in handlers, with the application's FS (in `delivery`, either).

mod actions;
mod alternate;
mod below;
mod delivery;
mod masks;

use core::sync::atomic::{AtomicI32, Ordering};

pub use actions::{
    asks_for_suspend, given_back, install_own, leaves_at_default, on_sigaction, restore, save,
    start_forked, start_with, suspend_by, suspending, while_still,
};
pub use alternate::on_alternate_stack;
pub use delivery::{deliver_here, fill_slots};
pub use masks::{
    as_believed, beliefs, believe, believe_again, believed, on_epoll_pwait, on_epoll_pwait2,
    on_mask_argument, on_pselect, on_sigprocmask, on_sigtimedwait,
};

/// Signals are numbered 1 to 64.
pub const MOST_SIGNALS: usize = 64;

static STOP_SIGNAL: AtomicI32 = AtomicI32::new(62);

/// The signal that stops a thread.
pub fn stop_signal() -> i32 {
    STOP_SIGNAL.load(Ordering::Relaxed)
}

/// Chooses the stop signal, before anything is installed.
pub fn set_stop_signal(signal: i32) {
    STOP_SIGNAL.store(signal, Ordering::Relaxed);
}

/// The place of a signal in a mask.
pub const fn bit(signal: i32) -> u64 {
    1u64 << ((signal - 1) & 63)
}

/// Signals that the application can neither block nor take over.
pub fn ours() -> u64 {
    bit(libc::SIGSYS) | bit(stop_signal())
}

fn is_ours(signal: i32) -> bool {
    signal == libc::SIGSYS || signal == stop_signal()
}
