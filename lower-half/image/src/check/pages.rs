//! Runs, and the chunks that hold them.

use crate::compression::Codec;
use crate::error::ImageError;
use crate::format::{
    CHUNK_BYTES, ChunkRecord, HEADER_BYTES, NOWHERE, RunRecord, SectionKind, TRAILER_BYTES,
};
use crate::origins::{Origin, Tables};
use crate::sections::Sections;
use crate::sums::page_data_checksum;
use crate::tables::Region;
use crate::writer::Content;

/// Runs lie inside regions and contents and do not overlap; chunks hold each run once, and fill the page data section, or lie
/// where page data of their origins can be.
pub(crate) fn pages(
    sections: &Sections<'_>,
    regions: &[Region],
    contents: &[Content],
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
    let own = tables
        .chunks
        .iter()
        .take_while(|chunk| chunk.origin == 0)
        .count();
    let (own, carried) = tables.chunks.split_at(own);
    whole(sections, tables)?;
    own_fill(sections, own)?;
    carried_lie(sections, carried, own.len(), &tables.origins)
}

fn said(run: &RunRecord, problem: &str) -> String {
    format!(
        "{:#x} + {} in space {}: {problem}",
        run.address, run.bytes, run.space
    )
}

/// A run that overlaps another one of its space. None of them may wrap around.
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

/// Each chunk by itself: its runs follow those of the one before it and have its bytes, all of one space; dead ones only, and not
/// nothing else, where it is carried.
fn whole(sections: &Sections<'_>, tables: &Tables) -> Result<(), ImageError> {
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
            return bad(format!("{} bytes, its runs have {bytes}", chunk.bytes));
        }
        let allowed = |run: &RunRecord| match chunk.origin {
            0 => run.space == mine[0].space && run.space != NOWHERE,
            _ => run.space == 0 || run.space == NOWHERE,
        };
        if !mine.iter().all(allowed) {
            return bad("runs of several spaces".into());
        }
        if mine.iter().all(|run| run.space == NOWHERE) {
            return bad("nothing of it is memory".into());
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
            format!("{} runs, chunks hold {next_run}", runs.len()),
        ));
    }
    Ok(())
}

/// The file's own chunks leave no gap.
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

/// Carried chunks are in order, none twice, inside their origins; and every origin has one.
fn carried_lie(
    sections: &Sections<'_>,
    chunks: &[ChunkRecord],
    first: usize,
    origins: &[Origin],
) -> Result<(), ImageError> {
    let (mut at, mut next_offset) = (0, HEADER_BYTES);
    for (index, chunk) in (first..).zip(chunks) {
        let bad = |problem: String| bad_chunk(sections, index, problem);
        let of = (chunk.origin as usize).checked_sub(1);
        let Some(origin) = of.and_then(|of| origins.get(of)) else {
            return bad(format!("origin {} of {}", chunk.origin, origins.len()));
        };
        if chunk.origin != at {
            if chunk.origin != at + 1 {
                return bad(format!("origin {} after origin {at}", chunk.origin));
            }
            (at, next_offset) = (chunk.origin, HEADER_BYTES);
        }
        let last = origin.bytes - TRAILER_BYTES;
        let end = chunk.offset.checked_add(u64::from(chunk.stored_bytes));
        let Some(end) = end.filter(|end| chunk.offset >= next_offset && *end <= last) else {
            return bad(format!(
                "{} + {} in epoch {}, where {next_offset} to {last} are left",
                chunk.offset, chunk.stored_bytes, origin.epoch
            ));
        };
        next_offset = end;
    }
    if at as usize != origins.len() {
        let problem = format!("{}, but chunks lie in {at} of them", origins.len());
        return Err(sections.malformed(SectionKind::Origins, problem));
    }
    Ok(())
}
