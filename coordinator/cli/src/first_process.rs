//! `run` or `restart` as a container's first process (`docker run IMAGE stillpoint run ...`, `unshare --pid --fork`).
//!
//! The kernel makes that process the parent of every orphan in the container, including the job's coordinator. It ends all other processes with it, and
//! withholds signals from it that it does not handle. So the process stays, as a container's init does. The rank is its child and gets its signals, and its
//! end and status are the child's. It lets the coordinator finish its last message first.
//!
//! It holds no descriptor of the launcher.

use std::fs::OpenOptions;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout, isatty, setpgid};

use stillpoint_refusals::Code;

use super::Failure;
use super::coordinator::close_inherited;

/// Signals that a terminal sends to the whole group.
const OF_TERMINALS: [Signal; 4] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTSTP,
    Signal::SIGWINCH,
];

/// Returns in the process in which the rank goes on: this one, or a child of the first process.
///
/// # Errors
/// The child cannot be made.
pub fn stay_behind() -> Result<(), Failure> {
    if std::process::id() != 1 {
        return Ok(());
    }
    let terminal = isatty(std::io::stdin()).unwrap_or(false);
    // No thread has been started, so the child has everything of this process.
    match fork::fork().map_err(|error| Failure::refuse_of(Code::NotSetUp, &error))? {
        fork::Fork::Child => {
            if !terminal {
                // A signal to a group then comes once, by way of the first process. This fails if the parent has done it already.
                let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
            }
            Ok(())
        }
        fork::Fork::Parent(child) => {
            std::process::exit(attend(Pid::from_raw(child), terminal));
        }
    }
}

/// Passes signals on until the child has ended. Returns its status, as a shell gives it. `terminal`: stdin is a terminal, which sends its own signals to the
/// whole group.
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
                // The child may have ended just now.
                let _ = kill(child, signal);
            }
            // A signal ends the wait for the coordinator.
            (Ok(_), Some(status)) => return status,
        }
    }
}

/// Reaps all children that have ended. Returns whether others are left.
fn reap(child: Pid, status: &mut Option<i32>) -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) if pid == child => *status = Some(code),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => {
                *status = Some(128 + signal as i32);
            }
            Ok(WaitStatus::StillAlive) => return true,
            Ok(_) | Err(Errno::EINTR) => {}
            // If SIGCHLD was ignored, a child is gone without a status.
            Err(_) => {
                status.get_or_insert(1);
                return false;
            }
        }
    }
}

/// Whether one of this process's children runs the same program: that is the coordinator.
fn coordinator_lives() -> bool {
    let program = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own = program("self");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    own.is_some() && pids.any(|pid| parent(&pid) == Some(1) && program(&pid) == own)
}

/// The parent, in field 4 of /proc/PID/stat, after a name that may contain any character.
fn parent(pid: &str) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// Closes all descriptors: a launcher that reads from them then sees the end together with the rank's.
fn hold_nothing() {
    if let Ok(nowhere) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = dup2_stdin(&nowhere);
        let _ = dup2_stdout(&nowhere);
        let _ = dup2_stderr(&nowhere);
    }
    close_inherited();
}
