//! Tells the helper early that a checkpoint comes. While the application still runs, the helper initializes the driver, which takes seconds. If device memory
//! may be staged, it also measures the node's GPUs.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use stillpoint_gpu_messages::Facts;
use stillpoint_protocol::launch::GpuStaging;

use super::client::{self, Client};
use crate::ground::thread;

/// The thread that prepares; it returns a connection. While the connection exists, the helper knows that it is needed.
static EARLY: Mutex<Option<JoinHandle<Option<Client>>>> = Mutex::new(None);

fn early() -> MutexGuard<'static, Option<JoinHandle<Option<Client>>>> {
    EARLY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to prepare. Errors are reported when the helper is needed; if no thread can be started, the work is done then too.
pub fn begin() {
    let begun = thread::start("stillpoint-gpu", thread::LARGE, || {
        let mut client = Client::connect().ok()?;
        let facts = client.facts().ok()?;
        let asker = client::asker().ok()?;
        if may_stage(asker.staging, &facts) {
            client.survey(asker).ok()?;
        }
        Some(client)
    });
    *early() = begun.ok();
}

fn may_stage(staging: GpuStaging, facts: &Facts) -> bool {
    staging != GpuStaging::Off && facts.no_custom_storage.is_none()
}

/// Waits for the thread's end. From here on, a process that it might start would be taken for the application's own.
pub fn prepared() -> Option<Client> {
    let thread = early().take()?;
    // It does not panic.
    thread.join().ok().flatten()
}

/// Ends the preparation after a checkpoint, whatever its result. A thread that still prepares ends by itself, and so does its connection.
pub fn is_over() {
    drop(early().take());
}
