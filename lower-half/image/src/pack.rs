//! From stretches of memory to chunks in the file: copies out, drops zero pages, compresses, checksums and
//! writes, on as many threads as it is given. What an image of the epoch has already is not written again, where somebody knows of it.
//!
//! What is written lies in the packing thread's own memory, so whoever gives the pages can take them back while the disk
//! holds a write up; a source that gives no more ends all threads at their next piece.
//!
//! * [`pieces`] - hands out what is to be packed
//! * [`room`] - gathers it, and says where chunks end

mod pieces;
mod room;

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use memmap2::MmapMut;
use stillpoint_faults::{Point, strike};

use crate::compression::{Codec, Compression, Compressor, worst_case};
use crate::format::{CHUNK_BYTES, ChunkRecord, RunRecord, checksum};
use crate::index::{Key, Place};
use crate::pages::PageRun;
use crate::sharing::Sharing;
use crate::store::Store;
use pieces::{Cursor, Piece};
use room::{Kept, LEAST, Room};

/// A chunk that takes less than this is written again: it is not worth another file.
const LEAST_STORED: usize = 64 << 10;
/// What a thread takes at a time where chunks end by what is in them, up to where one ends.
const STRETCH: std::ops::RangeInclusive<usize> = 16 << 20..=256 << 20;

/// What came of packing some stretches.
#[derive(Default)]
pub(crate) struct Packed {
    /// In file order; `first_run` counts within `runs`.
    pub chunks: Vec<ChunkRecord>,
    pub runs: Vec<RunRecord>,
    pub shared: Vec<Shared>,
}

/// A chunk that an image of this epoch has already.
pub(crate) struct Shared {
    /// Whose image.
    pub rank: u32,
    pub chunk: ChunkRecord,
    pub runs: Vec<RunRecord>,
}

/// What packing is done with.
pub(crate) struct Packing<'a> {
    pub store: &'a dyn Store,
    /// Where the next chunk goes.
    pub end: &'a AtomicU64,
    pub compression: Compression,
    pub threads: usize,
    /// Who knows of chunks that there are already.
    pub sharing: Option<&'a Sharing>,
}

impl Packing<'_> {
    /// Packs what belongs to one space.
    pub fn pack(&self, space: u32, input: &[PageRun<'_>]) -> io::Result<Packed> {
        let bytes: usize = input.iter().map(|run| run.bytes.len()).sum();
        let threads = self
            .threads
            .clamp(1, bytes.div_ceil(4 * CHUNK_BYTES).max(1));
        // What is kept besides memory has an image's own chunks.
        let sharing = self.sharing.filter(|_| space == 0);
        let work = Work {
            packing: self,
            sharing,
            cursor: Mutex::new(Cursor::new(input)),
            stretch: match sharing {
                None => CHUNK_BYTES,
                Some(_) if threads == 1 => usize::MAX,
                Some(_) => (bytes / threads / 4).clamp(*STRETCH.start(), *STRETCH.end()),
            },
            failed: AtomicBool::new(false),
            space,
        };
        let mut parts = Vec::new();
        if threads == 1 {
            parts.push(work.run()?);
        } else {
            std::thread::scope(|scope| -> io::Result<()> {
                let workers: Vec<_> = (1..threads).map(|_| scope.spawn(|| work.run())).collect();
                let mine = work.run();
                for worker in workers {
                    parts.push(
                        worker
                            .join()
                            .map_err(|_| io::Error::other("a worker thread ended early"))??,
                    );
                }
                parts.push(mine?);
                Ok(())
            })?;
        }
        Ok(merge(parts))
    }
}

/// Joins what the workers did, in file order.
fn merge(mut parts: Vec<Packed>) -> Packed {
    let mut order: Vec<(usize, usize)> = Vec::new();
    for (part, packed) in parts.iter().enumerate() {
        order.extend((0..packed.chunks.len()).map(|chunk| (part, chunk)));
    }
    order.sort_by_key(|(part, chunk)| parts[*part].chunks[*chunk].offset);
    let mut merged = Packed::default();
    for (part, chunk) in order {
        let mut record = parts[part].chunks[chunk];
        let first = record.first_run as usize;
        let runs = &parts[part].runs[first..first + record.runs as usize];
        record.first_run = merged.runs.len() as u32;
        merged.runs.extend_from_slice(runs);
        merged.chunks.push(record);
    }
    let shared = parts.iter_mut().flat_map(|part| part.shared.drain(..));
    merged.shared.extend(shared);
    merged
}

/// What all workers have in common.
struct Work<'a> {
    packing: &'a Packing<'a>,
    sharing: Option<&'a Sharing>,
    cursor: Mutex<Cursor<'a, PageRun<'a>>>,
    /// Most bytes that a worker takes at a time.
    stretch: usize,
    failed: AtomicBool,
    space: u32,
}

impl Work<'_> {
    fn run(&self) -> io::Result<Packed> {
        let result = Worker::new(self).and_then(Worker::run);
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }
}

struct Worker<'w, 'a> {
    work: &'w Work<'a>,
    compressor: Compressor,
    compressed: MmapMut,
    /// Whether the last chunk could not be compressed.
    is_hard: bool,
    packed: Packed,
}

impl<'w, 'a> Worker<'w, 'a> {
    fn new(work: &'w Work<'a>) -> io::Result<Worker<'w, 'a>> {
        Ok(Worker {
            work,
            compressor: Compressor::new(work.packing.compression)?,
            compressed: MmapMut::map_anon(worst_case(CHUNK_BYTES))?,
            is_hard: false,
            packed: Packed::default(),
        })
    }

    fn run(mut self) -> io::Result<Packed> {
        let mut room = Room::new(self.work.sharing.is_some())?;
        let mut stretch: Vec<Piece<'_>> = Vec::new();
        loop {
            let more = match self.work.cursor.lock() {
                Ok(mut cursor) => {
                    let more = cursor.next(self.work.stretch, &mut stretch);
                    if self.work.sharing.is_some() {
                        // Who has the same memory elsewhere has stretches that end elsewhere, but chunks that end here too.
                        cursor.lengthen(CHUNK_BYTES, &mut stretch, |page| room.stays(page))?;
                    }
                    more
                }
                Err(_) => return Err(io::Error::other("a worker thread ended early")),
            };
            if !more || !self.pack(&stretch, &mut room)? {
                return Ok(self.packed);
            }
        }
    }

    /// Packs a stretch, unless another worker has failed.
    fn pack(&mut self, stretch: &[Piece<'_>], room: &mut Room) -> io::Result<bool> {
        let (mut cursor, mut pieces, mut runs) = (Cursor::new(stretch), Vec::new(), Vec::new());
        loop {
            if self.work.failed.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let more = cursor.next(room.free().min(CHUNK_BYTES), &mut pieces);
            room.gather(&pieces)?;
            while let Some(bytes) = room.next_chunk(!more, &mut runs) {
                self.put(bytes, &runs)?;
            }
            if !more {
                return Ok(true);
            }
        }
    }

    /// Makes a chunk, and writes it where there is none like it.
    fn put(&mut self, input: &[u8], kept: &[Kept]) -> io::Result<()> {
        let Packing { store, end, .. } = self.work.packing;
        // Short chunks that cannot be compressed come in rows, as a rule.
        let is_tried = !self.is_hard || self.compressor.shrinks(input, &mut self.compressed);
        let compressed = match is_tried {
            true => self.compressor.compress(input, &mut self.compressed),
            false => None,
        };
        self.is_hard = compressed.is_none() && self.work.sharing.is_some();
        let (codec, stored) = match compressed {
            Some((codec, bytes)) => (codec, &self.compressed[..bytes]),
            None => (Codec::None, input),
        };
        let make = || end.fetch_add(stored.len() as u64, Ordering::Relaxed);
        let is_worth_it = input.len() >= LEAST && stored.len() >= LEAST_STORED;
        let (checksum, place) = match self.work.sharing.filter(|_| is_worth_it) {
            Some(sharing) => {
                let key = Key::of(stored, codec, input.len() as u32);
                (key.checksum, sharing.find(key, make))
            }
            None => (checksum(stored), Place::Here(make())),
        };
        let chunk = |offset| ChunkRecord {
            offset,
            checksum,
            stored_bytes: stored.len() as u32,
            bytes: input.len() as u32,
            first_run: 0,
            runs: kept.len() as u32,
            codec: codec as u32,
            origin: 0,
        };
        let space = self.work.space;
        let runs = kept.iter().map(|run| RunRecord {
            address: run.address,
            bytes: run.bytes,
            space,
        });
        let offset = match place {
            Place::There { rank, offset } => {
                self.packed.shared.push(Shared {
                    rank,
                    chunk: chunk(offset),
                    runs: runs.collect(),
                });
                return Ok(());
            }
            Place::Here(offset) => offset,
            Place::Unknown => end.fetch_add(stored.len() as u64, Ordering::Relaxed),
        };
        strike(Point::ImagePages)?;
        store.write_all_at(stored, offset)?;
        self.packed.chunks.push(ChunkRecord {
            first_run: self.packed.runs.len() as u32,
            ..chunk(offset)
        });
        self.packed.runs.extend(runs);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives so many pieces, then no more.
    struct Stops(AtomicU64);

    impl crate::pages::Pages for Stops {
        fn copy(&self, _from: u64, into: &mut [u8]) -> io::Result<()> {
            let one_less = |left: u64| left.checked_sub(1);
            let left = (self.0).fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
            into.fill(1);
            left.map(drop).map_err(|_| io::Error::other("no more"))
        }
    }

    #[test]
    fn a_source_that_stops_ends_all_threads_at_their_next_piece() {
        let sharing = Sharing::in_one_image(0, 1 << 30);
        for sharing in [None, Some(&sharing)] {
            let stops = Stops(AtomicU64::new(5));
            let bytes = crate::pages::Bytes::Elsewhere {
                pages: &stops,
                from: 0,
                length: 1000 * CHUNK_BYTES,
            };
            let (directory, end) = (tempfile::tempdir().unwrap(), AtomicU64::new(0));
            let file = std::fs::File::create(directory.path().join("image")).unwrap();
            let input = [PageRun { address: 0, bytes }];
            let packing = Packing {
                store: &file,
                end: &end,
                compression: Compression::None,
                threads: 3,
                sharing,
            };
            let packed = packing.pack(0, &input);
            assert_eq!(packed.err().unwrap().to_string(), "no more");
            assert!(end.load(Ordering::Relaxed) <= 5 * CHUNK_BYTES as u64);
        }
    }
}
