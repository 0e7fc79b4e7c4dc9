//! Starts a rank, once `run` or `restart` knows what to start.
//!
//! Rank 0 starts the coordinator. It alone decides, and it alone reports errors that concern all ranks. The others learn the decision from job.json. Each
//! rank becomes its lower half by `execve`, so that the launcher sees the application's own end. A rank learns there whatever it need not know before.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use stillpoint_faults::{Point, strike, this_is};
use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::fast_tier::JobPart;
use stillpoint_image::{ImageError, Manifest, epoch_name, image_name};
use stillpoint_protocol::installed::this_program;
use stillpoint_protocol::job_file::JobFile;
use stillpoint_protocol::launch::{KEPT_FROM_LOADER, Launch, Restart, VARIABLE};
use stillpoint_protocol::launch_start::Awaits;
use stillpoint_protocol::namespace::Namespace;
use stillpoint_protocol::tier::Tiers;

use stillpoint_refusals::Code;

use super::finished;
use super::gather::{From, gather};
use super::job_start::{Begun, find_job, start_job};
use super::kernel::Kernel;
use super::launch::LaunchPosition;
use super::leftovers;
use super::options::{LaunchOptions, OnTerm, SafeState};
use super::siblings::Siblings;
use super::{CommandResult, Failure, mpi};

/// The decision of rank 0.
pub enum Decision {
    Start(Task),
    /// The job has finished in an earlier launch, so nothing is started.
    Finished(Box<JobFile>),
}

/// A job to start.
pub struct Task {
    pub job: String,
    /// The same as in job.json.
    pub origin: Option<String>,
    /// Whether to give up existing epochs in the directory first.
    pub discard: bool,
    pub name: String,
    pub command: Vec<String>,
    pub working_directory: PathBuf,
    /// The committed epoch to carry on from.
    pub epoch: Option<Epoch>,
    /// The epoch whose blocks are gathered, and from which the job then carries on.
    pub recovers: Option<Epoch>,
    /// The MPIs of the launch that wrote the epoch.
    pub written: Option<mpi::Recorded>,
}

/// The directories of a launch.
pub struct Home {
    /// The directory in which it works: it holds job.json and the epochs to come.
    pub work: PathBuf,
    /// The directory of the epoch from which it carries on.
    pub from: PathBuf,
}

/// The program that every rank starts if there is no epoch to restart.
#[derive(Clone, Copy)]
pub struct Program<'a> {
    /// The path that the user gave.
    pub path: &'a Path,
    /// The file that is loaded.
    pub executable: &'a Path,
    pub arguments: &'a [OsString],
    pub safe_state: SafeState,
    /// Whether it starts afresh in any case.
    pub is_certain: bool,
    /// Whether a job that has finished is a success.
    pub finished_ok: bool,
}

/// Starts this rank. `decide` runs on rank 0 only. `program` is the program that every rank would start afresh. Returns only on failure, or if the job has
/// finished.
pub fn start(
    place: &LaunchPosition,
    home: Home,
    options: &LaunchOptions,
    program: Option<Program<'_>>,
    decide: impl FnOnce() -> Result<Decision, Failure>,
) -> CommandResult {
    let Home { work, from } = home;
    let now = now();
    this_is(place.rank.0);
    Namespace::own().map_err(|strange| Failure::refuse_of(Code::NoProc, &strange))?;
    Kernel::here()
        .suffices()
        .map_err(|old| Failure::refuse_of(Code::OldKernel, &old))?;
    options.refuse_unavailable()?;
    let afresh = match program {
        Some(program) => {
            let mpi = mpi::choose(options, place, program.executable)?;
            Siblings::find(mpi.program, mpi.library)?;
            Some(mpi)
        }
        None => None,
    };
    let tracking = options.tracking()?;
    let tiers = options.tiers.of_rank(place)?;
    let finished_ok = program.is_some_and(|program| program.finished_ok);
    let begun = match place.rank {
        Rank::FIRST => match decide()? {
            Decision::Start(task) => start_job(place, &work, options, afresh, task)?,
            Decision::Finished(job) => return finished::tell(place, &work, *job, finished_ok),
        },
        _ => match (program, afresh) {
            // Every decision leads to this program, and the lower half learns the rest.
            (Some(program), Some(mpi))
                if program.is_certain && place.one_host && tiers.is_none() =>
            {
                Begun {
                    awaits: Some(Awaits::Job),
                    ..Begun::of(mpi)
                }
            }
            (_, afresh) => match find_job(place, &work, options, afresh)? {
                Some(begun) => begun,
                None if finished_ok => return Ok(()),
                None => return Err(Failure::silent(Failure::FINISHED)),
            },
        },
    };
    let siblings = Siblings::find(begun.mpi.program, begun.mpi.library)?;
    if let Some(tiers) = &tiers {
        occupy(tiers, &work, &begun);
    }
    let carries_on_from = match &begun.recovers {
        Some((epoch, job)) => Some(gather(place, &from, job, *epoch)?),
        None => begun.restarted_from.map(|epoch| From {
            epoch,
            fetched: None,
        }),
    };
    let restart = carries_on_from.map(|epoch| restart(&from, &epoch, place.rank, options.lazy));
    let restart = restart.transpose()?;
    let mut lower = Command::new(&siblings.lower);
    match (&restart, program) {
        (Some(_), _) => lower.arg("restart"),
        (None, Some(program)) => {
            lower.args(["run", "--"]).arg(program.path);
            lower.args(program.arguments)
        }
        (None, None) => {
            return Err(Failure::refuse(
                Code::Internal,
                Failure::FAILED,
                "there is nothing to start",
            ));
        }
    };
    let launch = Launch {
        directory: work,
        job: begun.job,
        launch: place.launch.clone(),
        name: begun.name,
        rank: place.rank,
        size: place.size,
        mpi: begun.mpi.program.to_owned(),
        library: begun.mpi.library.to_owned(),
        library_file: begun.mpi.file,
        upper_library: siblings.upper,
        command: begun.command,
        restart,
        suspend_signal: options.suspend_signal,
        suspend_on_term: options.on_term == OnTerm::Suspend,
        suspended_status: options.suspended_status(),
        stillpoint: (place.rank == Rank::FIRST)
            .then(this_program)
            .and_then(Result::ok),
        two_phase: program.is_some_and(|program| program.safe_state == SafeState::Barrier),
        tiers,
        mapped_files: options.mapped_files.into(),
        tracking,
        sync_files: options.sync_files.into(),
        sockets: options.sockets.into(),
        gpu_staging: options.gpu_staging.into(),
        input: options.input(),
        begun: now,
        awaits: begun.awaits,
    };
    for (variable, keeper) in KEPT_FROM_LOADER {
        match std::env::var_os(variable) {
            Some(value) => lower.env_remove(variable).env(keeper, value),
            None => lower.env_remove(keeper),
        };
    }
    strike(Point::Become).map_err(|error| Failure::refuse_of(Code::FaultPoint, &error))?;
    let error = lower.env(VARIABLE, launch.to_variable()).exec();
    Err(Failure::refuse(
        Code::Incomplete,
        Failure::FAILED,
        format!(
            "{}: cannot start this program: {error}",
            siblings.lower.display()
        ),
    ))
}

/// Nanoseconds since 1970; 0 for an earlier clock, so that every file has changed since.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as i64)
}

/// Takes the job's part of the fast tier. Data that no restart needs is removed, of this job and of others.
fn occupy(tiers: &Tiers, directory: &Path, job: &Begun) {
    let part = JobPart::new(&tiers.fast, &job.job);
    // If files cannot be removed or written, the first staged epoch finds it out; the job does not need them now.
    let _ = leftovers::clean(&tiers.fast, Some(&job.job));
    let _ = part.claim(directory);
    let recovers = job.recovers.as_ref().map(|(epoch, _)| *epoch);
    part.keep_only(recovers.or(job.restarted_from));
}

/// Returns this rank's image, after a look into it and before anything is started with it.
fn restart(directory: &Path, from: &From, rank: Rank, lazy: bool) -> Result<Restart, Failure> {
    let From { epoch, fetched } = *from;
    let directory = directory.join(epoch_name(epoch));
    let broken = |error: ImageError| {
        Failure::refuse_because(
            error.code_of_reading(),
            &error,
            format!("rank {rank}: {error}"),
        )
    };
    let manifest = Manifest::read(&directory).map_err(broken)?;
    manifest.open_image(&directory, rank).map_err(broken)?;
    let image = manifest
        .ranks
        .get(rank.index())
        .map_or_else(|| image_name(rank), |entry| entry.file.clone());
    Ok(Restart {
        epoch,
        image: directory.join(image),
        directory,
        fetched,
        lazy,
    })
}

/// Makes an id for a new job.
pub fn new_job_id() -> Result<String, Failure> {
    let random = stillpoint_protocol::Key::random();
    let random = random.map_err(|error| {
        Failure::refuse(
            Code::NotSetUp,
            Failure::FAILED,
            format!("cannot name the job: {error}"),
        )
    })?;
    Ok(String::from(random)[..16].to_owned())
}

/// The text of an argument, for people and for the manifest; the application gets the bytes themselves.
pub fn text(argument: &OsStr) -> String {
    argument.to_string_lossy().into_owned()
}
