//! Tests of the sections' contents, with right checksums.

use proptest::prelude::*;
use stillpoint_image::format::{
    ChunkRecord, ContentRecord, RegionRecord, RunRecord, SectionKind, ThreadRecord,
};

use stillpoint_image::{Compression, PageRun, Reader, Writer, inspect, verify};

use super::carried::carrying;
use super::{Sample, sample, says};
use crate::common;
use crate::common::patch::Patch;

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
    says(&region(|region| region.end = !4095), &["region 1"]);
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
fn threads_that_cannot_be() {
    let wrong = |words: &[&str], change: fn(&mut ThreadRecord)| {
        let text = sample().changed(|patch| patch.record(SectionKind::Threads, 0, change));
        says(&text, &[&["offset", "thread 0"], words].concat());
    };
    wrong(&["id"], |thread| thread.virtual_tid = 0);
    wrong(&["id"], |thread| thread.virtual_tid = u32::MAX);
    wrong(&["flags"], |thread| thread.flags = 0);
    wrong(&["flags"], |thread| thread.flags |= 1 << 31);
    // Nowhere, in a gap, across an end, above all addresses.
    for address in [
        |thread: &mut ThreadRecord| thread.stop_frame = 0,
        |thread: &mut ThreadRecord| thread.stop_frame = 0x1000_0018_0000,
        |thread: &mut ThreadRecord| thread.stop_frame = 0x1000_0010_0000 - 100,
        |thread: &mut ThreadRecord| thread.stop_frame = u64::MAX - 8,
    ] {
        wrong(
            &["stop frame", "is not in readable and writable memory"],
            address,
        );
    }
    wrong(&["thread pointer"], |thread| thread.thread_pointer = 0);
    wrong(&["thread pointer"], |thread| {
        thread.thread_pointer = 0xffff_8000_0000_0000
    });
    wrong(&["address of its id"], |thread| {
        thread.clear_child_tid = u64::MAX
    });
    wrong(&["robust list"], |thread| thread.robust_list = 1 << 63);
    wrong(&["length of the robust list"], |thread| {
        thread.robust_list = 0x1000_0000_1000;
        thread.robust_list_bytes = 25;
    });
    wrong(&["pending signals"], |thread| {
        thread.pending_signals = 1 << 8
    });
    wrong(&["name"], |thread| thread.name = [b'x'; 16]);
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

/// Makes an image with so many stretches that their table is packed.
fn scattered() -> Sample {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    let bytes = common::some_bytes(1, 100);
    let mut writer = Writer::create(&path, Compression::None).unwrap();
    let stretch = |number: u64| PageRun {
        address: 0x1000_0000_0000 + 512 * number,
        bytes: bytes[..1 + number as usize * 7 % 100].into(),
    };
    let stretches: Vec<PageRun<'_>> = (0..2000).map(stretch).collect();
    writer.memory(&stretches).unwrap();
    common::the_rest(writer, &common::identity());
    let read = Reader::open(&path).unwrap();
    let lengths: usize = stretches.iter().map(|stretch| stretch.bytes.len()).sum();
    assert_eq!(read.tables().runs.len(), 2001);
    assert_eq!(read.chunks()[0].bytes as usize, lengths);
    Sample {
        bytes: std::fs::read(&path).unwrap(),
        _directory: directory,
        path,
    }
}

#[test]
fn packed_runs_that_cannot_be() {
    let wrong = |words: &[&str], change: fn(&mut [u8])| {
        let text =
            scattered().changed(|patch| patch.section_bytes(SectionKind::PackedRuns, change));
        says(&text, &[&["packed runs"], words].concat());
    };
    wrong(&["2000000000 runs"], |bytes| {
        bytes[..8].copy_from_slice(&2_000_000_000_u64.to_le_bytes());
    });
    wrong(&["columns of"], |bytes| bytes[12] = 1);
    wrong(&["zstd"], |bytes| bytes[16] ^= 1);
    // In the place of the plain table it is not valid, and an older image does not know it.
    let (index, _) = Patch {
        bytes: scattered().bytes,
    }
    .section(SectionKind::PackedRuns);
    let kind = SectionKind::Runs as u32;
    let text = scattered().changed(|patch| patch.table_record(index, |record| record.kind = kind));
    says(&text, &["runs", "whole number of records"]);
    let text = scattered().changed(|patch| patch.change_header(|header| header.version = 3));
    says(&text, &["section kind", "14 is unknown"]);
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
    // lz4's bytes are not a zstd frame: decompression itself has to notice.
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

    /// Many changes with right section checksums: the reader never panics.
    #[test]
    fn changed_records_never_panic(changes in prop::collection::vec((0_usize..13, any::<u16>(), any::<u8>()), 1..12), carries in any::<bool>()) {
        let sample = if carries { carrying() } else { sample() };
        let path = &sample.path;
        let mut patch = Patch { bytes: sample.bytes.clone() };
        for (kind, place, value) in changes {
            let kind = SectionKind::ALL[kind];
            if kind == SectionKind::PageData || (kind == SectionKind::Origins && !carries) {
                continue;
            }
            patch.section_bytes(kind, |bytes| {
                let length = bytes.len().max(1);
                if let Some(byte) = bytes.get_mut(usize::from(place) % length) {
                    *byte = value;
                }
            });
        }
        std::fs::write(path, &patch.bytes).unwrap();
        let _ = verify(path, 2);
        if let Ok(reader) = Reader::open(path) {
            for number in 0..3 {
                let _ = reader.content_bytes(number, 1 << 20);
            }
        }
    }
}
