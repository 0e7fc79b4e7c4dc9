//! Messages of the command about the beginning of the launch ([`stillpoint_protocol::launch_start`]). They take as long as loading the lower half and the
//! application.

use std::fs::File;
use std::os::fd::FromRawFd;
use std::process::exit;

use stillpoint_protocol::job_file::{JobFile, JobState};
use stillpoint_protocol::launch::{Launch, VARIABLE};
use stillpoint_protocol::launch_start::{self, Awaits, Missing};

use super::error::LaunchError;
use crate::ground::{inherited, say};

/// Hides the descriptor that such a message comes on from the application.
pub fn keep_apart(launch: &Launch) {
    if let Some(Awaits::Coordinator { answer, .. }) = launch.awaits {
        inherited::let_go(answer as usize);
    }
}

/// Returns when this rank can join its job: the launch, with all that is known then. Does not return if there is no job to join.
///
/// # Safety
/// No other thread may have been started in this process, which hears this once.
pub unsafe fn hear(launch: &Launch) -> Result<Launch, LaunchError> {
    let mut launch = launch.clone();
    match launch.awaits.take() {
        None => return Ok(launch),
        Some(Awaits::Coordinator { answer, first }) => {
            // SAFETY: the command has left the number open for this process, and nothing else here uses it.
            let answer = unsafe { File::from_raw_fd(answer) };
            let heard = launch_start::hear(answer, first);
            forget_its_end();
            if let Err(why) = heard {
                // Before the others end: a launcher may then end this process too.
                say::line(&why);
                launch_start::tell(&launch.launch, launch.size.saturating_sub(1), &why);
                exit(why.status.into());
            }
        }
        Some(Awaits::Job) => {
            let job = match launch_start::wait_for_job(&launch.launch, &launch.directory) {
                Ok(job) if job.state == JobState::Finished => exit(0),
                Ok(job) => job,
                Err(Missing::Told(why)) => exit(why.status.into()),
                Err(missing) => {
                    let rank = launch.rank;
                    return Err(LaunchError::NoJob { rank, missing });
                }
            };
            know(&mut launch, job)?;
        }
    }
    // Programs that this program starts or executes inherit the same.
    // SAFETY: the caller says that no other thread has been started that could look at the environment.
    unsafe { std::env::set_var(VARIABLE, launch.to_variable()) };
    Ok(launch)
}

/// Takes the signal of the child's end, while it is blocked: it does not concern the application.
fn forget_its_end() {
    let at_once = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both structures live on this stack; null says that the signal's sender is not asked for.
    unsafe {
        let mut ended: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut ended);
        libc::sigaddset(&raw mut ended, libc::SIGCHLD);
        libc::sigtimedwait(&raw const ended, std::ptr::null_mut(), &raw const at_once);
    }
}

/// Takes over the job that rank 0 has started, if it is the one that this rank starts.
fn know(launch: &mut Launch, job: JobFile) -> Result<(), LaunchError> {
    let differs = |what: String| LaunchError::Differs {
        rank: launch.rank,
        what,
    };
    if job.restarted_from.or(job.recovers).is_some() {
        let what = "rank 0 restarts from an epoch, but this rank starts from the beginning: give all ranks the same options";
        return Err(differs(what.to_owned()));
    }
    if (&job.mpi, &job.library) != (&launch.mpi, &launch.library) {
        return Err(differs(format!(
            "this rank has {} on {}, but rank 0 has {} on {}: all ranks of a job need MPI libraries with the same \
             binary interface",
            launch.mpi, launch.library, job.mpi, job.library
        )));
    }
    launch.job = job.job;
    launch.name = job.name;
    launch.command = job.command;
    Ok(())
}
