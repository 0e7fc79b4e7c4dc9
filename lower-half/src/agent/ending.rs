//! The end of the process after a suspend: the epoch is committed, and this process is not needed any more.
//!
//! Its MPI files are closed first, because a library may have files of its own beside them that it removes then, as ROMIO has for
//! shared pointers. Its windows are freed, because a library may wait for their locks in `MPI_Finalize`. MPI is finalised too, because a launcher takes a rank that ends without `MPI_Finalize` for a failure and
//! kills the others. The application's threads stand still for good, so the agent may call MPI.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stillpoint_ids::Rank;

use super::user_messages;
use crate::capture::descriptors::streams;
use crate::ground::{starters, thread};
use crate::mpi::backend::BACKEND;
use crate::mpi::{open_files, open_windows, ucx};

/// How long the ranks may take to finalise MPI together, before they end without that.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much longer the process lives if the launcher has not answered in [`Backend::answers_within`].
///
/// [`Backend::answers_within`]: crate::mpi::backend::Backend::answers_within
const UNANSWERED: Duration = Duration::from_secs(5);

/// Set when MPI is finalised.
static FINALISED: AtomicBool = AtomicBool::new(false);

/// Ends the process with the status that the launch wants for a suspended job.
pub fn leave(status: u8) -> ! {
    let finalised = thread::start("stillpoint-end", thread::LARGE, move || {
        if let Some(table) = crate::mpi::table() {
            // SAFETY: MPI runs in this process, and no other thread of it calls MPI any more.
            unsafe {
                if let Some(alone) = BACKEND.alone {
                    alone();
                }
                open_files::close();
                open_windows::free();
                ucx::only_errors();
                let begun = Instant::now();
                (table.finalize)();
                FINALISED.store(true, Ordering::Release);
                // The launcher reads the end of this process before the end of MPI, if it finds both at once, and calls the launch failed.
                if BACKEND
                    .answers_within
                    .is_some_and(|within| begun.elapsed() >= within)
                {
                    std::thread::sleep(UNANSWERED);
                }
            }
        }
        end(status);
    });
    if finalised.is_ok() {
        std::thread::sleep(PATIENCE);
        if FINALISED.load(Ordering::Acquire) {
            // The other thread ends the process.
            std::thread::sleep(UNANSWERED);
        }
    }
    if let Some(told) = BACKEND.told {
        let telling = thread::start("stillpoint-left", thread::LARGE, move || {
            // SAFETY: MPI runs in this process.
            unsafe { told() };
            end(status)
        });
        if telling.is_ok() {
            std::thread::sleep(PATIENCE);
        }
    }
    user_messages::say(&format!(
        "rank {}: the ranks did not finalise MPI together within {} s: the launcher may call the launch failed, but the job is suspended",
        rank(),
        PATIENCE.as_secs()
    ));
    end(status)
}

/// Reports why the application cannot go on, and ends the process.
pub fn lost(why: String) -> ! {
    user_messages::say(&format!("rank {}: {why}", rank()));
    end(1)
}

/// Calls `_exit`: exit handlers of neither half run. Processes that wait for the program are ended before it.
fn end(status: u8) -> ! {
    let rank = Rank(rank().max(0) as u32);
    starters::end(rank, status.into(), streams::remembered(2));
    // SAFETY: the call ends the process and takes no pointer.
    unsafe { libc::_exit(status.into()) }
}

fn rank() -> i32 {
    // SAFETY: an application runs or is coming back, so the page is mapped.
    unsafe { stillpoint_wrappers::gate::page() }
        .rank
        .load(Ordering::Relaxed)
}
