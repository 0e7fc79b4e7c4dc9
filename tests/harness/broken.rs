//! Breaks a committed epoch on purpose, each time in one way only: what else a reader checks still holds.

use std::fs;
use std::path::{Path, PathBuf};

use stillpoint_image::format::{Header, SectionKind, SectionRecord, Trailer, VERSION, checksum};
use stillpoint_image::{Environment, Manifest, Reader, image_name};
use zerocopy::{FromBytes, IntoBytes};

use crate::Failed;

/// A file of an epoch; put back as it was when this goes.
#[derive(Debug)]
pub struct Broken {
    path: PathBuf,
    was: Vec<u8>,
}

impl Drop for Broken {
    fn drop(&mut self) {
        // A test that finds it missing says so.
        let _ = fs::write(&self.path, &self.was);
    }
}

/// Replaces the bytes of a file by what `change` makes of them; `None` removes it.
pub fn change(
    path: &Path,
    change: impl FnOnce(&[u8]) -> Result<Option<Vec<u8>>, Failed>,
) -> Result<Broken, Failed> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let was = fs::read(path).map_err(failed)?;
    let changed = change(&was)?;
    let broken = Broken {
        path: path.to_owned(),
        was,
    };
    match changed {
        Some(bytes) => fs::write(path, bytes).map_err(failed)?,
        None => fs::remove_file(path).map_err(failed)?,
    }
    Ok(broken)
}

/// The file is gone.
pub fn missing(path: &Path) -> Result<Broken, Failed> {
    change(path, |_| Ok(None))
}

/// The file ends at `keep` of its bytes.
pub fn truncated(path: &Path, keep: u64) -> Result<Broken, Failed> {
    change(path, |bytes| {
        Ok(Some(bytes[..bytes.len().min(keep as usize)].to_vec()))
    })
}

/// One bit is another.
pub fn flipped(path: &Path, bit: u64) -> Result<Broken, Failed> {
    change(path, |bytes| {
        let mut bytes = bytes.to_vec();
        let byte = (bit / 8) as usize % bytes.len().max(1);
        bytes[byte] ^= 1 << (bit % 8);
        Ok(Some(bytes))
    })
}

fn split(bytes: &[u8]) -> Result<(Header, Vec<SectionRecord>), Failed> {
    let (header, _) =
        Header::read_from_prefix(bytes).map_err(|_| "shorter than a header".to_owned())?;
    let mut rest = bytes
        .get(header.table_offset as usize..)
        .ok_or("no section table")?;
    let mut table = vec![];
    for _ in 0..header.section_count {
        let (record, after) =
            SectionRecord::read_from_prefix(rest).map_err(|_| "a short section table")?;
        table.push(record);
        rest = after;
    }
    Ok((header, table))
}

/// Header, sections, table and trailer, with the checksums that they ought to have.
fn join(mut header: Header, mut table: Vec<SectionRecord>, sections: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![];
    let start = size_of::<Header>() as u64;
    for (record, section) in table.iter_mut().zip(sections) {
        record.offset = start + body.len() as u64;
        record.bytes = section.len() as u64;
        // The checksum of page data is that of its chunks' checksums: it stays.
        if record.kind != SectionKind::PageData as u32 {
            record.checksum = checksum(section);
        }
        body.extend_from_slice(section);
    }
    header.table_offset = start + body.len() as u64;
    header.table_checksum = checksum(table.as_bytes());
    header.file_bytes =
        header.table_offset + (table.as_bytes().len() + size_of::<Trailer>()) as u64;
    header.checksum = checksum(&header.as_bytes()[..56]);
    let (_, mut trailer) = Trailer::read_from_suffix(&[0; size_of::<Trailer>()])
        .unwrap_or_else(|_| unreachable!("as many bytes as it has"));
    trailer.magic = stillpoint_image::format::END_MAGIC;
    trailer.file_bytes = header.file_bytes;
    trailer.header_checksum = header.checksum;
    [
        header.as_bytes(),
        &body,
        table.as_bytes(),
        trailer.as_bytes(),
    ]
    .concat()
}

fn sections(bytes: &[u8], table: &[SectionRecord]) -> Result<Vec<Vec<u8>>, Failed> {
    table
        .iter()
        .map(|record| {
            let start = record.offset as usize;
            let section = bytes.get(start..start + record.bytes as usize);
            section
                .map(<[u8]>::to_vec)
                .ok_or_else(|| "a section beyond the end".to_owned())
        })
        .collect()
}

/// The image is whole, but of a format that a later release writes.
pub fn later_version(path: &Path) -> Result<Broken, Failed> {
    change(path, |bytes| {
        let (mut header, table) = split(bytes)?;
        let sections = sections(bytes, &table)?;
        header.version = VERSION + 1;
        Ok(Some(join(header, table, &sections)))
    })
}

/// An epoch that was written on a processor that has `feature`: image and manifest are whole.
pub fn needs_feature(epoch: &Path, rank: u32, feature: &str) -> Result<(Broken, Broken), Failed> {
    let path = epoch.join(image_name(rank));
    let image = change(&path, |bytes| {
        let (header, table) = split(bytes)?;
        let mut sections = sections(bytes, &table)?;
        let place = table
            .iter()
            .position(|record| record.kind == SectionKind::Environment as u32)
            .ok_or("no environment")?;
        let mut environment: Environment =
            serde_json::from_slice(&sections[place]).map_err(|error| error.to_string())?;
        environment.cpu.features.push(feature.to_owned());
        environment.cpu.features.sort();
        sections[place] = serde_json::to_vec(&environment).map_err(|error| error.to_string())?;
        Ok(Some(join(header, table, &sections)))
    })?;
    let reader = Reader::open(&path).map_err(|error| format!("badly rewritten: {error}"))?;
    let manifest = change(&epoch.join(stillpoint_image::manifest::NAME), |_| {
        let mut manifest = Manifest::read(epoch).map_err(|error| error.to_string())?;
        let entry = manifest
            .ranks
            .get_mut(rank as usize)
            .ok_or("no such rank")?;
        entry.digest = reader.digest();
        entry.bytes = fs::metadata(&path).map_or(0, |about| about.len());
        manifest.write(epoch).map_err(|error| error.to_string())?;
        let text = fs::read(epoch.join(stillpoint_image::manifest::NAME));
        text.map(Some).map_err(|error| error.to_string())
    })?;
    Ok((image, manifest))
}
