//! A job: a coordinator and its ranks.
//!
//! The coordinator is the real one, in this process, on a loopback socket. The connections are real, too.

use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use stillpoint_coordinator::fence::Fence;
use stillpoint_coordinator::job::Patience;
use stillpoint_coordinator::registry::Registry;
use stillpoint_coordinator::server::{self, Coordinator, Records, Spec};
use stillpoint_ids::Rank;
use stillpoint_protocol::client::CommandConnection;
use stillpoint_protocol::command::{FromCommand, ToCommand};
use stillpoint_protocol::job_file::{JobFile, JobState, Process};
use stillpoint_protocol::{Received, Receiver, Silence};

use super::{Agent, Character, End, PATIENCE, held, in_directory};

/// A coordinator and its ranks.
pub struct Job {
    pub directory: tempfile::TempDir,
    pub file: JobFile,
    coordinator: JoinHandle<JobState>,
    pub ranks: Vec<JoinHandle<End>>,
}

impl Job {
    /// Starts a coordinator for that many ranks, without the ranks.
    pub fn coordinator_only(ranks: u32, patience: Patience, interval: Option<Duration>) -> Job {
        Job::in_directory(tempfile::tempdir().unwrap(), ranks, patience, interval)
    }

    /// The same, in an existing directory.
    pub fn in_directory(
        directory: tempfile::TempDir,
        ranks: u32,
        patience: Patience,
        interval: Option<Duration>,
    ) -> Job {
        let (records, fence) = in_directory(directory.path());
        let (job, ready) = Job::with_records(directory, ranks, patience, interval, records, fence);
        ready.recv().unwrap().unwrap();
        job
    }

    /// The same, with records of the test's own. Returns as soon as there is a job.json; the receiver hears when it is written.
    pub fn with_records(
        directory: tempfile::TempDir,
        ranks: u32,
        patience: Patience,
        interval: Option<Duration>,
        records: impl Records + 'static,
        fence: Arc<Fence>,
    ) -> (Job, mpsc::Receiver<Result<(), String>>) {
        let spec = Spec {
            directory: directory.path().to_owned(),
            job: "job".into(),
            launch: "launch".into(),
            name: "test".into(),
            ranks,
            starter: Process::this(),
            one_host: true,
            silence: Silence::default(),
            mpi: "openmpi".into(),
            library: "openmpi".into(),
            command: vec!["app".into()],
            working_directory: "/".into(),
            restarted_from: None,
            origin: None,
            discard: false,
            keep: 2,
            interval: interval.map(Into::into),
            mttf: None,
            on_event: None,
            operators: None,
            suspended_status: 0,
            requeue: None,
            compress: "none".into(),
            incremental: stillpoint_protocol::agent::Incremental::Off,
            dedup: true,
            copies: None,
            precopy: false,
            staging: None,
            recovers: None,
            predecessor: None,
        };
        let registry = Registry::at(directory.path().join("registry"));
        let held = held(directory.path());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (coordinator, listening) = runtime.block_on(async {
            let listening = server::listen(true).await.unwrap();
            let addresses = server::addresses(&listening, true).unwrap();
            (
                Coordinator::new(spec, held, addresses, patience, registry, records, fence)
                    .unwrap(),
                listening,
            )
        });
        let (ready, readiness) = mpsc::channel();
        let coordinator = thread::spawn(move || {
            let ready = move |written| ready.send(written).unwrap();
            runtime.block_on(coordinator.serve(listening, ready))
        });
        let file = loop {
            match JobFile::read(directory.path()) {
                Ok(file) if file.state == JobState::Running => break file,
                // The file is not there yet, or is of a job that has ended.
                _ => thread::sleep(Duration::from_millis(1)),
            }
        };
        let job = Job {
            directory,
            file,
            coordinator,
            ranks: vec![],
        };
        (job, readiness)
    }

    /// Starts a coordinator and a rank for each character.
    pub fn start(characters: &[Character]) -> Job {
        let mut job = Job::coordinator_only(characters.len() as u32, Patience::default(), None);
        job.add_ranks(characters);
        job
    }

    pub fn add_ranks(&mut self, characters: &[Character]) {
        for (rank, character) in Rank::of_each(characters) {
            let agent = Agent::connect(&self.file, rank, character.clone());
            self.ranks.push(thread::spawn(move || agent.live()));
        }
    }

    /// Connects as a command and sends a request. The receiver gets the answers.
    pub fn ask(&self, message: &FromCommand) -> Receiver<ToCommand> {
        let connection =
            CommandConnection::open(&self.file.addresses, &self.file.terms(), PATIENCE).unwrap();
        let (sender, receiver) = connection.split().unwrap();
        sender.send(message).unwrap();
        receiver
    }

    /// Asks for a checkpoint and returns the answer that ends it.
    pub fn checkpoint(&self, suspend: bool, timeout_seconds: Option<u64>) -> ToCommand {
        let mut receiver = self.ask(&FromCommand::Checkpoint {
            suspend,
            timeout: timeout_seconds.map(|seconds| Duration::from_secs(seconds).into()),
            waits: false,
            asked: None,
        });
        loop {
            match receiver.receive_within(PATIENCE).unwrap() {
                Received::Message(ToCommand::Phase { .. }) => {}
                Received::Message(message) => return message,
                other => panic!("no answer: {other:?}"),
            }
        }
    }

    /// Waits for every rank and the coordinator.
    pub fn end(self) -> (JobState, Vec<End>, JobFile, tempfile::TempDir) {
        let ends = self
            .ranks
            .into_iter()
            .map(|rank| rank.join().unwrap())
            .collect();
        let state = self.coordinator.join().unwrap();
        let file = JobFile::read(self.directory.path()).unwrap();
        (state, ends, file, self.directory)
    }
}
