//! Epochs of which each holds what has changed since the one before: what is read is what was in memory, at every epoch that is kept,
//! however memory has changed and whichever earlier epochs have gone.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use common::PAGE;
use proptest::prelude::*;
use stillpoint_image::format::NOWHERE;
use stillpoint_image::{
    Base, Carried, Compression, Identity, Manifest, PageRun, RankImage, Reader, Region, Writer,
    Written, epoch_name, image_name, inspect, verify,
};

const START: u64 = 0x1000_0000_0000;

/// Memory of a pretended process: regions of bytes.
type Memory = BTreeMap<u64, Vec<u8>>;

fn path(directory: &Path, epoch: u64) -> PathBuf {
    directory.join(epoch_name(epoch)).join(image_name(0))
}

fn identity(epoch: u64) -> Identity {
    Identity {
        epoch,
        rank: 0,
        size: 1,
        ..common::identity()
    }
}

fn ranges(memory: &Memory) -> Vec<Range<u64>> {
    let range = |(start, bytes): (&u64, &Vec<u8>)| *start..start + bytes.len() as u64;
    memory.iter().map(range).collect()
}

fn bytes<'a>(memory: &'a Memory, range: &Range<u64>) -> &'a [u8] {
    let (start, bytes) = memory.range(..=range.start).next_back().unwrap();
    &bytes[(range.start - start) as usize..(range.end - start) as usize]
}

/// Writes an epoch: what is carried, and the bytes of `changed`.
fn write(
    directory: &Path,
    epoch: u64,
    memory: &Memory,
    carried: Carried,
    changed: &[Range<u64>],
    compression: Compression,
) -> Written {
    let path = path(directory, epoch);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut writer = Writer::create(&path, compression).unwrap();
    let run = |range: &Range<u64>| PageRun {
        address: range.start,
        bytes: bytes(memory, range).into(),
    };
    let runs: Vec<PageRun> = changed.iter().map(run).collect();
    // In two goes, as whoever writes may.
    let (one, other) = runs.split_at(runs.len() / 3);
    writer.memory(one).unwrap();
    writer.carry(carried);
    writer.memory(other).unwrap();
    writer
        .content(
            "pipe",
            3,
            &[PageRun {
                address: 0,
                bytes: b"abc"[..].into(),
            }],
        )
        .unwrap();
    writer.identity(&identity(epoch)).unwrap();
    writer.environment(&common::environment()).unwrap();
    let region = |range: Range<u64>| Region {
        start: range.start,
        end: range.end,
        ..Region::default()
    };
    let regions: Vec<Region> = ranges(memory).into_iter().map(region).collect();
    writer.regions(&regions).unwrap();
    writer.threads(&[]).unwrap();
    writer.descriptors(&Default::default()).unwrap();
    let written = writer.finish().unwrap();
    let manifest = Manifest {
        job: "job".into(),
        epoch,
        needs: written.tables.needs(),
        ranks: vec![RankImage {
            file: image_name(0),
            bytes: written.bytes,
            digest: written.digest,
            ..RankImage::default()
        }],
        ..Manifest::default()
    };
    manifest.write(path.parent().unwrap()).unwrap();
    written
}

/// Memory as a restart makes it of an epoch: zeros, and what the image has.
fn read(directory: &Path, epoch: u64) -> Memory {
    let epoch = directory.join(epoch_name(epoch));
    let reader = Manifest::read(&epoch)
        .unwrap()
        .open_image(&epoch, 0)
        .unwrap();
    reader.check_pages(2).unwrap();
    assert_eq!(reader.content_bytes(1, 10).unwrap(), b"abc");
    let mut memory: Memory = reader
        .regions()
        .iter()
        .map(|region| (region.start, vec![0; region.bytes() as usize]))
        .collect();
    let mut scratch = Reader::scratch();
    let mut times = BTreeSet::new();
    for chunk in reader.chunks_of(0) {
        assert!(times.insert((chunk.origin, chunk.offset)), "read twice");
        let mut loaded = vec![0; chunk.bytes as usize];
        reader.load(chunk, &mut scratch, &mut loaded).unwrap();
        let mut rest = loaded.as_slice();
        for run in reader.runs(chunk) {
            let (mine, more) = rest.split_at(run.bytes as usize);
            rest = more;
            if run.space == NOWHERE {
                continue;
            }
            let (start, region) = memory.range_mut(..=run.address).next_back().unwrap();
            let at = (run.address - *start) as usize;
            region[at..at + mine.len()].copy_from_slice(mine);
        }
    }
    memory
}

/// What has changed, in blocks of `block` bytes, and what has not; no stretch lies in two regions.
fn compare(old: &Memory, new: &Memory, block: usize) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
    let (mut same, mut other): (Vec<Range<u64>>, Vec<Range<u64>>) = Default::default();
    for (start, bytes) in new {
        for (index, now) in bytes.chunks(block).enumerate() {
            let at = start + (index * block) as u64;
            let before = old.range(..=at).next_back().and_then(|(start, bytes)| {
                let from = (at - start) as usize;
                bytes.get(from..from + now.len())
            });
            let list = match before == Some(now) {
                true => &mut same,
                false => &mut other,
            };
            let end = at + now.len() as u64;
            match list.last_mut() {
                Some(last) if last.end == at && last.start >= *start => last.end = end,
                _ => list.push(at..end),
            }
        }
    }
    (same, other)
}

#[derive(Clone, Debug)]
enum Change {
    /// Bytes anywhere, from the first place to so many behind it.
    Write(usize, usize, u8),
    Map(u64, usize),
    Unmap(u64),
    /// One region becomes two, as by `mprotect`.
    Split(usize),
    /// All regions that lie side by side become one.
    Join,
}

fn change() -> impl Strategy<Value = Change> {
    let bytes = prop_oneof![1_usize..40, 1_usize..3000, 1_usize..40_000];
    prop_oneof![
        6 => (any::<usize>(), bytes, prop_oneof![Just(0), 1_u8..=255])
            .prop_map(|(at, bytes, value)| Change::Write(at, bytes, value)),
        1 => (0_u64..6, 1_usize..20).prop_map(|(slot, pages)| Change::Map(slot, pages)),
        1 => (0_u64..6).prop_map(Change::Unmap),
        1 => any::<usize>().prop_map(Change::Split),
        1 => Just(Change::Join),
    ]
}

impl Change {
    fn make(&self, memory: &mut Memory) {
        let all: usize = memory.values().map(Vec::len).sum();
        match *self {
            Change::Write(at, bytes, value) if all > 0 => {
                let mut skip = at % all;
                let mut left = bytes;
                for region in memory.values_mut() {
                    let from = skip.min(region.len());
                    skip -= from;
                    let to = (from + left).min(region.len());
                    for (index, byte) in region[from..to].iter_mut().enumerate() {
                        // Zeros, one value, or values that compress badly.
                        *byte = value.wrapping_mul((index >> (value % 8)) as u8 | 1);
                    }
                    left -= to - from;
                }
            }
            Change::Map(slot, pages) => {
                let start = START + slot * (1 << 20);
                let near = start..start + (1 << 20);
                memory.retain(|address, _| !near.contains(address));
                memory.insert(start, vec![0; pages * PAGE]);
            }
            Change::Unmap(slot) => {
                let start = START + slot * (1 << 20);
                memory.remove(&start);
            }
            Change::Split(at) if all > 0 => {
                let page = at % (all / PAGE);
                let mut before = 0;
                let found = memory.iter_mut().find_map(|(start, bytes)| {
                    let within = page - before;
                    before += bytes.len() / PAGE;
                    let at = within * PAGE;
                    (page < before).then(|| (start + at as u64, bytes.split_off(at)))
                });
                memory.extend(found);
                memory.retain(|_, bytes| !bytes.is_empty());
            }
            Change::Join => {
                let mut joined = Memory::new();
                for (start, bytes) in std::mem::take(memory) {
                    match joined.last_entry() {
                        Some(mut last) if last.key() + last.get().len() as u64 == start => {
                            last.get_mut().extend(bytes);
                        }
                        _ => drop(joined.insert(start, bytes)),
                    }
                }
                *memory = joined;
            }
            Change::Write(..) | Change::Split(_) => {}
        }
    }
}

#[derive(Clone, Debug)]
struct Step {
    changes: Vec<Change>,
    block: usize,
    compression: Compression,
    /// The epoch is written, but not committed.
    given_up: bool,
    /// The next epoch is written by a process that was restarted from this one.
    restarted: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let compression = prop_oneof![
        Just(Compression::None),
        Just(Compression::Lz4),
        Just(Compression::Zstd { level: 1 })
    ];
    (
        prop::collection::vec(change(), 0..6),
        prop_oneof![
            Just(64_usize),
            Just(256),
            Just(1024),
            Just(PAGE),
            Just(4 * PAGE)
        ],
        compression,
        prop::bool::weighted(0.15),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(changes, block, compression, given_up, restarted)| Step {
            changes,
            block,
            compression,
            given_up,
            restarted,
        })
}

/// What `--keep` leaves: the newest epochs, and what they need.
fn prune(directory: &Path, committed: &mut Vec<u64>, keep: usize) -> Vec<u64> {
    let newest = committed[committed.len().saturating_sub(keep)..].to_vec();
    let mut stay: BTreeSet<u64> = newest.iter().copied().collect();
    for epoch in &newest {
        let manifest = Manifest::read(&directory.join(epoch_name(*epoch))).unwrap();
        stay.extend(manifest.needs);
    }
    committed.retain(|epoch| {
        let stays = stay.contains(epoch);
        if !stays {
            std::fs::remove_dir_all(directory.join(epoch_name(*epoch))).unwrap();
        }
        stays
    });
    newest
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn every_kept_epoch_is_the_memory_of_its_time(
        steps in prop::collection::vec(step(), 1..14),
        most in 0_usize..5,
        keep in 1_usize..4,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let mut memory = Memory::new();
        for slot in [0, 2] {
            Change::Map(slot, 12).make(&mut memory);
        }
        let mut base: Option<(Base, Memory)> = None;
        let mut history: BTreeMap<u64, Memory> = BTreeMap::new();
        let mut committed = vec![];
        for (epoch, step) in (1..).zip(steps) {
            for change in &step.changes {
                change.make(&mut memory);
            }
            let nothing = Memory::new();
            let old = base.as_ref().map_or(&nothing, |(_, memory)| memory);
            let (same, mut changed) = compare(old, &memory, step.block);
            let carried = match &base {
                None => Carried::default(),
                Some((base, _)) => {
                    base.check(&path(directory, epoch)).unwrap();
                    let (carried, renewed) = base.carry_within(&same, &ranges(&memory), most);
                    changed.extend(renewed);
                    carried
                }
            };
            let written = write(directory, epoch, &memory, carried, &changed, step.compression);
            prop_assert!(written.tables.origins.len() <= most);
            let reader = Reader::open(&path(directory, epoch)).unwrap();
            prop_assert_eq!(reader.base(), written.base(epoch, 0));
            if step.given_up {
                std::fs::remove_dir_all(directory.join(epoch_name(epoch))).unwrap();
                continue;
            }
            let next = match step.restarted {
                true => reader.base(),
                false => written.base(epoch, 0),
            };
            base = Some((next, memory.clone()));
            history.insert(epoch, memory.clone());
            committed.push(epoch);
            for kept in prune(directory, &mut committed, keep) {
                prop_assert!(read(directory, kept) == history[&kept], "epoch {kept} after {epoch}");
            }
            prop_assert!(committed.len() <= keep * (most + 1));
        }
    }
}

/// Three epochs of two regions, of which the third has something of both others.
fn three(directory: &Path) -> Memory {
    let mut memory = Memory::new();
    memory.insert(START, common::some_bytes(1, 8 * PAGE));
    memory.insert(START + (1 << 20), common::some_bytes(2, 4 * PAGE));
    let mut base: Option<Base> = None;
    for epoch in 1..=3 {
        let old = memory.clone();
        if let Some(bytes) = memory.get_mut(&START) {
            bytes[epoch as usize * PAGE..][..300].fill(epoch as u8);
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
        base = Some(written.base(epoch, 0));
    }
    memory
}

#[test]
fn an_image_says_what_it_has_where() {
    let directory = tempfile::tempdir().unwrap();
    let memory = three(directory.path());
    assert!(read(directory.path(), 3) == memory);
    let image = path(directory.path(), 3);
    let about = inspect(&image).unwrap();
    let shares: Vec<(u64, u64)> = about
        .carried
        .iter()
        .map(|share| (share.epoch, share.bytes))
        .collect();
    // 300 bytes from the beginning of a page on touch two blocks of 256.
    let all = 12 * PAGE as u64;
    assert_eq!(shares, [(1, all - 1024), (2, 512)]);
    assert_eq!(about.sizes.page_bytes, all + 3);
    assert_eq!(about.sizes.own_page_bytes, 512 + 3);
    assert!(about.sizes.file_bytes < 4000, "{}", about.sizes.file_bytes);
    assert_eq!(verify(&image, 2).unwrap().page_bytes, all + 3);
    let manifest = Manifest::read(image.parent().unwrap()).unwrap();
    assert_eq!(manifest.needs, [1, 2]);
}

#[test]
fn an_origin_that_is_gone_or_another_is_named() {
    let directory = tempfile::tempdir().unwrap();
    three(directory.path());
    let (image, first) = (path(directory.path(), 3), path(directory.path(), 1));
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
    // Another epoch's image, whole, and as long.
    let long = std::fs::read(path(directory.path(), 3)).unwrap();
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
    let (image, first) = (path(directory.path(), 3), path(directory.path(), 1));
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
    let first = write(other.path(), 1, &memory, Carried::default(), &changed, none);
    let carried = first.base(1, 0).carry(&changed);
    write(other.path(), 2, &memory, carried, &[], none);
    memory.insert(START, vec![8; PAGE]);
    write(other.path(), 1, &memory, Carried::default(), &changed, none);
    let error = Reader::open(&path(other.path(), 2))
        .unwrap_err()
        .to_string();
    assert!(error.contains("it is another image"), "{error}");
    assert!(first.base(1, 0).check(&path(other.path(), 3)).is_err());
}

#[test]
fn what_the_manifest_does_not_know_of_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    three(directory.path());
    let epoch = directory.path().join(epoch_name(3));
    let sound = Manifest::read(&epoch).unwrap();
    for (needs, word) in [
        (
            vec![1],
            "it needs epoch 2, of which the manifest does not know",
        ),
        (vec![2, 1], "no earlier epochs in order"),
        (vec![1, 1, 2], "no earlier epochs in order"),
        (vec![1, 2, 3], "no earlier epochs in order"),
    ] {
        let manifest = Manifest {
            needs,
            ..sound.clone()
        };
        manifest.write(&epoch).unwrap();
        let opened = Manifest::read(&epoch).and_then(|manifest| manifest.open_image(&epoch, 0));
        let error = opened.unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn what_cannot_be_written_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let memory = three(directory.path());
    let base = Reader::open(&path(directory.path(), 3)).unwrap().base();
    let carried = || base.carry(&ranges(&memory));
    let finish = |epoch: u64, runs: &[PageRun<'_>]| {
        let mut writer =
            Writer::create(&directory.path().join("image"), Compression::None).unwrap();
        writer.carry(carried());
        writer.memory(runs).unwrap();
        writer.identity(&identity(epoch)).unwrap();
        writer.finish().map(drop).map_err(|error| error.to_string())
    };
    assert!(finish(4, &[]).is_ok());
    assert!(finish(3, &[]).unwrap_err().contains("is not before epoch"));
    let run = PageRun {
        address: START + 5000,
        bytes: b"x"[..].into(),
    };
    let error = finish(4, &[run]).unwrap_err();
    assert!(error.contains("is in it twice"), "{error}");
}

#[test]
fn pieces_of_any_length_at_any_address_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut memory = Memory::new();
    memory.insert(START, common::some_bytes(5, 4 * PAGE));
    // A zero stretch across two pages, of which neither is all zero.
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
        1,
        &memory,
        Carried::default(),
        &ranges,
        Compression::None,
    );
    assert!(read(directory.path(), 1) == memory);
    // The piece of 99 zeros is left out; those with another byte are not.
    assert_eq!(written.page_bytes, 4 * PAGE as u64 - 99 + 3);
}
