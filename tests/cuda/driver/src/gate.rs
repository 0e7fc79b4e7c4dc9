//! The gates that a checkpoint's lock closes: whoever uses the driver's state passes one, and none does while it is closed.
//!
//! A thread may be stopped at any instruction, and must hold nothing then that the service thread needs: so a gate is one word.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use stillpoint_emulated_gpu_protocol::{clock, futex};

/// Set while it is closed; the rest of the word counts who is inside.
const CLOSED: u32 = 1 << 31;
/// How long is waited at once: who leaves may be stopped before he wakes anybody.
const LOOK: Duration = Duration::from_millis(10);

pub struct Gate(AtomicU32);

/// What the program's calls pass.
pub static CALLS: Gate = Gate(AtomicU32::new(0));
/// What the thread passes that calls the program's functions. It is closed later: a lock waits for these functions, too.
pub static FUNCTIONS: Gate = Gate(AtomicU32::new(0));

/// Somebody is inside.
pub struct Inside(&'static AtomicU32);

impl Drop for Inside {
    fn drop(&mut self) {
        if self.0.fetch_sub(1, Ordering::AcqRel) == CLOSED | 1 {
            // Nobody has to be there.
            let _ = futex::wake(self.0);
        }
    }
}

impl Gate {
    /// Waits until the gate is open, and goes in.
    pub fn enter(&'static self) -> Inside {
        let mut seen = self.0.load(Ordering::Acquire);
        loop {
            if seen & CLOSED != 0 {
                futex::wait(futex::place(&self.0), seen, Some(Duration::from_secs(1)));
                seen = self.0.load(Ordering::Acquire);
                continue;
            }
            let entered =
                self.0
                    .compare_exchange(seen, seen + 1, Ordering::AcqRel, Ordering::Acquire);
            match entered {
                Ok(_) => return Inside(&self.0),
                Err(now) => seen = now,
            }
        }
    }

    /// Closes the gate and waits until nobody is inside, until a time of the monotonic clock. Whether that was in time; if not, the gate is
    /// open as before.
    pub fn close(&self, until: Option<u64>) -> bool {
        self.0.fetch_or(CLOSED, Ordering::AcqRel);
        loop {
            let seen = self.0.load(Ordering::Acquire);
            let late = until.is_some_and(|until| clock::now() >= until);
            match (seen, late) {
                (CLOSED, false) => return true,
                (_, true) => {
                    self.open();
                    return false;
                }
                (_, false) => futex::wait(futex::place(&self.0), seen, Some(LOOK)),
            }
        }
    }

    /// Opens the gate.
    pub fn open(&self) {
        self.0.fetch_and(!CLOSED, Ordering::AcqRel);
        // Nobody has to be there.
        let _ = futex::wake(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use stillpoint_emulated_gpu_protocol::clock;

    use super::Gate;

    #[test]
    fn who_is_inside_keeps_it_from_closing_and_it_is_open_then() {
        static GATE: Gate = Gate(AtomicU32::new(0));
        let soon = || Some(clock::now() + 30_000_000);
        let inside = GATE.enter();
        assert!(!GATE.close(soon()));
        drop(GATE.enter());
        drop(inside);
        assert!(GATE.close(soon()));
        let waits = std::thread::spawn(|| drop(GATE.enter()));
        assert!(GATE.close(soon()), "who waits is not inside");
        GATE.open();
        waits.join().unwrap();
    }

    /// Whoever asked has gone by then, and would not know.
    #[test]
    fn what_is_closed_too_late_is_not_closed() {
        static GATE: Gate = Gate(AtomicU32::new(0));
        assert!(!GATE.close(Some(clock::now().saturating_sub(1))));
        drop(GATE.enter());
    }
}
