//! The end of an image: the tables, the remaining sections, the section table and the header.

use std::sync::Arc;

use stillpoint_faults::{Point, strike};
use zerocopy::IntoBytes;

use super::{Writer, Written};
use crate::check;
use crate::error::ImageError;
use crate::format::{
    BYTE_ORDER, CHUNK_BYTES, ChunkRecord, END_MAGIC, HEADER_BYTES, Header, MAGIC, MAX_ORIGINS,
    MAX_SECTION_BYTES, MAX_SECTIONS, RunRecord, SectionKind, SectionRecord, Trailer, VERSION,
    checksum,
};
use crate::origins::Tables;
use crate::pack::{Packed, SharedChunk};
use crate::runs;
use crate::sums::{digest, page_data_checksum};

/// The most runs that an image may have.
pub const MOST_RUNS: usize = MAX_SECTION_BYTES as usize / size_of::<RunRecord>();

impl Writer {
    /// Writes the rest and waits until the disk has it all.
    pub fn finish(mut self) -> Result<Written, ImageError> {
        let tables = self.tables()?;
        self.last_sections(&tables)?;
        let end = *self.end.get_mut();
        let page_data = SectionRecord {
            kind: SectionKind::PageData as u32,
            version: 0,
            offset: HEADER_BYTES,
            bytes: end - HEADER_BYTES,
            checksum: page_data_checksum(&tables.chunks),
            name: [0; 32],
        };
        let tail = self.write_sections(page_data)?;
        let (header, trailer) = ends(&tail);
        self.write_ends(&tail, &header, &trailer)?;
        strike(Point::ImageSync)
            .and_then(|()| self.store.finish(header.file_bytes))
            .map_err(ImageError::io(&self.path, "sync the image"))?;
        Ok(Written {
            bytes: header.file_bytes,
            digest: digest(&header, &tail.table, &trailer),
            page_bytes: tables.page_bytes(),
            tables: Arc::new(tables),
        })
    }

    /// Makes the tables of written and carried memory.
    fn tables(&mut self) -> Result<Tables, ImageError> {
        let Packed {
            chunks,
            runs,
            shared,
        } = std::mem::take(&mut self.pages);
        let mut tables = Tables {
            chunks,
            runs,
            ..Tables::default()
        };
        if self.carried.is_empty() && shared.is_empty() {
            return Ok(tables);
        }
        let carried = std::mem::take(&mut self.carried).tables;
        let more: usize = shared.iter().map(|shared| shared.runs.len()).sum();
        if tables.runs.len() + carried.runs.len() + more > MOST_RUNS {
            return Err(self.unwritable("memory is scattered over too many runs of pages"));
        }
        if carried.origins.len() > MAX_ORIGINS {
            return Err(self.unwritable(format!("it needs {} images", carried.origins.len())));
        }
        if let Some(newest) = carried.origins.last().map(|origin| origin.epoch)
            && self.epoch.is_none_or(|own| newest >= own)
        {
            let own = self.epoch.map_or_else(String::new, |own| own.to_string());
            return Err(self.unwritable(format!("epoch {newest} is not before epoch {own}")));
        }
        for chunk in &carried.chunks {
            tables.push(*chunk, carried.runs_of(chunk));
        }
        tables.origins = carried.origins;
        add_shared(&mut tables, shared);
        if let Some(run) = check::overlapping(&tables.runs) {
            let problem = format!("{:#x} in space {} is in it twice", run.address, run.space);
            return Err(self.unwritable(problem));
        }
        Ok(tables)
    }

    /// Adds the sections that are complete only now.
    fn last_sections(&mut self, tables: &Tables) -> Result<(), ImageError> {
        let contents = std::mem::take(&mut self.contents).as_bytes().to_vec();
        let (kind_of_runs, runs) = match runs::pack(&tables.runs) {
            Some(packed) => (SectionKind::PackedRuns, packed),
            None => (SectionKind::Runs, tables.runs.as_bytes().to_vec()),
        };
        let strings = std::mem::take(&mut self.strings);
        for (kind, bytes) in [
            (SectionKind::Contents, contents),
            (kind_of_runs, runs),
            (SectionKind::Chunks, tables.chunks.as_bytes().to_vec()),
            (SectionKind::Strings, strings),
        ] {
            self.pending_section(kind, [0; 32], 0, bytes)?;
        }
        let devices = std::mem::take(&mut self.devices);
        match devices.is_empty() {
            true => Ok(()),
            false => self.json(SectionKind::Devices, &devices),
        }?;
        match tables.origins.is_empty() {
            true => Ok(()),
            false => self.json(SectionKind::Origins, &tables.origins),
        }?;
        match tables.siblings.is_empty() {
            true => Ok(()),
            false => self.json(SectionKind::Siblings, &tables.siblings),
        }
    }

    /// Writes the sections behind the page data, and returns what is left of them at the end.
    fn write_sections(&self, page_data: SectionRecord) -> Result<Tail, ImageError> {
        let mut offset = page_data.offset + page_data.bytes;
        let mut table = vec![page_data];
        let mut bytes = Vec::new();
        for section in &self.pending {
            let length = section.bytes.len() as u64;
            table.push(SectionRecord {
                kind: section.kind as u32,
                version: section.version,
                offset,
                bytes: length,
                checksum: checksum(&section.bytes),
                name: section.name,
            });
            offset += length;
            bytes.extend_from_slice(&section.bytes);
            if bytes.len() >= CHUNK_BYTES {
                self.write_at(&bytes, offset - bytes.len() as u64, Point::ImageSections)?;
                bytes.clear();
            }
        }
        if table.len() > MAX_SECTIONS as usize {
            return Err(self.unwritable(format!("{} sections", table.len())));
        }
        Ok(Tail {
            table,
            bytes,
            end: offset,
        })
    }

    /// Writes the tail with table and trailer, and then the header: only with the header is the file an image.
    fn write_ends(
        &self,
        tail: &Tail,
        header: &Header,
        trailer: &Trailer,
    ) -> Result<(), ImageError> {
        let parts = [
            tail.bytes.as_slice(),
            tail.table.as_bytes(),
            trailer.as_bytes(),
        ];
        let at = tail.end - tail.bytes.len() as u64;
        self.write_at(&parts.concat(), at, Point::ImageSections)?;
        self.write_at(header.as_bytes(), 0, Point::ImageHeader)
    }

    fn write_at(&self, bytes: &[u8], offset: u64, at: Point) -> Result<(), ImageError> {
        strike(at)
            .and_then(|()| self.store.write_all_at(bytes, offset))
            .map_err(ImageError::io(&self.path, "write the image"))
    }
}

/// Adds chunks that other images of this epoch have, by rank and offset.
fn add_shared(tables: &mut Tables, mut shared: Vec<SharedChunk>) {
    shared.sort_by_key(|shared| (shared.rank, shared.chunk.offset));
    for SharedChunk { rank, chunk, runs } in shared {
        if tables.siblings.last() != Some(&rank) {
            tables.siblings.push(rank);
        }
        let origin = (tables.origins.len() + tables.siblings.len()) as u32;
        tables.push(ChunkRecord { origin, ..chunk }, &runs);
    }
}

/// The end of the file, behind the page data.
struct Tail {
    table: Vec<SectionRecord>,
    /// Bytes of the sections that have not been written yet.
    bytes: Vec<u8>,
    /// The offset at which the sections end and the table begins.
    end: u64,
}

/// Makes the header and the trailer of an image with that tail.
fn ends(tail: &Tail) -> (Header, Trailer) {
    let table = tail.table.as_bytes();
    let mut header = Header {
        magic: MAGIC,
        version: VERSION,
        byte_order: BYTE_ORDER,
        section_count: tail.table.len() as u32,
        reserved: 0,
        table_offset: tail.end,
        table_checksum: checksum(table),
        file_bytes: tail.end + (table.len() + size_of::<Trailer>()) as u64,
        reserved2: 0,
        checksum: 0,
    };
    header.checksum = checksum(&header.as_bytes()[..56]);
    let trailer = Trailer {
        magic: END_MAGIC,
        file_bytes: header.file_bytes,
        header_checksum: header.checksum,
    };
    (header, trailer)
}
