//! Checks of an image's tables, made before anything else is done with them.

mod pages;
mod threads;

use std::path::Path;

use stillpoint_ids::Rank;

use crate::devices::DeviceMemory;
use crate::epoch_name;
use crate::error::ImageError;
use crate::facts::Identity;
use crate::format::{
    ContentRecord, HEADER_BYTES, Header, MAX_DEVICES, MAX_ORIGINS, MAX_SIBLINGS, PAGE,
    RegionRecord, SectionKind, SectionRecord, TRAILER_BYTES,
};
use crate::origins::Origin;
use crate::sections::Sections;
use crate::tables::{Content, Region, RegionKind};
pub(crate) use pages::{overlapping, pages};
pub(crate) use threads::threads;

/// Checks that sections follow one another without a gap from the header to the table, and that only blobs come more than once.
pub(crate) fn section_table(
    path: &Path,
    header: &Header,
    table: &[SectionRecord],
) -> Result<(), ImageError> {
    let mut expected = HEADER_BYTES;
    for (index, record) in table.iter().enumerate() {
        let offset = header.table_offset + (index * size_of::<SectionRecord>()) as u64;
        let bad =
            |field: &str, problem: String| Err(ImageError::malformed(path, offset, field, problem));
        let kind = SectionKind::from_u32(record.kind).filter(|kind| header.version >= kind.since());
        let Some(kind) = kind else {
            return bad("section kind", format!("{} is unknown", record.kind));
        };
        if kind != SectionKind::Blob
            && table[..index]
                .iter()
                .any(|earlier| earlier.kind == record.kind)
        {
            return bad("section kind", format!("{} occurs twice", kind.name()));
        }
        if record.offset != expected {
            return bad(
                "section offset",
                format!(
                    "{} is at {} instead of {expected}",
                    kind.name(),
                    record.offset
                ),
            );
        }
        let earlier = table[..index]
            .iter()
            .filter(|earlier| earlier.kind == record.kind);
        let together = earlier.fold(record.bytes, |sum, earlier| {
            sum.saturating_add(earlier.bytes)
        });
        if together > kind.most_bytes() {
            return bad(
                "section length",
                format!(
                    "{} has {together} bytes, but at most {} are allowed",
                    kind.name(),
                    kind.most_bytes()
                ),
            );
        }
        expected = match expected.checked_add(record.bytes) {
            Some(end) if end <= header.table_offset => end,
            _ => {
                return bad(
                    "section length",
                    format!("{} has {} bytes", kind.name(), record.bytes),
                );
            }
        };
    }
    if expected != header.table_offset {
        let problem = format!(
            "the sections end at {expected}, but the table starts at {}",
            header.table_offset
        );
        return Err(ImageError::malformed(
            path,
            expected,
            "section table",
            problem,
        ));
    }
    Ok(())
}

pub(crate) fn strings(
    path: &Path,
    sections: &Sections<'_>,
    bytes: Vec<u8>,
) -> Result<String, ImageError> {
    String::from_utf8(bytes).map_err(|error| {
        let offset =
            sections.offset(SectionKind::Strings) + error.utf8_error().valid_up_to() as u64;
        ImageError::malformed(path, offset, "strings", "not UTF-8")
    })
}

fn string(strings: &str, offset: u32, bytes: u32) -> Option<String> {
    strings
        .get(offset as usize..(offset as usize).checked_add(bytes as usize)?)
        .map(str::to_owned)
}

pub(crate) fn contents(sections: &Sections<'_>, strings: &str) -> Result<Vec<Content>, ImageError> {
    let records: Vec<ContentRecord> = sections.table(SectionKind::Contents)?;
    let mut contents = Vec::with_capacity(records.len());
    for (index, record) in records.iter().enumerate() {
        let Some(name) = string(strings, record.name_offset, record.name_bytes) else {
            return Err(sections.malformed(
                SectionKind::Contents,
                format!("name of content {}", index + 1),
            ));
        };
        if record.bytes > i64::MAX as u64 {
            return Err(sections.malformed(
                SectionKind::Contents,
                format!("{name} has {} bytes", record.bytes),
            ));
        }
        contents.push(Content {
            name,
            bytes: record.bytes,
        });
    }
    Ok(contents)
}

pub(crate) fn regions(
    sections: &Sections<'_>,
    strings: &str,
    contents: usize,
) -> Result<Vec<Region>, ImageError> {
    let records: Vec<RegionRecord> = sections.table(SectionKind::Regions)?;
    let mut regions: Vec<Region> = Vec::with_capacity(records.len());
    let mut previous = 0;
    for (index, record) in records.iter().enumerate() {
        let bad = |problem: String| {
            Err(sections.malformed(SectionKind::Regions, format!("region {index}: {problem}")))
        };
        let (start, end) = (record.start, record.end);
        if start >= end || end > 1 << 63 || start % PAGE as u64 != 0 || end % PAGE as u64 != 0 {
            return bad(format!("{start:#x}..{end:#x}"));
        }
        if start < previous {
            return bad(format!(
                "{start:#x}..{end:#x} overlaps the region before it"
            ));
        }
        previous = end;
        let Some(kind) = RegionKind::from_u32(record.kind) else {
            return bad(format!("kind {}", record.kind));
        };
        if record.protection & !7 != 0 {
            return bad(format!("protection {:#x}", record.protection));
        }
        if record.content as usize > contents {
            return bad(format!("content {} of {contents}", record.content));
        }
        let Some(name) = string(strings, record.name_offset, record.name_bytes) else {
            return bad("name".into());
        };
        regions.push(Region {
            start,
            end,
            protection: record.protection,
            kind,
            vm_flags: record.vm_flags,
            file_offset: record.file_offset,
            name,
            content: (record.content != 0).then_some(record.content),
        });
    }
    Ok(regions)
}

/// Reads the list of earlier epochs' images that hold chunks of this one. Each has to have the name that its place in the checkpoint
/// directory gives it.
pub(crate) fn origins(
    sections: &Sections<'_>,
    identity: &Identity,
) -> Result<Vec<Origin>, ImageError> {
    if sections.find(SectionKind::Origins).is_none() {
        return Ok(vec![]);
    }
    let origins: Vec<Origin> = sections.json(SectionKind::Origins)?;
    let bad = |problem: String| Err(sections.malformed(SectionKind::Origins, problem));
    if origins.len() > MAX_ORIGINS {
        return bad(format!(
            "{} are too many, at most {MAX_ORIGINS} are allowed",
            origins.len()
        ));
    }
    let epoch = identity.epoch;
    let mut previous = None;
    for origin in &origins {
        let Origin {
            epoch: of,
            directory,
            file,
            bytes,
            ..
        } = origin;
        if *of >= epoch {
            return bad(format!("epoch {of} is not before epoch {epoch}"));
        }
        let place = origin.rank().filter(|rank| rank.0 < identity.size);
        let place = place.map(|rank| (*of, rank));
        if place.is_some() && place <= previous {
            return bad(format!("'{file}' of epoch {of} is out of order"));
        }
        previous = place;
        if place.is_none() || *directory != epoch_name(*of) {
            return bad(format!(
                "'{directory}' and '{file}' do not name an image of epoch {of}"
            ));
        }
        if *bytes < HEADER_BYTES + TRAILER_BYTES || *bytes > i64::MAX as u64 {
            return bad(format!("the image of epoch {of} has {bytes} bytes"));
        }
    }
    Ok(origins)
}

/// Reads the ranks whose images of this epoch hold chunks of this one.
pub(crate) fn siblings(
    sections: &Sections<'_>,
    identity: &Identity,
) -> Result<Vec<Rank>, ImageError> {
    if sections.find(SectionKind::Siblings).is_none() {
        return Ok(vec![]);
    }
    let siblings: Vec<Rank> = sections.json(SectionKind::Siblings)?;
    let bad = |problem: String| Err(sections.malformed(SectionKind::Siblings, problem));
    if siblings.len() > MAX_SIBLINGS {
        let count = siblings.len();
        return bad(format!(
            "{count} are too many, at most {MAX_SIBLINGS} are allowed"
        ));
    }
    if !siblings.is_sorted_by(|one, next| one < next) {
        return bad("the ranks are not in ascending order".into());
    }
    match siblings.last() {
        Some(rank) if rank.0 >= identity.size => bad(format!(
            "rank {rank} does not exist in a job of {} ranks",
            identity.size
        )),
        _ => Ok(siblings),
    }
}

/// Reads which contents are memory of devices. Each is one device's, they are in the order of their numbers, and none is a region's.
pub(crate) fn devices(
    sections: &Sections<'_>,
    regions: &[Region],
    contents: usize,
) -> Result<Vec<DeviceMemory>, ImageError> {
    if sections.find(SectionKind::Devices).is_none() {
        return Ok(vec![]);
    }
    let devices: Vec<DeviceMemory> = sections.json(SectionKind::Devices)?;
    let bad = |problem: String| Err(sections.malformed(SectionKind::Devices, problem));
    if devices.len() > MAX_DEVICES {
        let count = devices.len();
        return bad(format!(
            "{count} are too many, at most {MAX_DEVICES} are allowed"
        ));
    }
    let mut before = 0;
    for DeviceMemory { uuid, content } in &devices {
        if *content <= before || *content as usize > contents {
            return bad(format!(
                "GPU {uuid} refers to content {content}, but the image has {contents}"
            ));
        }
        if regions
            .iter()
            .any(|region| region.content == Some(*content))
        {
            return bad(format!(
                "content {content} of GPU {uuid} belongs to a region as well"
            ));
        }
        before = *content;
    }
    Ok(devices)
}
