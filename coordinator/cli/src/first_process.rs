//! `run` or `restart` as a container's first process (`docker run IMAGE stillpoint run ...`, `unshare --pid --fork`).
//!
//! The kernel makes that process the parent of whatever is orphaned in the container, of the job's coordinator too, ends everything else with it, and keeps
//! signals from it that it does not handle. So it stays what it is, as a container's init does: the rank is its child, which gets its signals; its
//! end and its status are the child's. The coordinator may say its last word before.
//!
//! Otherwise nothing is left of it: it holds no descriptor of the launcher's.

use std::fs::OpenOptions;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout, isatty, setpgid};

use super::Failure;
use super::coordinator::close_inherited;

/// What a terminal sends to the whole group.
const OF_TERMINALS: [Signal; 4] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTSTP,
    Signal::SIGWINCH,
];

/// Returns where the rank is to go on: at once, or in a child of the first process.
///
/// # Errors
/// There can be no child.
pub fn stay_behind() -> Result<(), Failure> {
    if std::process::id() != 1 {
        return Ok(());
    }
    let terminal = isatty(std::io::stdin()).unwrap_or(false);
    // No thread has been started, so the child has all that this process has.
    match fork::fork().map_err(|error| Failure::of(&error))? {
        fork::Fork::Child => {
            if !terminal {
                // A signal to a group comes once, by way of the first process. That fails where the parent has done it already.
                let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
            }
            Ok(())
        }
        fork::Fork::Parent(child) => {
            std::process::exit(attend(Pid::from_raw(child), terminal));
        }
    }
}

/// Passes signals on until the child has ended; its status, as a shell gives it.
/// `terminal`: who reads there is one group, to which the terminal's own signals go.
fn attend(child: Pid, terminal: bool) -> i32 {
    let every = SigSet::all();
    let blocked = every.thread_block();
    if !terminal {
        let _ = setpgid(child, child);
    }
    hold_nothing();
    let mut status = None;
    loop {
        let others = reap(child, &mut status);
        if let Some(status) = status
            && (!others || !coordinator_lives())
        {
            return status;
        }
        if blocked.is_err() {
            std::thread::sleep(std::time::Duration::from_millis(20));
            continue;
        }
        match (every.wait(), status) {
            (Ok(Signal::SIGCHLD) | Err(_), _) => {}
            (Ok(signal), _) if terminal && OF_TERMINALS.contains(&signal) => {}
            (Ok(signal), None) => {
                // It may have ended just now.
                let _ = kill(child, signal);
            }
            // Nobody waits for the coordinator who does not want to.
            (Ok(_), Some(status)) => return status,
        }
    }
}

/// Takes note of all that have ended; whether there are others.
fn reap(child: Pid, status: &mut Option<i32>) -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) if pid == child => *status = Some(code),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => {
                *status = Some(128 + signal as i32);
            }
            Ok(WaitStatus::StillAlive) => return true,
            Ok(_) | Err(Errno::EINTR) => {}
            // Where SIGCHLD was ignored, a child is gone without a status.
            Err(_) => {
                status.get_or_insert(1);
                return false;
            }
        }
    }
}

/// Whether one of this process's children is of the same program: the coordinator.
fn coordinator_lives() -> bool {
    let program = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own = program("self");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    own.is_some() && pids.any(|pid| parent(&pid) == Some(1) && program(&pid) == own)
}

/// Field 4 of /proc/PID/stat, behind a name that may hold anything.
fn parent(pid: &str) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// What a launcher reads from ends with the rank.
fn hold_nothing() {
    if let Ok(nowhere) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = dup2_stdin(&nowhere);
        let _ = dup2_stdout(&nowhere);
        let _ = dup2_stderr(&nowhere);
    }
    close_inherited();
}
