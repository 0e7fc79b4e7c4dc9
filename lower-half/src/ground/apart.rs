//! Keeps this process's own memory out of the upper half's ranges.
//!
//! The kernel leaves as much address space below the stack as the stack may grow, five sixths of all at most, and puts what a process maps below
//! that. Without a limit (`ulimit -s unlimited`) kernels of today thus put it at `0x1455_5555_5000` and above, where the upper half's is. Then
//! the process begins again with a small limit, before anything has been done, and takes its own back: the application has it as it was.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;

use stillpoint_wrappers::gate::is_upper;

/// The first argument of a process that has begun again; the limit that it had is the second.
const LIMIT: &str = "--stack-limit";
/// A limit with which the kernel puts everything where it is otherwise.
const SMALL: libc::rlim_t = 1 << 30;
/// What this process may map, at most, below its first mappings.
const OWN: usize = 1 << 40;

/// The arguments, without those of this place.
///
/// # Errors
/// What the kernel says to the new beginning; it does not return otherwise, if there is one.
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

/// Where the dynamic linker is: the kernel has mapped it first, and everything else lies below it.
fn linker() -> usize {
    // SAFETY: reads what the kernel has told this process.
    unsafe { libc::getauxval(libc::AT_BASE) as usize }
}

fn limit() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: getrlimit fills the structure.
    match unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut limit) } {
        0 => Ok(limit),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set(limit: libc::rlimit) -> io::Result<()> {
    // SAFETY: the kernel reads the structure.
    match unsafe { libc::setrlimit(libc::RLIMIT_STACK, &limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
