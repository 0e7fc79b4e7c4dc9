//! From stretches of memory to chunks in the file: copies out, drops zero pages, compresses, checksums and
//! writes, on as many threads as it is given.
//!
//! What is written lies in the packing thread's own memory, so whoever gives the pages can take them back while the disk
//! holds a write up; a source that gives no more ends all threads at their next piece.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use memmap2::MmapMut;
use stillpoint_faults::{Point, strike};

use crate::compression::{Codec, Compression, Compressor, worst_case};
use crate::format::{CHUNK_BYTES, ChunkRecord, PAGE, RunRecord, checksum};
use crate::pages::{self, PageRun};
use crate::store::Store;

static ZEROS: [u8; PAGE] = [0; PAGE];

/// What came of packing some stretches.
#[derive(Default)]
pub(crate) struct Packed {
    /// In file order; `first_run` counts within `runs`.
    pub chunks: Vec<ChunkRecord>,
    pub runs: Vec<RunRecord>,
}

/// Hands out the input piece by piece, each of at most [`CHUNK_BYTES`].
struct Cursor<'a> {
    input: &'a [PageRun<'a>],
    run: usize,
    offset: usize,
}

impl<'a> Cursor<'a> {
    /// Fills `piece`; false at the end.
    fn next(&mut self, piece: &mut Vec<PageRun<'a>>) -> bool {
        piece.clear();
        let mut room = CHUNK_BYTES;
        while room > 0 && self.run < self.input.len() {
            let run = self.input[self.run];
            let bytes = (run.bytes.len() - self.offset).min(room);
            if bytes > 0 {
                piece.push(PageRun {
                    address: run.address + self.offset as u64,
                    bytes: run.bytes.part(self.offset, bytes),
                });
            }
            self.offset += bytes;
            room -= bytes;
            if self.offset == run.bytes.len() {
                self.run += 1;
                self.offset = 0;
            }
        }
        !piece.is_empty()
    }
}

/// What all workers share.
struct Shared<'a> {
    store: &'a dyn Store,
    end: &'a AtomicU64,
    cursor: Mutex<Cursor<'a>>,
    failed: AtomicBool,
    space: u32,
    compression: Compression,
}

/// Packs `input` into `store` from offset `end` on, which moves to behind the last chunk.
pub(crate) fn pack(
    store: &dyn Store,
    end: &AtomicU64,
    space: u32,
    input: &[PageRun<'_>],
    compression: Compression,
    threads: usize,
) -> io::Result<Packed> {
    let shared = Shared {
        store,
        end,
        cursor: Mutex::new(Cursor {
            input,
            run: 0,
            offset: 0,
        }),
        failed: AtomicBool::new(false),
        space,
        compression,
    };
    let bytes: usize = input.iter().map(|run| run.bytes.len()).sum();
    let threads = threads.clamp(1, bytes.div_ceil(4 * CHUNK_BYTES).max(1));
    let mut parts = Vec::new();
    if threads == 1 {
        parts.push(work(&shared)?);
    } else {
        std::thread::scope(|scope| -> io::Result<()> {
            let workers: Vec<_> = (1..threads)
                .map(|_| scope.spawn(|| work(&shared)))
                .collect();
            let mine = work(&shared);
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

/// Joins what the workers did, in file order.
fn merge(parts: Vec<Packed>) -> Packed {
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
    merged
}

fn work(shared: &Shared<'_>) -> io::Result<Packed> {
    let result = work_until_done(shared);
    if result.is_err() {
        shared.failed.store(true, Ordering::Relaxed);
    }
    result
}

fn work_until_done(shared: &Shared<'_>) -> io::Result<Packed> {
    let mut compressor = Compressor::new(shared.compression)?;
    let mut gathered = MmapMut::map_anon(CHUNK_BYTES)?;
    let mut compressed = MmapMut::map_anon(worst_case(CHUNK_BYTES))?;
    let mut piece = Vec::new();
    let mut kept = Vec::new();
    let mut packed = Packed::default();
    while !shared.failed.load(Ordering::Relaxed) {
        let more = match shared.cursor.lock() {
            Ok(mut cursor) => cursor.next(&mut piece),
            Err(_) => return Err(io::Error::other("a worker thread ended early")),
        };
        if !more {
            break;
        }
        let bytes = gather(&piece, &mut gathered, &mut kept)?;
        if kept.is_empty() {
            continue;
        }
        let input = &gathered[..bytes];
        let (codec, stored) = match compressor.compress(input, &mut compressed) {
            Some((codec, bytes)) => (codec, &compressed[..bytes]),
            None => (Codec::None, input),
        };
        let offset = shared.end.fetch_add(stored.len() as u64, Ordering::Relaxed);
        strike(Point::ImagePages)?;
        shared.store.write_all_at(stored, offset)?;
        packed.chunks.push(ChunkRecord {
            offset,
            checksum: checksum(stored),
            stored_bytes: stored.len() as u32,
            bytes: bytes as u32,
            first_run: packed.runs.len() as u32,
            runs: kept.len() as u32,
            codec: codec as u32,
            origin: 0,
        });
        packed.runs.extend(kept.iter().map(|run: &Kept| RunRecord {
            address: run.address,
            bytes: run.bytes,
            space: shared.space,
        }));
    }
    Ok(packed)
}

/// A stretch without zero pages.
#[derive(Debug, PartialEq, Eq)]
struct Kept {
    address: u64,
    bytes: u32,
}

/// Copies a piece into `room`, without its zero pages, one stretch behind the other. How many bytes that is.
fn gather(piece: &[PageRun<'_>], room: &mut [u8], kept: &mut Vec<Kept>) -> io::Result<usize> {
    kept.clear();
    pages::gather(piece, room)?;
    let (mut filled, mut from) = (0, 0);
    for run in piece {
        let (start, end) = (from, from + run.bytes.len());
        let mut joins = false;
        while from < end {
            let page = from..(from + PAGE).min(end);
            let bytes = page.len();
            if room[page.clone()] == ZEROS[..bytes] {
                joins = false;
            } else {
                let address = run.address + (from - start) as u64;
                if from != filled {
                    room.copy_within(page, filled);
                }
                match kept.last_mut() {
                    Some(last) if joins => last.bytes += bytes as u32,
                    _ => kept.push(Kept {
                        address,
                        bytes: bytes as u32,
                    }),
                }
                filled += bytes;
                joins = true;
            }
            from += bytes;
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_pages_are_left_out() {
        let mut bytes = vec![0u8; 6 * PAGE + 10];
        bytes[PAGE] = 1;
        bytes[3 * PAGE - 1] = 2;
        bytes[6 * PAGE + 9] = 3;
        let more = vec![4u8; PAGE];
        let piece = [(0x1000, &bytes), (0x9000, &more)].map(|(address, bytes)| {
            let bytes = bytes.as_slice().into();
            PageRun { address, bytes }
        });
        let (mut room, mut kept) = (vec![9u8; 8 * PAGE], vec![]);
        let filled = gather(&piece, &mut room, &mut kept).unwrap();
        let ranges: Vec<(u64, u32)> = kept.iter().map(|run| (run.address, run.bytes)).collect();
        let page = PAGE as u32;
        assert_eq!(ranges, [(0x2000, 2 * page), (0x7000, 10), (0x9000, page)]);
        let expected = [&bytes[PAGE..3 * PAGE], &bytes[6 * PAGE..], &more].concat();
        assert_eq!(room[..filled], expected);
    }

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
        let stops = Stops(AtomicU64::new(5));
        let bytes = crate::pages::Bytes::Elsewhere {
            pages: &stops,
            from: 0,
            length: 1000 * CHUNK_BYTES,
        };
        let (directory, end) = (tempfile::tempdir().unwrap(), AtomicU64::new(0));
        let file = std::fs::File::create(directory.path().join("image")).unwrap();
        let input = [PageRun { address: 0, bytes }];
        let packed = pack(&file, &end, 0, &input, Compression::None, 3);
        assert_eq!(packed.err().unwrap().to_string(), "no more");
        assert!(end.load(Ordering::Relaxed) <= 5 * CHUNK_BYTES as u64);
    }

    #[test]
    fn pieces_cover_the_input_once() {
        let bytes = vec![1u8; 3 * CHUNK_BYTES + 5];
        let input = [
            PageRun {
                address: 0,
                bytes: bytes[..7].into(),
            },
            PageRun {
                address: 100,
                bytes: (&[][..]).into(),
            },
            PageRun {
                address: 0x1000,
                bytes: bytes.as_slice().into(),
            },
        ];
        let mut cursor = Cursor {
            input: &input,
            run: 0,
            offset: 0,
        };
        let mut piece = Vec::new();
        let mut total = 0;
        while cursor.next(&mut piece) {
            let bytes: usize = piece.iter().map(|run| run.bytes.len()).sum();
            assert!(bytes <= CHUNK_BYTES && bytes > 0);
            total += bytes;
        }
        assert_eq!(total, bytes.len() + 7);
    }
}
