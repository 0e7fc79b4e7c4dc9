//! The activity of the threads that write an image, for people who wait for it. One image is written at a time.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stillpoint_image::store::Store;

/// The time without an answer after which storage is named.
const SILENT: Duration = Duration::from_secs(3);

/// Processor time of the threads that read memory for images, in nanoseconds.
static PROCESSOR: AtomicU64 = AtomicU64::new(0);
/// The number of calls of a file system or of storage that are under way, and the number that have returned.
static CALLS: AtomicU64 = AtomicU64::new(0);
static RETURNED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The part of this thread's processor time that has been counted.
    static COUNTED: Cell<u64> = const { Cell::new(0) };
}

fn processor_time() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills the structure, which lives on this stack.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Counts the progress of a thread that writes. Called for every block of memory.
pub fn step() {
    let now = processor_time();
    let more = now.saturating_sub(COUNTED.replace(now));
    PROCESSOR.fetch_add(more, Ordering::Relaxed);
}

/// Waits for storage until it is dropped.
pub struct InStorage(());

pub fn in_storage() -> InStorage {
    CALLS.fetch_add(1, Ordering::Relaxed);
    InStorage(())
}

impl Drop for InStorage {
    fn drop(&mut self) {
        CALLS.fetch_sub(1, Ordering::Relaxed);
        RETURNED.fetch_add(1, Ordering::Relaxed);
    }
}

/// A store that counts the calls that wait for it.
pub struct Watched(pub Box<dyn Store>);

impl Store for Watched {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let _in_storage = in_storage();
        self.0.write_all_at(bytes, offset)
    }

    fn finish(&self, file_bytes: u64) -> io::Result<()> {
        let _in_storage = in_storage();
        self.0.finish(file_bytes)
    }
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    processor: u64,
    calls: u64,
    returned: u64,
}

impl Seen {
    pub fn now() -> Seen {
        Seen {
            processor: PROCESSOR.load(Ordering::Relaxed),
            calls: CALLS.load(Ordering::Relaxed),
            returned: RETURNED.load(Ordering::Relaxed),
        }
    }

    /// Whether storage has left the same calls unanswered all the time.
    pub fn waits_for_storage(&self, earlier: &Seen) -> bool {
        self.calls > 0 && self.returned == earlier.returned
    }

    /// Describes what the writing has waited for since an earlier moment. Storage has not answered for `silent`: a thread that gets no processor does not look
    /// for the answer either.
    pub fn since(&self, earlier: &Seen, elapsed: Duration, silent: Duration) -> &'static str {
        let used = Duration::from_nanos(self.processor.saturating_sub(earlier.processor));
        if silent >= SILENT {
            "still writing (is the file system busy?)"
        } else if used < elapsed / 2 {
            "still writing, and waiting for a processor: the ranks and others keep all of them busy"
        } else {
            "still writing"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_writing_waits_for_is_told_apart() {
        let seen = |processor, calls, returned| Seen {
            processor,
            calls,
            returned,
        };
        let before = seen(1_000, 0, 3);
        let told =
            |now: Seen, silent: Duration| now.since(&before, Duration::from_nanos(100), silent);
        assert!(told(seen(1_000, 1, 3), SILENT).contains("file system"));
        assert!(told(seen(1_010, 0, 5), Duration::ZERO).contains("processor"));
        assert_eq!(told(seen(1_090, 0, 5), Duration::ZERO), "still writing");
        assert!(seen(1_000, 1, 3).waits_for_storage(&before));
        assert!(!seen(1_000, 1, 4).waits_for_storage(&before));
        assert!(!seen(1_000, 0, 3).waits_for_storage(&before));
    }

    #[test]
    fn processor_time_of_threads_is_added_up() {
        let before = Seen::now();
        step();
        let begun = processor_time();
        while processor_time() < begun + 2_000_000 {}
        step();
        let after = Seen::now();
        assert!(after.processor >= before.processor + 2_000_000);
    }
}
