//! Carries out the job's orders in turn. Orders that follow a change of job.json wait until it is written.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use stillpoint_protocol::agent::ToAgent;
use stillpoint_protocol::command::ToCommand;
use stillpoint_protocol::job_file::{JobState, Process};
use stillpoint_refusals::refusal;
use tokio::sync::oneshot;

use super::records::Written;
use super::{Coordinator, Event, Outbox, frame, send};
use crate::epoch::{Description, seconds_since_1970};
use crate::job::{Input, Output, SPEAKER};

/// The orders, and the events that they wait for.
#[derive(Default)]
pub(super) struct Agenda {
    deeds: VecDeque<Action>,
    /// job.json is being written.
    recording: Option<oneshot::Receiver<Written>>,
    /// The batch system is being asked to start the job again.
    requeueing: bool,
    /// All orders are carried out.
    over: bool,
}

/// One order. A message to ranks already has its addressees: a later connection of the same rank is another program.
enum Action {
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
        written.unwrap_or_else(|_| Err("the thread that writes job.json ended early".into()))
    }

    /// Takes note of an event that orders may wait for.
    pub fn hear(&mut self, input: &Input) {
        self.requeueing &= !matches!(input, Input::Requeued { .. });
    }

    /// Whether the job has ended, and job.json and all messages say so.
    pub fn is_over(&self) -> bool {
        self.over
    }
}

impl Coordinator {
    /// Carries out these orders, and earlier ones, up to one that has to wait.
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
                Action::Deliver { to, frame } => {
                    for outbox in to {
                        // A connection that has just ended reports that itself.
                        let _ = outbox.send(Arc::clone(&frame));
                    }
                }
                Action::Carry(output) => self.carry(output),
            }
        }
    }

    fn addressed(&self, output: Output) -> Option<Action> {
        let agents = &self.shared.agents;
        let to = |outboxes: Vec<Outbox>, message: &ToAgent| {
            let frame = frame(message)?;
            Some(Action::Deliver {
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
            output => Some(Action::Carry(output)),
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
            Output::Happens(happening) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                let at = now.unwrap_or_default().as_secs_f64();
                self.hooks.tell(&happening, &self.spec, at);
            }
            Output::Trace(text) => self.recorder.trace(text),
            Output::Ended => self.agenda.over = true,
        }
    }

    /// Asks the batch system. Later orders wait for its answer.
    fn requeue(&mut self) {
        if let Some(job) = self.spec.requeue.clone() {
            self.agenda.requeueing = true;
            let events = self.shared.events.clone();
            tokio::spawn(async move {
                let waits = |why| drop(events.send(Event::RequeueWaits(why)));
                let result = job.requeue(waits).await;
                // When the job has ended, the receiver is gone.
                let _ = events.send(Event::Done(Input::Requeued { result }));
            });
        }
    }

    /// Tells the job's user and the commands that wait. Later orders wait for the batch system, but these are no orders of the job.
    pub(super) fn requeue_waits(&self, why: &str) {
        let reason = refusal!(BatchSystem, "{why}");
        let text = format!("suspended, and waiting for the batch system: {why}");
        self.say(text);
        let reasons = vec![reason];
        for watcher in self.job.listeners() {
            let reasons = reasons.clone();
            self.tell(watcher, &ToCommand::Hindered { reasons });
        }
    }

    /// Tells the log, and the job's user on its stderr.
    pub(super) fn say(&self, text: String) {
        self.recorder.line(&text);
        if let Some(outbox) = self.shared.agents.get(&SPEAKER) {
            send(&outbox, &ToAgent::Say { text });
        }
    }

    /// Brings job.json up to date. Later orders wait until it is written.
    pub(super) fn record(&mut self) {
        let fate = self.job.fate();
        self.file.state = fate.state;
        self.file.reason.clone_from(&fate.reason);
        self.file.exit_status = fate.exit_status;
        self.file.suspended_by.clone_from(&fate.suspended_by);
        self.file.not_suspended.clone_from(&fate.not_suspended);
        self.file.requeued.clone_from(&fate.requeued);
        self.file.interval = fate.interval;
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

    /// The description of the job for an epoch's manifest.
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
