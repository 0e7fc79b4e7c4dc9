//! Starts another coordinator from within the application's process, which must not notice.
//!
//! The child has no exit signal: the application gets no SIGCHLD, and its `wait` does not find it. It shares this process's
//! memory until it becomes the command, as after vfork(2), so that nothing is copied however large the application is. The
//! command's first process starts the one that serves and ends at once (`stillpoint coordinator`).

use std::ffi::{CString, c_char, c_int, c_void};
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use stillpoint_protocol::launch::Ready;

use crate::arch::syscall::{failed, syscall3};
use crate::ground::wake;

/// How long it may take until it serves.
const PATIENCE: Duration = Duration::from_secs(60);
/// Descriptors of the child's first steps are out of the way of 0, 1 and 2.
const LOWEST: RawFd = 64;
const STACK_BYTES: usize = 64 << 10;

/// Starts `command coordinator --succeed DIRECTORY`; returns when it serves, or says why it does not.
pub fn start(command: &Path, directory: &Path) -> Result<(), String> {
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let command = text(command).map_err(|error| failed("its path", &error))?;
    let directory = text(directory).map_err(|error| failed("the directory's path", &error))?;
    let prepare = || -> io::Result<_> {
        let (read, write) = io::pipe()?;
        let nowhere = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        Ok((
            read,
            out_of_the_way(write.into())?,
            out_of_the_way(nowhere.into())?,
        ))
    };
    let (answer, stdout, nowhere) = prepare().map_err(|error| failed("prepare for it", &error))?;
    let arguments = [
        command.as_ptr(),
        c"coordinator".as_ptr(),
        c"--succeed".as_ptr(),
        directory.as_ptr(),
        ptr::null(),
    ];
    let steps = Steps {
        command: command.as_ptr(),
        arguments: arguments.as_ptr(),
        stdout: stdout.as_raw_fd(),
        nowhere: nowhere.as_raw_fd(),
        error: AtomicI32::new(0),
    };
    let child = spawn(&steps).map_err(|error| failed("start a process", &error))?;
    drop(stdout);
    let said = first_line(answer);
    reap(child);
    match serde_json::from_str(&said.map_err(|error| failed("wait for it", &error))?) {
        Ok(Ready::Serving) => Ok(()),
        Ok(Ready::Failed { text, .. }) => Err(text),
        Err(_) => Err("it ended without a word".to_owned()),
    }
}

fn out_of_the_way(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    let number = fcntl(descriptor.as_fd(), FcntlArg::F_DUPFD_CLOEXEC(LOWEST))?;
    // SAFETY: the number is new, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// What the child needs; made before, because it may not allocate.
struct Steps {
    command: *const c_char,
    arguments: *const *const c_char,
    stdout: RawFd,
    nowhere: RawFd,
    /// Why the command could not be executed.
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
            reap(child);
            Err(io::Error::from_raw_os_error(error))
        }
    }
}

/// Runs in the child, which shares all memory with this process: raw system calls only.
extern "C" fn first_steps(steps: *mut c_void) -> c_int {
    // SAFETY: the parent gave it, and waits.
    let steps = unsafe { &*(steps as *const Steps) };
    // SAFETY: the child's descriptors are its own, the texts are the parent's and end in NUL.
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

/// Reads a line, unless the application's process ends meanwhile.
fn first_line(mut answer: io::PipeReader) -> io::Result<String> {
    let began = Instant::now();
    let mut line = Vec::new();
    while !line.contains(&b'\n') {
        if began.elapsed() > PATIENCE || wake::ending().is_some() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut descriptors = [PollFd::new(answer.as_fd(), PollFlags::POLLIN)];
        if poll(&mut descriptors, PollTimeout::from(50_u8)) != Ok(1) {
            continue;
        }
        let mut bytes = [0; 4096];
        match answer.read(&mut bytes)? {
            0 => break,
            count => line.extend_from_slice(&bytes[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// Takes note of the end of a child that has no exit signal.
fn reap(child: i32) {
    // SAFETY: no status is asked for. Fails where the application waits for children of every kind, and has done it.
    unsafe { libc::waitpid(child, ptr::null_mut(), libc::__WALL) };
}
