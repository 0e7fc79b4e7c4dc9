//! What the job has ordered, done in turn: nothing that follows from what job.json is to say before it says so.

use std::collections::VecDeque;
use std::sync::Arc;

use stillpoint_protocol::agent::ToAgent;
use stillpoint_protocol::command::ToCommand;
use stillpoint_protocol::job_file::{JobState, Process};
use tokio::sync::oneshot;

use super::records::Written;
use super::{Coordinator, Event, Outbox, frame, send};
use crate::epoch::{Description, seconds_since_1970};
use crate::job::{Input, Output};

/// What is to be done, and what it waits for.
#[derive(Default)]
pub(super) struct Agenda {
    deeds: VecDeque<Deed>,
    /// job.json is being written.
    recording: Option<oneshot::Receiver<Written>>,
    /// The batch system is being asked to start the job again.
    requeueing: bool,
    /// All is done.
    over: bool,
}

/// One thing to do. A message to ranks has its addressees already: whoever connects as the same rank later is
/// another program.
enum Deed {
    Deliver { to: Vec<Outbox>, frame: Arc<[u8]> },
    Carry(Output),
}

impl Agenda {
    /// Returns when job.json is written, if it is being written.
    pub async fn recorded(&mut self) -> Written {
        let Some(recording) = &mut self.recording else {
            return std::future::pending().await;
        };
        let written = recording.await;
        self.recording = None;
        written.unwrap_or_else(|_| Err("the thread that writes job.json has ended".into()))
    }

    /// What was waited for may have come.
    pub fn hear(&mut self, input: &Input) {
        self.requeueing &= !matches!(input, Input::Requeued { .. });
    }

    /// The job has ended, job.json says so, and so does whatever has been told.
    pub fn is_over(&self) -> bool {
        self.over
    }
}

impl Coordinator {
    /// Does what is ordered, and what was ordered before, as far as nothing has to be waited for.
    pub(super) fn carry_out(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            let deed = self.addressed(output);
            self.agenda.deeds.extend(deed);
        }
        while self.agenda.recording.is_none()
            && !self.agenda.requeueing
            && let Some(deed) = self.agenda.deeds.pop_front()
        {
            match deed {
                Deed::Deliver { to, frame } => {
                    for outbox in to {
                        // A connection that has just ended tells so itself.
                        let _ = outbox.send(Arc::clone(&frame));
                    }
                }
                Deed::Carry(output) => self.carry(output),
            }
        }
    }

    fn addressed(&self, output: Output) -> Option<Deed> {
        let agents = &self.shared.agents;
        let to = |outboxes: Vec<Outbox>, message: &ToAgent| {
            let frame = frame(message)?;
            Some(Deed::Deliver {
                to: outboxes,
                frame,
            })
        };
        match output {
            Output::Send { rank, message } => {
                let outbox = agents.get(&rank).map(|outbox| outbox.clone());
                to(outbox.into_iter().collect(), &message)
            }
            Output::Broadcast(message) => {
                let all = agents.iter().map(|outbox| outbox.clone());
                to(all.collect(), &message)
            }
            output => Some(Deed::Carry(output)),
        }
    }

    fn carry(&mut self, output: Output) {
        match output {
            // These have become deliveries.
            Output::Send { .. } | Output::Broadcast(_) => {}
            Output::Tell { watcher, message } => self.tell(watcher, &message),
            Output::Prepare { attempt, epoch } => self.files.prepare(attempt, epoch),
            Output::Discard { epoch } => self.files.discard(epoch),
            Output::Commit {
                attempt,
                epoch,
                images,
            } => {
                let about = self.describe();
                self.files.commit(attempt, epoch, images, about);
            }
            Output::Stage {
                attempt,
                epoch,
                images,
            } => {
                let about = self.describe();
                self.files.stage(attempt, epoch, images, about);
            }
            Output::Secure { epoch } => self.files.secure(epoch),
            Output::DiscardStaged { epoch } => self.files.discard_staged(epoch),
            Output::LetGo => self.files.let_go(),
            Output::TakeAgain => self.files.take_again(),
            Output::Requeue => self.requeue(),
            Output::Record => self.record(),
            Output::Log(line) => self.recorder.line(line),
            Output::Ended => self.agenda.over = true,
        }
    }

    /// Has the batch system asked; what follows waits for its answer.
    fn requeue(&mut self) {
        if let Some(job) = self.spec.requeue.clone() {
            self.agenda.requeueing = true;
            let events = self.shared.events.clone();
            tokio::spawn(async move {
                let result = job.requeue().await;
                // Nobody listens any more when the job has ended.
                let _ = events.send(Event::Done(Input::Requeued { result }));
            });
        }
    }

    /// Has job.json brought up to date; what follows waits until it is.
    pub(super) fn record(&mut self) {
        let fate = self.job.fate();
        self.file.state = fate.state;
        self.file.reason.clone_from(&fate.reason);
        self.file.exit_status = fate.exit_status;
        self.file.suspended_by.clone_from(&fate.suspended_by);
        self.file.epoch = fate.newest_epoch;
        self.file.restarted_from = fate.restarted_from;
        self.file.processes = self.processes.iter().flatten().cloned().collect();
        if fate.state != JobState::Running && self.shared.agents.is_empty() {
            self.file.addresses.clear();
            self.file.ended = Some(seconds_since_1970());
        }
        self.agenda.recording = Some(self.recorder.job(&self.file));
    }

    pub(super) fn tell(&self, watcher: u64, message: &ToCommand) {
        if let Some(outbox) = self.shared.commands.get(&watcher) {
            send(&outbox, message);
        }
    }

    /// What the manifest of an epoch says.
    fn describe(&self) -> Description {
        Description {
            job: self.spec.job.clone(),
            name: self.spec.name.clone(),
            command: self.spec.command.clone(),
            mpi: self.spec.mpi.clone(),
            library: self.spec.library.clone(),
            compression: self.spec.compress.clone(),
            hosts: self.processes.iter().map(host).collect(),
        }
    }
}

fn host(process: &Option<Process>) -> String {
    process
        .as_ref()
        .map_or_else(String::new, |process| process.host.clone())
}
