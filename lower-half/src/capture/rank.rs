//! This rank's image, put together from what the gate, the thread table and the gate page know.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use stillpoint_faults::{Point, strike};
use stillpoint_image::store::Store;
use stillpoint_image::tables::thread_flags;
use stillpoint_image::{Compression, Identity, Thread};
use stillpoint_protocol::agent::{Begin, Written};
use stillpoint_protocol::launch::Launch;
use stillpoint_wrappers::gate::{self, UpperHooks};

use super::access::{self, Access, Revoked};
use super::apart::apart;
use super::contents::Contents;
use super::descriptors::streams;
use super::file_limit::FileLimit;
use super::memory::Memory;
use super::signals::Waiting;
use super::{
    CaptureError, Request, attributes, credentials, environment, ipc, locked, maps, process,
    scheduling, signals, told,
};
use crate::agent::starters;
use crate::children;
use crate::cores;
use crate::gate::{descriptors, identity};
use crate::launch::appearance;
use crate::threads::{self, SavedThread};

/// What a launch says of the job, for its images.
struct Job {
    id: String,
    command: Vec<String>,
    /// Threads that pack pages.
    workers: usize,
}

static JOB: OnceLock<Job> = OnceLock::new();

/// Remembers, before the application runs, what images must tell of the job, and which descriptors the
/// launcher gave.
pub fn remember(launch: Option<&Launch>) {
    streams::remember();
    scheduling::remember();
    attributes::remember();
    process::remember();
    if let Some(launch) = launch {
        JOB.get_or_init(|| Job {
            id: launch.job.clone(),
            command: launch.command.clone(),
            workers: cores::for_one_of(launch.size),
        });
    }
}

/// Name and version of this module's part of an image.
pub const BLOB: &str = "gate page";
pub const VERSION: u32 = 2;
/// Before the name of a part of the gate's state.
pub const GATE_PREFIX: &str = "gate:";
/// Version of the gate's parts.
pub const GATE_PARTS_VERSION: u32 = 3;

/// What of the gate page, and of the way the application was started, must be so again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageState {
    /// Address of the upper half's hooks.
    pub hooks: u64,
    pub mpi_active: u32,
    pub sent_before: u64,
    pub received_before: u64,
    /// Where `/proc` finds arguments and environment: start and end of both.
    pub strings: [u64; 4],
    /// Where it finds the auxiliary vector and the stack ([`appearance::vector`]).
    pub vector: [u64; 3],
}

/// What forbids a checkpoint of this rank, in words for people.
///
/// # Errors
/// The access has been taken back.
pub fn refusals(access: &Access) -> Result<Vec<String>, Revoked> {
    super::refusals::of_process(&descriptors::upper(), &children::started(), access)
}

/// About how long this rank's image will be.
///
/// # Errors
/// See [`CaptureError`].
///
/// # Safety
/// As [`write`].
pub unsafe fn size(begin: &Begin, access: &Access) -> Result<u64, CaptureError> {
    let compression: Compression = begin.compress.parse().map_err(CaptureError::Refused)?;
    let inside = access.enter()?;
    let mut contents = Contents::default();
    let mappings = maps::upper().map_err(CaptureError::process("memory map"))?;
    // SAFETY: the caller's.
    let mut memory = apart(|| unsafe { Memory::survey(&mappings, &mut contents) })
        .flatten()
        .map_err(CaptureError::process("page map"))?;
    inside.changes(std::mem::take(&mut memory.opened));
    // SAFETY: the survey has made readable what is to be written; the threads are stopped, the caller says.
    let live = unsafe { access::Memory::through(access) };
    let private = memory.private.iter().cloned();
    let stretches = private.chain(contents.mapped());
    let stretches: Vec<_> = stretches.map(|range| live.bytes(range)).collect();
    let bytes = stillpoint_image::estimate(&stretches, compression)
        .map_err(CaptureError::process("compressibility"));
    inside.put_back();
    let bytes = bytes?;
    // The slow tier gets its copy while the application runs, under the application's limit.
    match FileLimit::shorter_than(bytes) {
        Some(reason) => Err(CaptureError::Refused(reason)),
        None => Ok(bytes),
    }
}

/// Writes this rank's image to `path`, or to `store`, where the image is then called by that path.
///
/// # Errors
/// See [`CaptureError`]; nothing is left at `path` then.
///
/// # Safety
/// Every thread of the upper half must be stopped in its signal frame, the driver holding, as long as `access` is not
/// revoked.
pub unsafe fn write(
    path: &Path,
    begin: &Begin,
    store: Option<Box<dyn Store>>,
    access: &Access,
) -> Result<Written, CaptureError> {
    let begun = Instant::now();
    let inside = access.enter()?;
    // SAFETY: an application runs, so the page is mapped.
    let page = unsafe { gate::page() };
    let hooks = page.hooks.load(Ordering::Acquire);
    // SAFETY: what the upper half registered lives as long as the process.
    let hooks_there = unsafe { (hooks as *const UpperHooks).as_ref() };
    let compression: Compression = begin.compress.parse().map_err(CaptureError::Refused)?;
    let alive = main_first()?;
    strike(Point::CaptureGate).map_err(CaptureError::process("gate page"))?;
    let state = PageState {
        hooks,
        mpi_active: page.mpi_active.load(Ordering::Acquire),
        sent_before: page.sent_before.load(Ordering::Relaxed),
        received_before: page.received_before.load(Ordering::Relaxed),
        strings: strings(),
        vector: appearance::vector(),
    };
    let mut blobs = vec![(
        BLOB.to_owned(),
        VERSION,
        serde_json::to_vec(&state).unwrap_or_default(),
    )];
    strike(Point::CaptureScheduling).map_err(CaptureError::process("scheduling"))?;
    let own = scheduling::survey(&threads::list());
    blobs.push((
        scheduling::BLOB.to_owned(),
        scheduling::VERSION,
        serde_json::to_vec(&own).unwrap_or_default(),
    ));
    for (part, bytes) in crate::gate::save() {
        blobs.push((format!("{GATE_PREFIX}{part}"), GATE_PARTS_VERSION, bytes));
    }
    if let Some(locked) = locked::survey() {
        blobs.push((
            locked::BLOB.to_owned(),
            locked::VERSION,
            serde_json::to_vec(&locked).unwrap_or_default(),
        ));
    }
    strike(Point::CaptureIpc).map_err(CaptureError::process("System V objects"))?;
    let (ipc, reasons) = ipc::survey();
    if !reasons.is_empty() {
        return Err(CaptureError::Refused(reasons.join("; ")));
    }
    if ipc != ipc::Saved::default() {
        blobs.push((
            ipc::BLOB.to_owned(),
            ipc::VERSION,
            serde_json::to_vec(&ipc).unwrap_or_default(),
        ));
    }
    let starters = starters::all();
    if !starters.is_empty() {
        blobs.push((
            starters::BLOB.to_owned(),
            starters::VERSION,
            serde_json::to_vec(&starters).unwrap_or_default(),
        ));
    }
    strike(Point::CaptureProcess).map_err(CaptureError::process("process state"))?;
    // Timers before the signals that they send: one that expires in between is found in both, and counts as expired.
    let mut process = process::survey().map_err(CaptureError::process("process state"))?;
    strike(Point::CaptureSignals).map_err(CaptureError::process("signals"))?;
    // SAFETY: the caller's.
    let waiting = unsafe { signals::survey(&alive)? };
    process.agree_with(&waiting);
    strike(Point::CaptureThreads).map_err(CaptureError::process("threads"))?;
    let threads = saved_threads(&alive, &waiting)?;
    strike(Point::CaptureCredentials).map_err(CaptureError::process("users and capabilities"))?;
    // SAFETY: the caller's.
    let credentials = unsafe { credentials::survey(&alive) };
    let credentials = credentials.ok_or_else(|| {
        CaptureError::Refused("the kernel does not tell whose its threads are: try again".into())
    })?;
    blobs.push((
        credentials::BLOB.to_owned(),
        credentials::VERSION,
        serde_json::to_vec(&credentials).unwrap_or_default(),
    ));
    strike(Point::CaptureAttributes).map_err(CaptureError::process("attributes"))?;
    // SAFETY: the caller's.
    let attributes = unsafe { attributes::survey(&alive) };
    let attributes = attributes
        .ok_or_else(|| CaptureError::Refused("a stopped thread does not answer".into()))?;
    blobs.push((
        attributes::BLOB.to_owned(),
        attributes::VERSION,
        serde_json::to_vec(&attributes).unwrap_or_default(),
    ));
    blobs.push((
        signals::BLOB.to_owned(),
        signals::VERSION,
        serde_json::to_vec(&waiting).unwrap_or_default(),
    ));
    strike(Point::CaptureInventory).map_err(CaptureError::process("MPI objects"))?;
    let inventory = hooks_there.map_or(vec![], |hooks| {
        let address = hooks.inventory.load(Ordering::Acquire) as *const u8;
        let bytes = hooks.inventory_bytes.load(Ordering::Acquire) as usize;
        if address.is_null() {
            return vec![];
        }
        // SAFETY: the upper half gives text that stays as it is while the driver holds.
        unsafe { std::slice::from_raw_parts(address, bytes) }.to_vec()
    });
    let mut environment = environment::here();
    environment.mpi_thread_level = match (hooks_there, state.mpi_active) {
        (Some(hooks), 1..) => hooks.mpi_thread_level.load(Ordering::Relaxed),
        _ => -1,
    };
    let size = page.size.load(Ordering::Relaxed).max(1) as u32;
    let request = Request {
        path: path.to_owned(),
        store,
        identity: Identity {
            job: JOB.get().map_or(String::new(), |job| job.id.clone()),
            epoch: begin.epoch,
            rank: page.rank.load(Ordering::Relaxed).max(0) as u32,
            size,
            command: JOB.get().map_or(Vec::new(), |job| job.command.clone()),
        },
        environment,
        compression,
        workers: JOB.get().map_or(1, |job| job.workers),
        process,
        threads,
        inventory,
        blobs,
        descriptors: descriptors::upper(),
    };
    drop(inside);
    // SAFETY: the caller's.
    let written = unsafe { super::write_image(request, access)? };
    Ok(Written {
        stored_bytes: written.bytes,
        bytes: written.page_bytes,
        digest: written.digest,
        seconds: begun.elapsed().as_secs_f64(),
    })
}

/// The upper half's threads, the main one first.
fn main_first() -> Result<Vec<threads::Thread>, CaptureError> {
    let main = identity::real_pid();
    let mut list = threads::list();
    list.sort_by_key(|thread| thread.real_tid() != main);
    if list.first().is_none_or(|first| first.real_tid() != main) {
        return Err(CaptureError::Refused(
            "its main thread has ended while others run on, which cannot be restarted".into(),
        ));
    }
    Ok(list)
}

fn saved_threads(list: &[threads::Thread], waiting: &Waiting) -> Result<Vec<Thread>, CaptureError> {
    let main = identity::real_pid();
    list.iter()
        .map(|&thread| {
            if thread.stop_frame() == 0 {
                let tid = thread.virtual_tid();
                return Err(CaptureError::Refused(format!(
                    "its thread {tid} does not stand still: try again"
                )));
            }
            let saved = SavedThread::of(thread);
            let [believes_sigsys, believes_stop] = saved.believes;
            let flags = [
                (thread_flags::MAIN, thread.real_tid() == main),
                (thread_flags::DRIVER, saved.driver),
                (thread_flags::BELIEVES_SIGSYS, believes_sigsys),
                (thread_flags::BELIEVES_STOP, believes_stop),
            ];
            let flags = flags.iter().filter(|(_, set)| *set);
            Ok(Thread {
                virtual_tid: saved.virtual_tid,
                flags: flags.fold(0, |all, (flag, _)| all | flag),
                stop_frame: saved.stop_frame,
                thread_pointer: saved.fs_upper,
                clear_child_tid: saved.clear_tid,
                robust_list: saved.robust_list,
                robust_list_bytes: saved.robust_bytes,
                pending_signals: waiting.numbers_of_thread(saved.virtual_tid),
                sent: saved.sent,
                received: saved.received,
                name: saved.name,
            })
        })
        .collect()
}

/// Where the kernel shows arguments and environment from: fields 48 to 51 of `/proc/self/stat`.
fn strings() -> [u64; 4] {
    let stat = told::by("/proc/self/stat").unwrap_or_default();
    // The name, which may hold blanks, is field 2; what follows it begins with field 3.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = rest
        .split_whitespace()
        .skip(48 - 3)
        .map(|field| field.parse().unwrap_or(0));
    let found = [(); 4].map(|()| fields.next().unwrap_or(0));
    if found
        .iter()
        .all(|address| crate::gate::memory::owns(*address as usize))
    {
        found
    } else {
        [0; 4]
    }
}
