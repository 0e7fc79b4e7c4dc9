//! Tests of the thread that writes windows: the file that it writes, and a disk that fails or is slow.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::super::direct::Direct;
use super::*;

/// The writes that a disk got.
#[derive(Default)]
struct Got {
    file: Vec<u8>,
    /// Offsets of whole blocks, and of other writes.
    direct: Vec<u64>,
    last: Vec<u64>,
    synced: bool,
}

impl Got {
    fn put(&mut self, bytes: &[u8], offset: u64) {
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        self.file.resize(self.file.len().max(end), 0);
        self.file[start..end].copy_from_slice(bytes);
    }
}

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Got>>);

impl Sink for Memory {
    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut got = self.0.lock().unwrap();
        assert!(bytes.len().is_multiple_of(BLOCK) && offset.is_multiple_of(BLOCK as u64));
        assert!(bytes.as_ptr().addr().is_multiple_of(BLOCK) && got.last.is_empty());
        got.direct.push(offset);
        got.put(bytes, offset);
        Ok(())
    }

    fn write_last(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut got = self.0.lock().unwrap();
        got.last.push(offset);
        got.put(bytes, offset);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.lock().unwrap().synced = true;
        Ok(())
    }
}

fn some(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 7 + at / 251) as u8).collect()
}

/// Writes in the way of an image: pieces of odd lengths by several threads, the header last.
fn write(store: &dyn Store, bytes: &[u8]) -> io::Result<()> {
    const HEADER: usize = 64;
    let next = AtomicUsize::new(0);
    let pieces: Vec<&[u8]> = bytes[HEADER..].chunks(3000).collect();
    thread::scope(|scope| {
        let work = || -> io::Result<()> {
            while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                let offset = piece.as_ptr().addr() - bytes.as_ptr().addr();
                store.write_all_at(piece, offset as u64)?;
            }
            Ok(())
        };
        let workers: Vec<_> = (0..3).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|worker| worker.join().unwrap());
        ended.collect::<io::Result<()>>()
    })?;
    store.write_all_at(&bytes[..HEADER], 0)?;
    store.finish(bytes.len() as u64)
}

#[test]
fn a_file_is_the_same_whatever_its_length_and_only_its_ends_are_no_blocks() {
    let window = 4 * BLOCK;
    for length in [
        100,
        BLOCK,
        BLOCK + 1,
        BLOCK + window,
        BLOCK + window + 1,
        BLOCK + 5 * window + 3 * BLOCK,
        BLOCK + 9 * window + 2 * BLOCK + 77,
    ] {
        let (bytes, memory) = (some(length), Memory::default());
        write(&Queue::new(memory.clone(), window), &bytes).unwrap();
        let got = memory.0.lock().unwrap();
        assert!(got.file == bytes && got.synced, "{length}");
        let mut windows = got.direct.clone();
        windows.sort_unstable();
        let expected = (0..windows.len()).map(|number| (BLOCK + number * window) as u64);
        assert!(windows.into_iter().eq(expected), "{length}");
        // The first block, and the rest of the last one; all of a small file.
        assert!(
            got.last.len() <= 2 && got.last.last() == Some(&0),
            "{length}"
        );
        assert_eq!(got.direct.is_empty(), length < BLOCK + window, "{length}");
    }
}

#[test]
fn a_real_file_has_the_same_bytes() {
    for place in [std::env::temp_dir(), "/dev/shm".into()] {
        let path = tempfile::NamedTempFile::new_in(place).unwrap();
        let bytes = some(BLOCK + 7 * 4 * BLOCK + 1234);
        let direct = Direct::new(path.reopen().unwrap());
        write(&Queue::new(direct, 4 * BLOCK), &bytes).unwrap();
        assert!(std::fs::read(path.path()).unwrap() == bytes);
    }
}

#[test]
fn what_a_file_system_does_not_take_past_the_page_cache_goes_through_it() {
    let path = tempfile::NamedTempFile::new_in(std::env::temp_dir()).unwrap();
    let (bytes, direct) = (some(3 * BLOCK), Direct::new(path.reopen().unwrap()));
    // File systems do not accept this directly: neither its address nor its length is a multiple of a block.
    direct.write(&bytes[1..2 * BLOCK], 1).unwrap();
    direct.write(&bytes[2 * BLOCK..], 2 * BLOCK as u64).unwrap();
    direct.write_last(&bytes[..1], 0).unwrap();
    assert!(std::fs::read(path.path()).unwrap() == bytes);
}

/// A disk that is full after some windows.
struct Full(AtomicUsize);

impl Sink for Full {
    fn write(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        let one_less = |left: usize| left.checked_sub(1);
        let left = (self.0).fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        left.map(drop)
            .map_err(|_| io::Error::from_raw_os_error(libc::ENOSPC))
    }

    fn write_last(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told_to_whoever_writes_or_finishes() {
    let bytes = some(BLOCK + 20 * 4 * BLOCK);
    for windows in [0, 3, 19] {
        let queue = Queue::new(Full(AtomicUsize::new(windows)), 4 * BLOCK);
        let error = write(&queue, &bytes).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC), "{windows}");
        let error = queue.finish(bytes.len() as u64).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    }
    write(&Queue::new(Full(AtomicUsize::new(20)), 4 * BLOCK), &bytes).unwrap();
}

#[test]
fn missing_bytes_are_noticed() {
    let queue = Queue::new(Memory::default(), 4 * BLOCK);
    queue.write_all_at(&some(100), 0).unwrap();
    queue.write_all_at(&some(100), 200).unwrap();
    assert!(queue.finish(300).is_err());
}

/// A disk that waits for a message before each window.
struct Slow(Mutex<mpsc::Receiver<()>>);

impl Sink for Slow {
    fn write(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        let _ = self.0.lock().unwrap().recv();
        Ok(())
    }

    fn write_last(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn who_is_faster_than_the_disk_waits_for_it_and_giving_up_ends_all() {
    let (go, may_go) = mpsc::channel();
    let queue = Queue::new(Slow(Mutex::new(may_go)), BLOCK);
    let bytes = some(BLOCK);
    let written = AtomicUsize::new(0);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for window in 1..=10 {
                queue.write_all_at(&bytes, (window * BLOCK) as u64).unwrap();
                written.store(window, Ordering::SeqCst);
            }
        });
        for gone in 0..8 {
            while written.load(Ordering::SeqCst) < MOST_WAITING + gone {
                thread::yield_now();
            }
            // One more window does not fit before the disk has taken one.
            assert_eq!(written.load(Ordering::SeqCst), MOST_WAITING + gone);
            go.send(()).unwrap();
        }
        writer.join().unwrap();
    });
    drop(go);
    drop(queue);
}
