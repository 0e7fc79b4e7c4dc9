//! Keeps this process's own memory out of the upper half's ranges.
//!
//! The kernel leaves as much address space below the stack as the stack may grow, but at most five sixths of all, and puts a process's mappings below that.
//! Without a limit (`ulimit -s unlimited`), current kernels thus put them at `0x1455_5555_5000` and above, in the upper half's range. The process then executes
//! itself again with a small limit, before anything has been done, and afterwards restores its own limit for the application.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;

use stillpoint_wrappers::gate::is_upper;

/// The first argument of a process that has executed itself again; the original limit is the second.
const LIMIT: &str = "--stack-limit";
/// A limit with which the kernel uses its usual addresses.
const SMALL: libc::rlim_t = 1 << 30;
/// The most that this process may map below its first mappings.
const OWN: usize = 1 << 40;

/// Returns the arguments without those of this module.
///
/// # Errors
/// The kernel's error for the second `execve`; if that succeeds, this function does not return.
pub fn ensure(mut arguments: Vec<OsString>) -> io::Result<Vec<OsString>> {
    let limit = limit()?;
    let mut wanted = limit.rlim_cur;
    if arguments.first().is_some_and(|first| first == LIMIT) {
        let value = arguments.drain(..2.min(arguments.len())).nth(1);
        let value = value.and_then(|value| value.to_str()?.parse().ok());
        wanted = value.ok_or(io::ErrorKind::InvalidInput)?;
    }
    let linker = linker();
    let in_the_way = is_upper(linker) || is_upper(linker.saturating_sub(OWN));
    if in_the_way && limit.rlim_cur > SMALL {
        return Err(again(limit, wanted, &arguments));
    }
    if is_upper(linker) {
        return Err(io::Error::other(
            "the kernel puts this process where the application's memory must be",
        ));
    }
    set(libc::rlimit {
        rlim_cur: wanted,
        ..limit
    })?;
    Ok(arguments)
}

fn again(limit: libc::rlimit, wanted: libc::rlim_t, arguments: &[OsString]) -> io::Error {
    let small = libc::rlimit {
        rlim_cur: SMALL,
        ..limit
    };
    if let Err(error) = set(small) {
        return error;
    }
    std::process::Command::new("/proc/self/exe")
        .arg(LIMIT)
        .arg(wanted.to_string())
        .args(arguments)
        .exec()
}

/// Returns the dynamic linker's address: the kernel maps it first, and everything else lies below it.
fn linker() -> usize {
    // SAFETY: getauxval looks a number up in the auxiliary vector, which the process has from its start.
    unsafe { libc::getauxval(libc::AT_BASE) as usize }
}

fn limit() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: getrlimit fills the structure, which lives on this stack.
    match unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut limit) } {
        0 => Ok(limit),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set(limit: libc::rlimit) -> io::Result<()> {
    // SAFETY: setrlimit reads the structure, which lives on this stack.
    match unsafe { libc::setrlimit(libc::RLIMIT_STACK, &limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
