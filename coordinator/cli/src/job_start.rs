//! A rank's knowledge of its job when it becomes its lower half: rank 0 knows what it starts, the others what job.json says, or nothing yet.

use std::path::Path;

use stillpoint_ids::Epoch;
use stillpoint_protocol::job_file::{JobFile, JobState, Process};
use stillpoint_protocol::launch_start::{self, Awaits, Missing};

use stillpoint_refusals::Code;

use super::coordinator::{self, Started};
use super::launch::LaunchPosition;
use super::options::{LaunchOptions, When};
use super::start::Task;
use super::{Failure, mpi};
use stillpoint_coordinator::batch;
use stillpoint_coordinator::registry::{Entry, Registry};
use stillpoint_coordinator::server::Spec;

/// A rank's knowledge of its job when it becomes its lower half.
pub struct Begun {
    pub job: String,
    pub name: String,
    pub command: Vec<String>,
    pub mpi: mpi::Pair,
    pub restarted_from: Option<Epoch>,
    /// The epoch whose blocks are to be gathered, and its job.
    pub recovers: Option<(Epoch, JobFile)>,
    pub awaits: Option<Awaits>,
}

impl Begun {
    /// A rank that knows nothing yet but the MPIs.
    pub fn of(mpi: mpi::Pair) -> Begun {
        Begun {
            job: String::new(),
            name: String::new(),
            command: vec![],
            mpi,
            restarted_from: None,
            recovers: None,
            awaits: None,
        }
    }

    /// A rank that knows the contents of job.json.
    fn found(job: JobFile, mpi: mpi::Pair) -> Begun {
        Begun {
            job: job.job.clone(),
            name: job.name.clone(),
            command: job.command.clone(),
            restarted_from: job.restarted_from,
            recovers: job.recovers.map(|epoch| (epoch, job)),
            ..Begun::of(mpi)
        }
    }
}

/// Starts the coordinator, on rank 0. This may take as long as this process takes to become its lower half.
pub fn start_job(
    place: &LaunchPosition,
    directory: &Path,
    options: &LaunchOptions,
    afresh: Option<mpi::Pair>,
    task: Task,
) -> Result<Begun, Failure> {
    let mpi = of_task(options, place, &task, afresh)?;
    let mut begun = Begun {
        job: task.job.clone(),
        name: task.name.clone(),
        command: task.command.clone(),
        restarted_from: task.epoch,
        ..Begun::of(mpi)
    };
    let recovers = task.recovers;
    let started = start_coordinator(place, directory, options, &begun.mpi, task)?;
    match recovers {
        // Only the coordinator knows the places of the blocks.
        Some(epoch) => {
            started.hear()?;
            let job = JobFile::read(directory);
            let job = job.map_err(|error| Failure::refuse_of(Code::NoJob, &error))?;
            begun.recovers = Some((epoch, job));
        }
        None => begun.awaits = Some(started.left_to_the_lower_half()?),
    }
    Ok(begun)
}

fn start_coordinator(
    place: &LaunchPosition,
    directory: &Path,
    options: &LaunchOptions,
    mpi: &mpi::Pair,
    task: Task,
) -> Result<Started, Failure> {
    let spec = Spec {
        directory: directory.to_owned(),
        job: task.job,
        origin: task.origin,
        launch: place.launch.clone(),
        name: task.name,
        ranks: place.size,
        starter: Process::this(),
        one_host: place.one_host,
        silence: options.silence,
        mpi: mpi.program.to_owned(),
        library: mpi.library.to_owned(),
        command: task.command,
        working_directory: task.working_directory,
        restarted_from: task.epoch,
        discard: task.discard,
        keep: options.keep as usize,
        interval: options.interval(),
        mttf: options.mttf(),
        on_event: options.on_event.clone(),
        operators: options.operators.clone(),
        suspended_status: options.suspended_status(),
        requeue: options.requeued()?,
        compress: options.compress.clone(),
        incremental: options.incremental.into(),
        dedup: options.dedup(),
        copies: options.copies(),
        precopy: options.precopy == When::On,
        staging: options.tiers.staging(),
        recovers: task.recovers,
        predecessor: None,
    };
    coordinator::start(spec)
}

/// Waits until job.json shows the job that rank 0 has started, on the other ranks; `None`: the job has already finished.
pub fn find_job(
    place: &LaunchPosition,
    directory: &Path,
    options: &LaunchOptions,
    afresh: Option<mpi::Pair>,
) -> Result<Option<Begun>, Failure> {
    let job =
        launch_start::wait_for_job(&place.launch, directory).map_err(|missing| match missing {
            Missing::Told(why) => Failure::silent(why.status),
            Missing::Directory { .. } => Failure::refuse_of(Code::UnsafeDirectory, &missing),
            Missing::Late { .. } => Failure::refuse(
                Code::NoJob,
                Failure::FAILED,
                format!("rank {}: {missing}", place.rank),
            ),
        })?;
    if job.state == JobState::Finished {
        return Ok(None);
    }
    note(directory, &job);
    let mpi = of_job(options, place, &job, afresh)?;
    Ok(Some(Begun::found(job, mpi)))
}

/// Returns the MPIs of the task that rank 0 is about to start. `afresh`: those of the program, if there is one to start.
fn of_task(
    options: &LaunchOptions,
    place: &LaunchPosition,
    task: &Task,
    afresh: Option<mpi::Pair>,
) -> Result<mpi::Pair, Failure> {
    match (&task.written, afresh) {
        (Some(written), afresh) => {
            let mpi = written.carried_on(options, place)?;
            let mpi = mpi.found_as(afresh.as_ref());
            if let Some(change) = written.change(&mpi) {
                super::tell(&change);
            }
            Ok(mpi)
        }
        (None, Some(mpi)) => Ok(mpi),
        (None, None) => Err(Failure::refuse(
            Code::Internal,
            Failure::FAILED,
            "there is nothing to start",
        )),
    }
}

/// Returns the MPIs of another rank, which are those of rank 0.
fn of_job(
    options: &LaunchOptions,
    place: &LaunchPosition,
    job: &JobFile,
    afresh: Option<mpi::Pair>,
) -> Result<mpi::Pair, Failure> {
    let first = mpi::Recorded {
        program: job.mpi.clone(),
        library: job.library.clone(),
    };
    let carries_on = job.recovers.or(job.restarted_from).is_some();
    let mpi = match afresh {
        Some(mpi) if !carries_on => mpi,
        afresh => {
            let mpi = first.carried_on(options, place)?;
            mpi.found_as(afresh.as_ref())
        }
    };
    first.is_one_with(&mpi, place.rank)?;
    Ok(mpi)
}

/// Adds the job to the registry of this host if the coordinator, which otherwise does so, is on another host.
fn note(directory: &Path, job: &JobFile) {
    if !job.coordinator.is_on_this_host() {
        let entry = Entry {
            name: job.name.clone(),
            directory: directory.to_owned(),
            launch: job.launch.clone(),
            addresses: job.addresses.clone(),
            batch: batch::job(),
            group: Some(nix::unistd::getgid().as_raw()),
        };
        // The job does not need the entry: it is found by its directory.
        let _ = Registry::of_this_user().add(&entry);
    }
}
