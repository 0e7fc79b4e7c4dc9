//! Starting a rank: `run` and `restart` from where they know what to start.
//!
//! Rank 0 starts the coordinator; it is the only one that decides and the only one that complains about
//! what concerns all ranks. The others learn from job.json what was decided. Each then becomes its
//! lower half by `execve`, so that the launcher sees the application's own end.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use stillpoint_directory::{Directory, Whose};
use stillpoint_faults::{Point, strike, this_is};
use stillpoint_image::fast_tier::JobPart;
use stillpoint_image::{ImageError, Manifest, epoch_name, image_name};
use stillpoint_protocol::job_file::{JobFile, JobState, Process, host_name};
use stillpoint_protocol::launch::{KEPT_FROM_LOADER, Launch, Ready, Restart, VARIABLE};
use stillpoint_protocol::tier::Tiers;

use super::finished;
use super::gather::{From, gather};
use super::launch::Place;
use super::leftovers;
use super::options::{LaunchOptions, OnTerm, SafeState};
use super::{Failure, Outcome, mpi, one_voice};
use crate::batch;
use crate::registry::{Entry, Registry};
use crate::server::Spec;

/// How long the other ranks wait for rank 0's decision: network file systems show it late.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at job.json.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// What rank 0 has decided.
pub enum Decision {
    Start(Task),
    /// The job has come to its end in an earlier launch: nothing is started.
    Finished(Box<JobFile>),
}

/// What is to be started.
pub struct Task {
    pub job: String,
    pub name: String,
    pub command: Vec<String>,
    pub working_directory: PathBuf,
    /// The committed epoch to carry on from.
    pub epoch: Option<u64>,
    /// The epoch to gather the blocks of, and to carry on from then.
    pub recovers: Option<u64>,
    /// The MPIs that the epoch was written with.
    pub written: Option<mpi::Recorded>,
}

/// A directory as every rank and the coordinator name it.
pub fn absolute(directory: &Path) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(directory)
        .map_err(|error| Failure::failed(format!("{}: {error}", directory.display())))?;
    match absolute.to_str() {
        Some(_) => Ok(absolute),
        None => Err(Failure::failed(format!(
            "{}: the name of a checkpoint directory must be UTF-8",
            directory.display()
        ))),
    }
}

/// Makes the directory that a job is to work in, or takes one that is ours already, so that a reason against it is told
/// before anything runs.
pub fn take(directory: &Path) -> Result<Directory, Failure> {
    Directory::make(directory).map_err(|error| cannot_write(directory, &error))
}

pub fn cannot_write(directory: &Path, error: &io::Error) -> Failure {
    let shown = directory.display();
    let text = format!(
        "{shown}: cannot write checkpoints there: {error}: choose another directory with --dir"
    );
    Failure::because(error, text)
}

/// The directories of a launch.
pub struct Home {
    /// Where it works: job.json and the epochs to come.
    pub work: PathBuf,
    /// Where the epoch is that it carries on from.
    pub from: PathBuf,
}

/// What every rank starts where there is nothing to restart.
#[derive(Clone, Copy)]
pub struct Program<'a> {
    /// As the user gave it.
    pub path: &'a Path,
    /// The file that is loaded.
    pub executable: &'a Path,
    pub arguments: &'a [OsString],
    pub safe_state: SafeState,
}

/// Starts this rank. `decide` runs on rank 0 only. `program` is what every rank would start afresh.
/// Returns only if it fails.
pub fn start(
    place: &Place,
    home: Home,
    options: &LaunchOptions,
    program: Option<Program<'_>>,
    decide: impl FnOnce() -> Result<Decision, Failure>,
) -> Outcome {
    let Home { work, from } = home;
    let begun = now();
    this_is(place.rank);
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
    let (job, mpi) = match place.rank {
        0 => match decide()? {
            Decision::Start(task) => {
                let mpi = of_task(options, place, &task, afresh)?;
                (start_coordinator(place, &work, options, &mpi, task)?, mpi)
            }
            Decision::Finished(job) => return finished::tell(place, &work, *job),
        },
        _ => {
            let job = wait_for_job(place, &work)?;
            if job.state == JobState::Finished {
                return Ok(());
            }
            let mpi = of_job(options, place, &job, afresh)?;
            (job, mpi)
        }
    };
    let siblings = Siblings::find(mpi.program, mpi.library)?;
    note(&work, &job);
    if let Some(tiers) = &tiers {
        occupy(tiers, &work, &job);
    }
    let carries_on_from = match job.recovers {
        Some(epoch) => Some(gather(place, &from, &job, epoch)?),
        None => job.restarted_from.map(|epoch| From {
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
        (None, None) => return Err(Failure::failed("there is nothing to start")),
    };
    let launch = Launch {
        directory: work,
        job: job.job,
        launch: job.launch,
        name: job.name,
        rank: place.rank,
        size: place.size,
        mpi: mpi.program.to_owned(),
        library: mpi.library.to_owned(),
        library_file: mpi.file,
        upper_library: siblings.upper,
        command: job.command,
        restart,
        suspend_signal: options.suspend_signal,
        suspend_on_term: options.on_term == OnTerm::Suspend,
        suspended_status: options.suspended_status(),
        stillpoint: (place.rank == 0)
            .then(std::env::current_exe)
            .and_then(Result::ok),
        two_phase: program.is_some_and(|program| program.safe_state == SafeState::Barrier),
        tiers,
        mapped_files: options.mapped_files.into(),
        tracking,
        gpu_staging: options.gpu_staging.into(),
        begun,
    };
    for (variable, keeper) in KEPT_FROM_LOADER {
        match std::env::var_os(variable) {
            Some(value) => lower.env_remove(variable).env(keeper, value),
            None => lower.env_remove(keeper),
        };
    }
    strike(Point::Become).map_err(|error| Failure::of(&error))?;
    let error = lower.env(VARIABLE, launch.to_variable()).exec();
    Err(Failure::failed(format!(
        "{}: cannot be started: {error}",
        siblings.lower.display()
    )))
}

/// The MPIs of what rank 0 is about to start. `afresh`: those of the program, if there is one to start.
fn of_task(
    options: &LaunchOptions,
    place: &Place,
    task: &Task,
    afresh: Option<mpi::Pair>,
) -> Result<mpi::Pair, Failure> {
    match (&task.written, afresh) {
        (Some(written), _) => {
            let mpi = written.carried_on(options, place)?;
            if let Some(change) = written.change(&mpi) {
                super::tell(&change);
            }
            Ok(mpi)
        }
        (None, Some(mpi)) => Ok(mpi),
        (None, None) => Err(Failure::failed("there is nothing to start")),
    }
}

/// The MPIs of another rank, which are those of rank 0.
fn of_job(
    options: &LaunchOptions,
    place: &Place,
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
        _ => first.carried_on(options, place)?,
    };
    first.is_one_with(&mpi, place.rank)?;
    Ok(mpi)
}

/// Nanoseconds since 1970; by a clock that is before that, every file has changed since.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as i64)
}

/// Where the coordinator is on another host, nobody else notes here that the job has ranks here.
fn note(directory: &Path, job: &JobFile) {
    if job.coordinator.host != host_name() {
        let entry = Entry {
            name: job.name.clone(),
            directory: directory.to_owned(),
            launch: job.launch.clone(),
            addresses: job.addresses.clone(),
            batch: batch::job(),
        };
        // The job does without; it is found by its directory.
        let _ = Registry::of_this_user().add(&entry);
    }
}

/// Takes the job's part of the fast tier: whatever no restart needs makes room, of this job and of others.
fn occupy(tiers: &Tiers, directory: &Path, job: &JobFile) {
    let part = JobPart::new(&tiers.fast, &job.job);
    // What cannot be removed, or be written, is found out when the first epoch is staged: the job can do without.
    let _ = leftovers::clean(&tiers.fast, Some(&job.job));
    let _ = part.claim(directory);
    part.keep_only(job.recovers.or(job.restarted_from));
}

/// What belongs to the command: beside it, or where an installation puts it.
pub struct Siblings {
    lower: PathBuf,
    upper: PathBuf,
}

impl Siblings {
    /// For a program and a library with these binary interfaces.
    pub fn find(program: &str, library: &str) -> Result<Siblings, Failure> {
        let lacks = |name: &str, here: &Path| {
            Failure::failed(format!(
                "{name} is neither in {} nor in ../lib/stillpoint: this build has no support for \
                 {program} programs on {library} libraries, or the installation is incomplete",
                here.display()
            ))
        };
        Ok(Siblings {
            lower: installed(&lower_name(library), &lacks)?,
            upper: installed(&upper_name(program), &lacks)?,
        })
    }

    /// The library for programs with this binary interface.
    pub fn upper(program: &str) -> Result<PathBuf, Failure> {
        installed(&upper_name(program), &|name, _| {
            Failure::failed(format!("{name} is not beside this program"))
        })
    }

    /// The lower half before libraries with this binary interface.
    pub fn lower(library: &str) -> Result<PathBuf, Failure> {
        installed(&lower_name(library), &|name, _| {
            Failure::failed(format!("{name} is not beside this program"))
        })
    }
}

fn lower_name(library: &str) -> String {
    format!("stillpoint-lower-{library}")
}

fn upper_name(program: &str) -> String {
    format!("libstillpoint_upper_{program}.so")
}

/// What was installed together with this program; or what `lacks` makes of its name and of the directory where it is not.
fn installed(name: &str, lacks: &impl Fn(&str, &Path) -> Failure) -> Result<PathBuf, Failure> {
    let here = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("cannot find this program: {error}")))?;
    let here = here.parent().unwrap_or(Path::new("/"));
    let places = [here.to_owned(), here.join("../lib/stillpoint")];
    let found = places.iter().map(|place| place.join(name));
    found
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| lacks(name, here))
}

/// Starts the coordinator and waits until it serves.
fn start_coordinator(
    place: &Place,
    directory: &Path,
    options: &LaunchOptions,
    mpi: &mpi::Pair,
    task: Task,
) -> Result<JobFile, Failure> {
    let spec = Spec {
        directory: directory.to_owned(),
        job: task.job,
        launch: place.launch.clone(),
        name: task.name,
        ranks: place.size,
        starter: Process::this(),
        one_host: place.one_host,
        mpi: mpi.program.to_owned(),
        library: mpi.library.to_owned(),
        command: task.command,
        working_directory: task.working_directory,
        restarted_from: task.epoch,
        keep: options.keep as usize,
        interval: options.interval,
        operators: options.operators.clone(),
        suspended_status: options.suspended_status(),
        requeue: options.requeued()?,
        compress: options.compress.clone(),
        incremental: options.incremental.into(),
        dedup: options.dedup(),
        copies: options.copies(),
        precopy: options.precopy(),
        staging: options.tiers.staging(),
        recovers: task.recovers,
        predecessor: None,
    };
    let failed = |what: &str, error: &(dyn Error + 'static)| {
        let text = format!("cannot start the coordinator: {what}: {error}");
        Failure::because(error, text)
    };
    let this = std::env::current_exe().map_err(|error| failed("find this program", &error))?;
    strike(Point::StartCoordinator).map_err(|error| failed("start a process", &error))?;
    let mut first = Command::new(this)
        .arg("coordinator")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed("start a process", &error))?;
    let text = serde_json::to_vec(&spec).map_err(|error| failed("describe the job", &error))?;
    if let Some(mut stdin) = first.stdin.take() {
        // If it has ended already, what it printed says why.
        let _ = stdin.write_all(&text);
    }
    let mut line = String::new();
    if let Some(stdout) = first.stdout.take() {
        BufReader::new(stdout)
            .read_line(&mut line)
            .map_err(|error| failed("wait for it", &error))?;
    }
    // The process that serves is this one's grandchild: nothing is left for the application to reap.
    first
        .wait()
        .map_err(|error| failed("wait for it", &error))?;
    match serde_json::from_str(&line) {
        Ok(Ready::Serving) => Ok(JobFile::read(directory)?),
        Ok(Ready::Failed { status, text }) => Err(Failure::new(status, text)),
        Err(error) => Err(failed("it ended without a word", &error)),
    }
}

/// The other ranks learn from job.json what rank 0 has started, or that there is nothing to start.
fn wait_for_job(place: &Place, directory: &Path) -> Result<JobFile, Failure> {
    let begun = Instant::now();
    loop {
        if let Ok(job) = JobFile::read(directory)
            && job.launch == place.launch
            && matches!(job.state, JobState::Running | JobState::Finished)
        {
            // Rank 0 has looked at the directory; what this host sees may be another one.
            Directory::open(directory, Whose::Ours)
                .map_err(|error| cannot_write(directory, &error))?;
            return Ok(job);
        }
        if let Some(why) = one_voice::heard(place) {
            return Err(Failure::silent(why.status));
        }
        if begun.elapsed() >= PATIENCE {
            return Err(Failure::failed(format!(
                "rank {}: rank 0 has not started the job within {} s: is {} on a file system that all \
                 hosts share?",
                place.rank,
                PATIENCE.as_secs(),
                directory.display()
            )));
        }
        // An eighth of what it has taken so far: hardly later than need be, and seldom in the way of rank 0.
        let waited = begun.elapsed();
        std::thread::sleep((waited / 8).clamp(SHORTEST_PAUSE, LONGEST_PAUSE));
    }
}

/// This rank's image, looked into before anything is started with it.
fn restart(directory: &Path, from: &From, rank: u32, lazy: bool) -> Result<Restart, Failure> {
    let From { epoch, fetched } = *from;
    let directory = directory.join(epoch_name(epoch));
    let broken = |error: ImageError| Failure::because(&error, format!("rank {rank}: {error}"));
    let manifest = Manifest::read(&directory).map_err(broken)?;
    manifest.open_image(&directory, rank).map_err(broken)?;
    let image = manifest
        .ranks
        .get(rank as usize)
        .map_or_else(|| image_name(rank), |entry| entry.file.clone());
    Ok(Restart {
        epoch,
        image: directory.join(image),
        directory,
        fetched,
        lazy,
    })
}

/// The id of a job that begins.
pub fn new_job_id() -> Result<String, Failure> {
    let random = stillpoint_protocol::Key::random();
    let random =
        random.map_err(|error| Failure::failed(format!("cannot name the job: {error}")))?;
    Ok(String::from(random)[..16].to_owned())
}

/// Text of an argument, for people and for the manifest; the application gets the bytes themselves.
pub fn text(argument: &OsStr) -> String {
    argument.to_string_lossy().into_owned()
}
