//! A process that is being restored, as the parts of a restart see it.

use stillpoint_ids::Rank;
use stillpoint_image::descriptors::DescriptorKind;
use stillpoint_part::Saved;
use stillpoint_refusals::Refusal;
use stillpoint_wrappers::gate::GatePage;

use super::Restore;
use super::threads::Returning;
use crate::capture::process::{KIND, ProcessState};
use crate::ground::say;
use crate::threads::Thread;

/// A process between its image and the application's next instruction.
pub struct Back {
    pub restore: Restore,
    pub page: &'static GatePage,
    pub rank: Rank,
    /// The main thread.
    pub main: Returning,
    /// The others, once they are made.
    pub made: Vec<Thread>,
    /// Ends the process if its memory turns out to be unreadable while it runs.
    pub lost: fn(String) -> !,
    /// Whether some thread is to become another user, or to have other capabilities, than this launch.
    pub changes_users: bool,
}

impl Back {
    /// Returns the process's own state from the image.
    pub fn process(&self) -> Result<ProcessState, Refusal> {
        ProcessState::from_bytes(self.restore.payload(&KIND).unwrap_or_default())
    }

    /// Prints a message on the launcher's stderr; if the application has another stderr, the message would disturb it.
    pub fn say(&self, what: &str) {
        if launchers_stderr(&self.restore) {
            say::line(format_args!("rank {}: {what}", self.rank));
        }
    }
}

/// Whether the application's stderr is the launcher's own stream; in any other file, messages would disturb the application.
fn launchers_stderr(restore: &Restore) -> bool {
    let descriptors = restore.reader().descriptors();
    let stderr = descriptors
        .numbers
        .iter()
        .find(|number| number.number == libc::STDERR_FILENO);
    stderr
        .and_then(|number| descriptors.descriptions.get(number.description))
        .is_some_and(|description| matches!(description.kind, DescriptorKind::Inherited { .. }))
}
