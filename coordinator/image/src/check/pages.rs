//! Checks of runs, and of the chunks that hold them.

use stillpoint_ids::Rank;

use crate::compression::Codec;
use crate::devices::DeviceMemory;
use crate::error::ImageError;
use crate::format::{
    CHUNK_BYTES, ChunkRecord, HEADER_BYTES, NOWHERE, RunRecord, SectionKind, TRAILER_BYTES,
};
use crate::origins::{Holder, Tables};
use crate::sections::Sections;
use crate::sums::page_data_checksum;
use crate::tables::{Content, Region};

/// Checks that runs lie inside regions and contents and do not overlap. Chunks hold each run once; they fill the page data section, or lie
/// where page data of their origins can be.
pub(crate) fn pages(
    sections: &Sections<'_>,
    rank: Rank,
    regions: &[Region],
    contents: &[Content],
    devices: &[DeviceMemory],
    tables: &Tables,
) -> Result<(), ImageError> {
    for run in &tables.runs {
        let bad = |problem: &str| Err(sections.malformed(SectionKind::Runs, said(run, problem)));
        let Some(end) = run.address.checked_add(u64::from(run.bytes)) else {
            return bad("wraps around");
        };
        if run.bytes == 0 || run.bytes as usize > CHUNK_BYTES {
            return bad("impossible length");
        }
        let inside = match run.space {
            NOWHERE => run.address == 0,
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
    }
    if let Some(run) = overlapping(&tables.runs) {
        let problem = said(run, "overlaps another run");
        return Err(sections.malformed(SectionKind::Runs, problem));
    }
    let others = tables.chunks.iter().position(|chunk| chunk.origin != 0);
    let own = &tables.chunks[..others.unwrap_or(tables.chunks.len())];
    whole(sections, devices, tables)?;
    own_fill(sections, own)?;
    others_lie(sections, tables, own.len(), |holder, chunk| match holder {
        Holder::Itself => Err("it lies in this image, but follows chunks of others".to_owned()),
        Holder::Origin(number) => {
            let origin = &tables.origins[number];
            Ok((
                format!("epoch {}", origin.epoch),
                origin.bytes - TRAILER_BYTES,
            ))
        }
        Holder::Sibling(number) if tables.siblings[number] != rank => {
            // Its length is known only when it is read.
            let place = format!("rank {}'s image", tables.siblings[number]);
            Ok((place, i64::MAX as u64))
        }
        Holder::Sibling(_) => {
            let same = own.binary_search_by_key(&chunk.offset, |own| own.offset);
            match same.is_ok_and(|index| is_same(&own[index], chunk)) {
                true => Ok(("its own image".to_owned(), u64::MAX)),
                false => Err(format!("its own image has no chunk at {}", chunk.offset)),
            }
        }
    })
}

/// Returns whether two records name the same chunk of the same file.
fn is_same(one: &ChunkRecord, other: &ChunkRecord) -> bool {
    let what = |chunk: &ChunkRecord| {
        let ChunkRecord {
            offset,
            checksum,
            stored_bytes,
            bytes,
            codec,
            ..
        } = *chunk;
        (offset, checksum, stored_bytes, bytes, codec)
    };
    what(one) == what(other)
}

fn said(run: &RunRecord, problem: &str) -> String {
    format!(
        "{:#x} + {} in space {}: {problem}",
        run.address, run.bytes, run.space
    )
}

/// Finds a run that overlaps another one of its space. No run in the list may wrap around.
pub(crate) fn overlapping(runs: &[RunRecord]) -> Option<&RunRecord> {
    let mut order: Vec<&RunRecord> = runs.iter().filter(|run| run.space != NOWHERE).collect();
    order.sort_unstable_by_key(|run| (run.space, run.address));
    let overlap = |pair: &&[&RunRecord]| {
        let [one, next] = [pair[0], pair[1]];
        one.space == next.space && one.address + u64::from(one.bytes) > next.address
    };
    order.windows(2).find(overlap).map(|pair| pair[1])
}

fn bad_chunk(sections: &Sections<'_>, index: usize, problem: String) -> Result<(), ImageError> {
    Err(sections.malformed(SectionKind::Chunks, format!("chunk {index}: {problem}")))
}

/// Checks each chunk by itself: its runs follow those of the chunk before it, have its bytes, and are all of one space. In a carried chunk,
/// some runs may be dead, but not all; and the space is memory or a device's.
fn whole(
    sections: &Sections<'_>,
    devices: &[DeviceMemory],
    tables: &Tables,
) -> Result<(), ImageError> {
    let runs = &tables.runs;
    let mut next_run = 0_u64;
    for (index, chunk) in tables.chunks.iter().enumerate() {
        let bad = |problem: String| bad_chunk(sections, index, problem);
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
            return bad(format!(
                "it has {} bytes, but its runs have {bytes}",
                chunk.bytes
            ));
        }
        let live = mine.iter().find(|run| run.space != NOWHERE);
        let space = live.map_or(NOWHERE, |run| run.space);
        let is_devices = devices.iter().any(|device| device.content == space);
        let allowed = |run: &RunRecord| match chunk.origin {
            0 => run.space == space && space != NOWHERE,
            _ => run.space == NOWHERE || run.space == space && (space == 0 || is_devices),
        };
        if !mine.iter().all(allowed) {
            return bad("its runs lie in several spaces".into());
        }
        if mine.iter().all(|run| run.space == NOWHERE) {
            return bad("it holds no memory".into());
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
    }
    if next_run != runs.len() as u64 {
        return Err(sections.malformed(
            SectionKind::Runs,
            format!("{} runs, but the chunks hold {next_run}", runs.len()),
        ));
    }
    Ok(())
}

/// Checks that the file's own chunks leave no gap.
fn own_fill(sections: &Sections<'_>, chunks: &[ChunkRecord]) -> Result<(), ImageError> {
    let data = sections.find(SectionKind::PageData);
    let data =
        data.ok_or_else(|| sections.malformed(SectionKind::PageData, "there is no such section"))?;
    let mut next_offset = data.offset;
    for (index, chunk) in chunks.iter().enumerate() {
        if chunk.offset != next_offset {
            let problem = format!("at {} instead of {next_offset}", chunk.offset);
            return bad_chunk(sections, index, problem);
        }
        next_offset += u64::from(chunk.stored_bytes);
    }
    if next_offset != data.offset + data.bytes {
        return Err(sections.malformed(
            SectionKind::PageData,
            format!("{} bytes, but the chunks end at {next_offset}", data.bytes),
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

/// Checks that chunks in other images are in order and inside those images. `lies` returns an image's name and its end. Every one of the
/// images holds such a chunk. Records of the same chunk stand side by side.
fn others_lie(
    sections: &Sections<'_>,
    tables: &Tables,
    first: usize,
    lies: impl Fn(Holder, &ChunkRecord) -> Result<(String, u64), String>,
) -> Result<(), ImageError> {
    let images = tables.origins.len() + tables.siblings.len();
    let mut previous: Option<&ChunkRecord> = None;
    for (index, chunk) in (first..).zip(&tables.chunks[first..]) {
        let bad = |problem: String| bad_chunk(sections, index, problem);
        if chunk.origin == 0 || chunk.origin as usize > images {
            return bad(format!("origin {} of {images}", chunk.origin));
        }
        let at = previous.map_or(0, |previous| previous.origin);
        if chunk.origin != at && chunk.origin != at + 1 {
            return bad(format!("origin {} after origin {at}", chunk.origin));
        }
        let left = match previous.filter(|_| chunk.origin == at) {
            Some(previous) if is_same(previous, chunk) => chunk.offset,
            Some(previous) => previous.offset + u64::from(previous.stored_bytes),
            None => HEADER_BYTES,
        };
        let (place, last) = match lies(tables.holder(chunk), chunk) {
            Ok(found) => found,
            Err(problem) => return bad(problem),
        };
        let end = chunk.offset.checked_add(u64::from(chunk.stored_bytes));
        if chunk.offset < left || end.is_none_or(|end| end > last) {
            return bad(format!(
                "{} + {} in {place} is outside of {left} to {last}",
                chunk.offset, chunk.stored_bytes
            ));
        }
        previous = Some(chunk);
    }
    let reached = previous.map_or(0, |previous| previous.origin) as usize;
    if reached != images {
        let kind = match reached < tables.origins.len() {
            true => SectionKind::Origins,
            false => SectionKind::Siblings,
        };
        let problem = format!("{images}, but chunks lie in {reached} of them");
        return Err(sections.malformed(kind, problem));
    }
    Ok(())
}
