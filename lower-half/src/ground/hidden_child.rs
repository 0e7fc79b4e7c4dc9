//! Starts a process from within the application's, which must not notice.
//!
//! The child has no exit signal: the application gets no SIGCHLD, and its `wait` does not find it. The child shares this process's memory until it executes a
//! program, as after vfork(2), so that nothing is copied however large the application is. Its own children stay when it has ended.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::fcntl::{FcntlArg, fcntl};

use crate::arch::syscall::{failed, syscall3};

/// The lowest number for descriptors that the lower half opens while the application runs, and for the child's first steps, so that they do not take the
/// application's numbers.
pub const LOWEST: RawFd = 64;
const STACK_BYTES: usize = 64 << 10;

/// A process that has been started.
pub struct Child(i32);

/// Starts a command with empty input, no error output, and `stdout` for its output, which is closed here when this returns.
///
/// # Errors
/// The kernel's.
pub fn start(command: &Path, arguments: &[&CStr], stdout: Option<OwnedFd>) -> io::Result<Child> {
    let path = CString::new(command.as_os_str().as_bytes())?;
    let nowhere = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    let nowhere = out_of_the_way(nowhere.into())?;
    let stdout = stdout.map(out_of_the_way).transpose()?;
    let pointers = arguments.iter().map(|text| text.as_ptr());
    let arguments: Vec<*const c_char> = std::iter::once(path.as_ptr())
        .chain(pointers)
        .chain([ptr::null()])
        .collect();
    let steps = Steps {
        command: path.as_ptr(),
        arguments: arguments.as_ptr(),
        stdout: stdout.as_ref().unwrap_or(&nowhere).as_raw_fd(),
        nowhere: nowhere.as_raw_fd(),
        error: AtomicI32::new(0),
    };
    spawn(&steps).map(Child)
}

impl Child {
    /// Waits for its end. Fails if the application waits for children of every kind, and has already reaped it.
    pub fn reap(self) {
        // SAFETY: the call takes numbers; null says that no status is asked for.
        unsafe { libc::waitpid(self.0, ptr::null_mut(), libc::__WALL) };
    }
}

/// Moves an open file to a descriptor number that the application does not reach soon.
///
/// # Errors
/// The kernel's.
pub fn out_of_the_way(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    let number = fcntl(descriptor.as_fd(), FcntlArg::F_DUPFD_CLOEXEC(LOWEST))?;
    // SAFETY: the descriptor has just been made, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// The data that the child needs; made before, because the child may not allocate.
struct Steps {
    command: *const c_char,
    arguments: *const *const c_char,
    stdout: RawFd,
    nowhere: RawFd,
    /// The error of executing the command.
    error: AtomicI32,
}

fn spawn(steps: &Steps) -> io::Result<i32> {
    let mut stack = vec![0_u8; STACK_BYTES];
    let top = (stack.as_mut_ptr_range().end as usize & !15) as *mut c_void;
    // Its lowest byte is the exit signal: none.
    let flags = libc::CLONE_VM | libc::CLONE_VFORK;
    // SAFETY: this thread stands still until the child has become another program or ended, so stack and steps outlive its
    // use of them. The child makes raw system calls only. Every signal is blocked here, and so in the child: no handler of the
    // application's runs in it.
    let child =
        unsafe { libc::clone(first_steps, top, flags, ptr::from_ref(steps) as *mut c_void) };
    drop(stack);
    match (child, steps.error.load(Ordering::SeqCst)) {
        (-1, _) => Err(io::Error::last_os_error()),
        (child, 0) => Ok(child),
        (child, error) => {
            Child(child).reap();
            Err(io::Error::from_raw_os_error(error))
        }
    }
}

/// Runs in the child, which shares all memory with this process: raw system calls only.
extern "C" fn first_steps(steps: *mut c_void) -> c_int {
    // SAFETY: the parent gave its steps, and stands still until this child has become another program or ended.
    let steps = unsafe { &*(steps as *const Steps) };
    // SAFETY: the child's descriptors are its own; the texts and lists are the parent's, which stands still, and end in NUL or null.
    let result = unsafe {
        for (from, to) in [(steps.nowhere, 0), (steps.stdout, 1), (steps.nowhere, 2)] {
            syscall3(libc::SYS_dup3, from as usize, to, 0);
        }
        syscall3(
            libc::SYS_execve,
            steps.command as usize,
            steps.arguments as usize,
            libc::environ as usize,
        )
    };
    if failed(result) {
        steps.error.store(-result as i32, Ordering::SeqCst);
    }
    127
}
