//! The driver's own threads, and the socket that it listens at. The service thread carries out requests of other processes' drivers. It is also the thread
//! that a restore needs.

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::linux::fs::MetadataExt;
use std::thread;
use std::time::Duration;

use stillpoint_emulated_gpu_protocol::message;
use stillpoint_emulated_gpu_protocol::page::{Answer, Command, State};

use crate::{checkpoint, gate, window};

/// Returns the service thread's name. As in the real driver's, it has the descriptors in it that other processes write to and read from.
fn name(others: &(File, File)) -> String {
    let number = |end: &File| u64::from(end.as_raw_fd().cast_unsigned());
    format!("cuda{:011x}", number(&others.0) << 22 | number(&others.1))
}

/// Whether a thread with this name is a service thread.
pub fn is_name(name: &str) -> bool {
    name.strip_prefix("cuda").is_some_and(|digits| {
        digits.len() == 11 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// The name of a thread that the real driver has besides: it looks at the devices ten times a second.
const EVENTS: &str = "cuda-EvtHandlr";

/// The ends of the pipes for commands and answers. All four stay open over a checkpoint.
pub struct Ends {
    pub commands: File,
    pub answers: File,
    pub others: (File, File),
}

/// Starts the threads.
pub fn start(ends: Ends) -> io::Result<()> {
    // It is open as long as the process lives.
    mem::forget(listen()?);
    spawn(EVENTS, || {
        loop {
            thread::sleep(Duration::from_millis(100));
        }
    })?;
    spawn(&name(&ends.others), move || run(ends))
}

/// Listens where other processes' drivers would ask for memory, as the real driver does. Nothing comes.
fn listen() -> io::Result<OwnedFd> {
    let namespace = std::fs::metadata("/proc/self/ns/pid")?.st_ino();
    let name = format!("\0cuda-uvmfd-{namespace}-{}\0", std::process::id());
    let mut address = libc::sockaddr_un {
        sun_family: libc::AF_UNIX as u16,
        sun_path: [0; 108],
    };
    for (to, byte) in address.sun_path.iter_mut().zip(name.bytes()) {
        *to = byte.cast_signed();
    }
    let bytes = mem::offset_of!(libc::sockaddr_un, sun_path) + name.len();
    let done = |result: i32| match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: the kernel reads `bytes` bytes of the address, which lives on this stack; the descriptor is new, and nothing else owns it.
    unsafe {
        let made = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = OwnedFd::from_raw_fd(made);
        done(libc::bind(made, (&raw const address).cast(), bytes as u32))?;
        done(libc::listen(made, 128))?;
        Ok(socket)
    }
}

/// Starts a thread of the driver. It blocks all signals, since the program's handlers must not run on it.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    // SAFETY: signal sets of our own; the mask of this thread is put back as it was.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let started = thread::Builder::new().name(name.to_owned()).spawn(body);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        started.map(drop)
    }
}

fn run(mut ends: Ends) {
    // A command that is not understood breaks the protocol, so there is no next one.
    while let Ok(command) = message::receive::<Command>(&mut ends.commands) {
        let (code, lent) = match checkpoint::carry_out(command.order) {
            Ok(lent) => (crate::code::SUCCESS, lent),
            Err(code) => (code, vec![]),
        };
        let answer = Answer {
            number: command.number,
            code,
            lent,
        };
        if message::send(&mut ends.answers, &answer).is_err() {
            return;
        }
        // The caller hears of it before the program's calls fail.
        if window::state() == State::Failed {
            gate::FUNCTIONS.open();
            gate::CALLS.open();
        }
    }
    drop(ends.others);
}
