//! The memory that is to be packed, part by part: stretches for the threads that pack it, and pieces of these for one gathering.

use std::borrow::Cow;
use std::io;

use crate::format::PAGE;
use crate::pages::PageRun;

/// Part of a run.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    pub run: PageRun<'a>,
    /// Whether the run begins with it.
    pub begins: bool,
    /// Whether the run ends with it.
    pub ends: bool,
    /// Bytes of the whole run.
    pub whole: usize,
}

impl<'a> From<PageRun<'a>> for Piece<'a> {
    fn from(run: PageRun<'a>) -> Piece<'a> {
        Piece {
            run,
            begins: true,
            ends: true,
            whole: run.bytes.len(),
        }
    }
}

impl<'a> Piece<'a> {
    fn part(&self, start: usize, length: usize) -> Piece<'a> {
        let bytes = self.run.bytes;
        Piece {
            run: PageRun {
                address: self.run.address + start as u64,
                bytes: bytes.part(start, length),
            },
            begins: self.begins && start == 0,
            ends: self.ends && start + length == bytes.len(),
            whole: self.whole,
        }
    }
}

/// Hands out every byte of a list once.
pub struct Cursor<'a, T: Clone> {
    input: Cow<'a, [T]>,
    next: usize,
    offset: usize,
}

impl<'a, T: Copy + Into<Piece<'a>>> Cursor<'a, T> {
    pub fn new(input: impl Into<Cow<'a, [T]>>) -> Cursor<'a, T> {
        Cursor {
            input: input.into(),
            next: 0,
            offset: 0,
        }
    }

    /// Fills `pieces` with the next ones, of at most `most` bytes together, where `most` is at least a page. Returns false at the end. Runs
    /// are cut only at pages, counted from their first byte. So a page has the same bytes wherever else the run is cut.
    pub fn next(&mut self, most: usize, pieces: &mut Vec<Piece<'a>>) -> bool {
        pieces.clear();
        let mut room = most;
        while let Some(&whole) = self.input.get(self.next) {
            let piece = whole.into();
            let left = piece.run.bytes.len() - self.offset;
            let bytes = match left <= room {
                true => left,
                false => room / PAGE * PAGE,
            };
            if bytes < left && bytes == 0 {
                break;
            }
            if bytes > 0 {
                pieces.push(piece.part(self.offset, bytes));
            }
            self.offset += bytes;
            room -= bytes;
            if bytes == left {
                self.next += 1;
                self.offset = 0;
            }
        }
        !pieces.is_empty()
    }

    /// Takes more of the run in whose midst `pieces` end: pages for which `stays` returns true, of at most `most` bytes together.
    pub fn lengthen(
        &mut self,
        most: usize,
        pieces: &mut Vec<Piece<'a>>,
        mut stays: impl FnMut(PageRun<'a>) -> io::Result<bool>,
    ) -> io::Result<()> {
        let Some(&run) = self.input.get(self.next).filter(|_| self.offset > 0) else {
            return Ok(());
        };
        let whole: Piece<'a> = run.into();
        let left = whole.run.bytes.len() - self.offset;
        let mut more = 0;
        while more < left.min(most) {
            let page = whole.part(self.offset + more, PAGE.min(left - more));
            if !stays(page.run)? {
                break;
            }
            more += page.run.bytes.len();
        }
        if more > 0 {
            pieces.push(whole.part(self.offset, more));
            self.offset += more;
        }
        if more == left {
            self.next += 1;
            self.offset = 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::CHUNK_BYTES;

    #[test]
    fn pieces_cover_the_input_once() {
        let bytes = vec![1u8; 3 * CHUNK_BYTES + 5];
        let run = |address, bytes: &'static [u8]| PageRun {
            address,
            bytes: bytes.into(),
        };
        let bytes: &'static [u8] = bytes.leak();
        let input = [run(0, &bytes[..7]), run(100, &[]), run(0x1000, bytes)];
        let mut stretches = Cursor::new(&input);
        let mut stretch = Vec::new();
        let (mut total, mut begun, mut ended) = (0, 0, 0);
        while stretches.next(2 * CHUNK_BYTES, &mut stretch) {
            let (mut cursor, mut pieces) = (Cursor::new(&stretch), Vec::new());
            while cursor.next(CHUNK_BYTES, &mut pieces) {
                let together: usize = pieces.iter().map(|piece| piece.run.bytes.len()).sum();
                assert!(together <= CHUNK_BYTES && together > 0);
                total += together;
                for piece in &pieces {
                    begun += usize::from(piece.begins);
                    ended += usize::from(piece.ends);
                    let address = piece.run.address;
                    assert!(address == 0 || address.is_multiple_of(PAGE as u64));
                }
            }
        }
        assert_eq!((total, begun, ended), (bytes.len() + 7, 2, 2));
    }

    #[test]
    fn a_stretch_is_lengthened_to_where_it_may_end() {
        let bytes: &'static [u8] = vec![1u8; 9 * PAGE + 5].leak();
        let run = |address| PageRun {
            address,
            bytes: bytes.into(),
        };
        let input = [run(0x10000), run(0x80000)];
        let ends = |most: usize, asked: u64| {
            let (mut cursor, mut pieces) = (Cursor::new(&input), Vec::new());
            assert!(cursor.next(2 * PAGE, &mut pieces));
            let stays = |page: PageRun<'_>| Ok(page.address < asked);
            cursor.lengthen(most, &mut pieces, stays).unwrap();
            let last = pieces.last().unwrap();
            let end = last.run.address + last.run.bytes.len() as u64;
            let next = cursor.next(PAGE, &mut pieces);
            (end, last_is_end(&pieces, next, end))
        };
        // The stretch ends at the page that is a cut, no further than allowed, and not in the next run.
        assert_eq!(ends(1 << 20, 0x15000), (0x15000, true));
        assert_eq!(ends(2 * PAGE, u64::MAX), (0x14000, true));
        assert_eq!(ends(1 << 20, u64::MAX), (0x19005, false));
    }

    /// Returns whether the next piece continues where the last one ended.
    fn last_is_end(pieces: &[Piece<'_>], next: bool, end: u64) -> bool {
        next && pieces[0].run.address == end && !pieces[0].begins
    }
}
