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
        let mut gathered: Option<(&ChunkRecord, Range<u64>)> = None;
        let tell = |(first, bytes): (&ChunkRecord, Range<u64>)| {
            // Loading a chunk in a file that is not open names that file.
            if let Ok((file, _)) = self.holder(first) {
                file.expect(bytes);
            }
        };
        for chunk in chunks {
            let end = chunk.offset + u64::from(chunk.stored_bytes);
            match &mut gathered {
                Some((first, bytes))
                    if first.origin == chunk.origin && bytes.end == chunk.offset =>
                {
                    bytes.end = end;
                }
                other => {
                    let next = (chunk, chunk.offset..end);
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io;
    use std::sync::atomic::AtomicU64;
    use std::sync::{Arc, Mutex};

    use stillpoint_ids::Rank;

    use super::*;
    use crate::descriptors::Descriptors;
    use crate::{
        Compression, Environment, Identity, Index, PageRun, Region, Sharing, Writer, image_name,
    };

    const START: u64 = 0x1000_0000_0000;
    const BYTES: usize = 8 << 20;

    /// A file that notes which of its bytes are expected.
    #[derive(Debug)]
    struct Noted(File, Arc<Mutex<Vec<Range<u64>>>>);

    impl Source for Noted {
        fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
            Source::read_exact_at(&self.0, bytes, offset)
        }

        fn length(&self) -> io::Result<u64> {
            Source::length(&self.0)
        }

        fn expect(&self, bytes: Range<u64>) {
            self.1.lock().unwrap().push(bytes);
        }
    }

    /// Writes the image of a rank with this memory, whose chunks others may hold.
    fn write(path: &Path, rank: Rank, memory: &[u8], index: Index) {
        let mut writer = Writer::create(path, Compression::Lz4).unwrap();
        writer.share(Sharing::with(index, rank));
        let run = PageRun {
            address: START,
            bytes: memory.into(),
        };
        writer.memory(&[run]).unwrap();
        let identity = Identity {
            rank,
            size: 2,
            ..Identity::default()
        };
        writer.identity(&identity).unwrap();
        writer.environment(&Environment::default()).unwrap();
        let region = Region {
            start: START,
            end: START + memory.len() as u64,
            ..Region::default()
        };
        writer.regions(&[region]).unwrap();
        writer.threads(&[]).unwrap();
        writer.descriptors(&Descriptors::default()).unwrap();
        writer.finish().unwrap();
    }

    #[test]
    fn a_chunk_is_expected_in_the_file_that_holds_it() {
        let directory = tempfile::tempdir().unwrap();
        let words: Arc<Vec<_>> = Arc::new(
            (0..Index::words_for(1 << 26))
                .map(|_| AtomicU64::new(0))
                .collect(),
        );
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) as u8
        };
        let common: Vec<u8> = (0..BYTES).map(|_| random()).collect();
        let own: Vec<u8> = (0..BYTES).map(|_| random()).collect();
        let path = |rank| directory.path().join(image_name(Rank(rank)));
        write(
            &path(0),
            Rank(0),
            &common,
            Index::in_words(Words(Arc::clone(&words))),
        );
        let memory = [own, common].concat();
        write(&path(1), Rank(1), &memory, Index::in_words(Words(words)));

        let noted = Arc::new(Mutex::new(vec![]));
        let file = File::open(path(1)).unwrap();
        let bytes = file.metadata().unwrap().len();
        let file = Noted(file, Arc::clone(&noted));
        let mut reader = Reader::from_source(&path(1), Box::new(file), bytes).unwrap();
        reader.open_siblings().unwrap();
        let lies_here = |chunk: &&ChunkRecord| reader.tables.holder(chunk) == Holder::Itself;
        let here = reader.chunks().iter().filter(lies_here);
        let here: u64 = here.map(|chunk| u64::from(chunk.stored_bytes)).sum();
        assert!(reader.chunks().iter().any(|chunk| !lies_here(&chunk)));
        reader.expect(reader.chunks().iter());
        let noted = noted.lock().unwrap();
        let expected: u64 = noted.iter().map(|range| range.end - range.start).sum();
        assert_eq!(expected, here);
    }

    struct Words(Arc<Vec<AtomicU64>>);

    impl AsRef<[AtomicU64]> for Words {
        fn as_ref(&self) -> &[AtomicU64] {
            &self.0
        }
    }
}
