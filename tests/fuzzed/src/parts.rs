//! Images taken apart and put together again, so that a change inside gets past the sums.
//!
//! There are three forms: the file; its [`Parts`]; and those as bytes for a fuzzer. The last form contains no lengths, so that
//! any change is an image again: an insertion moves no more than one section.

use stillpoint_image::format::{
    BYTE_ORDER, ChunkRecord, END_MAGIC, Header, MAGIC, SectionKind, SectionRecord, Trailer,
    checksum,
};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// The mark before each section in a fuzzer's form.
const BORDER: &[u8] = b"\xfd\n%\xfd";

/// An image's header and sections.
#[derive(Clone, Debug)]
pub struct Parts {
    pub header: Header,
    /// In the order of the file. Offsets, lengths and sums are those of [`Parts::file`].
    pub sections: Vec<(SectionRecord, Vec<u8>)>,
}

impl Parts {
    /// Takes a file apart, or returns `None` if a part lies beyond its end.
    pub fn of_file(bytes: &[u8]) -> Option<Parts> {
        let (header, _) = Header::read_from_prefix(bytes).ok()?;
        let mut rest = bytes.get(header.table_offset as usize..)?;
        let mut sections = vec![];
        for _ in 0..header.section_count {
            let (record, after) = SectionRecord::read_from_prefix(rest).ok()?;
            let end = record.offset.checked_add(record.bytes)?;
            let section = bytes.get(record.offset as usize..end as usize)?;
            sections.push((record, section.to_vec()));
            rest = after;
        }
        Some(Parts { header, sections })
    }

    /// Returns the first section of a kind.
    pub fn section(&mut self, kind: SectionKind) -> Option<&mut Vec<u8>> {
        let mut sections = self.sections.iter_mut();
        sections
            .find(|(record, _)| record.kind == kind as u32)
            .map(|(_, bytes)| bytes)
    }

    /// Returns header, sections, table and trailer, with correct sums.
    pub fn file(&self) -> Vec<u8> {
        let mut parts = self.clone();
        let page_data = parts.sum_chunks();
        let mut header = parts.header;
        let mut body = vec![];
        let start = size_of::<Header>() as u64;
        for (record, section) in &mut parts.sections {
            record.offset = start + body.len() as u64;
            record.bytes = section.len() as u64;
            record.checksum = match record.kind == SectionKind::PageData as u32 {
                true => page_data,
                false => checksum(section),
            };
            body.extend_from_slice(section);
        }
        let table: Vec<SectionRecord> = parts.sections.iter().map(|(record, _)| *record).collect();
        header.section_count = table.len() as u32;
        header.table_offset = start + body.len() as u64;
        header.table_checksum = checksum(table.as_bytes());
        header.file_bytes =
            header.table_offset + (size_of_val(table.as_slice()) + size_of::<Trailer>()) as u64;
        header.checksum = checksum(&header.as_bytes()[..56]);
        let trailer = Trailer {
            magic: END_MAGIC,
            file_bytes: header.file_bytes,
            header_checksum: header.checksum,
        };
        [
            header.as_bytes(),
            &body,
            table.as_bytes(),
            trailer.as_bytes(),
        ]
        .concat()
    }

    /// Gives the file's own chunks the sums of their bytes, and returns the sum over those.
    fn sum_chunks(&mut self) -> u64 {
        let mut start = size_of::<Header>() as u64;
        let mut data = (0, vec![]);
        for (record, bytes) in &self.sections {
            if record.kind == SectionKind::PageData as u32 {
                data = (start, bytes.clone());
                break;
            }
            start += bytes.len() as u64;
        }
        let (mut sums, mut own) = (vec![], vec![]);
        let shares = self.section(SectionKind::Siblings).is_some();
        let chunks = self.section(SectionKind::Chunks).into_iter();
        for place in chunks.flat_map(|bytes| bytes.chunks_exact_mut(size_of::<ChunkRecord>())) {
            let Ok(mut chunk) = ChunkRecord::read_from_bytes(place) else {
                continue;
            };
            if chunk.origin != 0 {
                // These bytes of the file stand for other memory too.
                let is_own = |own: &&ChunkRecord| {
                    (own.offset, own.stored_bytes) == (chunk.offset, chunk.stored_bytes)
                };
                if let Some(own) = own.iter().find(is_own).filter(|_| shares) {
                    chunk.checksum = own.checksum;
                    place.copy_from_slice(chunk.as_bytes());
                }
                continue;
            }
            let from = chunk.offset.wrapping_sub(data.0) as usize;
            let to = from.checked_add(chunk.stored_bytes as usize);
            if let Some(bytes) = to.and_then(|to| data.1.get(from..to)) {
                chunk.checksum = checksum(bytes);
                place.copy_from_slice(chunk.as_bytes());
            }
            sums.extend_from_slice(&chunk.checksum.to_le_bytes());
            own.push(chunk);
        }
        checksum(&sums)
    }

    /// Returns the form for a fuzzer.
    pub fn open(&self) -> Vec<u8> {
        let mut bytes = vec![self.header.version as u8];
        for (record, section) in &self.sections {
            bytes.extend_from_slice(BORDER);
            bytes.extend_from_slice(&[record.kind as u8, record.version as u8]);
            if record.kind == SectionKind::Blob as u32 {
                let name = record.name.iter().take_while(|byte| **byte != 0);
                bytes.extend(name);
                bytes.push(0);
            }
            bytes.extend_from_slice(section);
        }
        bytes
    }

    /// Reads a fuzzer's form, with any bytes.
    pub fn of_open(bytes: &[u8]) -> Parts {
        let mut pieces = split(bytes, BORDER).into_iter();
        let version = pieces.next().and_then(|piece| piece.first());
        let mut header = Header::new_zeroed();
        header.magic = MAGIC;
        header.byte_order = BYTE_ORDER;
        header.version = version.map_or(0, |version| u32::from(*version));
        let sections = pieces.filter_map(|piece| {
            let ([kind, version], mut rest) = piece.split_first_chunk()?;
            let mut record = SectionRecord::new_zeroed();
            record.kind = u32::from(*kind);
            record.version = u32::from(*version);
            if record.kind == SectionKind::Blob as u32 {
                let end = rest
                    .iter()
                    .position(|byte| *byte == 0)
                    .unwrap_or(rest.len());
                let name = &rest[..end.min(record.name.len())];
                record.name[..name.len()].copy_from_slice(name);
                rest = rest.get(end + 1..).unwrap_or_default();
            }
            Some((record, rest.to_vec()))
        });
        Parts {
            header,
            sections: sections.collect(),
        }
    }
}

/// Returns the pieces between borders.
pub(crate) fn split<'a>(bytes: &'a [u8], border: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = vec![];
    let mut rest = bytes;
    while let Some(at) = rest.windows(border.len()).position(|piece| piece == border) {
        pieces.push(&rest[..at]);
        rest = &rest[at + border.len()..];
    }
    pieces.push(rest);
    pieces
}

/// Corrects a file's sums of header, table, trailer and sections; offsets and lengths stay as they are.
pub fn summed(file: &[u8]) -> Vec<u8> {
    let mut bytes = file.to_vec();
    sum_up(&mut bytes);
    bytes
}

fn sum_up(bytes: &mut [u8]) -> Option<()> {
    let (mut header, _) = Header::read_from_prefix(bytes).ok()?;
    let start = header.table_offset as usize;
    let table_bytes = header.section_count as usize * size_of::<SectionRecord>();
    let end = start.checked_add(table_bytes)?;
    let mut table = bytes.get(start..end)?.to_vec();
    for place in table.chunks_exact_mut(size_of::<SectionRecord>()) {
        let mut record = SectionRecord::read_from_bytes(place).ok()?;
        let section = (record.offset as usize)..(record.offset.wrapping_add(record.bytes) as usize);
        if record.kind != SectionKind::PageData as u32
            && let Some(section) = bytes.get(section)
        {
            record.checksum = checksum(section);
        }
        place.copy_from_slice(record.as_bytes());
    }
    bytes[start..end].copy_from_slice(&table);
    header.table_checksum = checksum(&table);
    header.checksum = checksum(&header.as_bytes()[..56]);
    bytes[..size_of::<Header>()].copy_from_slice(header.as_bytes());
    let at = bytes.len().checked_sub(size_of::<u64>())?;
    bytes[at..].copy_from_slice(&header.checksum.to_le_bytes());
    Some(())
}
