//! The processes that have started the program and wait for it: a shell, a script, or any other process between the launcher's own child and the program that
//! uses MPI.
//!
//! To them, a suspend would look like the program's end, and they would run the next commands with the job half done. An image does not hold them. So they end
//! at the suspend, the outermost first, before the program does; the first one, whose end the launcher sees, ends with the job's own status.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};
use stillpoint_ids::Rank;
use stillpoint_part::Kind;

use serde::{Deserialize, Serialize};

use crate::arch::syscall::{failed, syscall3, syscall4};

/// The image's part about them: JSON, a list of [`Starter`].
pub const KIND: Kind = Kind {
    name: "starters",
    version: 1,
    always: false,
};

/// The variable with the id of the process that the launcher has started.
pub const FIRST: &str = "STILLPOINT_FIRST";

/// How long the first process may take to end when it is told to.
const PATIENCE: Duration = Duration::from_secs(2);

/// The upper half of the value of a SIGSYS that ends a process; the lower half is the status. `"ends"`.
const MAGIC: u32 = u32::from_le_bytes(*b"ends");

/// A process that waits for the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starter {
    pub pid: u32,
    /// Its arguments, for people.
    pub command: String,
}

/// Whether this process is the launcher's own child.
pub fn is_first() -> bool {
    std::env::var(FIRST).is_ok_and(|first| first == std::process::id().to_string())
}

/// Returns the processes that have started this one, the launcher's own child first; empty if this is the launcher's own child.
pub fn all() -> Vec<Starter> {
    let own = std::process::id();
    let first = std::env::var(FIRST)
        .ok()
        .and_then(|text| text.parse::<u32>().ok());
    let Some(first) = first.filter(|first| *first != own) else {
        return Vec::new();
    };
    let chain = chain(own, first, parent);
    chain
        .into_iter()
        .map(|pid| Starter {
            pid,
            command: command(pid),
        })
        .collect()
}

/// Returns the ancestors of `own` up to `first`, that one first. If `first` is not an ancestor (a process in between has ended), returns only `first`.
fn chain(own: u32, first: u32, parent: impl Fn(u32) -> Option<u32>) -> Vec<u32> {
    /// Deeper than scripts are nested.
    const DEEPEST: usize = 64;
    let ancestors =
        std::iter::successors(parent(own), |pid| parent(*pid).filter(|_| *pid != first));
    let mut chain: Vec<u32> = ancestors.take(DEEPEST).collect();
    if chain.last() != Some(&first) {
        return vec![first];
    }
    chain.reverse();
    chain
}

/// Returns a process's parent: field 4 of `/proc/PID/stat`, behind a name that may contain anything.
pub fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the command line; a long one is cut.
fn command(pid: u32) -> String {
    const MOST: usize = 80;
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let arguments = bytes.split(|byte| *byte == 0);
    let words: Vec<String> = arguments
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).replace(char::is_control, " "))
        .collect();
    let line = words.join(" ");
    match line.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line,
    }
}

/// Returns the message of a restart about a program that was started by these.
pub fn at_restart(starters: &[Starter]) -> Option<String> {
    let commands = in_words(starters)?;
    Some(format!(
        "{commands}, which had started the program and waited for it, is not carried on: nothing of it comes after the program"
    ))
}

fn in_words(starters: &[Starter]) -> Option<String> {
    let commands: Vec<String> = starters
        .iter()
        .map(|starter| format!("'{}'", starter.command))
        .collect();
    (!commands.is_empty()).then(|| commands.join(", "))
}

/// Ends the processes that have started this one: they would take the suspend for the program's end. `stderr` is this process's own, as the launcher provided
/// it.
pub fn end(rank: Rank, status: i32, stderr: Option<RawFd>) {
    let starters = all();
    let Some(commands) = in_words(&starters) else {
        return;
    };
    let first = starters.first().map_or(0, |first| first.pid);
    say(
        first,
        stderr,
        &format!(
            "stillpoint: rank {rank}: the suspend ends {commands}, which waits for the program: nothing of it comes after the program, \
             and a restart carries on the program alone\n"
        ),
    );
    for starter in &starters {
        if starter.pid == first && told(first, status) {
            continue;
        }
        // SAFETY: the call takes numbers and touches no memory; the process is a starter of this program, which still waits.
        unsafe { libc::kill(starter.pid as libc::pid_t, libc::SIGKILL) };
        await_end(starter.pid);
    }
}

/// Tells the first process, which is split like this one, to end with a status; returns `false` if it is not split.
fn told(pid: u32, status: i32) -> bool {
    catches_sigsys(pid) && {
        // struct siginfo: signal, error, code, (padding), sender's process and user, value.
        let mut info = [0u32; 32];
        info[0] = libc::SIGSYS as u32;
        info[2] = libc::SI_QUEUE as u32;
        info[4] = std::process::id();
        info[6] = status as u32;
        info[7] = MAGIC;
        // To its main thread, which then does not reach the script's next line.
        // SAFETY: the kernel reads the 128 bytes of the structure, which lives on this stack.
        let sent = unsafe {
            syscall4(
                libc::SYS_rt_tgsigqueueinfo,
                pid as usize,
                pid as usize,
                libc::SIGSYS as usize,
                info.as_ptr() as usize,
            )
        };
        !failed(sent) && await_end(pid)
    }
}

/// Whether a process still handles SIGSYS: a script's interpreter may have executed a program that is not split.
fn catches_sigsys(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    caught.is_some_and(|set| set >> (libc::SIGSYS - 1) & 1 != 0)
}

/// Waits until a process has ended, whether or not its parent has learned of it.
fn await_end(pid: u32) -> bool {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.trim_start().chars().next());
        if matches!(state, None | Some('Z' | 'X')) {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Prints on the launcher's own stream, if that is possible: the application's may be a file of its own.
fn say(first: u32, stderr: Option<RawFd>, text: &str) {
    let launchers = OpenOptions::new()
        .append(true)
        .open(format!("/proc/{first}/fd/2"));
    let said = launchers.and_then(|mut stream| stream.write_all(text.as_bytes()));
    if said.is_err()
        && let Some(own) = stderr
    {
        // SAFETY: the kernel reads the text's bytes. An error cannot be reported any more.
        unsafe { libc::write(own, text.as_ptr().cast(), text.len()) };
    }
}

/// For SIGSYS's handler: ends this process if the signal says so, otherwise returns `false`. Any FS, direct system calls.
///
/// # Safety
/// `info` must be what the kernel gave the handler, which has not returned.
pub unsafe fn ends(info: *const libc::siginfo_t) -> bool {
    // SAFETY: the caller gives the kernel's structure, which is alive while the handler runs; with this code it holds the sender's value.
    unsafe {
        if (*info).si_code != libc::SI_QUEUE {
            return false;
        }
        let value = (*info).si_value().sival_ptr as u64;
        if value >> 32 == u64::from(MAGIC) {
            syscall3(libc::SYS_exit_group, value as u32 as usize, 0, 0);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_begins_with_what_the_launcher_started() {
        let parents = |pid: u32| {
            [(9, 8), (8, 5), (5, 3)]
                .iter()
                .find(|(of, _)| *of == pid)
                .map(|(_, to)| *to)
        };
        assert_eq!(chain(9, 5, parents), [5, 8]);
        assert_eq!(chain(9, 3, parents), [3, 5, 8]);
        // A process in between has gone, and init has adopted the program.
        assert_eq!(chain(9, 7, parents), [7]);
        assert!(command(std::process::id()).contains("stillpoint"));
        assert!(parent(std::process::id()).is_some());
    }

    #[test]
    fn nothing_is_said_where_the_launcher_started_the_program() {
        assert_eq!(at_restart(&[]), None);
        let shell = Starter {
            pid: 7,
            command: "bash -c app".into(),
        };
        assert!(at_restart(&[shell]).unwrap().contains("'bash -c app'"));
    }
}
