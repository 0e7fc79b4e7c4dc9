//! Every way in which an image can be broken: each is noticed, and said in a way that names the file, the
//! place and the field.

mod common;
#[path = "common/patch.rs"]
mod patch;

use std::path::{Path, PathBuf};

use patch::Patch;
use proptest::prelude::*;
use stillpoint_image::format::{
    ChunkRecord, ContentRecord, RegionRecord, RunRecord, SectionKind, VERSION,
};
use stillpoint_image::{Compression, ImageError, Reader, inspect, verify};

struct Sample {
    _directory: tempfile::TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
}

fn sample() -> Sample {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    common::write(&path, Compression::Lz4);
    let bytes = std::fs::read(&path).unwrap();
    Sample {
        _directory: directory,
        path,
        bytes,
    }
}

impl Sample {
    /// What `verify` says of these bytes.
    fn error(&self, bytes: &[u8]) -> ImageError {
        std::fs::write(&self.path, bytes).unwrap();
        verify(&self.path, 1).unwrap_err()
    }

    /// What `verify` says of the image with a change whose checksums are right.
    fn changed(&self, change: impl FnOnce(&mut Patch)) -> String {
        let mut patch = Patch {
            bytes: self.bytes.clone(),
        };
        change(&mut patch);
        assert_ne!(patch.bytes, self.bytes);
        let text = self.error(&patch.bytes).to_string();
        assert!(text.starts_with(self.path.to_str().unwrap()), "{text}");
        assert!(!text.contains('\n'), "{text}");
        text
    }
}

#[track_caller]
fn says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "'{word}' is missing in: {text}");
    }
}

#[test]
fn a_missing_file() {
    let error = verify(Path::new("/nowhere/rank-000000.img"), 1)
        .unwrap_err()
        .to_string();
    says(
        &error,
        &["/nowhere/rank-000000.img", "choose another epoch"],
    );
}

#[test]
fn something_that_is_no_file() {
    assert!(matches!(
        verify(Path::new("/dev"), 1),
        Err(ImageError::NotOurs { .. })
    ));
}

#[test]
fn another_files_bytes() {
    let sample = sample();
    assert!(matches!(
        sample.error(b"\x7fELF and so on, longer than a header, much longer than a header, yes"),
        ImageError::NotOurs { .. }
    ));
    assert!(matches!(
        sample.error(b"#!/bin/sh\n"),
        ImageError::NotOurs { .. }
    ));
}

#[test]
fn an_empty_file() {
    assert!(matches!(
        sample().error(b""),
        ImageError::Truncated { found: 0, .. }
    ));
}

#[test]
fn another_version() {
    let text = sample().changed(|patch| patch.change_header(|header| header.version = VERSION + 1));
    says(
        &text,
        &[
            "offset 8",
            "format version 2",
            "reads version 1",
            "use the Stillpoint release",
        ],
    );
}

#[test]
fn another_byte_order() {
    let text = sample().changed(|patch| {
        patch.change_header(|header| header.byte_order = header.byte_order.swap_bytes())
    });
    says(&text, &["offset 12", "other byte order"]);
}

#[test]
fn a_nonsensical_byte_order() {
    says(
        &sample().changed(|patch| patch.change_header(|header| header.byte_order = 7)),
        &["byte order"],
    );
}

#[test]
fn cut_off_anywhere() {
    let sample = sample();
    let table = Patch {
        bytes: sample.bytes.clone(),
    }
    .table();
    let mut ends: Vec<usize> = table.iter().map(|record| record.offset as usize).collect();
    ends.extend([
        0,
        1,
        7,
        8,
        63,
        64,
        65,
        sample.bytes.len() - 24,
        sample.bytes.len() - 1,
    ]);
    for end in ends {
        let error = sample.error(&sample.bytes[..end]);
        assert!(
            matches!(error, ImageError::Truncated { .. }),
            "cut at {end}: {error}"
        );
        says(&error.to_string(), &["truncated", "use another epoch"]);
    }
}

#[test]
fn bytes_behind_the_end() {
    let sample = sample();
    let mut bytes = sample.bytes.clone();
    bytes.push(0);
    says(&sample.error(&bytes).to_string(), &["1 bytes too many"]);
}

#[test]
fn one_bit_flipped_anywhere() {
    let sample = sample();
    // Every byte of what is small; page data at a stride that meets every chunk many times.
    let data_end = Patch {
        bytes: sample.bytes.clone(),
    }
    .section(SectionKind::PageData)
    .1;
    let data_end = (data_end.offset + data_end.bytes) as usize;
    let places = (0..64)
        .chain((64..data_end).step_by(101))
        .chain(data_end..sample.bytes.len());
    for (count, place) in places.enumerate() {
        let mut bytes = sample.bytes.clone();
        bytes[place] ^= 1 << (count % 8);
        let text = sample.error(&bytes).to_string();
        assert!(
            text.starts_with(sample.path.to_str().unwrap()),
            "byte {place}: {text}"
        );
    }
}

#[test]
fn too_many_sections() {
    let text =
        sample().changed(|patch| patch.change_header(|header| header.section_count = u32::MAX));
    says(&text, &["section count", "4294967295"]);
}

#[test]
fn a_section_table_somewhere_else() {
    for offset in [0, u64::MAX, u64::MAX - 100] {
        let text =
            sample().changed(|patch| patch.change_header(|header| header.table_offset = offset));
        says(&text, &["section table offset"]);
    }
}

#[test]
fn an_absurd_length_in_the_header() {
    let text = sample().changed(|patch| {
        patch.change_header(|header| {
            let more = 1 << 60;
            header.file_bytes += more;
            header.table_offset += more;
        })
    });
    says(&text, &["truncated", "file length"]);
}

#[test]
fn sections_that_leave_gaps_or_overlap() {
    let text = sample().changed(|patch| patch.table_record(2, |record| record.offset += 8));
    says(&text, &["section offset"]);
    let text = sample().changed(|patch| patch.table_record(2, |record| record.offset -= 8));
    says(&text, &["section offset"]);
}

#[test]
fn a_section_longer_than_the_file() {
    for bytes in [u64::MAX, 1 << 62, 1 << 30] {
        let text = sample().changed(|patch| patch.table_record(1, |record| record.bytes = bytes));
        says(&text, &["section length"]);
    }
}

#[test]
fn a_section_of_an_unknown_kind_or_twice() {
    let text = sample().changed(|patch| patch.table_record(1, |record| record.kind = 99));
    says(&text, &["section kind", "99"]);
    let text = sample()
        .changed(|patch| patch.table_record(1, |record| record.kind = SectionKind::Runs as u32));
    says(&text, &["section kind", "runs is there twice"]);
}

#[test]
fn a_section_that_is_missing() {
    for kind in [
        SectionKind::Identity,
        SectionKind::Regions,
        SectionKind::Chunks,
        SectionKind::Strings,
    ] {
        // It becomes a blob, which may be there any number of times.
        let text = sample().changed(|patch| {
            let (index, _) = patch.section(kind);
            patch.table_record(index, |record| record.kind = SectionKind::Blob as u32);
        });
        says(&text, &[kind.name(), "there is no such section"]);
    }
}

#[test]
fn text_that_is_no_text() {
    let text = sample()
        .changed(|patch| patch.section_bytes(SectionKind::Strings, |bytes| bytes[2] = 0xff));
    says(&text, &["strings", "not UTF-8"]);
    let text = sample()
        .changed(|patch| patch.section_bytes(SectionKind::Identity, |bytes| bytes[0] = b'x'));
    says(&text, &["identity", "line 1"]);
}

fn region(change: impl FnOnce(&mut RegionRecord)) -> String {
    sample().changed(|patch| patch.record(SectionKind::Regions, 1, change))
}

#[test]
fn regions_that_cannot_be() {
    says(
        &region(|region| region.end = region.start),
        &["regions", "region 1"],
    );
    says(&region(|region| region.start += 1), &["region 1"]);
    says(
        &region(|region| region.end = u64::MAX & !4095),
        &["region 1"],
    );
    says(
        &region(|region| region.start = 0x1000_0000_1000),
        &["overlaps"],
    );
    says(&region(|region| region.kind = 77), &["kind 77"]);
    says(
        &region(|region| region.protection = 64),
        &["protection 0x40"],
    );
    says(&region(|region| region.content = 2), &["content 2 of 1"]);
    says(&region(|region| region.name_offset = u32::MAX), &["name"]);
    says(&region(|region| region.name_bytes = u32::MAX), &["name"]);
}

#[test]
fn contents_that_cannot_be() {
    let content = |change: fn(&mut ContentRecord)| {
        sample().changed(|patch| patch.record(SectionKind::Contents, 0, change))
    };
    says(&content(|content| content.bytes = u64::MAX), &["contents"]);
    says(
        &content(|content| content.name_bytes = 10_000),
        &["name of content 1"],
    );
    says(
        &content(|content| content.bytes = 4096),
        &["runs", "outside"],
    );
}

fn run(change: impl FnOnce(&mut RunRecord)) -> String {
    sample().changed(|patch| patch.record(SectionKind::Runs, 1, change))
}

#[test]
fn runs_that_cannot_be() {
    says(
        &run(|run| run.address = 0x1000_0000_0000),
        &["runs", "overlaps"],
    );
    says(&run(|run| run.address = u64::MAX - 10), &["wraps around"]);
    says(&run(|run| run.address = 0x5000_0000_0000), &["outside"]);
    says(&run(|run| run.bytes = 0), &["impossible length"]);
    says(&run(|run| run.bytes = u32::MAX), &["impossible length"]);
    says(&run(|run| run.space = 9), &["outside"]);
    says(&run(|run| run.bytes -= 4096), &["chunk 0"]);
}

fn chunk(change: impl FnOnce(&mut ChunkRecord)) -> String {
    sample().changed(|patch| patch.record(SectionKind::Chunks, 0, change))
}

#[test]
fn chunks_that_cannot_be() {
    says(
        &chunk(|chunk| chunk.offset += 1),
        &["chunk 0", "at 65 instead of 64"],
    );
    says(&chunk(|chunk| chunk.offset = u64::MAX), &["chunk 0"]);
    says(&chunk(|chunk| chunk.first_run = 1), &["chunk 0"]);
    says(&chunk(|chunk| chunk.runs = 0), &["chunk 0"]);
    says(&chunk(|chunk| chunk.runs = u32::MAX), &["chunk 0"]);
    says(&chunk(|chunk| chunk.bytes = u32::MAX), &["chunk 0"]);
    says(&chunk(|chunk| chunk.codec = 5), &["codec 5"]);
    says(
        &chunk(|chunk| chunk.stored_bytes = chunk.bytes + 1),
        &["bytes stored"],
    );
    says(&chunk(|chunk| chunk.stored_bytes -= 1), &["chunk 1"]);
    says(
        &chunk(|chunk| chunk.checksum ^= 1),
        &["page data", "checksum"],
    );
    // lz4's bytes are no zstd frame: decompression itself has to notice.
    says(&chunk(|chunk| chunk.codec = 2), &["page data", "zstd"]);
}

#[test]
fn a_trailer_of_another_image() {
    let sample = sample();
    let mut bytes = sample.bytes.clone();
    let end = bytes.len();
    bytes[end - 1] ^= 1;
    says(&sample.error(&bytes).to_string(), &["trailer"]);
}

#[test]
fn two_blobs_of_one_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    let mut writer = stillpoint_image::Writer::create(&path, Compression::None).unwrap();
    writer.identity(&common::identity()).unwrap();
    writer.environment(&common::environment()).unwrap();
    writer.regions(&[]).unwrap();
    writer.threads(&[]).unwrap();
    writer.descriptors(&Default::default()).unwrap();
    writer.blob("gate", 1, b"").unwrap();
    writer.blob("gate", 1, b"").unwrap();
    writer.finish().unwrap();
    says(
        &Reader::open(&path).unwrap_err().to_string(),
        &["two blobs named 'gate'"],
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Random bytes behind a sound magic: an error, never a panic, never a huge allocation.
    #[test]
    fn random_bytes_are_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..600), sound in any::<bool>()) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        if sound && bytes.len() >= 16 {
            bytes[..8].copy_from_slice(b"STILLIMG");
            bytes[8..12].copy_from_slice(&1u32.to_le_bytes());
            bytes[12..16].copy_from_slice(&0x0102_0304u32.to_le_bytes());
        }
        std::fs::write(&path, &bytes).unwrap();
        prop_assert!(verify(&path, 1).is_err());
        prop_assert!(inspect(&path).is_err());
    }

    /// Many changes whose section checksums are right: whatever comes of it, no panic.
    #[test]
    fn changed_records_never_panic(changes in prop::collection::vec((0_usize..12, any::<u16>(), any::<u8>()), 1..12)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        common::write(&path, Compression::Lz4);
        let mut patch = Patch { bytes: std::fs::read(&path).unwrap() };
        for (kind, place, value) in changes {
            let kind = SectionKind::ALL[kind];
            if kind == SectionKind::PageData {
                continue;
            }
            patch.section_bytes(kind, |bytes| {
                let length = bytes.len().max(1);
                if let Some(byte) = bytes.get_mut(usize::from(place) % length) {
                    *byte = value;
                }
            });
        }
        std::fs::write(&path, &patch.bytes).unwrap();
        let _ = verify(&path, 2);
        if let Ok(reader) = Reader::open(&path) {
            for number in 0..3 {
                let _ = reader.content_bytes(number, 1 << 20);
            }
        }
    }
}
