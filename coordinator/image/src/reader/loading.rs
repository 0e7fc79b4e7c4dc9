//! Loads page data, chunk by chunk, and checks it.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Reader;
use crate::compression::{Codec, decompress};
use crate::error::ImageError;
use crate::format::{CHUNK_BYTES, ChunkRecord, checksum};
use crate::origins::Holder;
use crate::sections::read_at;
use crate::store::Source;

impl Reader {
    /// Returns the file that holds a chunk.
    fn holder(&self, chunk: &ChunkRecord) -> Result<(&dyn Source, &Path), ImageError> {
        let itself: (&dyn Source, &Path) = (&*self.file, &self.path);
        let sibling = match self.tables.holder(chunk) {
            Holder::Itself => return Ok(itself),
            Holder::Origin(origin) => {
                let origin = self.origins.get(origin);
                return Ok(origin.map_or(itself, |origin| (&origin.file, &origin.path)));
            }
            Holder::Sibling(sibling) => sibling,
        };
        let rank = self.tables.siblings.get(sibling).copied();
        let rank = rank.unwrap_or_default();
        match self.siblings.get(sibling) {
            _ if rank == self.identity.rank => Ok(itself),
            Some(Some(opened)) => Ok((&opened.file, &opened.path)),
            _ => Err(ImageError::Sibling {
                path: self.path.clone(),
                rank,
                file: self.path.with_file_name(crate::image_name(rank)),
                problem: "the image that holds it is not open".into(),
                source: None,
            }),
        }
    }

    /// Announces that these chunks are going to be loaded soon.
    pub fn expect<'a>(&'a self, chunks: impl Iterator<Item = &'a ChunkRecord>) {
        let mut gathered: Option<(u32, Range<u64>)> = None;
        let tell = |(origin, bytes): (u32, Range<u64>)| {
            let origin = (origin as usize).checked_sub(1);
            match origin.and_then(|origin| self.origins.get(origin)) {
                None => self.file.expect(bytes),
                Some(origin) => origin.file.expect(bytes),
            }
        };
        for chunk in chunks {
            let end = chunk.offset + u64::from(chunk.stored_bytes);
            match &mut gathered {
                Some((origin, bytes)) if *origin == chunk.origin && bytes.end == chunk.offset => {
                    bytes.end = end;
                }
                other => {
                    let next = (chunk.origin, chunk.offset..end);
                    other.replace(next).into_iter().for_each(&tell);
                }
            }
        }
        gathered.into_iter().for_each(tell);
    }

    /// Returns a buffer for [`Reader::load`]: stored bytes on their way.
    pub fn scratch() -> Vec<u8> {
        vec![0; CHUNK_BYTES]
    }

    /// Reads one chunk, checks it, and decompresses it into `output`, whose length must be the chunk's `bytes`. `output` may be the final
    /// place of the pages: uncompressed chunks are read in place.
    pub fn load(
        &self,
        chunk: &ChunkRecord,
        scratch: &mut Vec<u8>,
        output: &mut [u8],
    ) -> Result<(), ImageError> {
        let (file, path) = self.holder(chunk)?;
        let bad = |problem: String| ImageError::malformed(path, chunk.offset, "page data", problem);
        if output.len() != chunk.bytes as usize {
            return Err(bad(format!(
                "asked for {} bytes of a chunk of {}",
                output.len(),
                chunk.bytes
            )));
        }
        let codec =
            Codec::from_u32(chunk.codec).ok_or_else(|| bad(format!("codec {}", chunk.codec)))?;
        let stored = chunk.stored_bytes as usize;
        if codec == Codec::None {
            read_at(file, path, chunk.offset, output, "page data")?;
            return self.check_chunk(chunk, output);
        }
        if scratch.len() < stored {
            scratch.resize(stored, 0);
        }
        let room = &mut scratch[..stored];
        read_at(file, path, chunk.offset, room, "page data")?;
        self.check_chunk(chunk, &scratch[..stored])?;
        decompress(codec, &scratch[..stored], output).map_err(bad)
    }

    fn check_chunk(&self, chunk: &ChunkRecord, stored: &[u8]) -> Result<(), ImageError> {
        let found = checksum(stored);
        if found == chunk.checksum {
            return Ok(());
        }
        let address = self.live_runs(chunk).next().map_or(0, |run| run.address);
        Err(ImageError::Checksum {
            path: self.holder(chunk)?.1.to_owned(),
            offset: chunk.offset,
            field: format!("page data of {address:#x}"),
            found,
            expected: chunk.checksum,
        })
    }

    /// Reads every chunk and checks it, on `threads` threads.
    pub fn check_pages(&self, threads: usize) -> Result<(), ImageError> {
        let next = AtomicUsize::new(0);
        let work = || -> Result<(), ImageError> {
            let (mut scratch, mut output) = (Reader::scratch(), vec![0; CHUNK_BYTES]);
            while let Some(chunk) = self.chunks().get(next.fetch_add(1, Ordering::Relaxed)) {
                self.load(chunk, &mut scratch, &mut output[..chunk.bytes as usize])?;
            }
            Ok(())
        };
        let threads = threads.clamp(1, self.chunks().len().div_ceil(8).max(1));
        std::thread::scope(|scope| {
            // If no thread can be started, the others do its part.
            let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
            let workers: Vec<_> = (1..threads).map_while(start).collect();
            let mine = work();
            for worker in workers {
                worker.join().unwrap_or_else(|_| {
                    Err(ImageError::malformed(
                        &self.path,
                        0,
                        "page data",
                        "a worker thread ended early",
                    ))
                })?;
            }
            mine
        })
    }

    /// Returns the bytes of a content that is known to be small; `limit` bounds the memory that this takes.
    pub fn content_bytes(&self, number: u32, limit: u64) -> Result<Vec<u8>, ImageError> {
        let bad = |problem: String| {
            ImageError::malformed(&self.path, 0, format!("content {number}"), problem)
        };
        let content = (number as usize)
            .checked_sub(1)
            .and_then(|index| self.contents.get(index));
        let content = content.ok_or_else(|| bad("there is none".into()))?;
        if content.bytes > limit {
            return Err(bad(format!(
                "{} bytes, at most {limit} expected",
                content.bytes
            )));
        }
        let mut bytes = vec![0; content.bytes as usize];
        let mut scratch = Reader::scratch();
        let mut loaded = vec![0; CHUNK_BYTES];
        for chunk in self.chunks_of(number) {
            let loaded = &mut loaded[..chunk.bytes as usize];
            self.load(chunk, &mut scratch, loaded)?;
            let mut from = 0;
            for run in self.runs(chunk) {
                let (at, length) = (run.address as usize, run.bytes as usize);
                if run.space == number {
                    bytes[at..at + length].copy_from_slice(&loaded[from..from + length]);
                }
                from += length;
            }
        }
        Ok(bytes)
    }
}
