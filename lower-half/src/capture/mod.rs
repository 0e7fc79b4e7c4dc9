//! Writes the upper half down: memory, threads, descriptors and process state, into one image.
//!
//! Runs on the executor's thread, in the lower half, while every thread of the upper half is stopped in its signal frame and the
//! driver holds. It lets go of the upper half as soon as its [`Access`] is taken back. Nothing here changes what the upper half
//! sees when it runs on.

pub mod access;
pub mod account;
pub mod appearance;
pub mod attributes;
pub mod block_hashes;
pub mod children;
pub mod contents;
pub mod credentials;
pub mod descriptors;
pub mod devices;
pub mod driver;
pub mod environment;
pub mod file_limit;
pub mod guarded;
pub mod increment;
pub mod ipc;
pub mod launch_signals;
pub mod locked;
pub mod mapped_files;
pub mod maps;
pub mod memory;
pub mod mpi_files;
pub mod own_descriptor_table;
pub mod page;
pub mod process;
pub mod rank;
pub mod reading;
pub mod records;
pub mod scheduling;
pub mod segments;
pub mod signals;
pub mod snapshot;
pub mod stopped_process;
pub mod tracking;
pub mod unmovable;
pub mod window_memory;
pub mod write_behind;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use stillpoint_faults::{Point, strike};
use stillpoint_ids::Rank;
use stillpoint_image::crew::Crew;
use stillpoint_image::descriptors::Descriptors;
use stillpoint_image::mapped_files::MappedFiles;
use stillpoint_image::pages::{Bytes, Pages};
use stillpoint_image::store::Store;
use stillpoint_image::{
    Compression, Environment, Identity, ImageError, Index, PageRun, Reader, Sharing, Thread,
    Writer, Written, changes,
};
use stillpoint_incremental::viability::Record;

use stillpoint_part::Payload;
use stillpoint_protocol::agent::Incremental;
use stillpoint_refusals::{Code, Coded, Refusal, refusal};

use access::{Access, Memory, Revoked};
use contents::Contents;
use file_limit::{FileLimit, SpaceLimit};
use increment::{Devices, Increment};
use own_descriptor_table::apart;
pub use rank::{remember, size, write};
use reading::Loadable;
use snapshot::Snapshot;
use write_behind::{Behind, Parted};

use crate::gpu::staged::{self, NotWritten};
use crate::ground::writing::{self, Watched};
use crate::ground::{background, disk, proc_files};

/// The reason why an image could not be written.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("cannot read this rank's {what}: {source}: the job runs on; try again")]
    Process {
        what: &'static str,
        source: std::io::Error,
    },
    #[error("{0}")]
    Refused(Refusal),
    /// This rank cannot be written as it is, however often it is tried.
    #[error("{0}")]
    Hindered(Refusal),
    #[error(transparent)]
    Revoked(#[from] Revoked),
}

impl From<NotWritten> for CaptureError {
    fn from(error: NotWritten) -> CaptureError {
        match error {
            NotWritten::Image(error) => CaptureError::Image(error),
            other => CaptureError::Refused(refusal!(GpuDriver, "{other}")),
        }
    }
}

impl From<CaptureError> for Refusal {
    fn from(error: CaptureError) -> Refusal {
        match error {
            CaptureError::Image(error) => error.refusal(),
            CaptureError::Refused(reason) | CaptureError::Hindered(reason) => reason,
            CaptureError::Process { ref source, .. } => {
                let code = Code::of(source, Code::UnreadableMemory);
                Refusal::new(code, error.to_string())
            }
            CaptureError::Revoked(_) => refusal!(JobBusy, "{error}"),
        }
    }
}

impl CaptureError {
    pub fn process(what: &'static str) -> impl FnOnce(std::io::Error) -> CaptureError {
        move |source| CaptureError::Process { what, source }
    }
}

/// The contents and settings of an image that the process itself does not show.
pub struct Request {
    /// The image's path.
    pub path: PathBuf,
    /// The destination of its bytes, or `None` for the file at the path.
    pub store: Option<Box<dyn Store>>,
    pub identity: Identity,
    pub environment: Environment,
    pub compression: Compression,
    /// The way in which it may build on earlier ones.
    pub incremental: Incremental,
    /// The equal memory that is written once.
    pub dedup: Dedup,
    /// Threads that pack pages.
    pub workers: usize,
    /// The upper half's threads, the main one first.
    pub threads: Vec<Thread>,
    /// The upper half's description of its MPI objects: JSON.
    pub inventory: Vec<u8>,
    /// The parts' payloads.
    pub payloads: Vec<Payload>,
    /// The upper half's mappings.
    pub mappings: Vec<maps::Mapping>,
    /// The mapped files that the image refers to.
    pub mapped_files: MappedFiles,
    /// The descriptor numbers that belong to the upper half.
    pub descriptors: Vec<i32>,
}

/// The equal memory that is written once.
pub enum Dedup {
    /// Equal memory is written every time.
    Off,
    /// Equal memory of this rank.
    Alone,
    /// Equal memory of all ranks with this table.
    With(Index),
}

impl Dedup {
    /// Returns the sharing for the image of a rank with so many bytes.
    fn sharing(self, rank: Rank, bytes: u64) -> Option<Sharing> {
        match self {
            Dedup::Off => None,
            Dedup::Alone => Some(Sharing::in_one_image(rank, bytes)),
            Dedup::With(index) => Some(Sharing::with(index, rank)),
        }
    }
}

/// A written image.
#[derive(Debug)]
pub struct Image {
    pub written: Written,
    /// The prediction of the model for it, and the outcome.
    pub increment: Record,
}

/// Writes the image; it is on disk when this returns. On failure the file is removed.
///
/// # Safety
/// Every thread of the upper half must be stopped as long as `access` is not revoked.
pub unsafe fn write_image(
    request: Request,
    access: &Access,
    behind: Option<(Behind, &dyn Fn())>,
) -> Result<Image, CaptureError> {
    let path = request.path.clone();
    // SAFETY: the caller keeps every thread of the upper half stopped as long as `access` is not revoked.
    let result = unsafe { write_to(&path, request, access, behind) };
    if result.is_err() {
        // The error itself matters more than whether there was a file to remove.
        let _ = strike(Point::ImageRemove).and_then(|()| std::fs::remove_file(&path));
    }
    result
}

/// # Safety
/// Those of [`write_image`].
unsafe fn write_to(
    path: &Path,
    request: Request,
    access: &Access,
    behind: Option<(Behind, &dyn Fn())>,
) -> Result<Image, CaptureError> {
    // The file system may hold this up for any time.
    let earlier = increment::earlier(path, request.incremental);
    let inside = access.enter()?;
    let mut contents = Contents::default();
    strike(Point::CaptureMemory).map_err(CaptureError::process("memory map"))?;
    let mappings = &request.mappings;
    strike(Point::CaptureDescriptors).map_err(CaptureError::process("open files"))?;
    let surveyed = apart(|| {
        let descriptors = descriptors::survey(&request.descriptors, &mut contents)
            .map_err(|refusals| CaptureError::Refused(Refusal::together(refusals)))?;
        // SAFETY: the caller keeps the threads stopped as long as `access` is not revoked, and a revocation waits for this thread, which is inside.
        let memory =
            unsafe { memory::Memory::survey(mappings, &request.mapped_files, &mut contents) }
                .map_err(CaptureError::process("page map"))?;
        Ok::<_, CaptureError>((descriptors, memory))
    });
    let (descriptors, mut memory) = surveyed.map_err(CaptureError::process("open files"))??;
    inside.changes(std::mem::take(&mut memory.opened));
    let private = std::mem::take(&mut memory.private);
    let unseen = devices::may_have_written();
    let mut increment = match request.incremental {
        Incremental::Off => Increment::whole(private, &memory.regions),
        // SAFETY: the caller keeps the threads stopped as long as `access` is not revoked, and a revocation waits until `inside` is dropped below.
        how => unsafe {
            increment::since_the_last(earlier, how, unseen, private, mappings, &memory.regions)
        },
    };
    increment.add_contents(&contents.mapped().collect::<Vec<_>>());
    // The limits apply to the application, and the image is not its file.
    let limited = FileLimit::is_set() || SpaceLimit::is_near();
    let behind = behind.filter(|_| !devices::may_write() && !limited);
    let set_apart = behind.map(|(behind, say)| (behind.part(&increment.changed, mappings), say));
    // The image is not the application's file.
    inside.changes(FileLimit::lift());
    // From here on the disk may hold this thread up.
    drop(inside);
    let (parted, say) = set_apart.unzip();
    let parted = parted.unwrap_or_else(|| Parted {
        first: increment.changed.clone(),
        ..Parted::default()
    });
    let surveyed = Surveyed {
        contents,
        descriptors,
        memory,
        parted,
    };
    // SAFETY: the caller keeps every thread of the upper half stopped as long as `access` is not revoked.
    let result = unsafe { put_down(path, request, &surveyed, increment, access, say) };
    let too_short = FileLimit::shorter_than(u64::MAX);
    if let Ok(inside) = access.enter() {
        inside.put_back();
    }
    match (result, too_short) {
        (Err(CaptureError::Image(error)), Some(reason)) if error.is_too_long() => {
            Err(CaptureError::Hindered(reason))
        }
        (result, _) => result,
    }
}

/// The state that the process shows.
struct Surveyed {
    contents: Contents,
    descriptors: Descriptors,
    memory: memory::Memory,
    parted: Parted,
}

/// Writes the image, and reads back the sections from which a restart makes the process.
///
/// # Safety
/// Those of [`write_image`].
unsafe fn put_down(
    path: &Path,
    request: Request,
    surveyed: &Surveyed,
    mut increment: Increment,
    access: &Access,
    apart: Option<&dyn Fn()>,
) -> Result<Image, CaptureError> {
    let in_a_file = request.store.is_none();
    // This comes before the application may run on, because then memory that has not been taken is given up.
    let on_devices = staged::bytes();
    let devices = staged::take();
    let mut writer = match request.store {
        Some(store) => Writer::into_store(path, Box::new(Watched(store)), request.compression),
        None => {
            let watched = |file| Box::new(Watched(disk::image(file))) as Box<dyn Store>;
            let _in_storage = writing::in_storage();
            Writer::into_file(path, watched, request.compression)?
        }
    };
    let mut crew = Crew::of(request.workers);
    writer.use_crew(crew);
    let bytes = increment.changed.iter().map(|range| range.len() as u64);
    if let Some(sharing) = request
        .dedup
        .sharing(request.identity.rank, bytes.sum::<u64>() + on_devices)
    {
        writer.share(sharing);
    }
    let loadable = &surveyed.memory.loadable;
    // SAFETY: the survey has made this memory readable, and the caller keeps the threads stopped as long as `access` is not revoked.
    let live = unsafe { Memory::through(access, loadable) };
    let parted = &surveyed.parted;
    surveyed.contents.write(&mut writer, &live)?;
    for ranges in [&parted.first, &parted.without_room] {
        increment.write(&mut writer, ranges, &live, crew)?;
    }
    let waits = !parted.later.is_empty() || devices.is_some();
    let snapshot = match apart.filter(|_| waits) {
        Some(say) => set_apart(parted, access, loadable, crew.threads(), say)?,
        None => None,
    };
    let pages: &dyn Pages = match &snapshot {
        Some(snapshot) => {
            crew = crew.giving_way(background::TURNS);
            writer.use_crew(crew);
            snapshot
        }
        None => &live,
    };
    increment.write(&mut writer, &parted.later, pages, crew)?;
    drop(snapshot);
    if let Some(devices) = devices {
        let mut to = Devices::new(&mut writer, &mut increment);
        devices.write(&mut to, &|| access.given_up())?;
    }
    writer.carry(increment.carried());
    writer.identity(&request.identity)?;
    writer.environment(&request.environment)?;
    writer.regions(&surveyed.memory.regions)?;
    writer.threads(&request.threads)?;
    writer.descriptors(&surveyed.descriptors)?;
    writer.inventory(&request.inventory)?;
    for Payload { kind, bytes } in &request.payloads {
        writer.blob(kind.name, kind.version, bytes)?;
    }
    if let Some(bytes) = changes::to_blob(increment.account.bytes()) {
        writer.blob(account::KIND.name, account::KIND.version, &bytes)?;
    }
    let (epoch, rank) = (request.identity.epoch, request.identity.rank);
    let finishing = Instant::now();
    let written = writer.finish()?;
    let finishing = finishing.elapsed().as_secs_f64();
    let increment = increment::written(epoch, rank, &written, increment, finishing);
    if in_a_file {
        let _in_storage = writing::in_storage();
        strike(Point::ImageReadAgain).map_err(CaptureError::process("image"))?;
        proc_files::apart(|| read_again(path, surveyed, &request.payloads, &written))?;
    }
    Ok(Image { written, increment })
}

/// Makes a child process hold the memory that is written later, and calls `say`. Returns `None` if the kernel makes no process for it: then
/// the memory is written at once.
fn set_apart<'a>(
    parted: &Parted,
    access: &'a Access,
    loadable: &'a Loadable,
    workers: usize,
    say: &dyn Fn(),
) -> Result<Option<Snapshot<'a>>, CaptureError> {
    strike(Point::Apart).map_err(CaptureError::process("memory as it is"))?;
    let inside = access.enter()?;
    let Ok(snapshot) = Snapshot::take(access, loadable, workers, &parted.without_room) else {
        return Ok(None);
    };
    inside.put_back();
    drop(inside);
    say();
    Ok(Some(snapshot))
}

/// Returns the runs to write at these addresses, with bytes from `pages`.
fn runs<'a>(
    ranges: impl IntoIterator<Item = &'a Range<usize>>,
    pages: &'a dyn Pages,
) -> Vec<PageRun<'a>> {
    let run = |range: &Range<usize>| PageRun {
        address: range.start as u64,
        bytes: Bytes::Elsewhere {
            pages,
            from: range.start as u64,
            length: range.len(),
        },
    };
    ranges.into_iter().map(run).collect()
}

/// Checks that the reader of a restart finds the surveyed state.
fn read_again(
    path: &Path,
    surveyed: &Surveyed,
    payloads: &[Payload],
    written: &Written,
) -> Result<(), CaptureError> {
    // Other ranks' images may not be whole yet.
    let reader = Reader::open_alone(path)?;
    let payloads = payloads.iter().all(|payload| {
        let found = reader.blob(payload.kind.name);
        found.is_some_and(|blob| blob.bytes == payload.bytes)
    });
    let same = [
        ("digest", reader.digest() == written.digest),
        ("descriptors", *reader.descriptors() == surveyed.descriptors),
        ("regions", reader.regions() == surveyed.memory.regions),
        ("payloads", payloads),
    ];
    match same.iter().find(|(_, same)| !same) {
        None => Ok(()),
        Some((what, _)) => Err(CaptureError::Refused(refusal!(
            NotWritten,
            "{}: its {what} read otherwise than they were written",
            path.display()
        ))),
    }
}
