//! The end of a command whose file system does not answer, as on a hard mount of NFS whose server is away: a call to it waits for as long as that lasts, and
//! only the end of the process ends it.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use nix::sys::signal::SigSet;

use super::Failure;

/// Ends the process unless it is dropped in time.
pub struct Patience {
    /// The thread that watches hears of the drop.
    _watched: Option<Sender<()>>,
}

impl Patience {
    /// Ends the process after the time, with a failure that names `place`; `tell` hears it first. Without a limit, or a thread, the command waits.
    pub fn with(
        limit: Option<Duration>,
        place: String,
        tell: impl FnOnce(&Failure) + Send + 'static,
    ) -> Patience {
        let watched = limit.and_then(|limit| watched(limit, place, tell).ok());
        Patience { _watched: watched }
    }
}

fn watched(
    limit: Duration,
    place: String,
    tell: impl FnOnce(&Failure) + Send + 'static,
) -> std::io::Result<Sender<()>> {
    let (watched, hears) = mpsc::channel();
    let watches = move || {
        // Signals are for the thread that waits for them.
        let _ = SigSet::all().thread_block();
        if let Err(RecvTimeoutError::Timeout) = hears.recv_timeout(limit) {
            let failure = Failure::failed(format!(
                "{place}: its file system has not answered for {} s: see whether its server is up, then ask again",
                limit.as_secs()
            ));
            tell(&failure);
            failure.say();
            std::process::exit(Failure::FAILED.into());
        }
    };
    thread::Builder::new().spawn(watches)?;
    Ok(watched)
}
