//! A file's bytes, which come in any order and from several threads, put together into *windows*: large ranges that begin at a multiple of a block. No I/O.
//!
//! The file's first block is a window of its own: an image's header lies there, and comes last.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::{Advice, MmapMut};

/// The unit of offsets, lengths and addresses of direct writes. File systems require at most this.
pub const BLOCK: usize = 4096;
/// The largest size of a window, in megabytes. A disk is fastest with large writes.
const MOST: usize = 16;
/// The largest size for all of a node's ranks together, in megabytes. Each rank has up to four windows in memory; many ranks together give the disk enough to
/// do.
const OF_ALL: usize = 64;

/// A rank's windows take at most this part of the memory that is left for it, unless that is less than [`LEAST`] bytes.
const PART: u64 = 64;
const LEAST: usize = 512 << 10;

/// Returns the size of a window, if so many ranks write and this one may take so many bytes of memory.
pub fn bytes_for(ranks: usize, left: u64) -> usize {
    let most = (OF_ALL / ranks.max(1)).clamp(1, MOST) << 20;
    let fits = usize::try_from(left / PART).unwrap_or(usize::MAX) / LEAST * LEAST;
    fits.clamp(LEAST, most)
}

/// Memory for a window.
pub struct WindowMemory(MmapMut);

impl WindowMemory {
    fn new(bytes: usize) -> io::Result<WindowMemory> {
        let room = MmapMut::map_anon(bytes)?;
        // Gives the disk few large pieces. Without huge pages, writing is only slower.
        let _ = room.advise(Advice::HugePage);
        // A child process would get a copy of its pages.
        room.advise(Advice::DontFork)?;
        Ok(WindowMemory(room))
    }

    pub fn bytes(&self, length: usize) -> &[u8] {
        &self.0[..length]
    }
}

/// A window with the bytes that have come so far.
struct Window {
    room: Option<WindowMemory>,
    filled: usize,
}

/// A window with all its bytes, or with all that the file has of it.
pub struct Whole {
    pub offset: u64,
    pub length: usize,
    pub room: WindowMemory,
}

/// The windows of a file that are not complete.
pub struct Windows {
    /// The size of each window except the first one.
    bytes: usize,
    /// The open windows, by the offset at which they begin.
    open: BTreeMap<u64, Arc<Mutex<Window>>>,
    /// Memory for further windows.
    free: Vec<WindowMemory>,
}

/// A window that bytes can be put into.
pub struct OpenWindow {
    range: Range<u64>,
    window: Arc<Mutex<Window>>,
}

impl Windows {
    /// Makes windows of `bytes` bytes, a multiple of [`BLOCK`].
    pub fn new(bytes: usize) -> Windows {
        Windows {
            bytes,
            open: BTreeMap::new(),
            free: Vec::new(),
        }
    }

    /// The window that an offset lies in.
    pub fn around(&self, offset: u64) -> Range<u64> {
        let (first, bytes) = (BLOCK as u64, self.bytes as u64);
        match offset.checked_sub(first) {
            None => 0..first,
            Some(behind) => {
                let start = first + behind / bytes * bytes;
                start..start + bytes
            }
        }
    }

    pub fn is_open(&self, offset: u64) -> bool {
        self.open.contains_key(&self.around(offset).start)
    }

    /// Opens the window around an offset, if it is not open.
    pub fn open(&mut self, offset: u64) -> io::Result<OpenWindow> {
        let range = self.around(offset);
        if let Some(window) = self.open.get(&range.start) {
            let window = Arc::clone(window);
            return Ok(OpenWindow { range, window });
        }
        let room = match self.free.pop() {
            Some(room) => room,
            None => WindowMemory::new(self.bytes)?,
        };
        let room = Some(room);
        let window = Arc::new(Mutex::new(Window { room, filled: 0 }));
        self.open.insert(range.start, Arc::clone(&window));
        Ok(OpenWindow { range, window })
    }

    /// Closes a window that is complete: nothing more is put into it.
    pub fn close(&mut self, offset: u64) {
        self.open.remove(&offset);
    }

    pub fn give_back(&mut self, room: WindowMemory) {
        self.free.push(room);
    }

    /// Returns the rest of a file of so many bytes, in order of offset.
    ///
    /// # Errors
    /// If bytes have not come.
    pub fn rest(&mut self, file_bytes: u64) -> io::Result<Vec<Whole>> {
        let mut rest = Vec::new();
        for (offset, window) in std::mem::take(&mut self.open) {
            let end = self.around(offset).end.min(file_bytes);
            let length = end.saturating_sub(offset) as usize;
            let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
            match window.room.take() {
                Some(room) if window.filled == length => rest.push(Whole {
                    offset,
                    length,
                    room,
                }),
                _ => return Err(io::Error::other("bytes of the file are missing")),
            }
        }
        Ok(rest)
    }
}

impl OpenWindow {
    /// Returns how many bytes from that offset on lie in the window.
    pub fn part(&self, offset: u64, length: usize) -> usize {
        ((self.range.end - offset) as usize).min(length)
    }

    /// Puts bytes into the window, which must lie in it. Returns the window when it is complete, except for the first block, which stays until the end.
    pub fn put(&self, bytes: &[u8], offset: u64) -> Option<Whole> {
        let at = (offset - self.range.start) as usize;
        let length = (self.range.end - self.range.start) as usize;
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let room = window.room.as_mut()?;
        room.0[at..at + bytes.len()].copy_from_slice(bytes);
        window.filled += bytes.len();
        if window.filled < length || self.range.start == 0 {
            return None;
        }
        let room = window.room.take()?;
        Some(Whole {
            offset: self.range.start,
            length,
            room,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_smaller_where_ranks_are_many() {
        let megabytes = |ranks| bytes_for(ranks, u64::MAX) >> 20;
        assert_eq!(
            [0, 1, 4, 5, 64, 1000].map(megabytes),
            [16, 16, 16, 12, 1, 1]
        );
        let kilobytes = |left: u64| bytes_for(1, left << 20) >> 10;
        assert_eq!(
            [0, 8, 100, 128, 4096].map(kilobytes),
            [512, 512, 1536, 2048, 16384]
        );
    }

    #[test]
    fn the_first_block_is_by_itself_and_windows_follow_it() {
        let windows = Windows::new(2 * BLOCK);
        let block = BLOCK as u64;
        assert_eq!(windows.around(0), 0..block);
        assert_eq!(windows.around(block - 1), 0..block);
        assert_eq!(windows.around(block), block..3 * block);
        assert_eq!(windows.around(3 * block - 1), block..3 * block);
        assert_eq!(windows.around(3 * block), 3 * block..5 * block);
    }

    #[test]
    fn a_window_is_whole_with_its_last_byte_and_the_rest_is_what_the_file_has() {
        let mut windows = Windows::new(BLOCK);
        let open = windows.open(BLOCK as u64 + 5).unwrap();
        assert_eq!(open.part(BLOCK as u64 + 5, 3 * BLOCK), BLOCK - 5);
        let bytes: Vec<u8> = (0..BLOCK).map(|at| at as u8).collect();
        assert!(open.put(&bytes[5..], BLOCK as u64 + 5).is_none());
        let whole = open.put(&bytes[..5], BLOCK as u64).unwrap();
        assert!((whole.offset, whole.length) == (BLOCK as u64, BLOCK));
        assert!(whole.room.bytes(BLOCK) == bytes);
        windows.close(whole.offset);
        let head = windows.open(0).unwrap();
        assert!(head.put(&bytes[..7], 0).is_none());
        assert!(windows.rest(8).is_err(), "a byte is missing");
        let head = windows.open(0).unwrap();
        head.put(&bytes[..7], 0);
        let rest = windows.rest(7).unwrap();
        assert_eq!(rest.len(), 1);
        assert_eq!(rest[0].room.bytes(rest[0].length), &bytes[..7]);
    }
}
