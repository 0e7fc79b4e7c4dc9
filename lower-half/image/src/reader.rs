//! Reads an image, trusting nothing: [`Reader::open`] checks everything but page data, which is checked
//! chunk by chunk as it is loaded.

mod blobs;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::check;
use crate::compression::{Codec, decompress};
use crate::delta::Base;
use crate::descriptors::Descriptors;
use crate::devices::{DeviceMemory, Stream};
use crate::error::ImageError;
use crate::facts::{Environment, Identity};
use crate::format::{CHUNK_BYTES, ChunkRecord, NOWHERE, RunRecord, SectionKind, checksum};
use crate::nearest::Nearest;
use crate::origins::{Holder, Opened, Origin, Sibling, Tables};
use crate::sections::{Sections, read_at, read_table};
use crate::store::Source;
use crate::tables::{Region, Thread};
use crate::writer::Content;
pub use blobs::Blob;

/// An image whose tables have been checked.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    file: Box<dyn Source>,
    file_bytes: u64,
    digest: u128,
    identity: Identity,
    environment: Environment,
    regions: Vec<Region>,
    threads: Vec<Thread>,
    contents: Vec<Content>,
    tables: Arc<Tables>,
    /// By number, the first being 1.
    origins: Vec<Opened>,
    /// In the order of the tables; `None`: it is the image itself, or was not opened.
    siblings: Vec<Option<Sibling>>,
    descriptors: Descriptors,
    inventory: Vec<u8>,
    devices: Vec<DeviceMemory>,
    blobs: Vec<Blob>,
}

impl Reader {
    /// Opens an image and checks everything in it but page data; and opens the earlier images that it has chunks in, which lie in
    /// the directories of their epochs beside its own, and those of its epoch.
    pub fn open(path: &Path) -> Result<Reader, ImageError> {
        let mut reader = Reader::open_alone(path)?;
        reader.open_siblings()?;
        Ok(reader)
    }

    /// The same without the images of its epoch that it has chunks in, which may not be whole yet: such chunks cannot be loaded.
    pub fn open_alone(path: &Path) -> Result<Reader, ImageError> {
        let file =
            stillpoint_directory::open(path).map_err(ImageError::io(path, "open the image"))?;
        let meta = file
            .metadata()
            .map_err(ImageError::io(path, "look at the image"))?;
        Reader::from_source(path, Box::new(file), meta.len())
    }

    /// The same, but what fast tiers hold of it is read from there: those of `host`, and what is in the
    /// file `fetched`.
    pub fn open_nearest(
        path: &Path,
        host: &str,
        fetched: Option<&Path>,
    ) -> Result<Reader, ImageError> {
        match Nearest::open(path, host, fetched) {
            Some(nearest) => {
                let file_bytes = nearest.length().unwrap_or(0);
                let mut reader = Reader::from_source(path, Box::new(nearest), file_bytes)?;
                reader.open_siblings()?;
                Ok(reader)
            }
            None => Reader::open(path),
        }
    }

    fn from_source(
        path: &Path,
        file: Box<dyn Source>,
        file_bytes: u64,
    ) -> Result<Reader, ImageError> {
        let (table, digest) = read_table(&*file, path, file_bytes)?;
        let sections = Sections {
            file: &*file,
            path,
            table: &table,
        };
        let strings = sections.read(SectionKind::Strings)?;
        let strings = check::strings(path, &sections, strings)?;
        let contents = check::contents(&sections, &strings)?;
        let regions = check::regions(&sections, &strings, contents.len())?;
        let identity: Identity = sections.json(SectionKind::Identity)?;
        let tables = Tables {
            origins: check::origins(&sections, &identity)?,
            siblings: check::siblings(&sections, &identity)?,
            runs: sections.runs()?,
            chunks: sections.table(SectionKind::Chunks)?,
        };
        let devices = check::devices(&sections, &regions, contents.len())?;
        check::pages(
            &sections,
            identity.rank,
            &regions,
            &contents,
            &devices,
            &tables,
        )?;
        let inventory = sections
            .read_optional(SectionKind::Inventory)?
            .unwrap_or_default();
        let blobs = blobs::read(&sections)?;
        let origins = tables.origins.iter();
        let origins = origins.map(|origin| origin.open(path));
        Ok(Reader {
            origins: origins.collect::<Result<_, _>>()?,
            siblings: Vec::new(),
            identity,
            environment: sections.json(SectionKind::Environment)?,
            threads: check::threads(&sections, &regions)?,
            descriptors: sections.json(SectionKind::Descriptors)?,
            regions,
            contents,
            tables: Arc::new(tables),
            inventory,
            devices,
            blobs,
            digest,
            file_bytes,
            path: path.to_owned(),
            file,
        })
    }

    fn open_siblings(&mut self) -> Result<(), ImageError> {
        let open = |rank: &u32| match *rank == self.identity.rank {
            true => Ok(None),
            false => Sibling::open(&self.path, *rank).map(Some),
        };
        self.siblings = self
            .tables
            .siblings
            .iter()
            .map(open)
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// What the manifest records; see [`crate::format`].
    pub fn digest(&self) -> u128 {
        self.digest
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// In order of address; they do not overlap.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// The first one has number 1.
    pub fn contents(&self) -> &[Content] {
        &self.contents
    }

    pub fn descriptors(&self) -> &Descriptors {
        &self.descriptors
    }

    /// JSON text; empty when none was written.
    pub fn inventory(&self) -> &[u8] {
        &self.inventory
    }

    /// Which contents are memory of devices, by number.
    pub fn devices(&self) -> &[DeviceMemory] {
        &self.devices
    }

    /// How many bytes a device's memory has.
    pub fn device_bytes(&self, device: &DeviceMemory) -> u64 {
        let content = self.contents.get(device.content as usize - 1);
        content.map_or(0, |content| content.bytes)
    }

    /// How many bytes of a device's memory lie in images of earlier epochs.
    pub fn carried_device_bytes(&self, device: &DeviceMemory) -> u64 {
        let chunks = self.chunks_of(device.content);
        let carried = chunks
            .filter(|chunk| matches!(self.tables.holder(chunk), Holder::Origin(_)))
            .map(|chunk| self.tables.live_bytes(chunk));
        carried.sum()
    }

    /// A device's memory, to be read from its first byte on.
    pub fn device_stream(&self, device: &DeviceMemory) -> Stream<'_> {
        Stream::new(self, device.content)
    }

    pub fn blobs(&self) -> &[Blob] {
        &self.blobs
    }

    pub fn blob(&self, name: &str) -> Option<&Blob> {
        self.blobs.iter().find(|blob| blob.name == name)
    }

    /// Those of the file itself first, then those that lie in its origins, then those that its siblings have.
    pub fn chunks(&self) -> &[ChunkRecord] {
        &self.tables.chunks
    }

    /// The runs of a chunk, one behind the other: all of one space, and in a carried one dead ones, which belong to no memory
    /// ([`NOWHERE`]).
    pub fn runs(&self, chunk: &ChunkRecord) -> &[RunRecord] {
        self.tables.runs_of(chunk)
    }

    /// The runs of a chunk that belong to memory or to a content.
    pub fn live_runs(&self, chunk: &ChunkRecord) -> impl Iterator<Item = &RunRecord> {
        let runs = self.runs(chunk).iter();
        runs.filter(|run| run.space != NOWHERE)
    }

    /// The earlier images that hold chunks of this one, the oldest first.
    pub fn origins(&self) -> &[Origin] {
        &self.tables.origins
    }

    /// The other images of its epoch that hold chunks of this one, as far as they have been opened: rank, path and digest.
    pub fn siblings(&self) -> impl Iterator<Item = (u32, &Path, u128)> {
        let siblings = self.tables.siblings.iter().zip(&self.siblings);
        siblings.filter_map(|(rank, opened)| {
            let Sibling { path, digest, .. } = opened.as_ref()?;
            Some((*rank, path.as_path(), *digest))
        })
    }

    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The image as one that the next epoch's may have chunks in. It has to be [settled](Base::settle).
    pub fn base(&self) -> Base {
        let Identity { epoch, rank, .. } = self.identity;
        let image = Origin::of(epoch, rank, self.file_bytes, self.digest);
        Base::new(image, Arc::clone(&self.tables))
    }

    /// The file that holds a chunk.
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
                problem: "it has not been opened".into(),
                source: None,
            }),
        }
    }

    /// These chunks are going to be loaded soon.
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

    /// A buffer for [`Reader::load`]: stored bytes on their way.
    pub fn scratch() -> Vec<u8> {
        vec![0; CHUNK_BYTES]
    }

    /// Reads one chunk, checks it, and decompresses it into `output`, whose length must be the
    /// chunk's `bytes`. `output` may be what the pages are to become: uncompressed chunks are read in place.
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
            let workers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
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

    /// The bytes of a content that is known to be small; `limit` bounds what is set aside.
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

    /// The chunks of one space: 0 memory, else a content's number. Of contents only those of devices may be carried.
    pub fn chunks_of(&self, space: u32) -> impl Iterator<Item = &ChunkRecord> {
        self.chunks().iter().filter(move |chunk| {
            self.live_runs(chunk)
                .next()
                .is_some_and(|run| run.space == space)
        })
    }
}
