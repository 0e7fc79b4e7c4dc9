//! Tests that an image with chunks in others of its epoch is refused if it says impossible things of them.

use stillpoint_ids::Rank;
use stillpoint_image::format::{ChunkRecord, SectionKind};
use stillpoint_image::{
    Compression, Identity, Index, PageRun, Reader, Region, Sharing, Writer, image_name, verify,
};

use super::{Sample, says};
use crate::common;
use crate::common::patch::Patch;

const START: u64 = 0x1000_0000_0000;
const BYTES: usize = 128 << 10;

/// Bytes that cannot be compressed.
fn random(bytes: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let byte = |_| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..bytes).map(byte).collect()
}

/// Returns the table of an epoch in which rank 0 has written the same before.
fn words() -> &'static [std::sync::atomic::AtomicU64] {
    let words = (0..Index::words_for(1 << 20)).map(|_| Default::default());
    words.collect::<Vec<_>>().leak()
}

/// Makes rank 1's image: one chunk of its own, which two stretches of memory have, and one that rank 0's image has.
pub fn sharing() -> Sample {
    let directory = tempfile::tempdir().unwrap();
    let words = words();
    let (own, table) = (random(BYTES), random(2 * BYTES).split_off(BYTES));
    let stretches: [&[&[u8]]; 2] = [&[&table], &[&own, &own, &table]];
    for (rank, stretches) in Rank::of_each(stretches) {
        let path = directory.path().join(image_name(rank));
        let mut writer = Writer::create(&path, Compression::Lz4).unwrap();
        writer.share(Sharing::with(Index::in_words(words), rank));
        let regions = (0..).zip(stretches).map(|(number, bytes)| Region {
            start: START + (number << 20),
            end: START + (number << 20) + bytes.len() as u64,
            ..Region::default()
        });
        let regions: Vec<Region> = regions.collect();
        for (region, bytes) in regions.iter().zip(stretches) {
            let run = PageRun {
                address: region.start,
                bytes: (*bytes).into(),
            };
            writer.memory(&[run]).unwrap();
        }
        let identity = Identity {
            rank,
            ..common::identity()
        };
        writer.identity(&identity).unwrap();
        writer.environment(&common::environment()).unwrap();
        writer.regions(&regions).unwrap();
        writer.threads(&[]).unwrap();
        writer.descriptors(&Default::default()).unwrap();
        writer.finish().unwrap();
    }
    let path = directory.path().join(image_name(Rank(1)));
    verify(&path, 1).unwrap();
    Sample {
        bytes: std::fs::read(&path).unwrap(),
        path,
        _directory: directory,
    }
}

/// Returns the indices of the shared chunks in each image: the first in rank 0's image, the last in its own.
fn shared() -> [usize; 2] {
    let sample = sharing();
    let reader = Reader::open(&sample.path).unwrap();
    assert_eq!(reader.tables().siblings, [0, 1].map(Rank));
    let place = |origin: u32| {
        let mut chunks = reader.chunks().iter();
        chunks.position(|chunk| chunk.origin == origin).unwrap()
    };
    [place(1), place(2)]
}

fn chunk(index: usize, change: impl FnOnce(&mut ChunkRecord)) -> String {
    sharing().changed(|patch| patch.record(SectionKind::Chunks, index, change))
}

#[test]
fn chunks_that_no_image_has() {
    let [other, itself] = shared();
    let own = itself..itself + 1;
    let last = own.end - 1;
    says(&chunk(last, |chunk| chunk.origin = 3), &["origin 3 of 2"]);
    says(&chunk(other, |chunk| chunk.origin = 2), &["after origin 0"]);
    says(&chunk(itself, |chunk| chunk.origin = 0), &["page data"]);
    for change in [
        |chunk: &mut ChunkRecord| chunk.offset += 1,
        |chunk: &mut ChunkRecord| chunk.offset = u64::MAX,
        |chunk: &mut ChunkRecord| chunk.checksum ^= 1,
    ] {
        says(&chunk(itself, change), &["its own image has no chunk at"]);
    }
    for offset in [0, 63, u64::MAX, 1 << 63] {
        let text = chunk(other, |chunk| chunk.offset = offset);
        says(&text, &["in rank 0's image", "is outside of"]);
    }
    // Other bytes of that image, or none: the error names the image.
    let named = |change: fn(&mut ChunkRecord)| {
        let sample = sharing();
        let mut patch = Patch {
            bytes: sample.bytes.clone(),
        };
        patch.record(SectionKind::Chunks, other, change);
        sample.error(&patch.bytes).to_string()
    };
    let text = named(|chunk| chunk.checksum ^= 1);
    says(&text, &["rank-000000.img", "page data", "checksum"]);
    let text = named(|chunk| chunk.offset = 1 << 40);
    says(&text, &["rank-000000.img", "truncated"]);
}

#[test]
fn siblings_that_cannot_be() {
    for (text, problem) in [
        ("[1,0]", "not in ascending order"),
        ("[0,0]", "not in ascending order"),
        ("[0,2]", "rank 2 does not exist in a job of 2"),
        ("[1]", "its own image has no chunk"),
        ("[]", "origin 1 of 0"),
        ("[0]", "origin 2 of 1"),
        ("[0,x]", "line 1"),
        ("{}", "invalid type"),
        ("[-1,0]", "invalid value"),
    ] {
        let sample = sharing();
        let mut patch = Patch {
            bytes: sample.bytes.clone(),
        };
        patch.replace_section(SectionKind::Siblings, text.as_bytes());
        says(&sample.error(&patch.bytes).to_string(), &[problem]);
    }
    let sample = sharing();
    let many: Vec<u32> = (0..2000).collect();
    let mut patch = Patch {
        bytes: sample.bytes.clone(),
    };
    patch.replace_section(SectionKind::Siblings, &serde_json::to_vec(&many).unwrap());
    let text = sample.error(&patch.bytes).to_string();
    says(&text, &["siblings: 2000 are too many, at most 1024"]);
}

#[test]
fn an_earlier_format_has_no_siblings() {
    let text = sharing().changed(|patch| patch.change_header(|header| header.version = 3));
    says(&text, &["section kind", "15 is unknown"]);
}
