//! Changes an image and corrects every checksum, so that only the checks behind the checksums can notice.

use stillpoint_image::format::{
    ChunkRecord, Header, SectionKind, SectionRecord, TRAILER_BYTES, Trailer, checksum,
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// An image in memory.
pub struct Patch {
    pub bytes: Vec<u8>,
}

impl Patch {
    pub fn header(&self) -> Header {
        Header::read_from_bytes(&self.bytes[..64]).unwrap()
    }

    pub fn table(&self) -> Vec<SectionRecord> {
        let start = self.header().table_offset as usize;
        let bytes = &self.bytes[start..self.bytes.len() - TRAILER_BYTES as usize];
        bytes
            .chunks_exact(64)
            .map(|record| SectionRecord::read_from_bytes(record).unwrap())
            .collect()
    }

    pub fn section(&self, kind: SectionKind) -> (usize, SectionRecord) {
        let table = self.table();
        let index = table
            .iter()
            .position(|record| record.kind == kind as u32)
            .unwrap();
        (index, table[index])
    }

    /// Changes one fixed-layout record of a section.
    pub fn record<T>(&mut self, kind: SectionKind, index: usize, change: impl FnOnce(&mut T))
    where
        T: FromBytes + IntoBytes + Immutable + KnownLayout,
    {
        let (_, section) = self.section(kind);
        let at = section.offset as usize + index * size_of::<T>();
        let place = &mut self.bytes[at..at + size_of::<T>()];
        let mut record = T::read_from_bytes(place).unwrap();
        change(&mut record);
        place.copy_from_slice(record.as_bytes());
        self.seal_section(kind);
    }

    /// Changes the bytes of a section, not their number.
    pub fn section_bytes(&mut self, kind: SectionKind, change: impl FnOnce(&mut [u8])) {
        let (_, section) = self.section(kind);
        let (start, end) = (
            section.offset as usize,
            (section.offset + section.bytes) as usize,
        );
        change(&mut self.bytes[start..end]);
        self.seal_section(kind);
    }

    /// Replaces a section's bytes by others, of any number.
    pub fn replace_section(&mut self, kind: SectionKind, bytes: &[u8]) {
        let (index, section) = self.section(kind);
        let start = section.offset as usize;
        let end = start + section.bytes as usize;
        let longer = bytes.len() as u64;
        let moved = |at: u64| at - section.bytes + longer;
        self.bytes.splice(start..end, bytes.iter().copied());
        let mut header = self.bytes[..64].to_vec();
        let mut changed = Header::read_from_bytes(&header).unwrap();
        changed.table_offset = moved(changed.table_offset);
        changed.file_bytes = moved(changed.file_bytes);
        header.copy_from_slice(changed.as_bytes());
        self.bytes[..64].copy_from_slice(&header);
        let end = self.bytes.len() - TRAILER_BYTES as usize;
        let mut trailer = Trailer::read_from_bytes(&self.bytes[end..]).unwrap();
        trailer.file_bytes = changed.file_bytes;
        self.bytes[end..].copy_from_slice(trailer.as_bytes());
        self.table_record(index, |record| record.bytes = longer);
        for later in index + 1..self.table().len() {
            self.table_record(later, |record| record.offset = moved(record.offset));
        }
        self.seal_section(kind);
    }

    fn seal_section(&mut self, kind: SectionKind) {
        let (index, section) = self.section(kind);
        let (start, end) = (
            section.offset as usize,
            (section.offset + section.bytes) as usize,
        );
        let sum = checksum(&self.bytes[start..end]);
        let chunks: Vec<u8> = {
            let (_, chunks) = self.section(SectionKind::Chunks);
            let bytes =
                &self.bytes[chunks.offset as usize..(chunks.offset + chunks.bytes) as usize];
            bytes
                .chunks_exact(40)
                .map(|record| ChunkRecord::read_from_bytes(record).unwrap())
                .filter(|chunk| chunk.origin == 0)
                .flat_map(|chunk| chunk.checksum.to_le_bytes())
                .collect()
        };
        let (data, _) = self.section(SectionKind::PageData);
        self.table_record(index, |record| record.checksum = sum);
        self.table_record(data, |record| record.checksum = checksum(&chunks));
    }

    /// Changes an entry of the section table.
    pub fn table_record(&mut self, index: usize, change: impl FnOnce(&mut SectionRecord)) {
        let at = self.header().table_offset as usize + index * 64;
        let mut record = SectionRecord::read_from_bytes(&self.bytes[at..at + 64]).unwrap();
        change(&mut record);
        self.bytes[at..at + 64].copy_from_slice(record.as_bytes());
        let end = self.bytes.len() - TRAILER_BYTES as usize;
        let sum = checksum(&self.bytes[self.header().table_offset as usize..end]);
        self.change_header(|header| header.table_checksum = sum);
    }

    /// Changes the header, and the trailer with it.
    pub fn change_header(&mut self, change: impl FnOnce(&mut Header)) {
        let mut header = self.header();
        change(&mut header);
        header.checksum = checksum(&header.as_bytes()[..56]);
        self.bytes[..64].copy_from_slice(header.as_bytes());
        let end = self.bytes.len() - TRAILER_BYTES as usize;
        let mut trailer = Trailer::read_from_bytes(&self.bytes[end..]).unwrap();
        trailer.header_checksum = header.checksum;
        self.bytes[end..].copy_from_slice(trailer.as_bytes());
    }
}
