//! Writes an image: pages first, as they come, then the small sections, the table and the header.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use serde::Serialize;
use stillpoint_faults::{Point, strike};
use xxhash_rust::xxh3::Xxh3;
use zerocopy::IntoBytes;

use crate::compression::Compression;
use crate::descriptors::Descriptors;
use crate::error::ImageError;
use crate::facts::{Environment, Identity};
use crate::format::{
    BYTE_ORDER, CHUNK_BYTES, ChunkRecord, ContentRecord, END_MAGIC, HEADER_BYTES, Header, MAGIC,
    MAX_SECTION_BYTES, MAX_SECTIONS, RegionRecord, RunRecord, SectionKind, SectionRecord, Trailer,
    VERSION, checksum,
};
use crate::pack::{Packed, pack};
use crate::pages::PageRun;
use crate::store::Store;
use crate::tables::{Region, Thread};

/// Bytes kept besides memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub name: String,
    /// How long it is; what no run covers is zero.
    pub bytes: u64,
}

/// What has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The file's length.
    pub bytes: u64,
    /// See [`crate::format`].
    pub digest: u128,
    /// Bytes of pages that are in the image, before compression.
    pub page_bytes: u64,
}

/// Writes one image. A writer that is dropped before [`Writer::finish`] leaves a file that no reader
/// accepts.
pub struct Writer {
    path: PathBuf,
    store: Box<dyn Store>,
    end: AtomicU64,
    compression: Compression,
    threads: usize,
    pages: Packed,
    contents: Vec<ContentRecord>,
    strings: Vec<u8>,
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
        let file = strike(Point::ImageCreate).and_then(|()| stillpoint_directory::create(path));
        let file = file.map_err(ImageError::io(path, "create the image"))?;
        Ok(Writer::into_store(path, Box::new(file), compression))
    }

    /// Starts an image whose bytes go elsewhere than into one file; `path` names it in errors.
    pub fn into_store(path: &Path, store: Box<dyn Store>, compression: Compression) -> Writer {
        Writer {
            path: path.to_owned(),
            store,
            end: AtomicU64::new(HEADER_BYTES),
            compression,
            threads: 1,
            pages: Packed::default(),
            contents: Vec::new(),
            strings: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// How many threads pack pages; 1 unless said.
    pub fn use_threads(&mut self, threads: usize) {
        self.threads = threads;
    }

    /// Writes memory. Zero pages are left out. Stretches of one image must not overlap.
    pub fn memory(&mut self, runs: &[PageRun<'_>]) -> Result<(), ImageError> {
        self.pack(0, runs)
    }

    /// Writes bytes kept besides memory, and gives the content's number, the first being 1; in `runs`
    /// an address is an offset.
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

    fn pack(&mut self, space: u32, runs: &[PageRun<'_>]) -> Result<(), ImageError> {
        let packed = pack(
            &*self.store,
            &self.end,
            space,
            runs,
            self.compression,
            self.threads,
        )
        .map_err(ImageError::io(&self.path, "write page data"))?;
        let before = self.pages.runs.len();
        if before + packed.runs.len() > MAX_SECTION_BYTES as usize / size_of::<RunRecord>() {
            return Err(self.unwritable("memory is scattered over too many runs of pages"));
        }
        self.pages
            .chunks
            .extend(packed.chunks.into_iter().map(|mut chunk| {
                chunk.first_run += before as u32;
                chunk
            }));
        self.pages.runs.extend(packed.runs);
        Ok(())
    }

    pub fn identity(&mut self, identity: &Identity) -> Result<(), ImageError> {
        self.json(SectionKind::Identity, identity)
    }

    pub fn environment(&mut self, environment: &Environment) -> Result<(), ImageError> {
        self.json(SectionKind::Environment, environment)
    }

    pub fn descriptors(&mut self, descriptors: &Descriptors) -> Result<(), ImageError> {
        self.json(SectionKind::Descriptors, descriptors)
    }

    /// The MPI objects alive: JSON text, as the upper half describes them.
    pub fn inventory(&mut self, json: &[u8]) -> Result<(), ImageError> {
        self.pending_section(SectionKind::Inventory, [0; 32], 0, json.to_vec())
    }

    /// The mappings, in order of address.
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

    /// The threads, the main one first.
    pub fn threads(&mut self, threads: &[Thread]) -> Result<(), ImageError> {
        self.pending_section(
            SectionKind::Threads,
            [0; 32],
            0,
            threads.as_bytes().to_vec(),
        )
    }

    /// State of another module, opaque here. `name` has at most 32 bytes.
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
            return Err(self.unwritable("more text than an image holds"));
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

    /// Writes the rest and waits until the disk has it all.
    pub fn finish(mut self) -> Result<Written, ImageError> {
        let page_bytes = self
            .pages
            .chunks
            .iter()
            .map(|chunk| u64::from(chunk.bytes))
            .sum();
        let contents = std::mem::take(&mut self.contents);
        let pages = std::mem::take(&mut self.pages);
        let strings = std::mem::take(&mut self.strings);
        self.pending_section(
            SectionKind::Contents,
            [0; 32],
            0,
            contents.as_bytes().to_vec(),
        )?;
        self.pending_section(
            SectionKind::Runs,
            [0; 32],
            0,
            pages.runs.as_bytes().to_vec(),
        )?;
        self.pending_section(
            SectionKind::Chunks,
            [0; 32],
            0,
            pages.chunks.as_bytes().to_vec(),
        )?;
        self.pending_section(SectionKind::Strings, [0; 32], 0, strings)?;

        let mut offset = *self.end.get_mut();
        let mut table = vec![SectionRecord {
            kind: SectionKind::PageData as u32,
            version: 0,
            offset: HEADER_BYTES,
            bytes: offset - HEADER_BYTES,
            checksum: page_data_checksum(&pages.chunks),
            name: [0; 32],
        }];
        let mut tail = Vec::new();
        for section in &self.pending {
            let bytes = section.bytes.len() as u64;
            table.push(SectionRecord {
                kind: section.kind as u32,
                version: section.version,
                offset,
                bytes,
                checksum: checksum(&section.bytes),
                name: section.name,
            });
            offset += bytes;
            tail.extend_from_slice(&section.bytes);
            if tail.len() >= CHUNK_BYTES {
                self.write_at(&tail, offset - tail.len() as u64, Point::ImageSections)?;
                tail.clear();
            }
        }
        if table.len() > MAX_SECTIONS as usize {
            return Err(self.unwritable(format!("{} sections", table.len())));
        }
        let mut header = Header {
            magic: MAGIC,
            version: VERSION,
            byte_order: BYTE_ORDER,
            section_count: table.len() as u32,
            reserved: 0,
            table_offset: offset,
            table_checksum: checksum(table.as_bytes()),
            file_bytes: offset + (table.as_bytes().len() + size_of::<Trailer>()) as u64,
            reserved2: 0,
            checksum: 0,
        };
        header.checksum = checksum(&header.as_bytes()[..56]);
        let trailer = Trailer {
            magic: END_MAGIC,
            file_bytes: header.file_bytes,
            header_checksum: header.checksum,
        };
        let tail_at = offset - tail.len() as u64;
        tail.extend_from_slice(table.as_bytes());
        tail.extend_from_slice(trailer.as_bytes());
        self.write_at(&tail, tail_at, Point::ImageSections)?;
        self.write_at(header.as_bytes(), 0, Point::ImageHeader)?;
        strike(Point::ImageSync)
            .and_then(|()| self.store.finish(header.file_bytes))
            .map_err(ImageError::io(&self.path, "sync the image"))?;
        Ok(Written {
            bytes: header.file_bytes,
            digest: digest(&header, &table, &trailer),
            page_bytes,
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64, at: Point) -> Result<(), ImageError> {
        strike(at)
            .and_then(|()| self.store.write_all_at(bytes, offset))
            .map_err(ImageError::io(&self.path, "write the image"))
    }
}

/// The checksum of the page data section: that of its chunks' checksums.
pub(crate) fn page_data_checksum(chunks: &[ChunkRecord]) -> u64 {
    let mut hash = Xxh3::new();
    for chunk in chunks {
        hash.update(&chunk.checksum.to_le_bytes());
    }
    hash.digest()
}

/// The image's digest.
pub(crate) fn digest(header: &Header, table: &[SectionRecord], trailer: &Trailer) -> u128 {
    let mut hash = Xxh3::new();
    hash.update(header.as_bytes());
    hash.update(table.as_bytes());
    hash.update(trailer.as_bytes());
    hash.digest128()
}
