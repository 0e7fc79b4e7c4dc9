//! The task that owns the job.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use dashmap::DashMap;
use stillpoint_directory::Directory;
use stillpoint_ids::Rank;
use stillpoint_protocol::agent::{Hello, ToAgent};
use stillpoint_protocol::command::{FromCommand, Requester, ToCommand};
use stillpoint_protocol::job_file::{JobFile, JobState, Process};
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::actions::Agenda;
use super::files::Files;
use super::hooks::Hooks;
use super::records::{Recorder, Records};
use super::stops::Stops;
use super::{Event, Listening, Outbox, ServerState, Spec, connection, door, send, watch};
use crate::batch;
use crate::epoch::{Epochs, Mark};
use crate::fence::Fence;
use crate::job::{Input, Job, Output, Patience};
use crate::registry::{Entry, Registry};

/// A coordinator that is ready to serve.
pub struct Coordinator {
    pub(super) spec: Spec,
    pub(super) job: Job,
    pub(super) file: JobFile,
    pub(super) recorder: Recorder,
    pub(super) files: Files,
    pub(super) agenda: Agenda,
    pub(super) hooks: Hooks,
    registry: Registry,
    pub(super) shared: Arc<ServerState>,
    events: mpsc::UnboundedReceiver<Event>,
    began: Instant,
    /// The newest process of each rank.
    pub(super) processes: Vec<Option<Process>>,
    /// The connection that speaks for each rank; 0: none. Messages of an earlier connection are dropped.
    sessions: Vec<u64>,
    sessions_begun: u64,
    /// The time of the last report to waiting commands.
    told: Instant,
    stops: Stops,
}

/// The pause between two reports to commands that wait for a checkpoint.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// The time for last messages to reach commands after the job has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

impl Coordinator {
    /// Takes the directory into use: removes the parts that unfinished checkpoints have left. The caller holds the directory's lock.
    pub fn new(
        spec: Spec,
        directory: Directory,
        addresses: Vec<String>,
        patience: Patience,
        registry: Registry,
        records: impl Records + 'static,
        fence: Arc<Fence>,
    ) -> Result<Coordinator, Box<dyn std::error::Error + Send + Sync>> {
        let mark = Mark::random()?;
        let epochs = Epochs::of(directory.clone(), mark.clone());
        epochs.remove_parts()?;
        let newest_epoch = epochs.newest_committed_of(|job| spec.carries(job))?;
        let newest_here = epochs.newest_staged()?;
        let newest_here = newest_here.or(epochs.committed()?.last().copied());
        // The file is still the one of the launch or the coordinator before.
        let before = JobFile::read_in(&directory).ok();
        let before = before.filter(|job| spec.carries(&job.job));
        let costs = before.and_then(|job| job.interval);
        let settings = spec.settings(newest_epoch, newest_here, mark, patience, costs);
        let file = spec.job_file(addresses, newest_epoch, &directory)?;
        let epochs = epochs.behind(fence);
        let (sender, events) = mpsc::unbounded_channel();
        let shared = ServerState {
            terms: file.terms(),
            events: sender.clone(),
            agents: DashMap::new(),
            commands: DashMap::new(),
            watchers: AtomicU64::new(1),
        };
        Ok(Coordinator {
            job: Job::new(settings, Duration::ZERO),
            file,
            recorder: Recorder::start(records)?,
            files: Files::new(epochs, spec.keep, sender),
            agenda: Agenda::default(),
            hooks: Hooks::new(spec.on_event.clone(), shared.events.clone()),
            registry,
            shared: Arc::new(shared),
            events,
            began: Instant::now(),
            processes: spec.processes(),
            sessions: vec![0; spec.ranks as usize],
            sessions_begun: 0,
            told: Instant::now(),
            stops: Stops::default(),
            spec,
        })
    }

    /// Serves until every rank has gone, and returns how the job ended. `ready` is called when first job.json and then the registry lead others here. The
    /// order matters, since a reader that finds an entry without its job.json removes the entry. If job.json cannot be written, `ready` gets the error: then
    /// no rank will come.
    pub async fn serve(
        mut self,
        listening: Listening,
        ready: impl FnOnce(Result<(), String>),
    ) -> JobState {
        let accepting = tokio::spawn(connection::accept(listening, Arc::clone(&self.shared)));
        let door = self.open_door();
        self.begin();
        let mut ready = Some(ready);
        let mut registering = false;
        while !self.agenda.is_over() {
            let due = self.job.deadline().map(|due| self.began + due);
            let tick = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due.into()).await,
                    None => std::future::pending().await,
                }
            };
            let told = self.told;
            let waits = self.job.is_waited_for() || self.job.awaits_ranks();
            let look = async move {
                match waits {
                    true => tokio::time::sleep_until((told + LOOK_PAUSE).into()).await,
                    false => std::future::pending().await,
                }
            };
            let outputs = tokio::select! {
                // Events that have come are handled before the time is looked at, since the others were not silent while this process could not run.
                biased;
                written = self.agenda.recorded() => {
                    if let Err(error) = &written {
                        self.recorder.line(error);
                    }
                    match (&written, registering) {
                        (_, true) => {}
                        (Ok(()), false) => {
                            self.files.register(self.registry.clone(), self.entry());
                            registering = true;
                        }
                        (Err(_), false) => {
                            if let Some(ready) = ready.take() {
                                ready(written);
                            }
                            break;
                        }
                    }
                    vec![]
                }
                Some(event) = self.events.recv() => {
                    if matches!(event, Event::Registered(_))
                        && let Some(ready) = ready.take()
                    {
                        ready(Ok(()));
                    }
                    self.on(event)
                }
                () = tick => {
                    let now = self.began.elapsed();
                    self.job.on(now, Input::Tick)
                }
                () = look => {
                    self.told = Instant::now();
                    self.look()
                }
            };
            self.carry_out(outputs);
            if self.job.has_ended() {
                // A client that looks for the job then finds that it has gone, while job.json is being written.
                accepting.abort();
                if let Some(door) = &door {
                    door.abort();
                }
            }
        }
        accepting.abort();
        if let Some(door) = door {
            door.abort();
        }
        let suspended = self.file.state == JobState::Suspended;
        self.files
            .unregister(self.registry.clone(), self.entry(), suspended);
        // Another job may have the directory while commands still hear of this one's end.
        self.files.let_go();
        self.last_words().await;
        self.recorder.finish();
        self.file.state
    }

    /// Looks for what keeps the attempt under way, and tells the commands that wait.
    fn look(&mut self) -> Vec<Output> {
        let now = self.began.elapsed();
        let awaited = self.job.awaited(now);
        let ranks = self.stops.look(&awaited, &self.processes);
        let mut outputs = match ranks.is_empty() {
            true => vec![],
            false => self.job.on(now, Input::Stopped { ranks }),
        };
        outputs.extend(self.job.tell_what_takes_long(now));
        outputs
    }

    /// Opens the job's door for clients without a key. The job can do without.
    fn open_door(&self) -> Option<JoinHandle<()>> {
        let opened = crate::door::open(&self.spec.launch).and_then(UnixListener::from_std);
        match opened {
            Ok(listener) => {
                let operators = self.spec.operators.clone();
                let answering = door::answer(listener, operators, Arc::clone(&self.shared));
                Some(tokio::spawn(answering))
            }
            Err(error) => {
                self.recorder.line(format!(
                    "operators cannot suspend this job: cannot open a socket for them on this host: {error}"
                ));
                None
            }
        }
    }

    fn begin(&mut self) {
        self.recorder.line(format!(
            "launch {}: {} ranks, {}",
            self.spec.launch,
            self.spec.ranks,
            self.spec.command.join(" ")
        ));
        if let Some(job) = &self.spec.predecessor {
            let pid = job.coordinator.pid;
            self.recorder.line(format!(
                "takes over from the coordinator that died (process {pid})"
            ));
            // A process that has died since does not come back.
            for (rank, process) in Rank::of_each(&self.processes) {
                if let Some(process) = process {
                    let session = 0;
                    self.watch(process.clone(), Event::ProcessGone { rank, session });
                }
            }
        }
        // If rank 0 fails before its agent connects, no other rank would come.
        self.watch(self.spec.starter.clone(), Event::Done(Input::StarterGone));
        self.record();
    }

    fn entry(&self) -> Entry {
        Entry {
            name: self.spec.name.clone(),
            directory: self.spec.directory.clone(),
            launch: self.spec.launch.clone(),
            addresses: self.file.addresses.clone(),
            batch: batch::job(),
            group: Some(nix::unistd::getgid().as_raw()),
        }
    }

    fn on(&mut self, event: Event) -> Vec<Output> {
        let now = self.began.elapsed();
        match event {
            Event::Admit {
                hello,
                outbox,
                answer,
            } => self.admit(hello, outbox, answer),
            Event::Agent {
                rank,
                session,
                message,
            } if self.speaks_for(rank, session) => self.job.on(now, Input::Agent { rank, message }),
            Event::Disconnected { rank, session } if self.speaks_for(rank, session) => {
                self.shared.agents.remove(&rank);
                // The process may have become another program, which connects as the same rank, or it may be dead.
                self.watch_process(rank, session);
                self.job.on(now, Input::Disconnected { rank })
            }
            Event::Unreachable { rank, session } if self.speaks_for(rank, session) => {
                self.shared.agents.remove(&rank);
                self.watch_process(rank, session);
                self.job.on(now, Input::Unreachable { rank })
            }
            Event::ProcessGone { rank, session } if self.speaks_for(rank, session) => {
                self.job.on(now, Input::ProcessGone { rank })
            }
            Event::Agent { .. }
            | Event::Disconnected { .. }
            | Event::Unreachable { .. }
            | Event::ProcessGone { .. } => vec![],
            Event::Command { watcher, message } => match message {
                FromCommand::Status => {
                    let status = self.job.status(now);
                    self.tell(watcher, &ToCommand::Status(status));
                    vec![]
                }
                FromCommand::Checkpoint {
                    suspend,
                    timeout,
                    waits,
                    asked,
                } => self.job.on(
                    now,
                    Input::Checkpoint {
                        watcher,
                        suspend,
                        timeout,
                        waits,
                        asked: asked.map(Requester::in_one_line),
                    },
                ),
            },
            Event::Done(input) => {
                self.agenda.hear(&input);
                self.job.on(now, input)
            }
            Event::HookFailed(text) => {
                self.say(text);
                vec![]
            }
            Event::RequeueWaits(why) => {
                self.requeue_waits(&why);
                vec![]
            }
            Event::Registered(trouble) => {
                if let Some(line) = trouble {
                    self.recorder.line(line);
                }
                vec![]
            }
            Event::Log(line) => {
                self.recorder.line(line);
                vec![]
            }
        }
    }

    fn admit(
        &mut self,
        hello: Hello,
        outbox: Outbox,
        answer: oneshot::Sender<Option<u64>>,
    ) -> Vec<Output> {
        let rank = hello.rank;
        let process = Process::told(hello.host.clone(), hello.pid, hello.namespace);
        let admitted = self.job.admit(hello, self.began.elapsed());
        // The connection may have gone in the meantime: then its end is on its way here.
        self.sessions_begun += 1;
        let session = admitted.is_ok().then_some(self.sessions_begun);
        let _ = answer.send(session);
        match admitted {
            Ok(outputs) => {
                send(&outbox, &ToAgent::Welcome);
                let earlier = self.shared.agents.insert(rank, outbox);
                if let Some(slot) = self.sessions.get_mut(rank.index()) {
                    *slot = self.sessions_begun;
                }
                if let Some(slot) = self.processes.get_mut(rank.index()) {
                    let before = slot.replace(process);
                    if let Some(earlier) = earlier.filter(|_| before != *slot) {
                        send(&earlier, &ToAgent::Replaced);
                    }
                }
                outputs
            }
            Err(reason) => {
                self.recorder.line(format!(
                    "refused the connection of a rank's agent: {reason}"
                ));
                send(&outbox, &ToAgent::Rejected { reason });
                self.job.on(self.began.elapsed(), Input::Tick)
            }
        }
    }

    /// Watches a rank's process, and reports its end.
    fn watch_process(&mut self, rank: Rank, session: u64) {
        if let Some(Some(process)) = self.processes.get(rank.index()) {
            self.watch(process.clone(), Event::ProcessGone { rank, session });
        }
    }

    /// Watches a process, and reports its end. A process on another host, or in another container, cannot be watched.
    fn watch(&self, process: Process, event: Event) {
        if process.alive().is_some() {
            tokio::spawn(watch::until_gone(
                process,
                self.shared.events.clone(),
                event,
            ));
        }
    }

    fn speaks_for(&self, rank: Rank, session: u64) -> bool {
        self.sessions.get(rank.index()) == Some(&session)
    }

    /// Waits until messages to commands have arrived, work on files has ended, and no command hears of an event any more.
    async fn last_words(&mut self) {
        let fate = self.job.fate();
        let reason = fate.reason.as_ref();
        let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
        let state = fate.state.name();
        self.recorder
            .line(format!("the job has ended: {state}{reason}"));
        let work = async {
            self.files.all_done().await;
            // This drops the outboxes. A writer ends when it has written all messages of its outbox.
            self.shared.commands.clear();
            while Arc::strong_count(&self.shared) > 1 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        // A command that does not read its answer is not waited for any longer.
        let _ = tokio::time::timeout(LAST_WORDS, work).await;
        self.hooks.all_done().await;
        self.events.close();
        while let Ok(event) = self.events.try_recv() {
            if let Event::Log(line) | Event::HookFailed(line) = event {
                self.recorder.line(line);
            }
        }
    }
}
