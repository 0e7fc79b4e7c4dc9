//! From stretches of memory to chunks in the file: drops zero pages, gathers what is scattered,
//! compresses, checksums and writes, on as many threads as it is given.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use memmap2::MmapMut;

use crate::compression::{Codec, Compression, Compressor, worst_case};
use crate::format::{CHUNK_BYTES, ChunkRecord, PAGE, RunRecord, checksum};
use crate::store::Store;
use crate::writer::PageRun;

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
                    bytes: &run.bytes[self.offset..self.offset + bytes],
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
    let mut kept: Vec<PageRun<'_>> = Vec::new();
    let mut packed = Packed::default();
    while !shared.failed.load(Ordering::Relaxed) {
        let more = match shared.cursor.lock() {
            Ok(mut cursor) => cursor.next(&mut piece),
            Err(_) => return Err(io::Error::other("a worker thread ended early")),
        };
        if !more {
            break;
        }
        kept.clear();
        for run in &piece {
            without_zero_pages(*run, &mut kept);
        }
        if kept.is_empty() {
            continue;
        }
        let bytes: usize = kept.iter().map(|run| run.bytes.len()).sum();
        let input = match kept.as_slice() {
            [only] => only.bytes,
            several => {
                let mut filled = 0;
                for run in several {
                    gathered[filled..filled + run.bytes.len()].copy_from_slice(run.bytes);
                    filled += run.bytes.len();
                }
                &gathered[..filled]
            }
        };
        let (codec, stored) = match compressor.compress(input, &mut compressed) {
            Some((codec, bytes)) => (codec, &compressed[..bytes]),
            None => (Codec::None, input),
        };
        let offset = shared.end.fetch_add(stored.len() as u64, Ordering::Relaxed);
        shared.store.write_all_at(stored, offset)?;
        packed.chunks.push(ChunkRecord {
            offset,
            checksum: checksum(stored),
            stored_bytes: stored.len() as u32,
            bytes: bytes as u32,
            first_run: packed.runs.len() as u32,
            runs: kept.len() as u32,
            codec: codec as u32,
            reserved: 0,
        });
        packed.runs.extend(kept.iter().map(|run| RunRecord {
            address: run.address,
            bytes: run.bytes.len() as u32,
            space: shared.space,
        }));
    }
    Ok(packed)
}

/// Splits a stretch at its zero pages.
fn without_zero_pages<'a>(run: PageRun<'a>, kept: &mut Vec<PageRun<'a>>) {
    let mut start = None;
    let mut keep = |from: usize, to: usize| {
        kept.push(PageRun {
            address: run.address + from as u64,
            bytes: &run.bytes[from..to],
        });
    };
    for (index, page) in run.bytes.chunks(PAGE).enumerate() {
        let at = index * PAGE;
        match (page == &ZEROS[..page.len()], start) {
            (true, Some(from)) => {
                keep(from, at);
                start = None;
            }
            (false, None) => start = Some(at),
            _ => {}
        }
    }
    if let Some(from) = start {
        keep(from, run.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_pages_are_left_out() {
        let mut bytes = vec![0u8; 6 * PAGE + 10];
        bytes[PAGE] = 1;
        bytes[3 * PAGE - 1] = 1;
        bytes[6 * PAGE + 9] = 1;
        let mut kept = Vec::new();
        without_zero_pages(
            PageRun {
                address: 0x1000,
                bytes: &bytes,
            },
            &mut kept,
        );
        let ranges: Vec<(u64, usize)> = kept
            .iter()
            .map(|run| (run.address, run.bytes.len()))
            .collect();
        assert_eq!(ranges, [(0x2000, 2 * PAGE), (0x7000, 10)]);
    }

    #[test]
    fn pieces_cover_the_input_once() {
        let bytes = vec![1u8; 3 * CHUNK_BYTES + 5];
        let input = [
            PageRun {
                address: 0,
                bytes: &bytes[..7],
            },
            PageRun {
                address: 100,
                bytes: &[],
            },
            PageRun {
                address: 0x1000,
                bytes: &bytes,
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
