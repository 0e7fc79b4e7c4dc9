//! The lock that a checkpoint takes: calls of the driver pass it, and none does while it is closed.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use stillpoint_emulated_gpu_protocol::clock;

struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    closed: bool,
    inside: u32,
}

static GATE: Gate = Gate {
    state: Mutex::new(State {
        closed: false,
        inside: 0,
    }),
    changed: Condvar::new(),
};

fn state() -> MutexGuard<'static, State> {
    GATE.state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that is under way.
pub struct Inside(());

/// Waits until the gate is open, and goes in.
pub fn enter() -> Inside {
    let mut state = state();
    while state.closed {
        state = GATE
            .changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner);
    }
    state.inside += 1;
    Inside(())
}

impl Drop for Inside {
    fn drop(&mut self) {
        state().inside -= 1;
        GATE.changed.notify_all();
    }
}

/// Closes the gate and waits until nobody is inside, until a time of the monotonic clock. Whether that was in time; if not, the gate is
/// open as before.
pub fn close(until: Option<u64>) -> bool {
    let mut state = state();
    state.closed = true;
    while state.inside > 0 {
        let left = match until {
            // Looks again from time to time: a condition variable's wait with and without an end are one thing here.
            None => Duration::from_secs(1),
            Some(until) => Duration::from_nanos(until.saturating_sub(clock::now())),
        };
        if left.is_zero() {
            state.closed = false;
            GATE.changed.notify_all();
            return false;
        }
        (state, _) = GATE
            .changed
            .wait_timeout(state, left)
            .unwrap_or_else(PoisonError::into_inner);
    }
    true
}

/// Opens the gate.
pub fn open() {
    state().closed = false;
    GATE.changed.notify_all();
}
