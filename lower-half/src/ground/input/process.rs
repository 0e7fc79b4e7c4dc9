//! Starts the process that feeds, from a process of one thread. The program does not notice: the process is not its child.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use super::feeder::{self, Means};
use crate::arch::syscall::{failed, syscall6};

/// The process's name.
const NAME: &std::ffi::CStr = c"stillpoint-in";

/// Starts the process; returns the name of the socket that it listens at.
///
/// # Errors
/// The kernel's.
pub fn start(source: Option<OwnedFd>, sink: Option<OwnedFd>, most: u64) -> io::Result<String> {
    let socket = format!("stillpoint-input-{:032x}", random()?);
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&socket)?)?;
    let means = Means {
        source,
        sink,
        listener,
        most: usize::try_from(most).unwrap_or(usize::MAX),
    };
    let child = fork()?;
    if child == 0 {
        // A grandchild is not a child of the program: neither the program nor its launcher waits for it.
        let status = match fork() {
            Ok(0) => {
                work(means);
                0
            }
            Ok(_) => 0,
            Err(error) => error.raw_os_error().unwrap_or(libc::EAGAIN),
        };
        // SAFETY: this process has only copies of the program's memory; the call ends it and takes a number.
        unsafe { libc::_exit(status) };
    }
    let mut status = 0;
    // SAFETY: the call writes one int, which lives on this stack; it waits for the child just made, whose end causes no signal.
    let waited = unsafe { libc::waitpid(child, &raw mut status, libc::__WALL) };
    match libc::WEXITSTATUS(status) {
        0 if waited == child && libc::WIFEXITED(status) => Ok(socket),
        0 => Err(io::ErrorKind::Interrupted.into()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Makes a child whose end causes no signal.
fn fork() -> io::Result<i32> {
    // SAFETY: without CLONE_VM the child goes on with a copy of this stack; there is one thread, so no lock is held by another.
    let result = unsafe { syscall6(libc::SYS_clone, [0; 6]) };
    match failed(result) {
        true => Err(io::Error::from_raw_os_error(-result as i32)),
        false => Ok(result as i32),
    }
}

fn work(means: Means) {
    let kept = [
        means.source.as_ref().map(AsRawFd::as_raw_fd),
        means.sink.as_ref().map(AsRawFd::as_raw_fd),
        Some(means.listener.as_raw_fd()),
    ];
    // SAFETY: these calls change this process's own mask, name and directory; the set lives on this stack, and the texts end in NUL. Nothing here depends on a
    // signal.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        libc::chdir(c"/".as_ptr());
    }
    show_name();
    close_all_but(&kept);
    feeder::run(means);
}

/// Closes all other descriptors. The launcher's streams must not stay open here when the program has closed them.
fn close_all_but(kept: &[Option<RawFd>]) {
    let listed = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let numbers = listed.flatten();
    let numbers: Vec<RawFd> = numbers
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for number in numbers
        .into_iter()
        .filter(|number| !kept.contains(&Some(*number)))
    {
        // SAFETY: the table is a copy of the parent's, and nothing here uses this number; that of the directory is closed already.
        unsafe { libc::close(number) };
    }
    // SAFETY: the path ends in NUL; the numbers that open returns are left open, so that the lowest ones lead to /dev/null and no other file gets them.
    unsafe {
        while (0..2).contains(&libc::open(
            c"/dev/null".as_ptr(),
            libc::O_RDWR | libc::O_CLOEXEC,
        )) {}
    }
}

/// Replaces its arguments, which are still the program's: a search for the program by its arguments must not find this process.
fn show_name() {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    // The 48th and 49th field; the first two stand before the bracket.
    let mut fields = fields.split_whitespace().skip(45);
    let (start, end) = (fields.next(), fields.next());
    let place = |field: Option<&str>| field.and_then(|text| text.parse::<usize>().ok());
    if let (Some(start), Some(end)) = (place(start), place(end))
        && start < end
    {
        let name = NAME.to_bytes();
        let shown = name.len().min(end - start - 1);
        // SAFETY: the kernel says that the arguments lie there, on this process's stack; nothing reads them any more, and `shown` is less than their length.
        unsafe {
            std::ptr::write_bytes(start as *mut u8, 0, end - start);
            std::ptr::copy_nonoverlapping(name.as_ptr(), start as *mut u8, shown);
        }
    }
}

fn random() -> io::Result<u128> {
    let mut bytes = [0u8; 16];
    // SAFETY: the kernel writes at most as many bytes as the array has.
    match unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) } {
        16 => Ok(u128::from_ne_bytes(bytes)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes a second descriptor of the same open file, which programs do not inherit.
pub fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes numbers and touches no memory.
    let made = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor has just been made, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}

/// Makes a pipe that blocks like this pipe or socket and has the pipe's size; its writing end never blocks.
pub fn pipe_like(number: RawFd) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two numbers to the array, which are nobody else's; the other calls take numbers.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        let (reader, writer) = (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]));
        let bytes = libc::fcntl(number, libc::F_GETPIPE_SZ);
        // A limit on pipes may keep it smaller; a socket has no such size.
        libc::fcntl(ends[1], libc::F_SETPIPE_SZ, bytes);
        let waits = libc::fcntl(number, libc::F_GETFL) & libc::O_NONBLOCK;
        if libc::fcntl(ends[0], libc::F_SETFL, waits) < 0
            || libc::fcntl(ends[1], libc::F_SETFL, libc::O_NONBLOCK) < 0
        {
            return Err(io::Error::last_os_error());
        }
        Ok((reader, writer))
    }
}
