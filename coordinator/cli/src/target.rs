//! TARGET: a checkpoint directory, the name of a running job, or nothing when there is only one.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use stillpoint_image::{Manifest, epoch_name};
use stillpoint_protocol::client::{ClientError, CommandConnection};
use stillpoint_protocol::command::{CommittedEpoch, FromCommand, ToCommand};
use stillpoint_protocol::handshake::HandshakeError;
use stillpoint_protocol::job_file::{self, JobFile, JobFileError, JobState};
use stillpoint_protocol::{Receiver, Sender};

use super::Failure;
use stillpoint_coordinator::door::Visit;
use stillpoint_coordinator::registry::Registry;

/// The time that a coordinator may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time that a process may take from its last message to its end.
const A_MOMENT: Duration = Duration::from_millis(500);
/// The pause between two looks at job.json while it may be about to change.
const PAUSE: Duration = Duration::from_millis(20);

/// A job that was found.
#[derive(Debug)]
pub struct Target {
    pub directory: PathBuf,
    pub job: JobFile,
}

impl From<JobFileError> for Failure {
    fn from(error: JobFileError) -> Failure {
        let status = match &error {
            JobFileError::Missing { .. } => Failure::MISSING,
            _ => return Failure::of(&error),
        };
        Failure::new(status, error.to_string())
    }
}

impl Target {
    /// Finds the job that the user means.
    pub fn find(target: Option<&str>) -> Result<Target, Failure> {
        match target {
            None => only_one(),
            Some(text) => {
                let path = Path::new(text);
                if path.join(job_file::NAME).exists() || text.contains('/') {
                    return Target::at(path);
                }
                match by_name(text)? {
                    Some(target) => Ok(target),
                    // The error for a directory without a job is clearer than that for a missing name.
                    None if path.is_dir() => Target::at(path),
                    None => Err(Failure::new(
                        Failure::MISSING,
                        format!(
                            "no job named '{text}' runs on this host, and there is no such directory: \
                             name a checkpoint directory, or see `stillpoint status`"
                        ),
                    )),
                }
            }
        }
    }

    /// The job of a checkpoint directory.
    pub fn at(directory: &Path) -> Result<Target, Failure> {
        let job = JobFile::read(directory)?;
        let directory = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.to_owned());
        Ok(Target { directory, job })
    }

    /// Connects to the job's coordinator, if the job runs; `limit`: the longest wait of the caller for its answer.
    pub fn connect(&self, limit: Option<Duration>) -> Result<Coordinator, Failure> {
        if self.job.state != JobState::Running {
            return Err(self.does_not_run(&self.job));
        }
        if self.job.copied {
            let there = self.job.directory.as_deref().unwrap_or(&self.directory);
            let text = format!(
                "{}: no job runs here: this directory is a copy of {}",
                self.directory.display(),
                there.display()
            );
            return Err(Failure::new(Failure::MISSING, text));
        }
        let patience = limit.map_or(PATIENCE, |limit| limit.min(PATIENCE));
        let connection = CommandConnection::open(&self.job.addresses, &self.job.terms(), patience);
        let connection = connection.map_err(|error| self.unreachable(&error))?;
        let (sender, receiver) = connection
            .split()
            .map_err(|error| self.unreachable(&error))?;
        Ok(Coordinator::Keyed(sender, receiver))
    }

    /// The same. If the coordinator has died and ranks live, it waits for the one that is about to take over.
    pub fn connect_to_whoever_serves(
        &mut self,
        limit: Option<Duration>,
    ) -> Result<Coordinator, Failure> {
        let since = Instant::now();
        let patience = limit.map_or(PATIENCE, |limit| limit.min(PATIENCE));
        loop {
            let failure = match self.connect(limit) {
                Err(failure) if failure.status == Failure::FAILED => failure,
                settled => return settled,
            };
            let job = &self.job;
            let ranks_live = job.processes.iter().any(|rank| rank.alive() == Some(true));
            let orphaned = job.coordinator.alive() == Some(false) && ranks_live;
            if !orphaned || since.elapsed() >= patience {
                return Err(failure);
            }
            thread::sleep(PAUSE);
            if let Ok(job) = JobFile::read(&self.directory) {
                self.job = job;
            }
        }
    }

    fn does_not_run(&self, job: &JobFile) -> Failure {
        Failure::new(
            Failure::MISSING,
            format!(
                "{}: the job '{}' is not running, it is {}",
                self.directory.display(),
                job.name,
                job.state.name()
            ),
        )
    }

    /// Returns the error for a request that has lost its coordinator. A job that ends answers no requests before job.json shows its end, so this waits for
    /// it, until `deadline` at the latest.
    pub fn lost(&self, failure: Failure, deadline: Option<Instant>) -> Failure {
        if failure.status != Failure::FAILED {
            return failure;
        }
        let since = Instant::now();
        loop {
            // This is read before job.json: after the coordinator's end, job.json does not change any more.
            let may_change = self.job.coordinator.alive() == Some(true)
                && since.elapsed() < PATIENCE
                && deadline.is_none_or(|deadline| Instant::now() < deadline);
            match JobFile::read(&self.directory) {
                Ok(job) if job.state != JobState::Running => return self.does_not_run(&job),
                _ if may_change => thread::sleep(PAUSE),
                _ => return failure,
            }
        }
    }

    /// Whether the job is over now or within moments, as when its ranks have ended. Then it cannot be checkpointed, and nothing of it stays.
    pub fn comes_to_its_end(&self, limit: Duration) -> bool {
        let since = Instant::now();
        let ended = |process: &job_file::Process| process.alive() == Some(false);
        loop {
            let now = JobFile::read(&self.directory);
            if now.is_ok_and(|job| job.launch != self.job.launch || job.state != JobState::Running)
            {
                return true;
            }
            // A rank that has announced its end may still be there.
            let patience = match self.job.processes.iter().any(ended) {
                true => PATIENCE,
                false => A_MOMENT,
            };
            if since.elapsed() >= limit.min(patience) {
                return false;
            }
            thread::sleep(PAUSE);
        }
    }

    /// The outcome of a suspend whose coordinator went before it reported it. It comes from job.json and the epoch, and lacks the times.
    pub fn suspended_meanwhile(&self) -> Option<CommittedEpoch> {
        let job = JobFile::read(&self.directory).ok()?;
        let done = job.launch == self.job.launch && job.state == JobState::Suspended;
        let epoch = job.epoch.filter(|_| done)?;
        let directory = self.directory.join(epoch_name(epoch));
        let manifest = Manifest::read(&directory).ok()?;
        Some(CommittedEpoch {
            epoch,
            directory: directory.to_string_lossy().into_owned(),
            bytes: 0,
            stored_bytes: manifest.ranks.iter().map(|image| image.bytes).sum(),
            phases: vec![],
            stopped: 0.0,
            suspended: true,
            ahead: None,
            staging: None,
        })
    }

    fn unreachable(&self, error: &ClientError) -> Failure {
        let directory = self.directory.display();
        if let ClientError::Handshake {
            source: HandshakeError::WrongKey,
            ..
        } = error
        {
            let text = format!("{directory}: {error}: job.json does not belong to the running job");
            return Failure::new(Failure::NOT_ALLOWED, text);
        }
        let host = &self.job.coordinator.host;
        let advice = if self.job.coordinator.is_on_this_host() {
            format!("see {directory}/coordinator.log; if the job is gone, restart it")
        } else {
            format!("the job runs on {host}: try it there")
        };
        Failure::failed(format!("{directory}: {error}: {advice}"))
    }

    /// Whether the coordinator and every rank are known to have gone, which requires that all were on this host.
    pub fn all_gone(&self) -> bool {
        let job = &self.job;
        let mut processes = job.processes.iter().chain([&job.coordinator]);
        processes.all(|process| process.alive() == Some(false))
    }
}

/// A connection on which one request is made.
pub enum Coordinator {
    /// With the job's key.
    Keyed(Sender<FromCommand>, Receiver<ToCommand>),
    /// At its door.
    Visited(Visit),
}

impl Coordinator {
    pub fn ask(&mut self, message: &FromCommand) -> Result<(), Failure> {
        match self {
            Coordinator::Keyed(sender, _) => {
                sender.send(message).map_err(|error| Failure::of(&error))
            }
            Coordinator::Visited(visit) => visit.ask(message).map_err(|error| Failure::of(&error)),
        }
    }

    /// Waits for the next answer.
    pub fn answer(&mut self, patience: Option<Duration>) -> Result<ToCommand, Failure> {
        use stillpoint_protocol::Received;
        let received = match (self, patience) {
            (Coordinator::Keyed(_, receiver), Some(patience)) => receiver.receive_within(patience),
            (Coordinator::Keyed(_, receiver), None) => receiver.receive(),
            (Coordinator::Visited(visit), patience) => Ok(match visit.answer(patience) {
                Ok(Some(message)) => Received::Message(message),
                Ok(None) => Received::Closed,
                Err(error) if error.kind() == ErrorKind::TimedOut => Received::Nothing,
                Err(error) => return Err(Failure::of(&error)),
            }),
        };
        match received.map_err(|error| Failure::of(&error))? {
            Received::Message(message) => Ok(message),
            Received::Nothing => Err(Failure::failed(
                "the coordinator does not answer: see coordinator.log in the \
            checkpoint directory",
            )),
            Received::Closed => Err(Failure::failed(
                "the coordinator closed the connection: the job has ended or was killed",
            )),
        }
    }
}

/// The jobs that run here. Jobs that a reboot or a kill has ended without a report count only if there is no other, so that an error can name them.
fn living() -> Vec<Target> {
    let running = Registry::of_this_user().running().into_iter();
    let targets = running.map(|(entry, job)| Target {
        directory: entry.directory,
        job,
    });
    let (gone, living): (Vec<Target>, Vec<Target>) = targets.partition(Target::all_gone);
    match living.is_empty() {
        true => gone,
        false => living,
    }
}

fn only_one() -> Result<Target, Failure> {
    let mut running = living();
    match running.len() {
        0 => Err(Failure::new(
            Failure::MISSING,
            "no job of yours runs on this host: name its checkpoint directory",
        )),
        1 => Ok(running.remove(0)),
        count => {
            let names: Vec<String> = running
                .iter()
                .map(|target| format!("{} ({})", target.job.name, target.directory.display()))
                .collect();
            Err(Failure::new(
                Failure::MISSING,
                format!(
                    "{count} jobs of yours run on this host, name one: {}",
                    names.join(", ")
                ),
            ))
        }
    }
}

fn by_name(name: &str) -> Result<Option<Target>, Failure> {
    let mut named = living();
    named.retain(|target| target.job.name == name);
    if named.len() > 1 {
        let places: Vec<String> = named
            .iter()
            .map(|t| t.directory.display().to_string())
            .collect();
        return Err(Failure::new(
            Failure::MISSING,
            format!(
                "{} jobs are named '{name}', name a directory: {}",
                named.len(),
                places.join(", ")
            ),
        ));
    }
    Ok(named.pop())
}
