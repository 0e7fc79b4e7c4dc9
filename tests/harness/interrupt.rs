//! If the runner ends a test (SIGTERM after its slow-timeout, SIGINT from the keyboard), the test ends its own jobs
//! first. The signal only sets a flag. The loops that wait for jobs and commands see it and fail, and the failure names
//! the event that the test was waiting for.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static SEEN: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: i32) {
    SEEN.store(true, Ordering::Relaxed);
}

/// Installs the handler: the first such signal sets the flag, the second one ends the process.
pub fn expect() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        let action = SigAction::new(
            SigHandler::Handler(note),
            SaFlags::SA_RESTART | SaFlags::SA_RESETHAND,
            SigSet::empty(),
        );
        for signal in [Signal::SIGTERM, Signal::SIGINT] {
            // SAFETY: the handler stores to an atomic and does nothing else.
            let _ = unsafe { sigaction(signal, &action) };
        }
    });
}

/// Tells whether the runner has asked this test to end.
pub fn seen() -> bool {
    SEEN.load(Ordering::Relaxed)
}
