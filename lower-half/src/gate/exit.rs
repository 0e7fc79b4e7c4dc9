//! The end of the process: the agent learns of it before the kernel does.
//!
//! Rules of this place: [`on_exit_group`] runs in the trap's handler. The calling thread waits for the agent for a
//! bounded time.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::gate::call::Call;
use crate::ground::wake;
use crate::threads::registry::Thread;

static FORKED: AtomicBool = AtomicBool::new(false);

/// `exit_group`.
pub fn on_exit_group(call: &mut Call) -> isize {
    let ours = !forked() && Thread::current().is_some_and(|thread| !thread.shares_memory());
    if ours {
        wake::process_ends(call.argument(0) as i32);
    }
    call.make()
}

/// Notes that this is a forked child, whose end is not reported.
pub fn start_forked() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Whether this process is a forked child of the one that was launched.
pub fn forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}
