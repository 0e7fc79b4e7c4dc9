//! job.json is brought up to date while the coordinator goes on answering.
//!
//! What follows from a change of the job - telling a command, releasing ranks - waits until job.json says so, and a shared file
//! system may take half a minute to say that it is written. In the meantime whoever asks how the job is gets an answer, and
//! connections are accepted; everything else that comes waits for its turn.

use stillpoint_protocol::command::{FromCommand, ToCommand};
use stillpoint_protocol::job_file::JobState;

use super::{Coordinator, Event};
use crate::epoch::seconds_since_1970;

impl Coordinator {
    /// Brings job.json up to date; done before anything that follows from it.
    pub(super) async fn record(&mut self) {
        self.bring_file_up_to_date();
        let (file, directory) = (self.file.clone(), self.spec.directory.clone());
        let mut writing = tokio::task::spawn_blocking(move || file.write(&directory));
        let written = loop {
            tokio::select! {
                written = &mut writing => break written,
                Some(event) = self.events.recv() => self.meanwhile(event),
            }
        };
        // Writing does not panic, and nobody cancels it.
        if let Ok(Err(error)) = written {
            self.log.line(&error.to_string());
        }
    }

    fn bring_file_up_to_date(&mut self) {
        let fate = self.job.fate();
        self.file.state = fate.state;
        self.file.reason.clone_from(&fate.reason);
        self.file.exit_status = fate.exit_status;
        self.file.epoch = fate.newest_epoch;
        self.file.restarted_from = fate.restarted_from;
        self.file.processes = self.processes.iter().flatten().cloned().collect();
        if fate.state != JobState::Running && self.shared.agents.is_empty() {
            self.file.addresses.clear();
            self.file.ended = Some(seconds_since_1970());
        }
    }

    /// What comes while job.json is written: only a question is answered at once (and the log needs no order).
    fn meanwhile(&mut self, event: Event) {
        match event {
            Event::Command {
                watcher,
                message: FromCommand::Status,
            } => self.answer_status(watcher),
            Event::Log(line) => self.log.line(&line),
            other => self.waiting.push_back(other),
        }
    }

    /// Says how the job is.
    pub(super) fn answer_status(&self, watcher: u64) {
        let status = self.job.status(self.began.elapsed());
        self.tell(watcher, &ToCommand::Status(status));
    }
}
