//! A program that cannot be split, and that the process of a rank executes: the coordinator hears of it, and the program starts as it is.
//!
//! No agent comes with such a program, and none with a program that it runs: it maps files itself, as valgrind does, or executes them without the gate.

use std::ffi::{CString, c_char};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use stillpoint_protocol::launch::Launch;

use crate::agent;
use crate::arch::syscall;
use crate::ground::{environment, inherited, say, starters};

/// Executes the program, as the original `execve` would have. Without a coordinator it starts all the same.
pub fn run(path: &Path, arguments: &[Vec<u8>]) -> ! {
    // A helper that the rank has started is not the rank.
    if starters::is_first()
        && let Ok(launch) = Launch::from_environment()
    {
        // The reason is of no use to the program.
        let _ = agent::becomes_unsplit(&launch, path);
    }
    let error = execute(path, arguments);
    say::line(format_args!("{}: {error}", path.display()));
    std::process::exit(126)
}

fn execute(path: &Path, arguments: &[Vec<u8>]) -> io::Error {
    // Both come from an argument list, so they hold no NUL.
    let text = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
    let path = text(path.as_os_str().as_bytes());
    let arguments: Vec<CString> = arguments.iter().map(|argument| text(argument)).collect();
    let variables = environment::of_application(&[], &[]).variables;
    let list = |texts: &[CString]| -> Vec<*const c_char> {
        let pointers = texts.iter().map(|text| text.as_ptr());
        pointers.chain([std::ptr::null()]).collect()
    };
    let (arguments, variables) = (list(&arguments), list(&variables));
    inherited::give_back();
    syscall::set_mask(inherited::mask());
    // SAFETY: the path and both lists, which end in null, lie in memory that this function holds until the call returns.
    unsafe { libc::execve(path.as_ptr(), arguments.as_ptr(), variables.as_ptr()) };
    io::Error::last_os_error()
}
