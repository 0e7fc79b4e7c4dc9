//! Leaving after a suspend: the epoch is committed, nothing of this process is needed any more.
//!
//! MPI is finalised all the same, because a launcher calls a rank that ends without `MPI_Finalize` a
//! failure and kills the others. The application's threads stand still for good, so the agent may call MPI.

use std::time::Duration;

/// How long the ranks may take to finalise MPI together before they end without.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ends the process with status 0.
pub fn leave() -> ! {
    let finalised = std::thread::Builder::new()
        .name("stillpoint-end".to_owned())
        .spawn(|| {
            // SAFETY: MPI runs in this process, and no other thread of it calls MPI any more.
            unsafe { (crate::mpi::dispatch(crate::mpi::interruptible::extra()).finalize)() };
            end();
        });
    if finalised.is_ok() {
        std::thread::sleep(PATIENCE);
    }
    end()
}

/// `_exit(0)`: no exit handlers, neither half's.
fn end() -> ! {
    // SAFETY: ends the process; takes no memory.
    unsafe { libc::_exit(0) }
}
