//! Writes the upper half down: memory, threads, descriptors and process state, into one image.
//!
//! Runs on the agent's thread, in the lower half, while every thread of the upper half is stopped in its
//! signal frame and the driver holds. Nothing here changes what the upper half will see when it carries on.

pub mod apart;
pub mod attributes;
pub mod contents;
pub mod credentials;
pub mod descriptors;
pub mod environment;
pub mod file_limit;
pub mod maps;
pub mod memory;
pub mod pages;
pub mod process;
pub mod rank;
pub mod refusals;
pub mod scheduling;
pub mod signals;
pub mod told;

use std::path::{Path, PathBuf};

use stillpoint_image::descriptors::Descriptors;
use stillpoint_image::store::Store;
use stillpoint_image::{
    Compression, Environment, Identity, ImageError, Reader, Thread, Writer, Written,
};

use apart::apart;
use contents::Contents;
use file_limit::FileLimit;
pub use rank::{refusals, remember, size, write};

/// Why an image could not be written.
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
    Refused(String),
}

impl CaptureError {
    fn process(what: &'static str) -> impl FnOnce(std::io::Error) -> CaptureError {
        move |source| CaptureError::Process { what, source }
    }
}

/// What goes into an image besides what the process itself shows.
pub struct Request<'a> {
    /// The image's path.
    pub path: PathBuf,
    /// Where its bytes go; `None`: into the file at the path.
    pub store: Option<Box<dyn Store>>,
    pub identity: Identity,
    pub environment: Environment,
    pub compression: Compression,
    /// Threads that pack pages.
    pub workers: usize,
    pub process: process::ProcessState,
    /// The upper half's threads, the main one first.
    pub threads: Vec<Thread>,
    /// The upper half's description of its MPI objects: JSON.
    pub inventory: &'a [u8],
    /// Name, version and state of the gate's modules.
    pub blobs: Vec<(String, u32, Vec<u8>)>,
    /// The descriptor numbers that belong to the upper half.
    pub descriptors: Vec<i32>,
}

/// Writes the image; it is on disk when this returns. On failure the file is removed.
///
/// # Safety
/// Every thread of the upper half must be stopped until this returns.
pub unsafe fn write_image(request: Request<'_>) -> Result<Written, CaptureError> {
    let path = request.path.clone();
    // SAFETY: the caller's.
    let result = unsafe { write_to(&path, request) };
    if result.is_err() {
        // The error itself matters more than whether there was a file to remove.
        let _ = std::fs::remove_file(&path);
    }
    result
}

unsafe fn write_to(path: &Path, request: Request<'_>) -> Result<Written, CaptureError> {
    let mut contents = Contents::default();
    let mappings = maps::upper().map_err(CaptureError::process("memory map"))?;
    let surveyed = apart(|| {
        let descriptors = descriptors::survey(&request.descriptors, &mut contents)
            .map_err(|refusals| CaptureError::Refused(refusals.join("; ")))?;
        // SAFETY: the caller's.
        let memory = unsafe { memory::Memory::survey(&mappings, &mut contents) }
            .map_err(CaptureError::process("page map"))?;
        Ok::<_, CaptureError>((descriptors, memory))
    });
    let (descriptors, memory) = surveyed.map_err(CaptureError::process("open files"))??;
    let surveyed = Surveyed {
        contents,
        descriptors,
        memory,
    };
    // The image is not the application's file.
    let _lifted = FileLimit::lift();
    // SAFETY: the caller's.
    let result = unsafe { put_down(path, request, &surveyed) };
    match (result, FileLimit::shorter_than(u64::MAX)) {
        (Err(CaptureError::Image(error)), Some(reason)) if error.is_too_long() => {
            Err(CaptureError::Refused(reason))
        }
        (result, _) => result,
    }
}

/// What the process shows.
struct Surveyed {
    contents: Contents,
    descriptors: Descriptors,
    memory: memory::Memory,
}

/// Writes, and reads again what says how the process is to be made.
///
/// # Safety
/// As [`write_image`].
unsafe fn put_down(
    path: &Path,
    request: Request<'_>,
    surveyed: &Surveyed,
) -> Result<Written, CaptureError> {
    let in_a_file = request.store.is_none();
    let mut writer = match request.store {
        Some(store) => Writer::into_store(path, store, request.compression),
        None => Writer::create(path, request.compression)?,
    };
    writer.use_threads(request.workers);
    let private = surveyed.memory.private.iter();
    let runs: Vec<_> = private
        // SAFETY: the survey has made these readable, and the upper half's threads are stopped.
        .map(|range| unsafe { contents::run(range.start as u64, range.clone()) })
        .collect();
    writer.memory(&runs)?;
    // SAFETY: as above.
    unsafe { surveyed.contents.write(&mut writer)? };
    writer.identity(&request.identity)?;
    writer.environment(&request.environment)?;
    writer.regions(&surveyed.memory.regions)?;
    writer.threads(&request.threads)?;
    writer.descriptors(&surveyed.descriptors)?;
    writer.inventory(request.inventory)?;
    let process = request.process.to_bytes();
    writer.blob(process::BLOB, process::VERSION, &process)?;
    for (name, version, bytes) in &request.blobs {
        writer.blob(name, *version, bytes)?;
    }
    let written = writer.finish()?;
    if in_a_file {
        read_again(path, surveyed, &process, &written)?;
    }
    Ok(written)
}

/// The reader of a restart must find what was surveyed.
fn read_again(
    path: &Path,
    surveyed: &Surveyed,
    process: &[u8],
    written: &Written,
) -> Result<(), CaptureError> {
    let reader = Reader::open(path)?;
    let found = reader.blob(process::BLOB).map(|blob| blob.bytes.as_slice());
    let same = [
        ("digest", reader.digest() == written.digest),
        ("descriptors", *reader.descriptors() == surveyed.descriptors),
        ("regions", reader.regions() == surveyed.memory.regions),
        ("process state", found == Some(process)),
    ];
    match same.iter().find(|(_, same)| !same) {
        None => Ok(()),
        Some((what, _)) => Err(CaptureError::Refused(format!(
            "{}: its {what} read otherwise than they were written",
            path.display()
        ))),
    }
}
