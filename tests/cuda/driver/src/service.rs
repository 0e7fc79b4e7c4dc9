//! The service thread: carries out requests of other processes' drivers. It is also the thread that a restore needs.

use std::fs::File;
use std::io;
use std::thread;

use stillpoint_emulated_gpu_protocol::message;
use stillpoint_emulated_gpu_protocol::page::{Answer, Command, State};

use crate::{checkpoint, gate, window};

/// Its name, the same as the real driver's.
pub const NAME: &str = "cuda-EvtHandlr";

/// The ends of the pipes for commands and answers. All four stay open over a checkpoint.
pub struct Ends {
    pub commands: File,
    pub answers: File,
    pub others: (File, File),
}

/// Starts it.
pub fn start(ends: Ends) -> io::Result<()> {
    spawn(NAME, move || run(ends))
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
