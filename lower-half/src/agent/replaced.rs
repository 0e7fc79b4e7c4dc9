//! Another process is the rank now: a program that this one, a script, has started, and that has started MPI.
//!
//! The coordinator serves that process. This one has nothing to report to it any more, not even its end: looking for another coordinator
//! would take the rank from that program.

use std::time::Duration;

use super::lost::wait_for_bell;
use super::{Agent, user_messages};
use crate::ground::wake;

impl Agent {
    /// Stands back as long as the process runs, except for moments aside. Blocks on the fast tier belong to that program as well, and stay.
    pub(super) fn stand_back(&self) {
        while !self.is_to_step_aside() {
            if wake::ending().is_some() {
                wake::told();
            }
            if let Some(signal) = wake::take_suspend() {
                user_messages::say(&format!(
                    "rank {} got signal {signal} in a process that has started another one, which is the rank now: that one \
                     is to get it, or `stillpoint suspend` to be used",
                    self.launch.rank
                ));
            }
            wait_for_bell(Duration::MAX);
        }
    }
}
