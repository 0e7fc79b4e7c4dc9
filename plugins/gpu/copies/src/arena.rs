//! Pinned host memory, backed by one file in memory, so that another process can see its bytes without a copy.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// The page size; ranges are multiples of it.
const PAGE: u64 = 4096;

/// The whole arena. Its free ranges take no memory.
pub struct Arena {
    file: Arc<File>,
    mapped: MmapRaw,
    /// The length of each taken range, by its offset in the file.
    taken: BTreeMap<u64, u64>,
}

/// An arena's file, and its address in this process.
#[derive(Clone, Debug)]
pub struct Shown {
    pub file: Arc<File>,
    pub bytes: u64,
    base: u64,
}

impl Shown {
    /// Returns the offset of memory in the file, or `None` if the memory is elsewhere.
    pub fn place(&self, address: u64, bytes: u64) -> Option<u64> {
        let at = address.checked_sub(self.base)?;
        let end = at.checked_add(bytes)?;
        (end <= self.bytes).then_some(at)
    }
}

impl Arena {
    /// Makes an arena for so many bytes at a time. It has twice as many addresses, since the free ranges may be
    /// scattered.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(bytes: u64) -> io::Result<Arena> {
        let bytes = bytes.saturating_mul(2).next_multiple_of(PAGE).max(PAGE);
        let file = File::from(memfd_create("stillpoint-gpu", MFdFlags::MFD_CLOEXEC)?);
        file.set_len(bytes)?;
        let mapped = MmapOptions::new().len(bytes as usize).map_raw(&file)?;
        Ok(Arena {
            file: Arc::new(file),
            mapped,
            taken: BTreeMap::new(),
        })
    }

    pub fn shown(&self) -> Shown {
        Shown {
            file: Arc::clone(&self.file),
            bytes: self.mapped.len() as u64,
            base: self.mapped.as_mut_ptr() as u64,
        }
    }

    /// Takes the first free memory of so many bytes, or returns `None` if there is not that much in one piece.
    pub fn take(&mut self, bytes: u64) -> Option<*mut u8> {
        let bytes = bytes.max(1).checked_next_multiple_of(PAGE)?;
        let mut at = 0;
        for (&start, &length) in &self.taken {
            if start - at >= bytes {
                break;
            }
            at = start + length;
        }
        let end = at.checked_add(bytes)?;
        if end > self.mapped.len() as u64 {
            return None;
        }
        self.taken.insert(at, bytes);
        Some(self.mapped.as_mut_ptr().wrapping_add(at as usize))
    }

    /// Gives back a range that was taken. It is no longer in use.
    pub fn give_back(&mut self, memory: *mut u8) {
        let at = (memory as u64).wrapping_sub(self.mapped.as_mut_ptr() as u64);
        let Some(bytes) = self.taken.remove(&at) else {
            return;
        };
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        // If punching fails, the memory stays until the arena ends.
        let _ = fallocate(self.file.as_fd(), flags, at as i64, bytes as i64);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    #[test]
    fn what_is_given_out_is_apart_and_comes_back() {
        let mut arena = Arena::new(4 * PAGE).expect("an arena");
        let shown = arena.shown();
        assert_eq!(shown.bytes, 8 * PAGE);
        let take = |arena: &mut Arena, pages: u64| {
            let memory = arena.take(pages * PAGE - 1)?;
            let at = shown.place(memory as u64, pages * PAGE);
            Some((memory, at.expect("in the arena") / PAGE))
        };
        let (first, at) = take(&mut arena, 3).expect("room");
        assert_eq!(at, 0);
        let (second, at) = take(&mut arena, 2).expect("room");
        assert_eq!(at, 3);
        arena.give_back(first);
        // Four pages do not fit into the returned range; three do.
        assert_eq!(take(&mut arena, 4), None);
        assert_eq!(take(&mut arena, 3).map(|(_, at)| at), Some(0));
        assert_eq!(take(&mut arena, 3).map(|(_, at)| at), Some(5));
        assert_eq!(take(&mut arena, 1), None);
        arena.give_back(second);
        assert_eq!(take(&mut arena, 2).map(|(_, at)| at), Some(3));
    }

    #[test]
    fn what_is_written_stands_in_the_file_until_it_is_given_back() {
        let mut arena = Arena::new(PAGE).expect("an arena");
        let shown = arena.shown();
        let memory = arena.take(3).expect("room");
        // SAFETY: the memory was taken with at least three bytes, and only this test uses it.
        unsafe { memory.copy_from(b"abc".as_ptr(), 3) };
        let mut found = [0; 3];
        let at = shown.place(memory as u64, 3).expect("in the arena");
        shown.file.read_exact_at(&mut found, at).expect("read");
        assert_eq!(&found, b"abc");
        let blocks = || shown.file.metadata().expect("a file").blocks();
        assert!(blocks() > 0);
        arena.give_back(memory);
        assert_eq!(blocks(), 0);
    }

    #[test]
    fn memory_elsewhere_has_no_place_in_it() {
        let arena = Arena::new(PAGE).expect("an arena");
        let shown = arena.shown();
        let base = arena.mapped.as_mut_ptr() as u64;
        assert_eq!(shown.place(base - 1, 1), None);
        assert_eq!(shown.place(base + 2 * PAGE - 1, 1), Some(2 * PAGE - 1));
        assert_eq!(shown.place(base + 2 * PAGE - 1, 2), None);
        assert_eq!(shown.place(base, u64::MAX), None);
    }
}
