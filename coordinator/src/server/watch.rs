//! Processes of this host that are watched.

use std::time::Duration;

use stillpoint_protocol::job_file::Process;
use tokio::sync::mpsc;

use super::Event;

/// How often one is looked at.
const PAUSE: Duration = Duration::from_millis(200);

/// Tells when a process of this host ends. What it tells may come after the job's end, when nobody
/// listens any more.
pub async fn until_gone(process: Process, events: mpsc::UnboundedSender<Event>, event: Event) {
    while process.alive() != Some(false) {
        tokio::time::sleep(PAUSE).await;
    }
    let _ = events.send(event);
}
