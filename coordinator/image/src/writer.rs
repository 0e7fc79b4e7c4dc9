//! Writes an image: pages first, as they come, then the small sections, the table and the header.

mod finish;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde::Serialize;
use stillpoint_faults::{Point, strike};
use stillpoint_ids::{Epoch, Rank};
use zerocopy::IntoBytes;

use crate::compression::Compression;
use crate::crew::Crew;
use crate::delta::{Base, Carried};
use crate::descriptors::Descriptors;
use crate::devices::{DeviceMemory, Uuid};
use crate::error::ImageError;
use crate::facts::{Environment, Identity};
use crate::format::{ContentRecord, HEADER_BYTES, MAX_SECTION_BYTES, RegionRecord, SectionKind};
use crate::origins::{Origin, Tables};
use crate::pack::{Packed, Packing};
use crate::pages::PageRun;
use crate::sharing::Sharing;
use crate::store::Store;
use crate::tables::{Region, Thread};
pub use finish::MOST_RUNS;

/// The result of writing an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The file's length.
    pub bytes: u64,
    /// The image's digest; see [`crate::format`].
    pub digest: u128,
    /// Bytes of pages that are in the image, before compression; carried ones too.
    pub page_bytes: u64,
    /// The places of these bytes; the next epoch carries some of them.
    pub tables: Arc<Tables>,
}

impl Written {
    /// Returns the image as a base for the next epoch's. It must be committed before, and [settled](Base::settle) then.
    pub fn base(&self, epoch: Epoch, rank: Rank) -> Base {
        let image = Origin::of(epoch, rank, self.bytes, self.digest);
        Base::new(image, Arc::clone(&self.tables))
    }
}

/// Writes one image. A writer that is dropped before [`Writer::finish`] leaves a file that no reader
/// accepts.
pub struct Writer {
    path: PathBuf,
    store: Box<dyn Store>,
    end: AtomicU64,
    compression: Compression,
    crew: Crew,
    pages: Packed,
    carried: Carried,
    sharing: Option<Sharing>,
    /// The epoch of the identity.
    epoch: Option<Epoch>,
    contents: Vec<ContentRecord>,
    strings: Vec<u8>,
    devices: Vec<DeviceMemory>,
    pending: Vec<Pending>,
}

/// A small section, kept until the pages are written.
struct Pending {
    kind: SectionKind,
    name: [u8; 32],
    version: u32,
    bytes: Vec<u8>,
}

impl Writer {
    /// Starts an image at `path`, mode 0600; replaces what is there.
    pub fn create(path: &Path, compression: Compression) -> Result<Writer, ImageError> {
        Writer::into_file(path, |file| Box::new(file), compression)
    }

    /// Does the same; `by` wraps the file in a store.
    pub fn into_file(
        path: &Path,
        by: impl FnOnce(File) -> Box<dyn Store>,
        compression: Compression,
    ) -> Result<Writer, ImageError> {
        let file = strike(Point::ImageCreate).and_then(|()| stillpoint_directory::create(path));
        let file = file.map_err(ImageError::io(path, "create the image"))?;
        Ok(Writer::into_store(path, by(file), compression))
    }

    /// Starts an image whose bytes go into a store other than one file; `path` names it in errors.
    pub fn into_store(path: &Path, store: Box<dyn Store>, compression: Compression) -> Writer {
        Writer {
            path: path.to_owned(),
            store,
            end: AtomicU64::new(HEADER_BYTES),
            compression,
            crew: Crew::of(1),
            pages: Packed::default(),
            carried: Carried::default(),
            sharing: None,
            epoch: None,
            contents: Vec::new(),
            strings: Vec::new(),
            devices: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// Returns the path that names the image in errors.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets the threads that pack pages; the default is one.
    pub fn use_crew(&mut self, crew: Crew) {
        self.crew = crew;
    }

    /// From this call on, memory that `sharing` finds in the epoch already is not written again.
    pub fn share(&mut self, sharing: Sharing) {
        self.sharing = Some(sharing);
    }

    /// Writes memory. Zero pages are left out. Stretches of one image must not overlap; they may begin anywhere and have any length.
    pub fn memory(&mut self, runs: &[PageRun<'_>]) -> Result<(), ImageError> {
        self.pack(0, runs)
    }

    /// Leaves memory where earlier images have it; [`Writer::memory`] writes what has changed. Both together are all memory: the rest is
    /// zero.
    pub fn carry(&mut self, carried: Carried) {
        self.carried = carried;
    }

    /// Writes bytes kept besides memory. Returns the content's number, the first being 1; in `runs` an address is an offset.
    pub fn content(
        &mut self,
        name: &str,
        bytes: u64,
        runs: &[PageRun<'_>],
    ) -> Result<u32, ImageError> {
        let (name_offset, name_bytes) = self.string(name)?;
        self.contents.push(ContentRecord {
            bytes,
            name_offset,
            name_bytes,
        });
        let number = self.contents.len() as u32;
        self.pack(number, runs)?;
        Ok(number)
    }

    /// Adds memory of a device as a content of its own. Its bytes come with [`Writer::device_bytes`], as they are there; bytes that do not
    /// come are zero.
    pub fn device(&mut self, uuid: Uuid, bytes: u64) -> Result<u32, ImageError> {
        let number = self.content(&format!("GPU {uuid}"), bytes, &[])?;
        self.devices.push(DeviceMemory {
            uuid,
            content: number,
        });
        Ok(number)
    }

    /// Writes bytes of a device's memory, from an offset on; `number` is the number of its content.
    pub fn device_bytes(
        &mut self,
        number: u32,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), ImageError> {
        let run = PageRun {
            address: offset,
            bytes: bytes.into(),
        };
        self.device_runs(number, &[run])
    }

    /// Writes stretches of a device's memory; `number` is its content's, and in `runs` an address is an offset. Memory that is
    /// [carried](Writer::carry) must not be among them.
    pub fn device_runs(&mut self, number: u32, runs: &[PageRun<'_>]) -> Result<(), ImageError> {
        self.pack(number, runs)
    }

    fn pack(&mut self, space: u32, runs: &[PageRun<'_>]) -> Result<(), ImageError> {
        let packing = Packing {
            store: &*self.store,
            end: &self.end,
            compression: self.compression,
            crew: self.crew,
            sharing: self.sharing.as_ref(),
        };
        let packed = packing.pack(space, runs);
        let packed = packed.map_err(ImageError::io(&self.path, "write page data"))?;
        let before = self.pages.runs.len();
        if before + packed.runs.len() > MOST_RUNS {
            return Err(self.unwritable("memory is scattered over too many runs of pages"));
        }
        self.pages
            .chunks
            .extend(packed.chunks.into_iter().map(|mut chunk| {
                chunk.first_run += before as u32;
                chunk
            }));
        self.pages.runs.extend(packed.runs);
        self.pages.shared.extend(packed.shared);
        Ok(())
    }

    pub fn identity(&mut self, identity: &Identity) -> Result<(), ImageError> {
        self.epoch = Some(identity.epoch);
        self.json(SectionKind::Identity, identity)
    }

    pub fn environment(&mut self, environment: &Environment) -> Result<(), ImageError> {
        self.json(SectionKind::Environment, environment)
    }

    pub fn descriptors(&mut self, descriptors: &Descriptors) -> Result<(), ImageError> {
        self.json(SectionKind::Descriptors, descriptors)
    }

    /// Adds the MPI objects alive: JSON text, as the upper half describes them.
    pub fn inventory(&mut self, json: &[u8]) -> Result<(), ImageError> {
        self.pending_section(SectionKind::Inventory, [0; 32], 0, json.to_vec())
    }

    /// Adds the mappings, in order of address.
    pub fn regions(&mut self, regions: &[Region]) -> Result<(), ImageError> {
        let mut records = Vec::with_capacity(regions.len());
        for region in regions {
            let (name_offset, name_bytes) = self.string(&region.name)?;
            records.push(RegionRecord {
                start: region.start,
                end: region.end,
                file_offset: region.file_offset,
                vm_flags: region.vm_flags,
                protection: region.protection,
                kind: region.kind as u32,
                name_offset,
                name_bytes,
                content: region.content.unwrap_or(0),
                reserved: 0,
                reserved2: 0,
            });
        }
        self.pending_section(
            SectionKind::Regions,
            [0; 32],
            0,
            records.as_bytes().to_vec(),
        )
    }

    /// Adds the threads, the main one first.
    pub fn threads(&mut self, threads: &[Thread]) -> Result<(), ImageError> {
        self.pending_section(
            SectionKind::Threads,
            [0; 32],
            0,
            threads.as_bytes().to_vec(),
        )
    }

    /// Adds state of another module, opaque here. `name` has at most 32 bytes.
    pub fn blob(&mut self, name: &str, version: u32, bytes: &[u8]) -> Result<(), ImageError> {
        let mut filled = [0; 32];
        match filled.get_mut(..name.len()) {
            Some(start) => start.copy_from_slice(name.as_bytes()),
            None => {
                return Err(self.unwritable(format!("blob name '{name}' is longer than 32 bytes")));
            }
        }
        self.pending_section(SectionKind::Blob, filled, version, bytes.to_vec())
    }

    fn json<T: Serialize>(&mut self, kind: SectionKind, value: &T) -> Result<(), ImageError> {
        match serde_json::to_vec(value) {
            Ok(bytes) => self.pending_section(kind, [0; 32], 0, bytes),
            Err(error) => Err(self.unwritable(format!("{} as JSON: {error}", kind.name()))),
        }
    }

    fn string(&mut self, text: &str) -> Result<(u32, u32), ImageError> {
        let offset = self.strings.len();
        if offset + text.len() > MAX_SECTION_BYTES as usize {
            return Err(self.unwritable("more text than an image can hold"));
        }
        self.strings.extend_from_slice(text.as_bytes());
        Ok((offset as u32, text.len() as u32))
    }

    fn pending_section(
        &mut self,
        kind: SectionKind,
        name: [u8; 32],
        version: u32,
        bytes: Vec<u8>,
    ) -> Result<(), ImageError> {
        let others = self.pending.iter().filter(|section| section.kind == kind);
        let others: usize = others.map(|section| section.bytes.len()).sum();
        if (others + bytes.len()) as u64 > kind.most_bytes() {
            return Err(self.unwritable(format!(
                "section {} has {} bytes",
                kind.name(),
                bytes.len()
            )));
        }
        if kind != SectionKind::Blob && self.pending.iter().any(|section| section.kind == kind) {
            return Err(self.unwritable(format!("section {} was given twice", kind.name())));
        }
        self.pending.push(Pending {
            kind,
            name,
            version,
            bytes,
        });
        Ok(())
    }

    fn unwritable(&self, problem: impl Into<String>) -> ImageError {
        ImageError::Unwritable {
            path: self.path.clone(),
            problem: problem.into(),
        }
    }
}
