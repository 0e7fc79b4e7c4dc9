//! The coordinator as a process: sockets, files and time around the pure [`Job`].
//!
//! One task owns the job and is the only one that changes it; every connection has a task that reads
//! and one that writes. What a task does to another goes through a channel; the connections' outboxes
//! are shared.

mod connection;
mod listen;
mod record;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dashmap::DashMap;
use serde::{Deserialize, Serialize};
use stillpoint_multilevel::placement::Rules;
use stillpoint_protocol::Key;
use stillpoint_protocol::agent::{FromAgent, Hello, ToAgent, Written};
use stillpoint_protocol::codec::{self, Encode};
use stillpoint_protocol::command::{FromCommand, ToCommand};
use stillpoint_protocol::job_file::{FORMAT, JobFile, JobState, Process, host_name, start_time};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::epoch::{Description, EpochError, Epochs, seconds_since_1970};
use crate::job::{Input, Job, Output, Patience, Settings};
use crate::log::Log;
use crate::registry::{Entry, Registry};

pub use listen::{Listening, addresses, listen};

/// What the launch tells the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The checkpoint directory, absolute.
    pub directory: PathBuf,
    pub job: String,
    pub launch: String,
    pub name: String,
    pub ranks: u32,
    /// The process that becomes rank 0.
    pub starter: Process,
    /// Every rank runs on this host, so nobody else needs to reach the coordinator.
    pub one_host: bool,
    pub mpi: String,
    pub command: Vec<String>,
    pub working_directory: PathBuf,
    pub restarted_from: Option<u64>,
    /// Committed epochs to keep.
    pub keep: usize,
    pub interval: Option<Duration>,
    pub compress: String,
    /// How images are staged, where the launch has tiers.
    pub staging: Option<Staging>,
    /// The staged epoch that is to be made whole, and then restarted from.
    pub recovers: Option<u64>,
}

/// How images are staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staging {
    pub local_only: bool,
    pub partners: bool,
}

impl From<Staging> for Rules {
    fn from(staging: Staging) -> Rules {
        Rules {
            local_only: staging.local_only,
            partners: staging.partners,
        }
    }
}

/// Frames that wait to be written to a connection.
pub(crate) type Outbox = mpsc::UnboundedSender<Arc<[u8]>>;

/// What connections tell the job's task.
pub(crate) enum Event {
    Admit {
        hello: Hello,
        outbox: Outbox,
        /// The connection's number, if the rank is taken in.
        answer: oneshot::Sender<Option<u64>>,
    },
    Agent {
        rank: u32,
        session: u64,
        message: FromAgent,
    },
    Disconnected {
        rank: u32,
        session: u64,
    },
    ProcessGone {
        rank: u32,
        session: u64,
    },
    Command {
        watcher: u64,
        message: FromCommand,
    },
    /// Work on files that was done elsewhere.
    Done(Input),
    Log(String),
}

/// What connections share.
pub(crate) struct Shared {
    pub key: Key,
    pub events: mpsc::UnboundedSender<Event>,
    pub agents: DashMap<u32, Outbox>,
    pub commands: DashMap<u64, Outbox>,
}

/// A coordinator that is ready to serve.
pub struct Coordinator {
    spec: Spec,
    epochs: Epochs,
    job: Job,
    file: JobFile,
    log: Log,
    registry: Registry,
    shared: Arc<Shared>,
    events: mpsc::UnboundedReceiver<Event>,
    /// What came while job.json was written, oldest first.
    waiting: VecDeque<Event>,
    work: JoinSet<()>,
    /// Held by the work on files that is being done; who waits gets it in turn.
    file_turn: Arc<tokio::sync::Mutex<()>>,
    began: Instant,
    /// The newest process of each rank.
    processes: Vec<Option<Process>>,
    /// The connection that speaks for each rank; 0: none. An earlier one of the same rank is not heard.
    sessions: Vec<u64>,
    sessions_begun: u64,
}

/// How often a process that is watched is looked at.
const WATCH_PAUSE: Duration = Duration::from_millis(200);
/// How long words that are on their way to a command may take when the job has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

impl Coordinator {
    /// Takes the directory into use: removes what unfinished checkpoints have left, writes job.json.
    /// The caller holds the directory's lock.
    pub fn new(
        spec: Spec,
        addresses: Vec<String>,
        patience: Patience,
        registry: Registry,
        log: Log,
    ) -> Result<Coordinator, Box<dyn std::error::Error + Send + Sync>> {
        let epochs = Epochs::new(&spec.directory);
        epochs.remove_parts()?;
        let newest_epoch = epochs.committed()?.last().copied();
        let newest_staged = epochs.newest_staged()?;
        let settings = Settings {
            ranks: spec.ranks,
            launch: spec.launch.clone(),
            directory: spec.directory.clone(),
            compress: spec.compress.clone(),
            next_epoch: newest_staged.or(newest_epoch).unwrap_or(0) + 1,
            newest_epoch,
            interval: spec.interval,
            staging: spec.staging.map(Rules::from),
            restarted_from: spec.restarted_from,
            recovers: spec.recovers,
            patience,
        };
        let file = JobFile {
            format: FORMAT,
            job: spec.job.clone(),
            launch: spec.launch.clone(),
            name: spec.name.clone(),
            state: JobState::Running,
            reason: None,
            exit_status: None,
            addresses,
            key: Key::random()?,
            coordinator: Process::this(),
            ranks: spec.ranks,
            processes: vec![],
            mpi: spec.mpi.clone(),
            command: spec.command.clone(),
            working_directory: spec.working_directory.clone(),
            restarted_from: spec.restarted_from,
            recovers: spec.recovers,
            epoch: newest_epoch,
            started: seconds_since_1970(),
            ended: None,
        };
        file.write(&spec.directory)?;
        let (sender, events) = mpsc::unbounded_channel();
        let shared = Shared {
            key: file.key.clone(),
            events: sender,
            agents: DashMap::new(),
            commands: DashMap::new(),
        };
        Ok(Coordinator {
            job: Job::new(settings, Duration::ZERO),
            epochs,
            file,
            log,
            registry,
            shared: Arc::new(shared),
            events,
            waiting: VecDeque::new(),
            work: JoinSet::new(),
            file_turn: Arc::default(),
            began: Instant::now(),
            processes: vec![None; spec.ranks as usize],
            sessions: vec![0; spec.ranks as usize],
            sessions_begun: 0,
            spec,
        })
    }

    /// Serves until every rank has gone; how the job ended.
    pub async fn serve(mut self, listening: Listening) -> JobState {
        let entry = Entry {
            name: self.spec.name.clone(),
            directory: self.spec.directory.clone(),
            launch: self.spec.launch.clone(),
        };
        if let Err(error) = self.registry.add(&entry) {
            self.log.line(&format!(
                "this job can be found by its directory only: the registry cannot be written: {error}"
            ));
        }
        self.log.line(&format!(
            "launch {}: {} ranks, {}",
            self.spec.launch,
            self.spec.ranks,
            self.spec.command.join(" ")
        ));
        let accepting = tokio::spawn(connection::accept(listening, Arc::clone(&self.shared)));
        // If rank 0 fails before its agent connects, nobody else would come.
        self.watch(self.spec.starter.clone(), Event::Done(Input::StarterGone));
        let mut ended = false;
        while !ended {
            for output in self.outputs().await {
                ended |= self.carry_out(output).await;
            }
        }
        accepting.abort();
        self.registry.remove(&entry);
        self.last_words().await;
        self.file.state
    }

    /// Waits for the next thing to happen; what the job makes of it.
    async fn outputs(&mut self) -> Vec<Output> {
        if let Some(event) = self.waiting.pop_front() {
            return self.on(event);
        }
        let due = self.job.deadline().map(|due| self.began + due);
        let tick = async {
            match due {
                Some(due) => tokio::time::sleep_until(due.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // What has come is heard before the time is looked at: nobody was silent while a slow write held this task up.
            biased;
            Some(event) = self.events.recv() => self.on(event),
            () = tick => {
                let now = self.began.elapsed();
                self.job.on(now, Input::Tick)
            }
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
                // It may have become another program, which connects as the same rank; or be dead.
                if let Some(Some(process)) = self.processes.get(rank as usize) {
                    self.watch(process.clone(), Event::ProcessGone { rank, session });
                }
                self.job.on(now, Input::Disconnected { rank })
            }
            Event::ProcessGone { rank, session } if self.speaks_for(rank, session) => {
                self.job.on(now, Input::ProcessGone { rank })
            }
            Event::Agent { .. } | Event::Disconnected { .. } | Event::ProcessGone { .. } => vec![],
            Event::Command { watcher, message } => match message {
                FromCommand::Status => {
                    self.answer_status(watcher);
                    vec![]
                }
                FromCommand::Checkpoint {
                    suspend,
                    timeout_seconds,
                } => self.job.on(
                    now,
                    Input::Checkpoint {
                        watcher,
                        suspend,
                        timeout: timeout_seconds.map(Duration::from_secs),
                    },
                ),
            },
            Event::Done(input) => self.job.on(now, input),
            Event::Log(line) => {
                self.log.line(&line);
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
        let (rank, host, pid) = (hello.rank, hello.host.clone(), hello.pid);
        let admitted = self.job.admit(hello, self.began.elapsed());
        // The connection may have gone in the meantime: then its end is on its way here.
        self.sessions_begun += 1;
        let session = admitted.is_ok().then_some(self.sessions_begun);
        let _ = answer.send(session);
        match admitted {
            Ok(outputs) => {
                send(&outbox, &ToAgent::Welcome);
                self.shared.agents.insert(rank, outbox);
                if let Some(slot) = self.sessions.get_mut(rank as usize) {
                    *slot = self.sessions_begun;
                }
                if let Some(slot) = self.processes.get_mut(rank as usize) {
                    let here = host == host_name();
                    let start_time = here.then(|| start_time(pid)).flatten().unwrap_or(0);
                    *slot = Some(Process {
                        host,
                        pid,
                        start_time,
                    });
                }
                outputs
            }
            Err(reason) => {
                self.log
                    .line(&format!("an agent was turned away: {reason}"));
                send(&outbox, &ToAgent::Rejected { reason });
                vec![]
            }
        }
    }

    /// Tells of the end of a process; one that is on another host cannot be watched.
    fn watch(&self, process: Process, event: Event) {
        if process.alive().is_some() {
            tokio::spawn(watch(process, self.shared.events.clone(), event));
        }
    }

    fn speaks_for(&self, rank: u32, session: u64) -> bool {
        self.sessions.get(rank as usize) == Some(&session)
    }

    /// True when the job has ended.
    async fn carry_out(&mut self, output: Output) -> bool {
        match output {
            Output::Send { rank, message } => {
                if let Some(outbox) = self.shared.agents.get(&rank) {
                    send(&outbox, &message);
                }
            }
            Output::Broadcast(message) => {
                if let Some(frame) = frame(&message) {
                    for outbox in &self.shared.agents {
                        // A connection that has just ended tells so itself.
                        let _ = outbox.send(Arc::clone(&frame));
                    }
                }
            }
            Output::Tell { watcher, message } => self.tell(watcher, &message),
            Output::Prepare { epoch } => self.off_thread(move |epochs| {
                let result = epochs.prepare(epoch).map(drop).map_err(|e| e.to_string());
                Event::Done(Input::Prepared { epoch, result })
            }),
            Output::Discard { epoch } => self.off_thread(move |epochs| {
                Event::Log(match epochs.discard(epoch) {
                    Ok(()) => format!("epoch {epoch}: nothing is left of it"),
                    Err(error) => error.to_string(),
                })
            }),
            Output::Commit { epoch, images } => self.commit(epoch, images),
            Output::Stage { epoch, images } => {
                let about = self.describe();
                self.off_thread(move |epochs| {
                    let result = told(epochs.stage(epoch, &images, &about));
                    Event::Done(Input::Committed { epoch, result })
                });
            }
            Output::Secure { epoch } => self.secure(epoch),
            Output::DiscardStaged { epoch } => self.off_thread(move |epochs| {
                Event::Log(match epochs.discard_staged(epoch) {
                    Ok(()) => format!("epoch {epoch}: nothing is left of it on the slow tier"),
                    Err(error) => error.to_string(),
                })
            }),
            Output::Record => self.record().await,
            Output::Log(line) => self.log.line(&line),
            Output::Ended => {
                self.record().await;
                return true;
            }
        }
        false
    }

    fn describe(&self) -> Description {
        Description {
            job: self.spec.job.clone(),
            name: self.spec.name.clone(),
            command: self.spec.command.clone(),
            mpi: self.spec.mpi.clone(),
            compression: self.spec.compress.clone(),
            hosts: self.processes.iter().map(host).collect(),
        }
    }

    fn commit(&mut self, epoch: u64, images: Vec<Written>) {
        let about = self.describe();
        let keep = self.spec.keep;
        let events = self.shared.events.clone();
        self.off_thread(move |epochs| {
            let committed = epochs.commit(epoch, &images, &about);
            if committed.is_ok() {
                prune(&epochs, keep, &events);
            }
            let result = told(committed);
            Event::Done(Input::Committed { epoch, result })
        });
    }

    /// Commits a staged epoch that has become whole.
    fn secure(&mut self, epoch: u64) {
        let keep = self.spec.keep;
        let events = self.shared.events.clone();
        self.off_thread(move |epochs| {
            let secured = epochs.secure(epoch);
            if secured.is_ok() {
                prune(&epochs, keep, &events);
            }
            let result = told(secured);
            Event::Done(Input::Durable { epoch, result })
        });
    }

    /// Work on files may take long (network file systems): not on the thread that serves. One after the other, in the
    /// order of the orders: what is left of an attempt goes before the next one makes the same epoch's directory.
    fn off_thread(&mut self, work: impl FnOnce(Epochs) -> Event + Send + 'static) {
        let epochs = self.epochs.clone();
        let events = self.shared.events.clone();
        let turn = Arc::clone(&self.file_turn);
        self.work.spawn(async move {
            let _turn = turn.lock().await;
            if let Ok(done) = tokio::task::spawn_blocking(move || work(epochs)).await {
                // Nobody listens any more when the job has ended.
                let _ = events.send(done);
            }
        });
    }

    fn tell(&self, watcher: u64, message: &ToCommand) {
        if let Some(outbox) = self.shared.commands.get(&watcher) {
            send(&outbox, message);
        }
    }

    /// Lets what is on its way to commands arrive, and work on files come to its end.
    async fn last_words(&mut self) {
        let fate = self.job.fate();
        self.log.line(&format!(
            "the job has ended: {}{}",
            fate.state.name(),
            fate.reason
                .as_ref()
                .map_or(String::new(), |r| format!(": {r}"))
        ));
        let work = async {
            while self.work.join_next().await.is_some() {}
            // An outbox is dropped here; its writer ends when everything in it is written.
            self.shared.commands.clear();
            while Arc::strong_count(&self.shared) > 1 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        // A command that does not read its answer is not waited for any longer.
        let _ = tokio::time::timeout(LAST_WORDS, work).await;
        self.events.close();
        while let Ok(event) = self.events.try_recv() {
            if let Event::Log(line) = event {
                self.log.line(&line);
            }
        }
    }
}

/// Removes older epochs; why one could not be removed is told to the log.
fn prune(epochs: &Epochs, keep: usize, events: &mpsc::UnboundedSender<Event>) {
    for error in epochs.prune(keep) {
        // Nobody listens any more when the job has ended.
        let _ = events.send(Event::Log(error.to_string()));
    }
}

/// Where an epoch is, or why it is not there, as the job is told.
fn told(result: Result<PathBuf, EpochError>) -> Result<String, String> {
    result
        .map(|path| path.to_string_lossy().into_owned())
        .map_err(|error| error.to_string())
}

/// Tells when a process of this host ends. What it tells may come after the job's end, when nobody
/// listens any more.
async fn watch(process: Process, events: mpsc::UnboundedSender<Event>, event: Event) {
    while process.alive() != Some(false) {
        tokio::time::sleep(WATCH_PAUSE).await;
    }
    let _ = events.send(event);
}

fn host(process: &Option<Process>) -> String {
    process
        .as_ref()
        .map_or_else(String::new, |process| process.host.clone())
}

pub(crate) fn frame<M: Encode>(message: &M) -> Option<Arc<[u8]>> {
    // Fails only for a message longer than any frame, which none of ours is.
    codec::encode(message).ok().map(Arc::from)
}

pub(crate) fn send<M: Encode>(outbox: &Outbox, message: &M) {
    if let Some(frame) = frame(message) {
        // A connection that has just ended tells so itself.
        let _ = outbox.send(frame);
    }
}
