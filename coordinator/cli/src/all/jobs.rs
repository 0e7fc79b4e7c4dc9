//! A user's jobs on this host. Each has a thread, so that a job that does not answer delays no other.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::Left;
use super::messages::{Action, End, Filter, HelperMessage, Job, Task};
use super::orphans::{self, Unreadable};
use super::ranks::{self, Held, Name, Seen, Serving};
use super::speaker::{Speaker, Visits};
use crate::Failure;
use crate::request::{CheckpointRequest, ProgressReport, carry_out_by};
use crate::status;
use crate::target::Target;
use stillpoint_coordinator::registry::{Entry, Registry};
use stillpoint_protocol::job_file::JobFile;
use stillpoint_refusals::in_words;

/// The pause between two looks at a file that is to be written.
const PAUSE: Duration = Duration::from_millis(20);
/// Threads at work at once.
const AT_ONCE: usize = 64;

/// The state that the threads share.
pub struct Round<'a> {
    pub task: &'a Task,
    pub speaker: &'a Speaker,
    registry: Registry,
    visits: Mutex<Visits>,
    until: Instant,
    /// Ranks of jobs that were attended to.
    known: Mutex<BTreeSet<Name>>,
    unreadable: Mutex<Vec<Unreadable>>,
}

impl Round<'_> {
    /// The time that is left.
    pub fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Records the ranks on this host that a job names as its own.
    fn knows(&self, job: &JobFile) {
        let here = job.processes.iter();
        let here = here.filter(|process| process.is_on_this_host());
        lock(&self.known).extend(here.map(ranks::names));
    }

    pub fn ended(&self, key: &str, end: End) {
        let key = key.to_owned();
        self.speaker.say(&HelperMessage::Ended { key, end });
    }
}

/// Attends to all jobs of the user.
pub fn all(task: &Task, until: Instant, seen: Seen, visits: Visits, speaker: &Speaker) {
    let registry = Registry::of_this_user();
    let mut entries = registry.listed();
    let written = until.min(Instant::now() + ranks::FOR_A_START);
    entries.extend(not_noted(&entries, seen.coordinators, written));
    entries.retain(|entry| is_of_batch_job(entry, &task.filter));
    for entry in &entries {
        speaker.say(&HelperMessage::Found(Job {
            key: key(entry),
            name: entry.name.clone(),
            directory: entry.directory.display().to_string(),
        }));
    }
    let round = Round {
        task,
        speaker,
        registry,
        visits: Mutex::new(visits),
        until,
        known: Mutex::default(),
        unreadable: Mutex::default(),
    };
    let threads = entries.len().min(AT_ONCE);
    let queue = Mutex::new(VecDeque::from(entries));
    let next = || lock(&queue).pop_front();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(entry) = next() {
                    let key = key(&entry);
                    match attend(&round, &entry) {
                        Attended::Ended(end) => round.ended(&key, end),
                        Attended::Not => speaker.say(&HelperMessage::Not { key }),
                        Attended::Unreadable(job) => lock(&round.unreadable).push(job),
                    }
                }
            });
        }
    });
    let known = std::mem::take(&mut *lock(&round.known));
    let unreadable = std::mem::take(&mut *lock(&round.unreadable));
    let everything = task.filter == Filter::default();
    orphans::all(&round, seen.ranks, &known, unreadable, everything);
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn key(entry: &Entry) -> String {
    format!("{} {}", entry.launch, entry.directory.display())
}

/// Jobs that are missing in the registry, found by their coordinators' open logs.
fn not_noted(noted: &[Entry], coordinators: Vec<Serving>, until: Instant) -> Vec<Entry> {
    coordinators
        .into_iter()
        .filter(|Serving { directory, .. }| {
            let same = |entry: &Entry| {
                let there = entry.directory.canonicalize();
                entry.directory == *directory || there.is_ok_and(|there| there == *directory)
            };
            !noted.iter().any(same)
        })
        .filter_map(|serving| {
            let job = written(&serving, until)?;
            let Serving {
                directory, batch, ..
            } = serving;
            Some(Entry {
                name: job.name,
                directory,
                launch: job.launch,
                addresses: job.addresses,
                batch,
                // Only its coordinator records the group.
                group: None,
            })
        })
        .collect()
}

/// Reads the job file of a coordinator. One that is just starting may not have written it yet, or its predecessor's is still there.
fn written(serving: &Serving, until: Instant) -> Option<JobFile> {
    loop {
        let over = !serving.process.runs() || Instant::now() >= until;
        let job = JobFile::read(&serving.directory).ok();
        let is_its_own = job.as_ref().is_some_and(JobFile::runs_here);
        if is_its_own || over {
            return job;
        }
        thread::sleep(PAUSE);
    }
}

/// Whether the filter includes a job.
pub fn is_meant(entry: &Entry, filter: &Filter) -> bool {
    is_of_batch_job(entry, filter) && is_below(&entry.directory, filter)
}

fn is_of_batch_job(entry: &Entry, filter: &Filter) -> bool {
    let meant = |job: &String| {
        let batch = entry.batch.as_ref();
        batch.is_some_and(|batch| batch.is_meant(job))
    };
    filter.slurm_job.as_ref().is_none_or(meant)
}

fn is_below(directory: &Path, filter: &Filter) -> bool {
    let Some(below) = &filter.below else {
        return true;
    };
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    directory.starts_with(below) || real(directory).starts_with(real(below))
}

/// The result of attending to a job.
enum Attended {
    Ended(End),
    /// The job does not run, or the filter excludes it.
    Not,
    /// The job cannot be read, but its ranks may be found by other means.
    Unreadable(Unreadable),
}

fn attend(round: &Round<'_>, entry: &Entry) -> Attended {
    if !is_below(&entry.directory, &round.task.filter) {
        return Attended::Not;
    }
    let mut job = match round.registry.look(entry) {
        None => return Attended::Not,
        Some(Ok(job)) => job,
        Some(Err(error)) => {
            let failure = Failure::from(error);
            return Attended::Unreadable(Unreadable {
                key: key(entry),
                why: failure.to_string(),
                status: failure.status,
            });
        }
    };
    // If job.json came late over the network, the registry entry of this host has newer addresses.
    let more = entry.addresses.iter();
    let more = more.filter(|address| !job.addresses.contains(address));
    let more: Vec<String> = more.cloned().collect();
    job.addresses.extend(more);
    round.knows(&job);
    let directory = entry.directory.clone();
    let mut target = Target { directory, job };
    if round.task.deed == Action::Status {
        return Attended::Ended(End::Shown(Box::new(status::as_json(&target))));
    }
    if target.all_gone() {
        return Attended::Not;
    }
    match write(round, &key(entry), &mut target) {
        Ok(end) => {
            // Ranks may have connected since.
            if let Some(Ok(job)) = round.registry.look(entry) {
                round.knows(&job);
            }
            Attended::Ended(end)
        }
        Err(failure) if failure.status == Failure::MISSING => Attended::Not,
        Err(_) if target.comes_to_its_end(round.left()) => Attended::Not,
        Err(failure) => Attended::Ended(End::Stays {
            why: failure.to_string(),
            codes: failure.codes(),
            status: failure.status,
            left: leave(round.task.left, held(&target)),
        }),
    }
}

fn write(round: &Round<'_>, key: &str, target: &mut Target) -> Result<End, Failure> {
    let wanted = CheckpointRequest {
        suspend: round.task.deed == Action::Suspend,
        timeout: Some(round.left()),
        waits: round.task.waits,
        asked: round.task.asked.clone(),
    };
    let visit = lock(&round.visits).remove(&target.job.launch);
    let outcome = carry_out_by(visit, target, &wanted, &mut |told| {
        let (text, committing) = match told {
            ProgressReport::Asked => return,
            ProgressReport::Phase {
                epoch,
                phase,
                committing,
            } => (format!("epoch {epoch}: {phase}"), committing),
            ProgressReport::Hindered(reasons) => (format!("waiting: {}", in_words(reasons)), false),
        };
        round.speaker.say(&HelperMessage::Phase {
            key: key.to_owned(),
            text,
            committing,
        });
    })?;
    Ok(End::Epoch {
        epoch: outcome.epoch,
        bytes: outcome.stored_bytes,
        seconds: outcome.phases.iter().map(|(_, seconds)| seconds).sum(),
        suspended: outcome.suspended,
    })
}

fn held(target: &Target) -> Vec<Held> {
    let processes = target.job.processes.iter();
    processes.filter_map(Held::named).collect()
}

/// Does what `left` says to ranks that stay. Returns a description for people.
pub fn leave(left: Left, ranks: Vec<Held>) -> Option<String> {
    let (signal, done) = match left {
        Left::Leave => return None,
        Left::Stop => (Signal::STOP, "stopped"),
        Left::Kill => (Signal::KILL, "killed"),
    };
    let count = ranks.iter().filter(|rank| rank.signal(signal)).count();
    Some(match count {
        0 => format!("its ranks on this host are unknown: no process was {done}"),
        1 => format!("its rank on this host was {done}"),
        _ => format!("its {count} ranks on this host were {done}"),
    })
}
