//! What must hold between the tables of an image before anything is done with them.

mod threads;

use std::path::Path;

use crate::compression::Codec;
use crate::error::ImageError;
use crate::format::{
    CHUNK_BYTES, ChunkRecord, ContentRecord, HEADER_BYTES, Header, PAGE, RegionRecord, RunRecord,
    SectionKind, SectionRecord,
};
use crate::sections::Sections;
use crate::sums::page_data_checksum;
use crate::tables::{Region, RegionKind};
use crate::writer::Content;
pub(crate) use threads::threads;

/// Sections follow one another without a gap from the header to the table, none twice.
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
        let Some(kind) = SectionKind::from_u32(record.kind) else {
            return bad("section kind", format!("{} is unknown", record.kind));
        };
        if kind != SectionKind::Blob
            && table[..index]
                .iter()
                .any(|earlier| earlier.kind == record.kind)
        {
            return bad("section kind", format!("{} is there twice", kind.name()));
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
                    "{} has {together} bytes, at most {} expected",
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
            "sections end at {expected}, the table starts at {}",
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
            return bad(format!("{start:#x}..{end:#x} overlaps what is before it"));
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

/// Runs lie inside regions and contents and do not overlap; chunks hold each run once, and fill the
/// page data section.
pub(crate) fn pages(
    sections: &Sections<'_>,
    regions: &[Region],
    contents: &[Content],
    runs: &[RunRecord],
    chunks: &[ChunkRecord],
) -> Result<(), ImageError> {
    let mut order: Vec<&RunRecord> = runs.iter().collect();
    order.sort_unstable_by_key(|run| (run.space, run.address));
    let mut previous: Option<&RunRecord> = None;
    for run in order {
        let bad = |problem: &str| {
            let problem = format!(
                "{:#x} + {} in space {}: {problem}",
                run.address, run.bytes, run.space
            );
            Err(sections.malformed(SectionKind::Runs, problem))
        };
        let Some(end) = run.address.checked_add(u64::from(run.bytes)) else {
            return bad("wraps around");
        };
        if run.bytes == 0 || run.bytes as usize > CHUNK_BYTES {
            return bad("impossible length");
        }
        if let Some(previous) = previous
            && previous.space == run.space
            && previous.address + u64::from(previous.bytes) > run.address
        {
            return bad("overlaps another run");
        }
        let inside = match run.space {
            0 => {
                let next = regions.partition_point(|region| region.end <= run.address);
                regions
                    .get(next)
                    .is_some_and(|region| region.start <= run.address && end <= region.end)
            }
            number => contents
                .get(number as usize - 1)
                .is_some_and(|content| end <= content.bytes),
        };
        if !inside {
            return bad("outside of every region or content");
        }
        previous = Some(run);
    }
    chunks_fill(sections, runs, chunks)
}

fn chunks_fill(
    sections: &Sections<'_>,
    runs: &[RunRecord],
    chunks: &[ChunkRecord],
) -> Result<(), ImageError> {
    let data = sections.find(SectionKind::PageData);
    let data =
        data.ok_or_else(|| sections.malformed(SectionKind::PageData, "there is no such section"))?;
    let (mut next_run, mut next_offset) = (0_u64, data.offset);
    for (index, chunk) in chunks.iter().enumerate() {
        let bad = |problem: String| {
            Err(sections.malformed(SectionKind::Chunks, format!("chunk {index}: {problem}")))
        };
        if u64::from(chunk.first_run) != next_run || chunk.runs == 0 {
            return bad(format!(
                "runs {} + {}, {next_run} expected",
                chunk.first_run, chunk.runs
            ));
        }
        next_run += u64::from(chunk.runs);
        let Some(mine) = runs.get(chunk.first_run as usize..next_run as usize) else {
            return bad(format!(
                "runs {} + {} of {}",
                chunk.first_run,
                chunk.runs,
                runs.len()
            ));
        };
        let bytes: u64 = mine.iter().map(|run| u64::from(run.bytes)).sum();
        if bytes != u64::from(chunk.bytes) || bytes > CHUNK_BYTES as u64 {
            return bad(format!("{} bytes, its runs have {bytes}", chunk.bytes));
        }
        if mine.iter().any(|run| run.space != mine[0].space) {
            return bad("runs of several spaces".into());
        }
        let Some(codec) = Codec::from_u32(chunk.codec) else {
            return bad(format!("codec {}", chunk.codec));
        };
        if chunk.stored_bytes > chunk.bytes
            || (codec == Codec::None) != (chunk.stored_bytes == chunk.bytes)
        {
            return bad(format!(
                "{} bytes stored for {}",
                chunk.stored_bytes, chunk.bytes
            ));
        }
        if chunk.offset != next_offset {
            return bad(format!("at {} instead of {next_offset}", chunk.offset));
        }
        next_offset += u64::from(chunk.stored_bytes);
    }
    if next_run != runs.len() as u64 {
        return Err(sections.malformed(
            SectionKind::Runs,
            format!("{} runs, chunks hold {next_run}", runs.len()),
        ));
    }
    if next_offset != data.offset + data.bytes {
        return Err(sections.malformed(
            SectionKind::PageData,
            format!("{} bytes, chunks end at {next_offset}", data.bytes),
        ));
    }
    let found = page_data_checksum(chunks);
    if found != data.checksum {
        return Err(ImageError::Checksum {
            path: sections.path.to_owned(),
            offset: data.offset,
            field: "page data".into(),
            found,
            expected: data.checksum,
        });
    }
    Ok(())
}
