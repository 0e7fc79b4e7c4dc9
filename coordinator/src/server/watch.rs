//! Watches processes of this host.

use std::time::Duration;

use stillpoint_protocol::job_file::Process;
use tokio::sync::mpsc;

use super::Event;

/// The pause between two looks at a process.
const PAUSE: Duration = Duration::from_millis(200);

/// Reports when a process of this host ends. After the job's end, the receiver may be gone.
pub async fn until_gone(process: Process, events: mpsc::UnboundedSender<Event>, event: Event) {
    while process.alive() != Some(false) {
        tokio::time::sleep(PAUSE).await;
    }
    let _ = events.send(event);
}
