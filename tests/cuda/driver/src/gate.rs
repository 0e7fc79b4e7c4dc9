//! The gates that a checkpoint's lock closes. A thread passes one to use the driver's state; none passes while it is closed.
//!
//! A thread may be stopped at any instruction, and must not hold a lock that the service thread needs. So a gate is one word.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use stillpoint_emulated_gpu_protocol::{clock, futex};

/// Set while the gate is closed; the rest of the word counts the threads inside.
const CLOSED: u32 = 1 << 31;
/// The longest single wait: a thread that leaves may be stopped before it wakes the others.
const LOOK: Duration = Duration::from_millis(10);

pub struct Gate(AtomicU32);

/// The gate for the program's calls.
pub static CALLS: Gate = Gate(AtomicU32::new(0));
/// The gate for the thread that calls the program's functions. It closes later, since a lock waits for these functions,
/// too.
pub static FUNCTIONS: Gate = Gate(AtomicU32::new(0));

/// A thread's presence inside a gate.
pub struct Inside(&'static AtomicU32);

impl Drop for Inside {
    fn drop(&mut self) {
        if self.0.fetch_sub(1, Ordering::AcqRel) == CLOSED | 1 {
            // There may be no waiter.
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

    /// Closes the gate and waits until no thread is inside, until a time of the monotonic clock. Returns whether that was in time; if not,
    /// the gate is open as before.
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
        // There may be no waiter.
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

    /// The caller has gone by then, and would not know of it.
    #[test]
    fn what_is_closed_too_late_is_not_closed() {
        static GATE: Gate = Gate(AtomicU32::new(0));
        assert!(!GATE.close(Some(clock::now().saturating_sub(1))));
        drop(GATE.enter());
    }
}
