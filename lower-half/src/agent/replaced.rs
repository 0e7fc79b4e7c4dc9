//! A program that this one has started is the rank now: a script's, once it starts MPI.
//!
//! The coordinator serves that one. This process has nothing to say to it any more, not even its end: looking for another
//! coordinator would take the rank from the program that is it.

use std::time::Duration;

use super::lost::wait_for_bell;
use super::{Agent, voice};
use crate::ground::wake;

impl Agent {
    /// Lasts as long as the process, but for moments aside. What it has on the fast tier is that program's as well, and stays.
    pub(super) fn stand_back(&self) {
        while !self.is_to_step_aside() {
            if wake::ending().is_some() {
                wake::told();
            }
            if let Some(signal) = wake::take_suspend() {
                voice::say(&format!(
                    "rank {} got signal {signal} in a process that has started another one, which is the rank now: that one \
                     is to get it, or `stillpoint suspend` to be used",
                    self.launch.rank
                ));
            }
            wait_for_bell(Duration::MAX);
        }
    }
}
