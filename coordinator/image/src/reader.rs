//! Reads an image without trusting it. [`Reader::open`] checks everything but page data; each chunk is checked as it is loaded.

mod blobs;
mod loading;
mod stream;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::check;
use crate::delta::Base;
use crate::descriptors::Descriptors;
use crate::devices::DeviceMemory;
use crate::error::ImageError;
use crate::facts::{Environment, Identity};
use crate::format::{ChunkRecord, NOWHERE, RunRecord, SectionKind};
use crate::nearest::Nearest;
use crate::origins::{Holder, Opened, Origin, Sibling, Tables};
use crate::sections::{Sections, read_table};
use crate::store::Source;
use crate::tables::{Content, Region, Thread};
pub use blobs::Blob;
use stillpoint_ids::Rank;
pub use stream::Stream;

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
    /// The opened origins by number, the first being 1.
    origins: Vec<Opened>,
    /// The siblings in the order of the tables, with `None` for the image itself and for those that were not opened.
    siblings: Vec<Option<Sibling>>,
    descriptors: Descriptors,
    inventory: Vec<u8>,
    devices: Vec<DeviceMemory>,
    blobs: Vec<Blob>,
}

impl Reader {
    /// Opens an image and checks everything in it but page data. Also opens the images that hold chunks of it: the earlier ones, in the
    /// directories of their epochs beside its own, and those of its epoch.
    pub fn open(path: &Path) -> Result<Reader, ImageError> {
        let mut reader = Reader::open_alone(path)?;
        reader.open_siblings()?;
        Ok(reader)
    }

    /// Does the same without the images of its epoch, which may not be whole yet: chunks in them cannot be loaded.
    pub fn open_alone(path: &Path) -> Result<Reader, ImageError> {
        let file =
            stillpoint_directory::open(path).map_err(ImageError::io(path, "open the image"))?;
        let meta = file
            .metadata()
            .map_err(ImageError::io(path, "look at the image"))?;
        Reader::from_source(path, Box::new(file), meta.len())
    }

    /// Does the same, but reads what fast tiers hold of the image from there: those of `host`, and the file `fetched`.
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
        let open = |rank: &Rank| match *rank == self.identity.rank {
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

    /// Returns the digest that the manifest records; see [`crate::format`].
    pub fn digest(&self) -> u128 {
        self.digest
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns the regions in order of address; they do not overlap.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// Returns the contents; the first one has number 1.
    pub fn contents(&self) -> &[Content] {
        &self.contents
    }

    pub fn descriptors(&self) -> &Descriptors {
        &self.descriptors
    }

    /// Returns the MPI objects as JSON text; it is empty if none was written.
    pub fn inventory(&self) -> &[u8] {
        &self.inventory
    }

    /// Returns which contents are memory of devices, by number.
    pub fn devices(&self) -> &[DeviceMemory] {
        &self.devices
    }

    /// Returns how many bytes a device's memory has.
    pub fn device_bytes(&self, device: &DeviceMemory) -> u64 {
        let content = self.contents.get(device.content as usize - 1);
        content.map_or(0, |content| content.bytes)
    }

    /// Returns how many bytes of a device's memory lie in images of earlier epochs.
    pub fn carried_device_bytes(&self, device: &DeviceMemory) -> u64 {
        let chunks = self.chunks_of(device.content);
        let carried = chunks
            .filter(|chunk| matches!(self.tables.holder(chunk), Holder::Origin(_)))
            .map(|chunk| self.tables.live_bytes(chunk));
        carried.sum()
    }

    /// Returns a device's memory, to be read from its first byte on.
    pub fn device_stream(&self, device: &DeviceMemory) -> Stream<'_> {
        Stream::new(self, device.content)
    }

    pub fn blobs(&self) -> &[Blob] {
        &self.blobs
    }

    pub fn blob(&self, name: &str) -> Option<&Blob> {
        self.blobs.iter().find(|blob| blob.name == name)
    }

    /// Returns the chunks of the file itself first, then those in its origins, then those in its siblings.
    pub fn chunks(&self) -> &[ChunkRecord] {
        &self.tables.chunks
    }

    /// Returns the runs of a chunk, one behind the other. They are of one space; a carried chunk may also have dead ones, which belong to
    /// no memory ([`NOWHERE`]).
    pub fn runs(&self, chunk: &ChunkRecord) -> &[RunRecord] {
        self.tables.runs_of(chunk)
    }

    /// Returns the runs of a chunk that belong to memory or to a content.
    pub fn live_runs(&self, chunk: &ChunkRecord) -> impl Iterator<Item = &RunRecord> {
        let runs = self.runs(chunk).iter();
        runs.filter(|run| run.space != NOWHERE)
    }

    /// Returns the earlier images that hold chunks of this one, the oldest first.
    pub fn origins(&self) -> &[Origin] {
        &self.tables.origins
    }

    /// Returns the other images of its epoch that hold chunks of this one, as far as they have been opened: rank, path and digest.
    pub fn siblings(&self) -> impl Iterator<Item = (Rank, &Path, u128)> {
        let siblings = self.tables.siblings.iter().zip(&self.siblings);
        siblings.filter_map(|(rank, opened)| {
            let Sibling { path, digest, .. } = opened.as_ref()?;
            Some((*rank, path.as_path(), *digest))
        })
    }

    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns the image as a base for the next epoch's. It has to be [settled](Base::settle).
    pub fn base(&self) -> Base {
        let Identity { epoch, rank, .. } = self.identity;
        let image = Origin::of(epoch, rank, self.file_bytes, self.digest);
        Base::new(image, Arc::clone(&self.tables))
    }

    /// Returns the chunks of one space: 0 is memory, other numbers are contents. Only contents of devices may be carried.
    pub fn chunks_of(&self, space: u32) -> impl Iterator<Item = &ChunkRecord> {
        self.chunks().iter().filter(move |chunk| {
            self.live_runs(chunk)
                .next()
                .is_some_and(|run| run.space == space)
        })
    }
}
