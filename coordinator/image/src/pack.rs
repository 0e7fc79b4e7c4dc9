//! Packs stretches of memory into chunks of the file: copies out, drops zero pages, compresses, checksums and writes, on as many threads as
//! it is given. If chunks are shared, a chunk that an image of the epoch has already is not written again.
//!
//! The bytes that are written lie in the packing thread's own memory, so the source can take its pages back while the disk holds up a
//! write. A source that stops giving pages ends all threads at their next piece.
//!
//! * [`pieces`] - hands out the memory that is to be packed
//! * [`chunk_buffer`] - gathers it, and finds where chunks end

mod chunk_buffer;
mod pieces;

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use memmap2::MmapMut;
use stillpoint_faults::{Point, strike};
use stillpoint_ids::Rank;

use crate::compression::{Codec, Compression, Compressor, worst_case};
use crate::crew::{Crew, Steps};
use crate::format::{CHUNK_BYTES, ChunkRecord, RunRecord, checksum};
use crate::index::ChunkLocation;
use crate::pages::PageRun;
use crate::sharing::Sharing;
use crate::store::Store;
use chunk_buffer::{ChunkBuffer, Kept, LEAST};
use pieces::{Cursor, Piece};

/// The least bytes of a stored chunk that is shared: a shorter one is not worth another file.
const LEAST_STORED: usize = 64 << 10;
/// The bytes that a thread takes at a time if contents decide where chunks end; it takes a little more, up to the end of a chunk.
const STRETCH: std::ops::RangeInclusive<usize> = 16 << 20..=256 << 20;

/// The result of packing some stretches.
#[derive(Default)]
pub(crate) struct Packed {
    /// The chunks in file order; `first_run` counts within `runs`.
    pub chunks: Vec<ChunkRecord>,
    pub runs: Vec<RunRecord>,
    pub shared: Vec<SharedChunk>,
}

/// A chunk that an image of this epoch has already.
pub(crate) struct SharedChunk {
    /// The rank whose image has it.
    pub rank: Rank,
    pub chunk: ChunkRecord,
    pub runs: Vec<RunRecord>,
}

/// The means of packing.
pub(crate) struct Packing<'a> {
    pub store: &'a dyn Store,
    /// The offset of the next chunk.
    pub end: &'a AtomicU64,
    pub compression: Compression,
    pub crew: Crew,
    /// The table of the chunks that there are already, if chunks are shared.
    pub sharing: Option<&'a Sharing>,
}

impl Packing<'_> {
    /// Packs the runs of one space.
    pub fn pack(&self, space: u32, input: &[PageRun<'_>]) -> io::Result<Packed> {
        let bytes: usize = input.iter().map(|run| run.bytes.len()).sum();
        let threads = self
            .crew
            .threads()
            .clamp(1, bytes.div_ceil(4 * CHUNK_BYTES).max(1));
        // Contents besides memory are always in an image's own chunks.
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
        let workers = (0..threads).map(|_| Worker::new(&work));
        let workers = workers.collect::<io::Result<Vec<_>>>()?;
        let workers = self.crew.carry_out(workers)?;
        let parts = workers.into_iter().map(|worker| worker.chunks.packed);
        Ok(merge(parts.collect()))
    }
}

/// Joins the results of the workers, in file order.
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

/// The state that all workers share.
struct Work<'a> {
    packing: &'a Packing<'a>,
    sharing: Option<&'a Sharing>,
    cursor: Mutex<Cursor<'a, PageRun<'a>>>,
    /// Most bytes that a worker takes at a time.
    stretch: usize,
    failed: AtomicBool,
    space: u32,
}

/// One thread's part of the work.
struct Worker<'w, 'a> {
    room: ChunkBuffer,
    /// The stretch that is being packed.
    stretch: Option<Cursor<'a, Piece<'a>>>,
    pieces: Vec<Piece<'a>>,
    runs: Vec<Kept>,
    chunks: Chunks<'w, 'a>,
}

impl<'w, 'a> Worker<'w, 'a> {
    fn new(work: &'w Work<'a>) -> io::Result<Worker<'w, 'a>> {
        Ok(Worker {
            room: ChunkBuffer::new(work.sharing.is_some())?,
            stretch: None,
            pieces: Vec::new(),
            runs: Vec::new(),
            chunks: Chunks {
                work,
                compressor: Compressor::new(work.packing.compression)?,
                compressed: MmapMut::map_anon(worst_case(CHUNK_BYTES))?,
                is_hard: false,
                packed: Packed::default(),
            },
        })
    }

    /// Returns the next stretch, if there is one.
    fn next_stretch(&mut self) -> io::Result<Option<Cursor<'a, Piece<'a>>>> {
        let work = self.chunks.work;
        let ended_early = |_| io::Error::other("a worker thread ended early");
        let mut cursor = work.cursor.lock().map_err(ended_early)?;
        let mut stretch = Vec::new();
        let more = cursor.next(work.stretch, &mut stretch);
        if work.sharing.is_some() {
            // Other ranks with the same memory have stretches that end elsewhere, but their chunks end here, too.
            cursor.lengthen(CHUNK_BYTES, &mut stretch, |page| self.room.stays(page))?;
        }
        Ok(more.then(|| Cursor::new(stretch)))
    }

    /// Packs as much of the stretch as the room can take, at most a chunk's length more. Returns false when no stretch is left.
    fn pack(&mut self) -> io::Result<bool> {
        let mut stretch = match self.stretch.take() {
            Some(stretch) => stretch,
            None => match self.next_stretch()? {
                Some(stretch) => stretch,
                None => return Ok(false),
            },
        };
        let most = self.room.free().min(CHUNK_BYTES);
        let more = stretch.next(most, &mut self.pieces);
        self.room.gather(&self.pieces)?;
        while let Some(bytes) = self.room.next_chunk(!more, &mut self.runs) {
            self.chunks.put(bytes, &self.runs)?;
        }
        self.stretch = more.then_some(stretch);
        Ok(true)
    }
}

impl Steps for Worker<'_, '_> {
    /// Does one step; ends early if another worker has failed.
    fn step(&mut self) -> io::Result<bool> {
        let failed = &self.chunks.work.failed;
        if failed.load(Ordering::Relaxed) {
            return Ok(false);
        }
        self.pack()
            .inspect_err(|_| failed.store(true, Ordering::Relaxed))
    }
}

/// The chunks that a worker makes.
struct Chunks<'w, 'a> {
    work: &'w Work<'a>,
    compressor: Compressor,
    compressed: MmapMut,
    /// Whether the last chunk could not be compressed.
    is_hard: bool,
    packed: Packed,
}

impl Chunks<'_, '_> {
    /// Makes a chunk, and writes it if there is no equal one.
    fn put(&mut self, input: &[u8], kept: &[Kept]) -> io::Result<()> {
        let Packing { store, end, .. } = self.work.packing;
        // Short chunks that cannot be compressed usually come in rows.
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
                let key = sharing.key(stored, codec, input.len() as u32);
                (key.checksum, sharing.find(key, make))
            }
            None => (checksum(stored), ChunkLocation::Here(make())),
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
            ChunkLocation::There { rank, offset } => {
                self.packed.shared.push(SharedChunk {
                    rank,
                    chunk: chunk(offset),
                    runs: runs.collect(),
                });
                return Ok(());
            }
            ChunkLocation::Here(offset) => offset,
            ChunkLocation::Unknown => end.fetch_add(stored.len() as u64, Ordering::Relaxed),
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

    /// Gives so many pieces, then fails.
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
        let sharing = Sharing::in_one_image(Rank(0), 1 << 30);
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
                crew: Crew::of(3),
                sharing,
            };
            let packed = packing.pack(0, &input);
            assert_eq!(packed.err().unwrap().to_string(), "no more");
            assert!(end.load(Ordering::Relaxed) <= 5 * CHUNK_BYTES as u64);
        }
    }
}
