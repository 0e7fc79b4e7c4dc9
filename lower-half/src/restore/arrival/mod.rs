//! Loads memory while the application already runs (`restart --lazy`).
//!
//! Private anonymous memory is mapped, and empty. A thread that touches a page that has not come waits for it (`userfaultfd`, [`door`]); its chunks are then
//! read next. As soon as the application runs, the other chunks are read too, beginning with those that changed in the last epochs ([`plan`]). Every chunk's
//! sum is checked before the application sees a byte of it. If a chunk cannot be read, the process ends; the epoch is not harmed.
//!
//! One thread only listens to the kernel, since a thread that discards pages waits until it hears of that. The other threads read chunks. The lock `removed` is
//! held for writing while the listener reads from the kernel, and for reading while pages are put in place: so a discarded page does not come back.

mod door;
mod plan;

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use stillpoint_faults::{Point, strike};
use stillpoint_image::Reader;
use stillpoint_image::format::vm_flags;
use stillpoint_image::tables::{Region, RegionKind};
use stillpoint_refusals::refusal;

use super::RestoreError;
use super::pages::WorkerBuffers;
use crate::arch::PAGE;
use crate::ground::{arriving, ranges, thread};
pub use door::Door;
use door::{KernelMessage, Put};
pub use plan::Plan;
use plan::{PartialPages, cut};

/// How often idle readers check whether the rest may be loaded. A trap's handler may permit it, and cannot wake a thread here.
const LOOK: Duration = Duration::from_millis(5);

/// Whether a region's pages may come late. Memory that is shared, locked, dropped or grows by itself is loaded before the application runs.
fn may_come_late(region: &Region) -> bool {
    const NOT: u64 =
        vm_flags::LOCKED | vm_flags::HUGE_TLB | vm_flags::GROWS_DOWN | vm_flags::DROPPABLE;
    region.kind == RegionKind::Anonymous && region.vm_flags & NOT == 0
}

/// Plans which memory of an image is to arrive late.
pub fn plan(reader: &Reader) -> Plan {
    let late = reader.regions().iter().filter(|it| may_come_late(it));
    let late = late.map(Region::range).collect();
    let chunks = reader.chunks().iter();
    Plan::new(late, chunks.map(|chunk| (chunk, reader.runs(chunk))))
}

struct Arrival {
    reader: Arc<Reader>,
    plan: Plan,
    door: Door,
    /// Whether a worker reads or has read a chunk, by its number.
    taken: Vec<AtomicBool>,
    /// The place in the plan's order of the next chunk.
    next: AtomicUsize,
    /// The number of chunks that have not come.
    left: AtomicUsize,
    parts: Mutex<PartialPages>,
    /// Pages that the application has discarded.
    removed: RwLock<Vec<Range<usize>>>,
    /// Pages that threads wait for.
    wanted: Mutex<VecDeque<u64>>,
    /// Signals that `wanted` has grown, or that everything has come.
    news: Condvar,
    /// Tells the listener that everything has come.
    all: EventFd,
    lost: fn(String) -> !,
}

/// Has memory arrive, on so many threads. The regions must be mapped, and the late memory untouched. `lost` ends the process.
///
/// # Errors
/// If it cannot begin; then nothing has changed.
pub fn begin(
    reader: &Arc<Reader>,
    plan: Plan,
    workers: usize,
    lost: fn(String) -> !,
) -> Result<(), RestoreError> {
    let failed = RestoreError::system("cannot start the program before its memory is read");
    let arrive = || -> io::Result<()> {
        let door = Door::open()?;
        for range in plan.late() {
            door.guard(range.clone())?;
        }
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let arrival = Arrival {
            taken: reader
                .chunks()
                .iter()
                .map(|_| AtomicBool::new(false))
                .collect(),
            next: AtomicUsize::new(0),
            left: AtomicUsize::new(plan.order().len()),
            parts: Mutex::default(),
            removed: RwLock::default(),
            wanted: Mutex::default(),
            news: Condvar::new(),
            all: EventFd::from_value_and_flags(0, flags)?,
            reader: Arc::clone(reader),
            plan,
            door,
            lost,
        };
        if arrival.left.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        arriving::begin();
        let started = thread::start("stillpoint-lazy", thread::LARGE, move || {
            arrival.run(workers);
            // The descriptor is closed: page faults no longer wait.
            drop(arrival);
            arriving::ended();
        });
        started.map(|_| ()).inspect_err(|_| arriving::ended())
    };
    arrive().map_err(failed)
}

impl Arrival {
    /// Runs until all memory has come.
    fn run(&self, workers: usize) {
        std::thread::scope(|scope| {
            for number in 0..workers.max(1) {
                let work = || self.work();
                let started = thread::start_in(scope, "stillpoint-lazy", thread::LARGE, work);
                if let Err(error) = started
                    && number == 0
                {
                    self.fail(&format!("cannot start a thread: {error}"));
                }
            }
            if let Err(error) = self.listen() {
                self.fail(&format!("cannot read page faults from the kernel: {error}"));
            }
        });
    }

    fn fail(&self, why: &str) -> ! {
        (self.lost)(format!(
            "cannot read its memory from the image: {why}; the epoch is unchanged: restart it again, without --lazy \
             so that Stillpoint checks all of it first"
        ))
    }

    /// Reads the kernel's messages until all memory has come.
    fn listen(&self) -> io::Result<()> {
        loop {
            let mut both = [
                PollFd::new(self.door.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.all.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut both, PollTimeout::NONE) {
                Err(nix::Error::EINTR) => continue,
                other => other?,
            };
            if both[1].any() == Some(true) {
                return Ok(());
            }
            let mut removed = self.removed.write().unwrap_or_else(PoisonError::into_inner);
            let mut wanted = Vec::new();
            for told in self.door.told()? {
                match told {
                    KernelMessage::Wanted(address) => wanted.push(address & !(PAGE as u64 - 1)),
                    KernelMessage::Removed(range) => {
                        removed.push(range.start as usize..range.end as usize)
                    }
                }
            }
            *removed = ranges::joined(std::mem::take(&mut *removed));
            drop(removed);
            if !wanted.is_empty() {
                let mut queue = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
                queue.extend(wanted);
                self.news.notify_all();
            }
        }
    }

    /// Reads the pages that threads wait for, otherwise the next chunk, until all memory has come.
    fn work(&self) {
        let mut room = WorkerBuffers::new();
        loop {
            let page = self
                .wanted
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front();
            let done = match page {
                Some(page) => self.serve(page, &mut room),
                None if !arriving::is_in_full() => {
                    self.rest(LOOK);
                    Ok(())
                }
                None => match self.take_next() {
                    Some(next) => self.place(next, &mut room),
                    None if self.left.load(Ordering::Acquire) == 0 => return,
                    None => {
                        self.rest(Duration::MAX);
                        Ok(())
                    }
                },
            };
            if let Err(error) = done {
                self.fail(&error.to_string());
            }
        }
    }

    /// Sleeps until a thread waits for a page or all memory has come, but no longer than `most`.
    fn rest(&self, most: Duration) {
        let queue = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let idle =
            |queue: &mut VecDeque<u64>| queue.is_empty() && self.left.load(Ordering::Acquire) != 0;
        let _woken = self.news.wait_timeout_while(queue, most, idle);
    }

    fn take(&self, chunk: usize) -> bool {
        let taken = self.taken.get(chunk);
        taken.is_some_and(|taken| !taken.swap(true, Ordering::AcqRel))
    }

    fn take_next(&self) -> Option<usize> {
        loop {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let chunk = *self.plan.order().get(place)?;
            if self.take(chunk) {
                return Some(chunk);
            }
        }
    }

    /// Loads a page that a thread waits for.
    fn serve(&self, page: u64, room: &mut WorkerBuffers) -> Result<(), RestoreError> {
        let chunks: Vec<usize> = self.plan.chunks(page).collect();
        let removed = || {
            let removed = self.removed.read().unwrap_or_else(PoisonError::into_inner);
            let one = page as usize..page as usize + PAGE;
            !ranges::split(std::slice::from_ref(&one), &removed)
                .0
                .is_empty()
        };
        if chunks.is_empty() || removed() {
            return self.zero(page);
        }
        for chunk in chunks {
            if self.take(chunk) {
                self.place(chunk, room)?;
            }
        }
        // Other workers may be reading the rest; the one that puts the page in place wakes the threads that wait for it.
        Ok(())
    }

    fn zero(&self, page: u64) -> Result<(), RestoreError> {
        loop {
            match self.door.zero(page) {
                Ok(Put::Again) => std::thread::yield_now(),
                Ok(Put::There(_) | Put::Gone) => break,
                // Another fault on this page has been served already.
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => break,
                Err(error) => return Err(out_of_place(page)(error)),
            }
        }
        self.door.wake(page).map_err(out_of_place(page))
    }

    /// Reads a chunk and puts its pages in place.
    fn place(&self, number: usize, room: &mut WorkerBuffers) -> Result<(), RestoreError> {
        strike(Point::RestartArrive).map_err(RestoreError::system("its pages"))?;
        let chunk = &self.reader.chunks()[number];
        let mut rest = room.load(&self.reader, chunk)?;
        for run in self.reader.runs(chunk) {
            let (mine, more) = rest.split_at(run.bytes as usize);
            rest = more;
            if !self.plan.is_late(run) {
                continue;
            }
            let [head, whole, tail] = cut(run.address, mine.len());
            let at = run.address + whole.start as u64;
            self.put(at, &mine[whole])?;
            for part in [head, tail] {
                let at = run.address + part.start as u64;
                if part.is_empty() {
                    continue;
                }
                let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
                let page = parts.add(&self.plan, at, &mine[part]);
                drop(parts);
                if let Some(page) = page {
                    self.put(at & !(PAGE as u64 - 1), &page[..])?;
                }
            }
        }
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.all_there()?;
        }
        Ok(())
    }

    fn all_there(&self) -> Result<(), RestoreError> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if parts.left() != 0 {
            let problem = refusal!(
                BrokenImage,
                "{} pages are incomplete: the image is damaged, use another epoch",
                parts.left()
            );
            return Err(RestoreError::Refused(problem));
        }
        // A worker that is about to sleep checks `left` while it holds this lock; taking the lock here ensures that it does not miss the notification.
        drop(self.wanted.lock().unwrap_or_else(PoisonError::into_inner));
        self.news.notify_all();
        let told = self.all.write(1).map_err(io::Error::from);
        told.map(|_| ())
            .map_err(RestoreError::system("cannot finish reading memory"))
    }

    /// Puts whole pages in place, except those that have been discarded.
    fn put(&self, address: u64, bytes: &[u8]) -> Result<(), RestoreError> {
        let mut at = 0;
        while at < bytes.len() {
            let removed = self.removed.read().unwrap_or_else(PoisonError::into_inner);
            let start = address as usize + at;
            let rest = start..address as usize + bytes.len();
            let (_, kept) = ranges::split(std::slice::from_ref(&rest), &removed);
            let Some(first) = kept.first() else {
                return Ok(());
            };
            if first.start > start {
                at += first.start - start;
                continue;
            }
            let failed = out_of_place(first.start as u64);
            let copy = |length: usize| self.door.copy(first.start as u64, &bytes[at..at + length]);
            let mut put = copy(first.len());
            if let Ok(Put::Gone) = put {
                // Mappings may have been removed or cut, so the pages are copied one by one.
                put = copy(PAGE);
            }
            match put.map_err(failed)? {
                Put::There(done) => at += done,
                Put::Gone => at += PAGE,
                Put::Again => {
                    drop(removed);
                    std::thread::yield_now();
                }
            }
        }
        Ok(())
    }
}

fn out_of_place(address: u64) -> impl FnOnce(io::Error) -> RestoreError {
    RestoreError::system(format!("cannot put memory in place at {address:#x}"))
}
