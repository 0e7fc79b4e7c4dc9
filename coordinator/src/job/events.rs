//! Events of a job that commands of the user and of the site hear of.

use super::{Job, Output, Stage};
use stillpoint_ids::Epoch;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    pub name: &'static str,
    pub epoch: Option<Epoch>,
    pub reason: Option<String>,
}

impl Job {
    pub(super) fn happens(
        &mut self,
        name: &'static str,
        epoch: Option<Epoch>,
        reason: Option<String>,
    ) {
        self.outputs.push(Output::Happens(Happening {
            name,
            epoch,
            reason,
        }));
    }

    /// Tells, once, that all ranks are there.
    pub(super) fn tell_of_start(&mut self) {
        if self.stage == Stage::Starting && self.roster.starting().next().is_none() {
            self.stage = Stage::Running;
            match self.fate.restarted_from {
                Some(epoch) => self.happens("restarted", Some(epoch), None),
                None => self.happens("started", None, None),
            }
        }
    }
}
