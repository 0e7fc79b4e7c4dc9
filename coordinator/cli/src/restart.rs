//! `stillpoint restart`: carry on from a committed epoch.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use clap::Args;
use stillpoint_directory::{Directory, RequiredOwner};
use stillpoint_faults::{Point, strike};
use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::blocks::blocks_name;
use stillpoint_image::mapped_files::MappedFiles;
use stillpoint_image::{ImageError, Manifest, RankImage, Reader, epoch_name};
use stillpoint_protocol::job_file::JobFile;

use stillpoint_refusals::Code;

use super::job_directory::{absolute, take};
use super::launch::LaunchPosition;
use super::mpi::Recorded;
use super::options::LaunchOptions;
use super::shared_errors::with_one_voice;
use super::start::{Decision, Home, Task, new_job_id, start};
use super::{CommandResult, Failure, directory_name, first_process, inside};
use stillpoint_coordinator::epoch::{Epochs, Mark, staged_name};

/// The least number of images for one thread: looking into an image in memory takes a third of a millisecond.
const TOGETHER: usize = 16;
/// The most threads that look into images: most of the time is the file system's.
const LOOKERS: usize = 8;

/// Restart a job from a committed epoch, in a fresh launch of as many ranks
///
/// mpirun -n 4 stillpoint restart /scratch/melt.d
#[derive(Debug, Args)]
pub struct Restart {
    /// Checkpoint directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Epoch to restart from [default: the newest]
    #[arg(long, env = "STILLPOINT_EPOCH", value_name = "K")]
    epoch: Option<Epoch>,

    /// Work in another checkpoint directory, where later epochs are written; DIR stays as it is. Templates as for `run --dir`
    #[arg(long, env = "STILLPOINT_DIR", value_name = "NEW")]
    dir: Option<PathBuf>,

    #[command(flatten)]
    options: LaunchOptions,
}

impl Restart {
    pub fn execute(self) -> CommandResult {
        if inside::a_rank() {
            return Err(Failure::refuse(
                Code::InsideJob,
                Failure::FAILED,
                "this process is part of a running job: restart from outside the job",
            ));
        }
        first_process::stay_behind()?;
        let place = LaunchPosition::here()?;
        with_one_voice(&place, self.start(&place))
    }

    fn start(&self, place: &LaunchPosition) -> CommandResult {
        let dir = self
            .dir
            .as_deref()
            .map(directory_name::filled)
            .transpose()?;
        let work = dir.as_ref().unwrap_or(&self.directory);
        let work = self.options.tiers.directory(Some(work))?;
        let work = absolute(&work.unwrap_or_else(|| self.directory.clone()))?;
        let from = absolute(&self.directory)?;
        let decide = || {
            strike(Point::Decide).map_err(|error| Failure::refuse_of(Code::FaultPoint, &error))?;
            let wanted = RestartRequest {
                epoch: self.epoch,
                size: place.size,
                name: self.options.name.clone(),
            };
            let held = owned(&from)?;
            let elsewhere = self.dir.is_some() && !take(&work)?.is(&held);
            let task = decide(&held, &wanted, elsewhere)?;
            take(&work)?;
            Ok(Decision::Start(task))
        };
        let home = Home {
            work: work.clone(),
            from: from.clone(),
        };
        start(place, home, &self.options, None, decide)
    }
}

/// The user's request for a restart.
pub struct RestartRequest {
    pub epoch: Option<Epoch>,
    /// The number of ranks.
    pub size: u32,
    pub name: Option<String>,
}

/// Opens the directory of the epoch to restart. Its contents get the caller's rights, so it has to be the caller's.
pub fn owned(directory: &Path) -> Result<Directory, Failure> {
    let shown = directory.display();
    Directory::open(directory, RequiredOwner::Ours).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Failure::refuse(
            Code::NoEpoch,
            Failure::MISSING,
            format!("{shown}: there is no committed epoch here, because the directory does not exist: check its name"),
        ),
        _ => Failure::refuse_because(
            Code::UnsafeDirectory,
            &error,
            format!("{shown}: cannot restart from this directory: {error}"),
        ),
    })
}

/// Decides for rank 0: chooses the epoch, and checks everything that can be checked without mapping it. `elsewhere`: the job will work in another directory.
pub fn decide(held: &Directory, wanted: &RestartRequest, elsewhere: bool) -> Result<Task, Failure> {
    let directory = held.path();
    let shown = directory.display();
    let epochs = Epochs::of(held.clone(), Mark::none());
    let committed = epochs
        .committed()
        .map_err(|error| Failure::refuse_of(Code::BrokenImage, &error))?;
    let listed: Vec<String> = committed.iter().map(ToString::to_string).collect();
    let staged = epochs
        .newest_staged()
        .map_err(|error| Failure::refuse_of(Code::BrokenImage, &error))?;
    if let Some(staged) = staged
        && wanted.epoch.is_none_or(|wanted| wanted == staged)
    {
        if elsewhere {
            return Err(Failure::refuse(
                Code::StagedEpoch,
                Failure::FAILED,
                format!(
                    "{shown}: epoch {staged} is only staged, and Stillpoint can complete it only in its own directory: \
                     restart it without --dir, or name a committed epoch with --epoch"
                ),
            ));
        }
        return decide_staged(staged, held, wanted);
    }
    let Some(newest) = committed.last().copied() else {
        let text = format!("{shown}: there is no committed epoch here: check the directory");
        return Err(Failure::refuse(Code::NoEpoch, Failure::MISSING, text));
    };
    let epoch = wanted.epoch.unwrap_or(newest);
    if !committed.contains(&epoch) {
        let text = format!(
            "{shown}: there is no committed epoch {epoch}, only {}",
            listed.join(", ")
        );
        return Err(Failure::refuse(Code::NoEpoch, Failure::MISSING, text));
    }
    let broken = |error: ImageError| {
        let others = committed.iter().rev().filter(|other| **other != epoch);
        let advice = match others.copied().find(|other| readable(held, *other).is_ok()) {
            Some(other) => format!("you can restart epoch {other} with --epoch {other}"),
            None => "no other epoch here is readable".to_owned(),
        };
        let text = format!("cannot restart epoch {epoch}: {error}; {advice}");
        Failure::refuse_because(error.code_of_reading(), &error, text)
    };
    let manifest = manifest(held, &epoch_name(epoch)).map_err(broken)?;
    if manifest.epoch != epoch {
        return Err(Failure::refuse(
            Code::BrokenImage,
            Failure::FAILED,
            format!(
                "cannot restart epoch {epoch}: its directory holds the manifest of epoch {}",
                manifest.epoch
            ),
        ));
    }
    fits(&manifest, wanted.size)?;
    let first = images(held, &manifest).map_err(broken)?;
    if let Some(first) = first {
        files_are_there(epoch, &first)?;
    }
    let task = task(held, manifest, wanted, elsewhere)?;
    // Its blocks may also be on fast tiers, nearer than the slow tier.
    let staged_once = epochs.path(epoch).join(blocks_name(Rank::FIRST)).exists();
    Ok(match staged_once && !elsewhere {
        true => gathering(task, epoch),
        false => task,
    })
}

/// Checks the mapped files that rank 0's image needs unchanged. Every rank does so on its own host, but usually all miss the same.
fn files_are_there(epoch: Epoch, image: &Reader) -> Result<(), Failure> {
    let found = MappedFiles::of(image).and_then(|files| files.find(|_, _| Ok(())));
    found.map_err(|reason| {
        Failure::refuse(
            Code::MappedFile,
            Failure::FAILED,
            format!("cannot restart epoch {epoch} here: {reason}"),
        )
    })
}

/// Makes a task whose ranks gather the epoch's blocks before they restart from it.
fn gathering(task: Task, epoch: Epoch) -> Task {
    Task {
        epoch: None,
        recovers: Some(epoch),
        ..task
    }
}

/// Reads the manifest of an epoch to restart, whose directory has to be the caller's too.
pub fn manifest(held: &Directory, name: &str) -> Result<Manifest, ImageError> {
    let path = held.path().join(name);
    let epoch = held
        .below(name)
        .map_err(ImageError::io(&path, "open the epoch's directory"))?;
    Manifest::read_in(&epoch)
}

/// Decides for a staged epoch. The ranks find out together whether the fast tiers still hold their part of it.
fn decide_staged(epoch: Epoch, held: &Directory, wanted: &RestartRequest) -> Result<Task, Failure> {
    let broken = |error: ImageError| {
        let text = format!("cannot restart epoch {epoch}: {error}");
        Failure::refuse_because(error.code_of_reading(), &error, text)
    };
    let manifest = manifest(held, &staged_name(epoch)).map_err(broken)?;
    match own_needed(held, &manifest) {
        // As with lost blocks, the ranks find this out, and go back to the newest durable epoch.
        Err(error) if error.is_missing() => {}
        owned => owned.map_err(broken)?,
    }
    fits(&manifest, wanted.size)?;
    Ok(gathering(task(held, manifest, wanted, false)?, epoch))
}

fn fits(manifest: &Manifest, size: u32) -> Result<(), Failure> {
    let ranks = manifest.ranks.len();
    if ranks == size as usize {
        return Ok(());
    }
    let noun = if ranks == 1 { "rank" } else { "ranks" };
    Err(Failure::refuse(
        Code::OtherSize,
        Failure::FAILED,
        format!(
            "epoch {} has {ranks} {noun}, but this launch has {size}: start it with mpirun -n {ranks}",
            manifest.epoch
        ),
    ))
}

fn task(
    held: &Directory,
    manifest: Manifest,
    wanted: &RestartRequest,
    elsewhere: bool,
) -> Result<Task, Failure> {
    let job = JobFile::read(held.path()).ok();
    // A job that runs beside the original needs an id of its own: both may have a part of the same fast tier.
    if let Some(job) = &job
        && !job.carries(&manifest.job)
    {
        super::tell(&format!(
            "{}: epoch {} belongs to the job '{}', not to '{}', the last job that was started here",
            held.path().display(),
            manifest.epoch,
            manifest.name,
            job.name
        ));
    }
    let copied = job.as_ref().is_some_and(|job| job.copied);
    let (id, origin) = match &job {
        _ if elsewhere => (new_job_id()?, None),
        _ if copied => (new_job_id()?, Some(manifest.job)),
        // A copy that was carried on before has an id of its own, but its epochs do not have it yet.
        Some(last) if last.carries(&manifest.job) => (last.job.clone(), last.origin.clone()),
        _ => (manifest.job, None),
    };
    Ok(Task {
        epoch: Some(manifest.epoch),
        origin,
        discard: false,
        job: id,
        name: wanted.name.clone().unwrap_or(manifest.name),
        written: Some(Recorded {
            program: manifest.mpi,
            library: manifest.library,
        }),
        command: manifest.command,
        working_directory: job.map_or_else(|| held.path().to_owned(), |job| job.working_directory),
        recovers: None,
    })
}

/// Reads the manifest and looks into every image.
fn readable(held: &Directory, epoch: Epoch) -> Result<(), ImageError> {
    let manifest = manifest(held, &epoch_name(epoch))?;
    images(held, &manifest).map(drop)
}

/// Looks into every image, and into the images of earlier epochs that it needs; page data is checked when it is loaded. Returns the image of rank 0.
///
/// Every other rank waits meanwhile, so several threads look. They have ended when this returns.
fn images(held: &Directory, manifest: &Manifest) -> Result<Option<Reader>, ImageError> {
    own_needed(held, manifest)?;
    let path = held.path().join(epoch_name(manifest.epoch));
    let look = |entries: &[RankImage]| {
        entries
            .iter()
            .try_for_each(|entry| manifest.open_image(&path, entry.rank).map(drop))
    };
    let Some((first, others)) = manifest.ranks.split_first() else {
        return Ok(None);
    };
    let first = manifest.open_image(&path, first.rank)?;
    let (mine, theirs) = others.split_at(others.len().min(TOGETHER));
    thread::scope(|scope| {
        let shares = theirs.len().div_ceil(LOOKERS).max(TOGETHER);
        let lookers: Vec<_> = theirs
            .chunks(shares)
            .map(|share| {
                (
                    share,
                    thread::Builder::new().spawn_scoped(scope, move || look(share)),
                )
            })
            .collect();
        look(mine)?;
        lookers
            .into_iter()
            .try_for_each(|(share, started)| match started {
                Ok(looker) => looker.join().unwrap_or_else(|_| look(share)),
                Err(_) => look(share),
            })
    })?;
    Ok(Some(first))
}

/// Checks the owner of the earlier epochs that the epoch needs: their contents get the caller's rights too.
fn own_needed(held: &Directory, manifest: &Manifest) -> Result<(), ImageError> {
    manifest.needs.iter().try_for_each(|needed| {
        let name = epoch_name(*needed);
        let path = held.path().join(&name);
        let failed = ImageError::io(&path, "open the directory of an epoch that it needs");
        held.below(&name).map(drop).map_err(failed)
    })
}
