//! Reads header, section table and sections without trusting them.

use std::path::Path;

use serde::de::DeserializeOwned;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::check;
use crate::error::ImageError;
use crate::format::{
    BYTE_ORDER, END_MAGIC, HEADER_BYTES, Header, MAGIC, MAX_SECTIONS, OLDEST_VERSION, RunRecord,
    SectionKind, SectionRecord, TRAILER_BYTES, Trailer, VERSION, checksum,
};
use crate::runs;
use crate::store::Source;
use crate::sums::digest;

/// Reads bytes at an offset without trust: a file that has become shorter is an error.
pub(crate) fn read_at(
    file: &dyn Source,
    path: &Path,
    offset: u64,
    bytes: &mut [u8],
    field: &'static str,
) -> Result<(), ImageError> {
    file.read_exact_at(bytes, offset)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => ImageError::Truncated {
                path: path.to_owned(),
                found: file.length().unwrap_or(0),
                needed: offset + bytes.len() as u64,
                field,
            },
            _ => ImageError::Io {
                path: path.to_owned(),
                action: "read the image",
                source: error,
            },
        })
}

fn read_header(file: &dyn Source, path: &Path, file_bytes: u64) -> Result<Header, ImageError> {
    let mut header = Header::new_zeroed();
    let here = (file_bytes as usize).min(HEADER_BYTES as usize);
    read_at(file, path, 0, &mut header.as_mut_bytes()[..here], "header")?;
    if here >= 8 && header.magic != MAGIC {
        return Err(ImageError::NotOurs {
            path: path.to_owned(),
            what: "image",
        });
    }
    if file_bytes < HEADER_BYTES {
        return Err(truncated(
            path,
            file_bytes,
            HEADER_BYTES + TRAILER_BYTES,
            "header",
        ));
    }
    if header.byte_order == BYTE_ORDER.swap_bytes() {
        return Err(ImageError::ByteOrder {
            path: path.to_owned(),
        });
    }
    if !(OLDEST_VERSION..=VERSION).contains(&header.version) {
        return Err(ImageError::Version {
            path: path.to_owned(),
            found: header.version,
            oldest: OLDEST_VERSION,
            expected: VERSION,
        });
    }
    let found = checksum(&header.as_bytes()[..56]);
    if found != header.checksum {
        return Err(ImageError::Checksum {
            path: path.to_owned(),
            offset: 0,
            field: "header".into(),
            found,
            expected: header.checksum,
        });
    }
    let bad = |offset, field: &str, problem: String| {
        Err(ImageError::malformed(path, offset, field, problem))
    };
    if header.byte_order != BYTE_ORDER {
        return bad(12, "byte order", format!("{:#x}", header.byte_order));
    }
    if header.section_count > MAX_SECTIONS {
        return bad(
            16,
            "section count",
            format!("{} is more than {MAX_SECTIONS}", header.section_count),
        );
    }
    let table_bytes = u64::from(header.section_count) * size_of::<SectionRecord>() as u64;
    let end = header.table_offset.checked_add(table_bytes + TRAILER_BYTES);
    if header.table_offset < HEADER_BYTES || end != Some(header.file_bytes) {
        return bad(
            24,
            "section table offset",
            format!("{} in a file of {}", header.table_offset, header.file_bytes),
        );
    }
    if file_bytes < header.file_bytes {
        return Err(truncated(
            path,
            file_bytes,
            header.file_bytes,
            "file length in the header",
        ));
    }
    if file_bytes > header.file_bytes {
        return bad(
            header.file_bytes,
            "end of file",
            format!("{} bytes too many", file_bytes - header.file_bytes),
        );
    }
    Ok(header)
}

fn truncated(path: &Path, found: u64, needed: u64, field: &'static str) -> ImageError {
    ImageError::Truncated {
        path: path.to_owned(),
        found,
        needed,
        field,
    }
}

/// Reads and checks the section table; returns it with the image's digest.
pub(crate) fn read_table(
    file: &dyn Source,
    path: &Path,
    file_bytes: u64,
) -> Result<(Vec<SectionRecord>, u128), ImageError> {
    let header = read_header(file, path, file_bytes)?;

    let mut trailer = Trailer::new_zeroed();
    let trailer_offset = file_bytes - TRAILER_BYTES;
    read_at(
        file,
        path,
        trailer_offset,
        trailer.as_mut_bytes(),
        "trailer",
    )?;
    if trailer.magic != END_MAGIC
        || trailer.file_bytes != file_bytes
        || trailer.header_checksum != header.checksum
    {
        return Err(ImageError::malformed(
            path,
            trailer_offset,
            "trailer",
            "does not belong to the header",
        ));
    }

    let mut table = vec![0; header.section_count as usize * size_of::<SectionRecord>()];
    read_at(file, path, header.table_offset, &mut table, "section table")?;
    let found = checksum(&table);
    if found != header.table_checksum {
        return Err(ImageError::Checksum {
            path: path.to_owned(),
            offset: header.table_offset,
            field: "section table".into(),
            found,
            expected: header.table_checksum,
        });
    }
    let table: Vec<SectionRecord> = records(&table);
    check::section_table(path, &header, &table)?;
    let digest = digest(&header, &table, &trailer);
    Ok((table, digest))
}

/// Returns fixed-layout records from bytes whose length has been checked to be a multiple of theirs.
fn records<T: FromBytes + Copy>(bytes: &[u8]) -> Vec<T> {
    bytes
        .chunks_exact(size_of::<T>())
        .filter_map(|record| T::read_from_bytes(record).ok())
        .collect()
}

/// The sections of a file whose table has been checked.
pub(crate) struct Sections<'a> {
    pub file: &'a dyn Source,
    pub path: &'a Path,
    pub table: &'a [SectionRecord],
}

impl Sections<'_> {
    pub fn find(&self, kind: SectionKind) -> Option<&SectionRecord> {
        self.table.iter().find(|record| record.kind == kind as u32)
    }

    /// Returns the offset of a section, for messages.
    pub fn offset(&self, kind: SectionKind) -> u64 {
        self.find(kind).map_or(0, |record| record.offset)
    }

    pub fn malformed(&self, kind: SectionKind, problem: impl Into<String>) -> ImageError {
        ImageError::malformed(self.path, self.offset(kind), kind.name(), problem)
    }

    /// Reads the bytes of a section other than page data.
    pub fn bytes(&self, record: &SectionRecord) -> Result<Vec<u8>, ImageError> {
        let name = SectionKind::from_u32(record.kind).map_or("section", SectionKind::name);
        let mut bytes = vec![0; record.bytes as usize];
        read_at(self.file, self.path, record.offset, &mut bytes, name)?;
        let found = checksum(&bytes);
        if found != record.checksum {
            return Err(ImageError::Checksum {
                path: self.path.to_owned(),
                offset: record.offset,
                field: name.into(),
                found,
                expected: record.checksum,
            });
        }
        Ok(bytes)
    }

    pub fn read_optional(&self, kind: SectionKind) -> Result<Option<Vec<u8>>, ImageError> {
        self.find(kind).map(|record| self.bytes(record)).transpose()
    }

    pub fn read(&self, kind: SectionKind) -> Result<Vec<u8>, ImageError> {
        self.read_optional(kind)?
            .ok_or_else(|| self.malformed(kind, "there is no such section"))
    }

    pub fn table<T: FromBytes + Copy>(&self, kind: SectionKind) -> Result<Vec<T>, ImageError> {
        let bytes = self.read(kind)?;
        if bytes.len() % size_of::<T>() != 0 {
            let problem = format!(
                "{} bytes are not a whole number of records of {}",
                bytes.len(),
                size_of::<T>()
            );
            return Err(self.malformed(kind, problem));
        }
        Ok(records(&bytes))
    }

    /// Reads the table of runs in either form.
    pub fn runs(&self) -> Result<Vec<RunRecord>, ImageError> {
        let kind = SectionKind::PackedRuns;
        match self.read_optional(kind)? {
            None => self.table(SectionKind::Runs),
            Some(_) if self.find(SectionKind::Runs).is_some() => {
                Err(self.malformed(kind, "there is another table of runs"))
            }
            Some(packed) => runs::unpack(&packed).map_err(|problem| self.malformed(kind, problem)),
        }
    }

    pub fn json<T: DeserializeOwned>(&self, kind: SectionKind) -> Result<T, ImageError> {
        serde_json::from_slice(&self.read(kind)?)
            .map_err(|error| self.malformed(kind, error.to_string()))
    }
}
