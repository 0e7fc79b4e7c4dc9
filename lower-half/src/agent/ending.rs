//! Leaving after a suspend: the epoch is committed, nothing of this process is needed any more.
//!
//! Its MPI files are closed, for a library may have files of its own beside them, which go then: ROMIO has for shared pointers. MPI is finalised all the same,
//! because a launcher calls a rank that ends without `MPI_Finalize` a failure and kills the others. The application's threads stand still for good, so the agent may call MPI.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::voice;
use crate::capture::descriptors::streams;
use crate::ground::starters;
use crate::mpi::backend::BACKEND;
use crate::mpi::open_files;

/// How long the ranks may take to finalise MPI together before they end without.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ends the process with the status that the launch wants of a job that is suspended.
pub fn leave(status: u8) -> ! {
    let finalised = std::thread::Builder::new()
        .name("stillpoint-end".to_owned())
        .spawn(move || {
            if let Some(table) = crate::mpi::table() {
                // SAFETY: MPI runs in this process, and no other thread of it calls MPI any more.
                unsafe {
                    if let Some(alone) = BACKEND.alone {
                        alone();
                    }
                    open_files::close();
                    (table.finalize)();
                }
            }
            end(status);
        });
    if finalised.is_ok() {
        std::thread::sleep(PATIENCE);
        voice::say(&format!(
            "rank {}: the ranks did not finalise MPI together within {} s: the launcher may call the launch failed, but the job is suspended",
            rank(),
            PATIENCE.as_secs()
        ));
    }
    end(status)
}

/// Ends the process: what it was to be carried on from cannot be read any more.
pub fn lost(why: String) -> ! {
    voice::say(&format!("rank {}: {why}", rank()));
    end(1)
}

/// `_exit`: no exit handlers, neither half's. What waits for the program ends before it, as it will.
fn end(status: u8) -> ! {
    starters::end(rank().max(0) as u32, status.into(), streams::remembered(2));
    // SAFETY: ends the process; takes no memory.
    unsafe { libc::_exit(status.into()) }
}

fn rank() -> i32 {
    // SAFETY: an application runs or is coming back, so the page is mapped.
    unsafe { stillpoint_wrappers::gate::page() }
        .rank
        .load(Ordering::Relaxed)
}
