//! The sources of an image's bytes.
//!
//! The writer never borrows memory that its owner may want back at any moment. It copies such memory out piece by piece, and the owner may
//! stop it between any two pieces. A write or sync that the disk holds up then touches only the writer's own memory.

use std::fmt;
use std::io;
use std::ops::Range;

/// Memory that is copied out piece by piece.
pub trait Pages: Sync {
    /// Fills `into` with the bytes at `from`. An error ends the image.
    fn copy(&self, from: u64, into: &mut [u8]) -> io::Result<()>;

    /// Fills `into` with the bytes at these addresses, one stretch behind the other. A source that has to ask another process asks once.
    fn gather(&self, from: &[Range<u64>], into: &mut [u8]) -> io::Result<()> {
        let mut rest = into;
        for range in from {
            let (mine, more) = rest.split_at_mut((range.end - range.start) as usize);
            self.copy(range.start, mine)?;
            rest = more;
        }
        Ok(())
    }
}

/// Bytes for an image.
#[derive(Clone, Copy)]
pub enum Bytes<'a> {
    InHand(&'a [u8]),
    Elsewhere {
        pages: &'a dyn Pages,
        from: u64,
        length: usize,
    },
}

impl<'a> From<&'a [u8]> for Bytes<'a> {
    fn from(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes::InHand(bytes)
    }
}

impl fmt::Debug for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

impl<'a> Bytes<'a> {
    pub fn len(&self) -> usize {
        match self {
            Bytes::InHand(bytes) => bytes.len(),
            Bytes::Elsewhere { length, .. } => *length,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `length` of the bytes, from the one at `start` on; both must lie within.
    pub fn part(&self, start: usize, length: usize) -> Bytes<'a> {
        match *self {
            Bytes::InHand(bytes) => Bytes::InHand(&bytes[start..start + length]),
            Bytes::Elsewhere { pages, from, .. } => Bytes::Elsewhere {
                pages,
                from: from + start as u64,
                length,
            },
        }
    }

    /// Copies the bytes into room of their length.
    pub fn copy(&self, into: &mut [u8]) -> io::Result<()> {
        match self {
            Bytes::InHand(bytes) => into.copy_from_slice(bytes),
            Bytes::Elsewhere { pages, from, .. } => pages.copy(*from, into)?,
        }
        Ok(())
    }

    /// Returns the memory that has the bytes, and their place in it.
    fn elsewhere(&self) -> Option<(&'a dyn Pages, Range<u64>)> {
        match *self {
            Bytes::InHand(_) => None,
            Bytes::Elsewhere {
                pages,
                from,
                length,
            } => Some((pages, from..from + length as u64)),
        }
    }
}

/// A stretch of bytes to be written, and where it belongs.
#[derive(Clone, Copy, Debug)]
pub struct PageRun<'a> {
    pub address: u64,
    pub bytes: Bytes<'a>,
}

/// Copies runs into room, one behind the other. Returns how many bytes that is.
pub(crate) fn gather(runs: &[PageRun<'_>], room: &mut [u8]) -> io::Result<usize> {
    let (mut filled, mut rest) = (0, runs);
    let mut ranges = Vec::new();
    while let Some((first, others)) = rest.split_first() {
        let Some((pages, _)) = first.bytes.elsewhere() else {
            let end = filled + first.bytes.len();
            first.bytes.copy(&mut room[filled..end])?;
            (filled, rest) = (end, others);
            continue;
        };
        // All following runs that lie in the same memory.
        ranges.clear();
        ranges.extend(rest.iter().map_while(|run| {
            let (same, range) = run.bytes.elsewhere()?;
            std::ptr::addr_eq(pages, same).then_some(range)
        }));
        rest = &rest[ranges.len()..];
        let bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        let end = filled + bytes as usize;
        pages.gather(&ranges, &mut room[filled..end])?;
        filled = end;
    }
    Ok(filled)
}
