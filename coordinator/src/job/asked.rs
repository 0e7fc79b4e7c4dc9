//! The user who asked for a suspend, if not the job's own user, and the reason: job.json keeps them, and the job's user is told.

use stillpoint_protocol::agent::ToAgent;
use stillpoint_protocol::command::Requester;

use super::{Job, Output};

/// The rank that speaks for the job.
const SPEAKER: u32 = 0;

impl Job {
    /// Records who asked for the suspend under way, since the job is about to end by it.
    pub(super) fn note_who_asked(&mut self) {
        self.fate.suspended_by = self.whoever_asked();
        if let Some(asked) = &self.fate.suspended_by {
            let text = format!("suspended {asked}");
            self.outputs.push(Output::Send {
                rank: SPEAKER,
                message: ToAgent::Say { text },
            });
        }
    }

    fn whoever_asked(&self) -> Option<Requester> {
        let mut requests = self.attempt.iter().flat_map(|attempt| &attempt.requests);
        requests.find_map(|wanted| wanted.asked.clone().filter(|_| wanted.suspend))
    }
}
