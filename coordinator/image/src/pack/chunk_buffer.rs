//! The gathered bytes that are in no chunk yet, and the place where the next chunk ends.
//!
//! If chunks are not shared, each is as long as it may be. If they are shared, the contents of memory decide where chunks end.
//! Equal memory is then cut alike, wherever it lies and whatever comes before it. A cut lies before each page whose sample, a few
//! words taken from all over it, has a hash that ends in six zero bits, unless the chunk would be shorter than [`LEAST`]. Cuts
//! also lie where a run of that length begins and ends. In random bytes, a chunk has 300 KiB on average.

use std::collections::VecDeque;
use std::io;

use memmap2::MmapMut;
use xxhash_rust::xxh3::xxh3_64;

use super::pieces::Piece;
use crate::format::{CHUNK_BYTES, PAGE};
use crate::pages::{self, PageRun};

static ZEROS: [u8; PAGE] = [0; PAGE];

/// The least length of a chunk that may be shared, except at the end of a run.
pub const LEAST: usize = 64 << 10;
/// One page of so many has a cut before it.
const PAGES_A_CUT: u64 = 64;
/// The number of words in a page's sample: one from each stretch of 256 bytes, each time at another place.
const WORDS: usize = PAGE / 256;

/// A stretch without zero pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    pub address: u64,
    pub bytes: u32,
}

/// A place where a chunk may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CutPoint {
    at: usize,
    /// The chunk ends here, however short it is.
    always: bool,
}

pub struct ChunkBuffer {
    bytes: MmapMut,
    /// Bytes before this offset are in chunks already.
    from: usize,
    filled: usize,
    /// The addresses of the bytes from `from` to `filled`.
    kept: VecDeque<Kept>,
    /// Cuts in order, or `None` if chunks are not shared.
    cuts: Option<VecDeque<CutPoint>>,
}

impl ChunkBuffer {
    pub fn new(shares: bool) -> io::Result<ChunkBuffer> {
        // The bytes in no chunk yet are fewer than a chunk's: there is always room for another.
        let bytes = match shares {
            true => 2 * CHUNK_BYTES,
            false => CHUNK_BYTES,
        };
        Ok(ChunkBuffer {
            bytes: MmapMut::map_anon(bytes)?,
            from: 0,
            filled: 0,
            kept: VecDeque::new(),
            cuts: shares.then(VecDeque::new),
        })
    }

    /// Returns how many bytes there is room for.
    pub fn free(&self) -> usize {
        self.bytes.len() - (self.filled - self.from)
    }

    /// Returns whether the bytes of a page put no cut before it. The room must be empty.
    pub fn stays(&mut self, page: PageRun<'_>) -> io::Result<bool> {
        let bytes = &mut self.bytes[..page.bytes.len()];
        pages::gather(&[page], bytes)?;
        Ok(!is_cut(bytes))
    }

    /// Copies pieces without their zero pages; there must be room for them.
    pub fn gather(&mut self, pieces: &[Piece<'_>]) -> io::Result<()> {
        self.bytes.copy_within(self.from..self.filled, 0);
        for cut in self.cuts.iter_mut().flatten() {
            cut.at -= self.from;
        }
        (self.from, self.filled) = (0, self.filled - self.from);
        let runs: Vec<_> = pieces.iter().map(|piece| piece.run).collect();
        pages::gather(&runs, &mut self.bytes[self.filled..])?;
        let mut from = self.filled;
        for piece in pieces {
            self.keep(piece, from);
            from += piece.run.bytes.len();
        }
        Ok(())
    }

    /// Keeps the pages of a piece that are not zero; its bytes begin at `from`.
    fn keep(&mut self, piece: &Piece<'_>, mut from: usize) {
        let end = from + piece.run.bytes.len();
        let mut address = piece.run.address;
        let long = piece.whole >= LEAST;
        if long && piece.begins {
            self.cut(true);
        }
        let last = self.kept.back().filter(|_| !piece.begins);
        let mut joins = last.is_some_and(|last| last.address + u64::from(last.bytes) == address);
        while from < end {
            let page = from..(from + PAGE).min(end);
            let bytes = page.len();
            if self.bytes[page.clone()] == ZEROS[..bytes] {
                joins = false;
            } else {
                if self.cuts.is_some() && is_cut(&self.bytes[page.clone()]) {
                    self.cut(false);
                }
                if from != self.filled {
                    self.bytes.copy_within(page, self.filled);
                }
                match self.kept.back_mut() {
                    Some(last) if joins => last.bytes += bytes as u32,
                    _ => self.kept.push_back(Kept {
                        address,
                        bytes: bytes as u32,
                    }),
                }
                self.filled += bytes;
                joins = true;
            }
            from += bytes;
            address += bytes as u64;
        }
        if long && piece.ends {
            self.cut(true);
        }
    }

    fn cut(&mut self, always: bool) {
        let at = self.filled;
        if let Some(cuts) = &mut self.cuts {
            cuts.push_back(CutPoint { at, always });
        }
    }

    /// Returns the next chunk, with its addresses in `runs`, if its end is known. The last chunk ends where the bytes do.
    pub fn next_chunk(&mut self, last: bool, runs: &mut Vec<Kept>) -> Option<&[u8]> {
        let (start, end) = (self.from, self.end_of_next(last)?);
        runs.clear();
        let mut left = end - start;
        while left > 0
            && let Some(first) = self.kept.pop_front()
        {
            let bytes = left.min(first.bytes as usize) as u32;
            runs.push(Kept { bytes, ..first });
            left -= bytes as usize;
            if bytes < first.bytes {
                self.kept.push_front(Kept {
                    address: first.address + u64::from(bytes),
                    bytes: first.bytes - bytes,
                });
            }
        }
        self.from = end;
        Some(&self.bytes[start..end])
    }

    fn end_of_next(&mut self, last: bool) -> Option<usize> {
        let (from, filled) = (self.from, self.filled);
        let longest = from + CHUNK_BYTES;
        let cuts = self.cuts.as_mut();
        if let Some(cuts) = cuts {
            let ends = |cut: &CutPoint| cut.at > from && (cut.always || cut.at - from >= LEAST);
            while let Some(cut) = cuts.front()
                && cut.at <= longest
            {
                if ends(cut) {
                    return Some(cut.at);
                }
                cuts.pop_front();
            }
        }
        match filled {
            _ if filled >= longest => Some(longest),
            _ => (last && filled > from).then_some(filled),
        }
    }
}

/// Returns whether the bytes of a page put a cut before it. There is no cut before a part of a page.
fn is_cut(page: &[u8]) -> bool {
    let mut sample = [0; WORDS * 8];
    let stretches = page.chunks_exact(PAGE / WORDS).enumerate();
    for ((number, stretch), word) in stretches.zip(sample.as_chunks_mut::<8>().0) {
        // The places are 40 bytes apart; they take all multiples of 8 below 256 in turn.
        let at = number * 40 % 256;
        word.copy_from_slice(&stretch[at..at + 8]);
    }
    page.len() == PAGE && xxh3_64(&sample).is_multiple_of(PAGES_A_CUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(address: u64, bytes: &[u8]) -> Piece<'_> {
        let bytes = bytes.into();
        PageRun { address, bytes }.into()
    }

    /// Returns all chunks of these runs: their bytes and runs.
    fn chunks(shares: bool, pieces: &[Piece<'_>]) -> Vec<(Vec<u8>, Vec<Kept>)> {
        let mut room = ChunkBuffer::new(shares).unwrap();
        let (mut chunks, mut runs) = (vec![], vec![]);
        let mut cursor = super::super::pieces::Cursor::new(pieces);
        let mut some = vec![];
        loop {
            let more = cursor.next(room.free().min(CHUNK_BYTES), &mut some);
            room.gather(&some).unwrap();
            while let Some(bytes) = room.next_chunk(!more, &mut runs).map(<[u8]>::to_vec) {
                chunks.push((bytes, runs.clone()));
            }
            if !more {
                return chunks;
            }
        }
    }

    fn random(seed: u64, bytes: usize) -> Vec<u8> {
        let mut state = seed;
        let word = |_| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 32).to_le_bytes()
        };
        (0..bytes.div_ceil(8)).flat_map(word).take(bytes).collect()
    }

    #[test]
    fn zero_pages_are_left_out() {
        let mut bytes = vec![0u8; 6 * PAGE + 10];
        bytes[PAGE] = 1;
        bytes[3 * PAGE - 1] = 2;
        bytes[6 * PAGE + 9] = 3;
        let more = vec![4u8; PAGE];
        for shares in [false, true] {
            let pieces = [piece(0x1000, &bytes), piece(0x9000, &more)];
            let chunks = chunks(shares, &pieces);
            let [(all, kept)] = chunks.as_slice() else {
                panic!("{} chunks", chunks.len());
            };
            let ranges: Vec<(u64, u32)> = kept.iter().map(|run| (run.address, run.bytes)).collect();
            let page = PAGE as u32;
            assert_eq!(ranges, [(0x2000, 2 * page), (0x7000, 10), (0x9000, page)]);
            let expected = [&bytes[PAGE..3 * PAGE], &bytes[6 * PAGE..], &more].concat();
            assert_eq!(*all, expected);
        }
    }

    #[test]
    fn chunks_that_nobody_looks_for_are_as_long_as_can_be() {
        let bytes = random(1, 2 * CHUNK_BYTES + 10 * PAGE);
        let chunks = chunks(false, &[piece(0, &bytes[..PAGE]), piece(0x10_0000, &bytes)]);
        let lengths: Vec<usize> = chunks.iter().map(|(bytes, _)| bytes.len()).collect();
        assert_eq!(lengths, [CHUNK_BYTES, CHUNK_BYTES, 11 * PAGE]);
        assert_eq!(chunks[0].1.len(), 2);
        let all: Vec<u8> = chunks.into_iter().flat_map(|(bytes, _)| bytes).collect();
        assert_eq!(all[PAGE..], bytes);
    }

    #[test]
    fn runs_are_not_joined_and_their_pieces_are() {
        let bytes = random(2, 3 * CHUNK_BYTES);
        let (one, other) = bytes.split_at(CHUNK_BYTES + 5 * PAGE);
        let chunks = chunks(true, &[piece(0, one), piece(one.len() as u64, other)]);
        let mut runs: Vec<Kept> = vec![];
        let mut all = vec![];
        for (bytes, kept) in chunks {
            assert!((LEAST..=CHUNK_BYTES).contains(&bytes.len()) || kept.len() == 1);
            all.extend(bytes);
            runs.extend(kept);
        }
        assert_eq!(all, bytes);
        assert!(runs.iter().any(|run| run.address == one.len() as u64));
        assert!(runs.is_sorted_by(|one, next| one.address + u64::from(one.bytes) == next.address));
    }

    /// Equal memory is cut alike, except at its ends.
    #[test]
    fn what_comes_before_matters_little() {
        let table = random(3, 16 * CHUNK_BYTES);
        let mut lengths = vec![];
        let mut cut = |before: usize| -> Vec<Vec<u8>> {
            let both = [random(4, before), table.clone(), random(5, PAGE)].concat();
            let chunks = chunks(true, &[piece(0, &both)]);
            lengths.extend(chunks.iter().map(|(bytes, _)| bytes.len()));
            chunks.into_iter().map(|(bytes, _)| bytes).collect()
        };
        let (one, other) = (cut(7 * PAGE), cut(300 * PAGE));
        let equal = one.iter().filter(|chunk| other.contains(chunk));
        let equal: usize = equal.map(Vec::len).sum();
        assert!(equal > 15 * CHUNK_BYTES, "{equal}");
        let mean = lengths.iter().sum::<usize>() / lengths.len();
        assert!((200 << 10..400 << 10).contains(&mean), "{mean}");
    }
}
