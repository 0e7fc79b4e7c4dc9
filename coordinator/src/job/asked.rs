//! The user who asked for a suspend, if not the job's own user, and the reason: job.json keeps them. The job's user is told of every suspend.

use stillpoint_ids::{Epoch, Rank};
use stillpoint_protocol::agent::ToAgent;
use stillpoint_protocol::command::Requester;

use super::{Job, Output};

/// The rank that speaks for the job.
pub const SPEAKER: Rank = Rank::FIRST;

impl Job {
    /// Records who asked for the suspend under way, since the job is about to end by it.
    pub(super) fn note_who_asked(&mut self, epoch: Epoch) {
        self.fate.suspended_by = self.whoever_asked();
        self.say(match &self.fate.suspended_by {
            Some(asked) => format!("suspended {asked}"),
            None => format!("suspended: epoch {epoch} is committed"),
        });
    }

    /// Prints a line on the job's stderr.
    pub(super) fn say(&mut self, text: String) {
        self.outputs.push(Output::Send {
            rank: SPEAKER,
            message: ToAgent::Say { text },
        });
    }

    fn whoever_asked(&self) -> Option<Requester> {
        let mut requests = self.attempt.iter().flat_map(|attempt| &attempt.requests);
        requests.find_map(|wanted| wanted.asked.clone().filter(|_| wanted.suspend))
    }
}
