//! The helper is told early that a checkpoint comes: while the application still runs, it begins with the driver, which takes seconds, and finds out what
//! the node's GPUs do, where their memory is going to be staged.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use stillpoint_gpu_messages::Facts;
use stillpoint_protocol::launch::GpuStaging;

use super::client::{self, Client};

/// Who prepares, for a connection: while it is there, the helper knows that it is needed.
static EARLY: Mutex<Option<JoinHandle<Option<Client>>>> = Mutex::new(None);

fn early() -> MutexGuard<'static, Option<JoinHandle<Option<Client>>>> {
    EARLY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins. What goes wrong is told when the helper is needed; where there is no thread for it, it begins later.
pub fn begin() {
    let thread = thread::Builder::new().name("stillpoint-gpu".to_owned());
    let begun = thread.spawn(|| {
        let mut client = Client::connect().ok()?;
        let facts = client.facts().ok()?;
        let rank = client::rank().ok()?;
        if may_stage(rank.staging, &facts) {
            client.survey(rank).ok()?;
        }
        Some(client)
    });
    *early() = begun.ok();
}

fn may_stage(staging: GpuStaging, facts: &Facts) -> bool {
    staging != GpuStaging::Off && facts.no_custom_storage.is_none()
}

/// Waits for its end: from here on nobody looks at what it does, a process that is started, for the application's own.
pub fn prepared() -> Option<Client> {
    let thread = early().take()?;
    // It does not panic.
    thread.join().ok().flatten()
}

/// The checkpoint is over, whatever has come of it. What prepares still ends by itself, and its connection with it.
pub fn is_over() {
    drop(early().take());
}
