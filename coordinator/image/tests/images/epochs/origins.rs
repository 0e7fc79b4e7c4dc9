//! Tests of images and the earlier ones that they need: sound, missing and changed.

use std::ops::Range;
use std::path::Path;

use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::{
    Base, Carried, Compression, Manifest, PageRun, Reader, Writer, epoch_name, inspect, verify,
};

use super::{Memory, START, compare, identity, path, ranges, read, write};
use crate::common::{self, PAGE};

/// Writes three epochs of two regions; the third has chunks in both others.
fn three(directory: &Path) -> Memory {
    let mut memory = Memory::new();
    memory.insert(START, common::some_bytes(1, 8 * PAGE));
    memory.insert(START + (1 << 20), common::some_bytes(2, 4 * PAGE));
    let mut base: Option<Base> = None;
    for epoch in (1..=3).map(Epoch) {
        let old = memory.clone();
        if let Some(bytes) = memory.get_mut(&START) {
            bytes[epoch.0 as usize * PAGE..][..300].fill(epoch.0 as u8);
        }
        let (same, mut changed) = compare(&old, &memory, 256);
        let mut carried = Carried::default();
        match &base {
            Some(base) => carried = base.carry(&same),
            None => changed = ranges(&memory),
        }
        let written = write(
            directory,
            epoch,
            &memory,
            carried,
            &changed,
            Compression::Lz4,
        );
        base = Some(written.base(epoch, Rank(0)));
    }
    memory
}

#[test]
fn an_image_says_what_it_has_where() {
    let directory = tempfile::tempdir().unwrap();
    let memory = three(directory.path());
    assert!(read(directory.path(), Epoch(3)) == memory);
    let image = path(directory.path(), Epoch(3));
    let about = inspect(&image).unwrap();
    let shares: Vec<(Epoch, u64)> = about
        .carried
        .iter()
        .map(|share| (share.epoch, share.bytes))
        .collect();
    // 300 bytes from the beginning of a page on touch two blocks of 256.
    let all = 12 * PAGE as u64;
    assert_eq!(shares, [(Epoch(1), all - 1024), (Epoch(2), 512)]);
    assert_eq!(about.sizes.page_bytes, all + 3);
    assert_eq!(about.sizes.own_page_bytes, 512 + 3);
    assert!(about.sizes.file_bytes < 4000, "{}", about.sizes.file_bytes);
    assert_eq!(verify(&image, 2).unwrap().page_bytes, all + 3);
    let manifest = Manifest::read(image.parent().unwrap()).unwrap();
    assert_eq!(manifest.needs, [Epoch(1), Epoch(2)]);
}

#[test]
fn an_origin_that_is_gone_or_another_is_named() {
    let directory = tempfile::tempdir().unwrap();
    three(directory.path());
    let (image, first) = (
        path(directory.path(), Epoch(3)),
        path(directory.path(), Epoch(1)),
    );
    let says = |words: &[&str]| {
        let text = Reader::open(&image).unwrap_err().to_string();
        let named = [
            image.to_str().unwrap(),
            first.to_str().unwrap(),
            "it needs epoch 1",
        ];
        for word in named.iter().chain(words) {
            assert!(text.contains(word), "'{word}' is missing in: {text}");
        }
        assert!(!text.contains('\n'), "{text}");
    };
    let sound = std::fs::read(&first).unwrap();
    std::fs::write(&first, &sound[..sound.len() - 1]).unwrap();
    says(&["bytes instead of"]);
    let mut bytes = sound.clone();
    bytes[20] ^= 1;
    std::fs::write(&first, &bytes).unwrap();
    says(&["checksum", "put that epoch's directory back"]);
    // Another epoch's image, whole.
    let long = std::fs::read(path(directory.path(), Epoch(3))).unwrap();
    std::fs::write(&first, &long).unwrap();
    says(&["bytes instead of"]);
    std::fs::remove_file(&first).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &first).unwrap();
    says(&["cannot be opened", "link"]);
    std::fs::remove_file(&first).unwrap();
    says(&["cannot be opened"]);
    std::fs::write(&first, &sound).unwrap();
    Reader::open(&image).unwrap();
    let epoch = first.parent().unwrap();
    let aside = directory.path().join("aside");
    std::fs::rename(epoch, &aside).unwrap();
    says(&["cannot be opened"]);
    std::os::unix::fs::symlink(&aside, epoch).unwrap();
    says(&["cannot be opened"]);
}

#[test]
fn an_origins_bytes_are_checked_as_they_are_loaded() {
    let directory = tempfile::tempdir().unwrap();
    three(directory.path());
    let (image, first) = (
        path(directory.path(), Epoch(3)),
        path(directory.path(), Epoch(1)),
    );
    let mut bytes = std::fs::read(&first).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&first, &bytes).unwrap();
    let error = verify(&image, 1).unwrap_err().to_string();
    assert!(
        error.starts_with(first.to_str().unwrap()) && error.contains("page data"),
        "{error}"
    );
}

#[test]
fn another_image_of_the_same_length_is_no_origin() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    three(one.path());
    let mut memory = Memory::new();
    memory.insert(START, vec![7; PAGE]);
    memory.insert(START + (1 << 20), vec![7; PAGE]);
    let changed = ranges(&memory);
    let none = Compression::None;
    let first = write(
        other.path(),
        Epoch(1),
        &memory,
        Carried::default(),
        &changed,
        none,
    );
    let carried = first.base(Epoch(1), Rank(0)).carry(&changed);
    write(other.path(), Epoch(2), &memory, carried, &[], none);
    memory.insert(START, vec![8; PAGE]);
    write(
        other.path(),
        Epoch(1),
        &memory,
        Carried::default(),
        &changed,
        none,
    );
    let error = Reader::open(&path(other.path(), Epoch(2)))
        .unwrap_err()
        .to_string();
    assert!(error.contains("another image has replaced it"), "{error}");
    assert!(
        first
            .base(Epoch(1), Rank(0))
            .check(&path(other.path(), Epoch(3)))
            .is_err()
    );
}

#[test]
fn what_the_manifest_does_not_know_of_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    three(directory.path());
    let epoch = directory.path().join(epoch_name(Epoch(3)));
    let sound = Manifest::read(&epoch).unwrap();
    for (needs, word) in [
        (
            vec![1],
            "it needs epoch 2, but the manifest does not list it",
        ),
        (vec![2, 1], "not earlier epochs in ascending order"),
        (vec![1, 1, 2], "not earlier epochs in ascending order"),
        (vec![1, 2, 3], "not earlier epochs in ascending order"),
    ] {
        let manifest = Manifest {
            needs: needs.into_iter().map(Epoch).collect(),
            ..sound.clone()
        };
        manifest.write(&epoch).unwrap();
        let opened =
            Manifest::read(&epoch).and_then(|manifest| manifest.open_image(&epoch, Rank(0)));
        let error = opened.unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn what_cannot_be_written_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let memory = three(directory.path());
    let base = Reader::open(&path(directory.path(), Epoch(3)))
        .unwrap()
        .base();
    let carried = || base.carry(&ranges(&memory));
    let finish = |epoch: Epoch, runs: &[PageRun<'_>]| {
        let mut writer =
            Writer::create(&directory.path().join("image"), Compression::None).unwrap();
        writer.carry(carried());
        writer.memory(runs).unwrap();
        writer.identity(&identity(epoch)).unwrap();
        writer.finish().map(drop).map_err(|error| error.to_string())
    };
    assert!(finish(Epoch(4), &[]).is_ok());
    assert!(
        finish(Epoch(3), &[])
            .unwrap_err()
            .contains("is not before epoch")
    );
    let run = PageRun {
        address: START + 5000,
        bytes: b"x"[..].into(),
    };
    let error = finish(Epoch(4), &[run]).unwrap_err();
    assert!(error.contains("is in it twice"), "{error}");
}

#[test]
fn pieces_of_any_length_at_any_address_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut memory = Memory::new();
    memory.insert(START, common::some_bytes(5, 4 * PAGE));
    // A zero stretch across two pages, neither of which is all zero.
    memory.get_mut(&START).unwrap()[PAGE - 100..PAGE + 3000].fill(0);
    let odd = [
        (0, 1),
        (1, 7),
        (8, PAGE - 109),
        (PAGE - 101, 2),
        (PAGE - 99, 99),
        (PAGE, 3001),
        (PAGE + 3001, 3 * PAGE - 3001),
    ];
    let ranges: Vec<Range<u64>> = odd
        .iter()
        .map(|(at, bytes)| START + *at as u64..START + (at + bytes) as u64)
        .collect();
    let written = write(
        directory.path(),
        Epoch(1),
        &memory,
        Carried::default(),
        &ranges,
        Compression::None,
    );
    assert!(read(directory.path(), Epoch(1)) == memory);
    // The piece of 99 zeros is left out; those with another byte are not.
    assert_eq!(written.page_bytes, 4 * PAGE as u64 - 99 + 3);
}
