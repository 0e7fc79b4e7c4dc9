//! Reads the pages of an image into their places, on several threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use stillpoint_image::Reader;
use stillpoint_image::format::{CHUNK_BYTES, ChunkRecord, RunRecord};
use stillpoint_image::tables::RegionKind;

use super::RestoreError;
use super::arrival::Plan;
use super::files::FromFiles;
use crate::arch::PAGE;
use crate::ground::thread;

/// The limit, in bytes, of chunks that are kept until their place is mapped; further chunks are read again. An application without memory of its own has 2 MB:
/// its library of stubs and its surroundings.
const KEPT: usize = 16 << 20;

/// The chunks that are already in place, and those that come late.
#[derive(Debug, Default)]
pub struct Loaded {
    /// By the numbers of chunks.
    chunks: Vec<bool>,
    late: Option<Plan>,
    kept: Kept,
}

/// Bytes of chunks that wait for their place, by the numbers of chunks.
#[derive(Debug, Default)]
struct Kept {
    chunks: Vec<OnceLock<Box<[u8]>>>,
    bytes: AtomicUsize,
}

impl Kept {
    /// Whether so many bytes more may be kept; if so, they are counted.
    fn has_room(&self, bytes: usize) -> bool {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        before.saturating_add(bytes) <= KEPT
    }

    fn keep(&self, number: usize, bytes: Vec<u8>) {
        if let Some(place) = self.chunks.get(number) {
            place.get_or_init(|| bytes.into_boxed_slice());
        }
    }

    fn get(&self, number: usize) -> Option<&[u8]> {
        self.chunks.get(number)?.get().map(|bytes| &bytes[..])
    }
}

impl Loaded {
    fn has(&self, chunk: usize) -> bool {
        self.chunks.get(chunk).copied().unwrap_or(false)
    }

    /// Frees the kept bytes: everything is in its place.
    pub fn forget(&mut self) {
        self.kept = Kept::default();
    }

    /// Takes the plan of the memory that comes late.
    pub fn late(&mut self) -> Option<Plan> {
        self.late.take()
    }

    /// Whether a run is to be put in place now.
    fn is_wanted(&self, run: &RunRecord) -> bool {
        let late = self.late.as_ref();
        run.space == 0 && late.is_none_or(|late| !late.is_late(run))
    }
}

/// Reads and checks every chunk that does not come late. Chunks that belong to private anonymous memory alone are put in place.
///
/// # Safety
/// That memory must be mapped, writable where there are runs, and used by nothing else.
pub unsafe fn read(
    reader: &Reader,
    late: Option<Plan>,
    workers: usize,
) -> Result<Loaded, RestoreError> {
    let chunks = reader.chunks().iter();
    let private = chunks.map(|chunk| reader.live_runs(chunk).all(|run| is_private(reader, run)));
    let mut loaded = Loaded {
        chunks: private.collect(),
        late,
        kept: Kept::default(),
    };
    loaded
        .kept
        .chunks
        .resize_with(loaded.chunks.len(), OnceLock::new);
    let mut now = vec![true; loaded.chunks.len()];
    for &later in loaded.late.iter().flat_map(Plan::order) {
        (now[later], loaded.chunks[later]) = (false, false);
    }
    let now: Vec<usize> = (0..now.len()).filter(|number| now[*number]).collect();
    let nothing = FromFiles::default();
    each(reader, &now, workers, |number, room| {
        let chunk = &reader.chunks()[number];
        match loaded.has(number) {
            // SAFETY: the caller says that the runs' memory is mapped, writable and used by nothing else; each chunk is loaded by one worker, and runs do not
            // overlap.
            true => unsafe { load(reader, number, &nothing, &loaded, room) },
            false => {
                let mut wanted = reader.live_runs(chunk).filter(|run| loaded.is_wanted(run));
                match wanted.next() {
                    Some(_) if loaded.kept.has_room(chunk.bytes as usize) => {
                        loaded.kept.keep(number, room.load_apart(reader, chunk)?);
                    }
                    _ => {
                        room.load(reader, chunk)?;
                    }
                }
                Ok(())
            }
        }
    })?;
    Ok(loaded)
}

/// Whether a run lies in private anonymous memory.
fn is_private(reader: &Reader, run: &RunRecord) -> bool {
    let regions = reader.regions();
    let index = regions.partition_point(|region| region.end <= run.address);
    let lies_in = regions
        .get(index)
        .is_some_and(|region| region.start <= run.address && region.kind == RegionKind::Anonymous);
    run.space == 0 && lies_in
}

/// Loads every chunk of memory that is not in place yet and does not come late.
///
/// # Safety
/// Every run must lie in memory that is mapped, writable and used by nothing else.
pub unsafe fn fill(
    reader: &Reader,
    from_files: &FromFiles,
    loaded: &Loaded,
    workers: usize,
) -> Result<(), RestoreError> {
    let is_wanted = |chunk| reader.live_runs(chunk).any(|run| loaded.is_wanted(run));
    let chunks = reader.chunks().iter().enumerate();
    let left = chunks.filter(|(number, chunk)| !loaded.has(*number) && is_wanted(chunk));
    let left: Vec<usize> = left.map(|(number, _)| number).collect();
    each(reader, &left, workers, |number, room| {
        // SAFETY: the caller says that the runs' memory is mapped, writable and used by nothing else; each chunk is loaded by one worker, and runs do not
        // overlap.
        unsafe { load(reader, number, from_files, loaded, room) }
    })
}

/// How far the disk reads ahead of the load, in chunks. The kernel's own read-ahead leaves most disks idle half of the time.
const AHEAD: usize = 64;
/// The number of chunks that are requested at a time.
const TOGETHER: usize = 8;

/// Has the disk begin to read the chunks that are loaded some time after chunk `at` of these.
fn expect(reader: &Reader, numbers: &[usize], at: usize) {
    let next = match at {
        0 => 0..AHEAD + TOGETHER,
        _ if at.is_multiple_of(TOGETHER) => at + AHEAD..at + AHEAD + TOGETHER,
        _ => return,
    };
    let next = next.start.min(numbers.len())..next.end.min(numbers.len());
    let chunks = numbers[next].iter().map(|number| &reader.chunks()[*number]);
    reader.expect(chunks);
}

/// Runs an action, which loads a chunk, for each of these chunks on so many threads. The first error ends it.
fn each(
    reader: &Reader,
    numbers: &[usize],
    workers: usize,
    action: impl Fn(usize, &mut WorkerBuffers) -> Result<(), RestoreError> + Sync,
) -> Result<(), RestoreError> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let first_error: Mutex<Option<RestoreError>> = Mutex::new(None);
    let work = || {
        let mut room = WorkerBuffers::new();
        while !failed.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(number) = numbers.get(at) else {
                break;
            };
            expect(reader, numbers, at);
            if let Err(error) = action(*number, &mut room) {
                failed.store(true, Ordering::Relaxed);
                let mut first = first_error.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(error);
            }
        }
    };
    // For a few chunks, starting a thread takes longer than reading them.
    let workers = workers.clamp(1, numbers.len().div_ceil(8).max(1));
    std::thread::scope(|scope| {
        let start = |_| thread::start_in(scope, "stillpoint-pages", thread::LARGE, work);
        // If no thread can be started, this one does all the work.
        let started: Vec<_> = (1..workers).map_while(|it| start(it).ok()).collect();
        work();
        // The scope alone waits for the work, not for the threads. Callers change the environment next.
        for thread in started {
            let _ended = thread.join();
        }
    });
    let error = first_error
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    match error {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// The buffers of one worker.
pub struct WorkerBuffers {
    stored: Vec<u8>,
    loaded: Vec<u8>,
}

impl WorkerBuffers {
    pub fn new() -> WorkerBuffers {
        WorkerBuffers {
            stored: Reader::scratch(),
            loaded: vec![0; CHUNK_BYTES],
        }
    }

    /// Returns a chunk's bytes, after checking their sum.
    pub fn load(&mut self, reader: &Reader, chunk: &ChunkRecord) -> Result<&[u8], RestoreError> {
        let loaded = &mut self.loaded[..chunk.bytes as usize];
        reader.load(chunk, &mut self.stored, loaded)?;
        Ok(loaded)
    }

    /// The same, in memory of their own.
    fn load_apart(
        &mut self,
        reader: &Reader,
        chunk: &ChunkRecord,
    ) -> Result<Vec<u8>, RestoreError> {
        let mut loaded = vec![0; chunk.bytes as usize];
        reader.load(chunk, &mut self.stored, &mut loaded)?;
        Ok(loaded)
    }
}

/// From this size on, having the kernel make all pages at once is less work.
const MANY: usize = 4 * PAGE;

/// Has the kernel make a run's pages at once, not one by one as they are written to. If it does not, the load is only slower.
fn populate(run: &RunRecord) {
    let start = run.address as usize & !(PAGE - 1);
    let end = run.address as usize + run.bytes as usize;
    // SAFETY: the call makes missing pages of memory that this restart has mapped, and changes no page that is there.
    unsafe {
        libc::madvise(
            start as *mut _,
            end.next_multiple_of(PAGE) - start,
            libc::MADV_POPULATE_WRITE,
        )
    };
}

/// Loads one chunk into place.
///
/// # Safety
/// As [`fill`].
unsafe fn load(
    reader: &Reader,
    number: usize,
    from_files: &FromFiles,
    loaded: &Loaded,
    room: &mut WorkerBuffers,
) -> Result<(), RestoreError> {
    let chunk = &reader.chunks()[number];
    let runs = reader.runs(chunk);
    let kept = loaded.kept.get(number);
    if let [run] = runs
        && kept.is_none()
        && loaded.is_wanted(run)
        && !from_files.have(run.address as usize)
    {
        populate(run);
        // SAFETY: the caller says that the run lies in memory that is mapped, writable and used by nothing else; no other slice of it exists.
        let place =
            unsafe { std::slice::from_raw_parts_mut(run.address as *mut u8, run.bytes as usize) };
        return Ok(reader.load(chunk, &mut room.stored, place)?);
    }
    let mut rest = match kept {
        Some(bytes) => bytes,
        None => room.load(reader, chunk)?,
    };
    for run in runs {
        let (mine, more) = rest.split_at(run.bytes as usize);
        rest = more;
        if !loaded.is_wanted(run) {
            continue;
        }
        // SAFETY: the caller says that the run lies in memory that is mapped, writable and used by nothing else; `mine` has as many bytes, in a buffer of our
        // own.
        unsafe {
            match from_files.have(run.address as usize) {
                true => from_files.correct(run.address as usize, mine),
                false => {
                    if mine.len() >= MANY {
                        populate(run);
                    }
                    std::ptr::copy_nonoverlapping(mine.as_ptr(), run.address as *mut u8, mine.len())
                }
            }
        };
    }
    Ok(())
}
