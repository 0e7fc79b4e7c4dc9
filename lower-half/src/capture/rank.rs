//! This rank's image, put together from the gate, the thread table and the gate page.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Instant;

use stillpoint_faults::{Point, strike};
use stillpoint_ids::Rank;
use stillpoint_image::store::Store;
use stillpoint_image::{Compression, Identity, Index};
use stillpoint_part::Payload;
use stillpoint_protocol::agent::{Begin, Dedup, Written};
use stillpoint_protocol::launch::Launch;
use stillpoint_refusals::refusal;
use stillpoint_wrappers::gate::{self, UpperHooks};

use super::access;
use super::contents::Contents;
use super::file_limit::FileLimit;
use super::memory::Memory;
use super::own_descriptor_table::apart;
use super::stopped_process::Still;
use super::write_behind::Behind;
use super::{
    self as capture, CaptureError, Image, Request, environment, increment, mapped_files, records,
};
use crate::gate::descriptors;
use crate::gpu::{client, staged};
use crate::ground::{cores, free};

/// The launch's facts about the job, for its images.
struct Job {
    id: String,
    command: Vec<String>,
    /// The number of threads that pack pages.
    workers: usize,
}

static JOB: OnceLock<Job> = OnceLock::new();

/// Notes the facts about the job for its images, before the application runs.
pub fn remember(launch: Option<&Launch>) {
    if let Some(launch) = launch {
        mapped_files::remember(launch);
        capture::descriptors::outward::remember(launch);
        increment::remember(launch);
        client::this_is(launch);
        JOB.get_or_init(|| Job {
            id: launch.job.clone(),
            command: launch.command.clone(),
            workers: cores::for_one_of(launch.size),
        });
    }
}

fn unknown_compression(reason: String) -> CaptureError {
    CaptureError::Refused(refusal!(Internal, "{reason}"))
}

/// Estimates how long this rank's image will be.
///
/// # Errors
/// See [`CaptureError`].
///
/// # Safety
/// Those of [`write`].
pub unsafe fn size(begin: &Begin, still: &Still<'_>) -> Result<u64, CaptureError> {
    let access = still.access();
    let in_files = still.mapped_files()?;
    let compression: Compression = begin.compress.parse().map_err(unknown_compression)?;
    let inside = access.enter()?;
    let mut contents = Contents::default();
    let mappings = still.mappings()?;
    // SAFETY: the threads are stopped as long as `access` is not revoked (`Still::new`), and a revocation waits for this thread, which is inside.
    let mut memory = apart(|| unsafe { Memory::survey(mappings, in_files, &mut contents) })
        .flatten()
        .map_err(CaptureError::process("page map"))?;
    inside.changes(std::mem::take(&mut memory.opened));
    // SAFETY: the survey has made this memory readable, and the threads are stopped as long as the access is not revoked (`Still::new`).
    let live = unsafe { access::Memory::through(access, &memory.loadable) };
    let private = memory.private.iter().cloned();
    let stretches = private.chain(contents.mapped());
    let stretches: Vec<_> = stretches.map(|range| live.bytes(range)).collect();
    let bytes = stillpoint_image::estimate(&stretches, compression)
        .map_err(CaptureError::process("compressibility"));
    inside.put_back();
    // The compressibility of devices' memory is not known before it arrives.
    let bytes = bytes? + staged::bytes();
    // The slow tier gets its copy while the application runs, under the application's limit.
    match FileLimit::shorter_than(bytes) {
        Some(reason) => Err(CaptureError::Hindered(reason)),
        None => Ok(bytes),
    }
}

/// Writes this rank's image to `path`, or into `store`; then `path` only names it. `payloads` are those of the parts. `known` is
/// the table of chunks of other ranks, whose images lie beside this one. With `behind`, the application may run on as soon as the
/// function in it has been called, if it is called at all.
///
/// # Errors
/// See [`CaptureError`]; nothing is left at `path` then.
///
/// # Safety
/// The driver thread must hold.
pub unsafe fn write(
    path: &Path,
    begin: &Begin,
    store: Option<Box<dyn Store>>,
    still: &Still<'_>,
    payloads: Vec<Payload>,
    known: Option<Index>,
    behind: Option<(Behind, &dyn Fn())>,
) -> Result<Written, CaptureError> {
    let begun = Instant::now();
    let mapped_files = still.mapped_files()?.clone();
    let inside = still.enter()?;
    let mappings = still.mappings()?.to_vec();
    // SAFETY: an application runs, so the gate page is mapped and filled.
    let page = unsafe { gate::page() };
    let hooks = page.hooks.load(Ordering::Acquire);
    // SAFETY: the pointer is null or that of the hooks, which the upper half registered and never frees.
    let hooks_there = unsafe { (hooks as *const UpperHooks).as_ref() };
    let compression: Compression = begin.compress.parse().map_err(unknown_compression)?;
    let alive = still.main_first()?;
    let waiting = still.waiting()?;
    strike(Point::CaptureThreads).map_err(CaptureError::process("threads"))?;
    let threads = records::of(&alive, waiting)?;
    strike(Point::CaptureInventory).map_err(CaptureError::process("MPI objects"))?;
    let inventory = hooks_there.map_or(vec![], inventory);
    let mut environment = environment::here();
    environment.gate_version = page.version;
    environment.mpi_thread_level = match (hooks_there, page.mpi_active.load(Ordering::Acquire)) {
        (Some(hooks), 1..) => hooks.mpi_thread_level.load(Ordering::Relaxed),
        _ => -1,
    };
    let rank = Rank(page.rank.load(Ordering::Relaxed).max(0) as u32);
    let size = page.size.load(Ordering::Relaxed).max(1) as u32;
    let request = Request {
        path: path.to_owned(),
        store,
        identity: Identity {
            job: JOB.get().map_or(String::new(), |job| job.id.clone()),
            epoch: begin.epoch,
            rank,
            size,
            command: JOB.get().map_or(Vec::new(), |job| job.command.clone()),
        },
        environment,
        compression,
        incremental: begin.incremental,
        dedup: match (begin.dedup, known) {
            _ if free::is_tight() => capture::Dedup::Off,
            (Dedup::Off, _) => capture::Dedup::Off,
            (_, None) => capture::Dedup::Alone,
            (_, Some(known)) => capture::Dedup::With(known),
        },
        workers: JOB.get().map_or(1, |job| free::workers(job.workers)),
        threads,
        inventory,
        payloads,
        mappings,
        mapped_files,
        descriptors: descriptors::upper(),
    };
    drop(inside);
    // SAFETY: the threads are stopped as long as the access is not revoked (`Still::new`); the caller says that the driver thread holds.
    let Image { written, increment } =
        unsafe { super::write_image(request, still.access(), behind)? };
    Ok(Written {
        stored_bytes: written.bytes,
        bytes: written.page_bytes,
        digest: written.digest,
        seconds: begun.elapsed().as_secs_f64(),
        contract: page.version,
        needs: written.tables.needs(),
        increment: Some(Box::new(increment)),
    })
}

/// Returns the upper half's description of its living MPI objects (JSON), as of its last command. The caller is inside, while the driver
/// answers no command.
pub fn inventory(hooks: &UpperHooks) -> Vec<u8> {
    let address = hooks.inventory.load(Ordering::Acquire) as *const u8;
    let bytes = hooks.inventory_bytes.load(Ordering::Acquire) as usize;
    if address.is_null() {
        return vec![];
    }
    // SAFETY: the upper half gives a text of that many bytes, which stays as it is until its next command.
    unsafe { std::slice::from_raw_parts(address, bytes) }.to_vec()
}
