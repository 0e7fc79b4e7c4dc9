//! Tests that an image with chunks in earlier ones is refused if it says impossible things of them.

use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::format::{ChunkRecord, NOWHERE, RunRecord, SectionKind};
use stillpoint_image::{Compression, Identity, PageRun, Writer, epoch_name, image_name, verify};

use super::{Sample, says};
use crate::common;
use crate::common::patch::Patch;

/// Makes an image of epoch 4 with chunks in those of epochs 2 and 3, which lie beside it.
pub fn carrying() -> Sample {
    let directory = tempfile::tempdir().unwrap();
    let image = image_name(Rank(1));
    let path = |epoch: Epoch| directory.path().join(epoch_name(epoch)).join(&image);
    let mut base = None;
    for epoch in (2..=4).map(Epoch) {
        let path = path(epoch);
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let mut writer = Writer::create(&path, Compression::Lz4).unwrap();
        let bytes = common::some_bytes(epoch.0, 3 * common::PAGE);
        let mut changed = 0x1000_0000_0000..0x1000_0000_3000;
        if let Some(base) = &base {
            let base: &stillpoint_image::Base = base;
            changed = changed.start + epoch.0 * 256..changed.start + epoch.0 * 256 + 300;
            let unchanged = [0..changed.start, changed.end..u64::MAX];
            writer.carry(base.carry(&unchanged));
        }
        let length = (changed.end - changed.start) as usize;
        let run = PageRun {
            address: changed.start,
            bytes: bytes[..length].into(),
        };
        writer.memory(&[run]).unwrap();
        let identity = Identity {
            epoch,
            ..common::identity()
        };
        base = Some(common::the_rest(writer, &identity).base(epoch, Rank(1)));
    }
    let path = path(Epoch(4));
    verify(&path, 1).unwrap();
    Sample {
        bytes: std::fs::read(&path).unwrap(),
        path,
        _directory: directory,
    }
}

/// Changes a chunk. Chunks 0 and 1 are the image's own, memory and a content; 2 is epoch 2's, 3 is epoch 3's.
fn chunk(index: usize, change: impl FnOnce(&mut ChunkRecord)) -> String {
    carrying().changed(|patch| patch.record(SectionKind::Chunks, index, change))
}

#[test]
fn chunks_that_no_origin_has() {
    says(&chunk(2, |chunk| chunk.origin = 3), &["origin 3 of 2"]);
    says(
        &chunk(2, |chunk| chunk.origin = u32::MAX),
        &["chunk 2", "of 2"],
    );
    says(
        &chunk(2, |chunk| chunk.origin = 2),
        &["origin 2 after origin 0"],
    );
    says(
        &chunk(3, |chunk| chunk.origin = 1),
        &["epoch 2", "is outside of"],
    );
    says(
        &chunk(3, |chunk| chunk.origin = 0),
        &["chunk 3", "several spaces"],
    );
    says(&chunk(1, |chunk| chunk.origin = 1), &["chunk 1"]);
    says(
        &chunk(0, |chunk| chunk.origin = 1),
        &["page data", "chunks end at 64"],
    );
    for offset in [0, 63, 1 << 20, u64::MAX, u64::MAX - 10, 1 << 63] {
        let text = chunk(3, |chunk| chunk.offset = offset);
        says(&text, &["chunk 3", "in epoch 3", "is outside of"]);
    }
    // Other bytes of the same image: the error names that image.
    for change in [
        |chunk: &mut ChunkRecord| chunk.offset += 1,
        |chunk: &mut ChunkRecord| chunk.checksum ^= 1,
    ] {
        let sample = carrying();
        let mut patch = Patch {
            bytes: sample.bytes.clone(),
        };
        patch.record(SectionKind::Chunks, 3, change);
        let text = sample.error(&patch.bytes).to_string();
        says(
            &text,
            &["epoch-000003/rank-000001.img", "page data", "checksum"],
        );
    }
}

fn run(index: usize, change: impl FnOnce(&mut RunRecord)) -> String {
    carrying().changed(|patch| patch.record(SectionKind::Runs, index, change))
}

/// Runs 0 and 1 are the image's own; 2 to 6 are chunk 2's: live, dead, live; 3 has two or three.
#[test]
fn runs_that_cannot_be() {
    let sample = carrying();
    let reader = stillpoint_image::Reader::open(&sample.path).unwrap();
    let runs = &reader.tables().runs;
    let place =
        |wanted: &dyn Fn(&RunRecord) -> bool| 2 + runs[2..].iter().position(wanted).unwrap();
    let dead = place(&|run| run.space == NOWHERE);
    let live = place(&|run| run.space == 0);
    drop(reader);
    says(&run(dead, |run| run.address = 1), &["runs", "outside"]);
    says(&run(dead, |run| run.bytes = 0), &["impossible length"]);
    says(&run(dead, |run| run.bytes += 1), &["its runs have"]);
    says(
        &run(dead, |run| run.bytes = u32::MAX),
        &["impossible length"],
    );
    // A dead run would become memory that another run has.
    let again = |run: &mut RunRecord| {
        (run.space, run.address) = (0, 0x1000_0000_0000);
    };
    says(&run(dead, again), &["overlaps"]);
    says(&run(dead, |run| run.space = 1), &["overlaps"]);
    says(
        &run(dead, |run| (run.space, run.address) = (1, 8192)),
        &["outside"],
    );
    says(&run(live, |run| run.space = 1), &["outside"]);
    says(&run(live, |run| run.address += 100), &["overlaps"]);
    says(
        &run(live, |run| run.address = 0x1000_0010_0000 - 1),
        &["outside"],
    );
    let nowhere = |run: &mut RunRecord| (run.space, run.address) = (NOWHERE, 0);
    says(&run(0, nowhere), &["chunk 0", "several spaces"]);
}

#[test]
fn a_chunk_of_which_nothing_is_memory() {
    let text = carrying().changed(|patch| {
        let (_, chunks) = patch.section(SectionKind::Chunks);
        let at = chunks.offset as usize + 3 * size_of::<ChunkRecord>();
        let number = |from: usize| {
            let bytes = patch.bytes[at + from..at + from + 4].try_into().unwrap();
            u32::from_le_bytes(bytes) as usize
        };
        let (first, count) = (number(24), number(28));
        for index in first..first + count {
            patch.record::<RunRecord>(SectionKind::Runs, index, |run| {
                (run.space, run.address) = (NOWHERE, 0);
            });
        }
    });
    says(&text, &["chunk 3", "it holds no memory"]);
}

/// Replaces a stretch of the origins' text by one of the same length.
fn origins(from: &str, to: &str) -> String {
    carrying().changed(|patch| {
        patch.section_bytes(SectionKind::Origins, |bytes| {
            let text = std::str::from_utf8(bytes).unwrap();
            assert!(text.contains(from), "{text}");
            let changed = text.replacen(from, to, 1);
            bytes.copy_from_slice(&changed.into_bytes()[..bytes.len()]);
        });
    })
}

#[test]
fn origins_that_cannot_be() {
    for (from, to) in [
        ("epoch-000002", "/etc/passwds"),
        ("epoch-000002", "../../../etc"),
        ("epoch-000002", "epoch-000003"),
        ("epoch-000002", "epoch-000004"),
        ("epoch-000002", "epoch-00002/"),
        ("rank-000001.img", "../../../../etc"),
        ("rank-000001.img", "rank-000002.img"),
        ("rank-000001.img", "rank-00001.img "),
        ("rank-000001.img", "/ank-000001.img"),
    ] {
        says(
            &origins(from, to),
            &["origins", "do not name an image of epoch 2"],
        );
    }
    says(
        &origins("\"epoch\":2", "\"epoch\":4"),
        &["epoch 4 is not before epoch 4"],
    );
    says(
        &origins("\"epoch\":2", "\"epoch\":9"),
        &["is not before epoch 4"],
    );
    says(
        &origins("\"epoch\":3", "\"epoch\":2"),
        &["of epoch 2 is out of order"],
    );
    // The name may mean another rank's image, but there is none.
    says(
        &origins("rank-000001.img", "rank-000000.img"),
        &["it needs epoch 2", "rank-000000.img", "cannot be opened"],
    );
    says(
        &origins("\"epoch\":3", "\"epoch\":x"),
        &["origins", "line 1"],
    );
    says(&origins("\"file\"", "\"fill\""), &["origins", "file"]);
    says(&origins("\"digest\":\"", "\"digest\":\"x"), &["origins"]);
}

#[test]
fn lengths_and_digests_that_an_origin_has_not() {
    let sample = carrying();
    let reader = stillpoint_image::Reader::open(&sample.path).unwrap();
    let origin = reader.origins()[0].clone();
    let (bytes, digest) = (origin.bytes.to_string(), format!("{:032x}", origin.digest));
    let longer = (origin.bytes + 1).to_string();
    let said = origins(
        &format!("\"bytes\":{bytes}"),
        &format!("\"bytes\":{longer}"),
    );
    says(&said, &["it needs epoch 2", "bytes instead of"]);
    let none = "0".repeat(bytes.len() - 1);
    let said = origins(&format!("\"bytes\":{bytes}"), &format!("\"bytes\":{none}0"));
    says(&said, &["origins"]);
    let said = origins(&digest, &"0".repeat(32));
    says(&said, &["it needs epoch 2", "another image"]);
}

#[test]
fn more_origins_than_an_image_may_have() {
    let sample = carrying();
    let reader = stillpoint_image::Reader::open(&sample.path).unwrap();
    let origin = serde_json::to_value(&reader.origins()[0]).unwrap();
    let many: Vec<_> = (0..1000).map(|_| origin.clone()).collect();
    let text = serde_json::to_vec(&many).unwrap();
    let mut patch = Patch {
        bytes: sample.bytes.clone(),
    };
    patch.replace_section(SectionKind::Origins, &text);
    says(
        &sample.error(&patch.bytes).to_string(),
        &["origins: 1000 are too many, at most 64"],
    );
    // No origins at all, and one of the two that chunks lie in.
    for (count, problem) in [(0, "origin 1 of 0"), (1, "origin 2 of 1")] {
        let mut patch = Patch {
            bytes: sample.bytes.clone(),
        };
        let text = serde_json::to_vec(&reader.origins()[..count]).unwrap();
        patch.replace_section(SectionKind::Origins, &text);
        says(&sample.error(&patch.bytes).to_string(), &[problem]);
    }
}

#[test]
fn an_origin_that_nothing_lies_in() {
    let sample = carrying();
    let reader = stillpoint_image::Reader::open(&sample.path).unwrap();
    let mut origins = reader.origins().to_vec();
    let first = origins[0].clone();
    origins.insert(
        0,
        stillpoint_image::Origin {
            epoch: Epoch(1),
            directory: epoch_name(Epoch(1)),
            ..first
        },
    );
    let mut patch = Patch {
        bytes: sample.bytes.clone(),
    };
    let text = serde_json::to_vec(&origins).unwrap();
    patch.replace_section(SectionKind::Origins, &text);
    let text = sample.error(&patch.bytes).to_string();
    says(&text, &["origins: 3, but chunks lie in 2 of them"]);
}
