//! Tests of epochs that each hold the changes since the one before. At every epoch that is kept, the memory that is read is the memory that
//! was there, however it has changed and whichever earlier epochs have gone.

mod changes;
mod origins;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use changes::{Change, step};
use proptest::prelude::*;
use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::format::NOWHERE;
use stillpoint_image::{
    Base, Carried, Compression, Identity, Manifest, PageRun, RankImage, Reader, Region, Writer,
    Written, epoch_name, image_name,
};

use crate::common;

const START: u64 = 0x1000_0000_0000;

/// Memory of a pretended process: regions of bytes.
type Memory = BTreeMap<u64, Vec<u8>>;

fn path(directory: &Path, epoch: Epoch) -> PathBuf {
    directory.join(epoch_name(epoch)).join(image_name(Rank(0)))
}

fn identity(epoch: Epoch) -> Identity {
    Identity {
        epoch,
        rank: Rank(0),
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
    epoch: Epoch,
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
    // In two calls, as a caller may do it.
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
            file: image_name(Rank(0)),
            bytes: written.bytes,
            digest: written.digest,
            ..RankImage::default()
        }],
        ..Manifest::default()
    };
    manifest.write(path.parent().unwrap()).unwrap();
    written
}

/// Returns memory as a restart makes it from an epoch: zeros, and the image's bytes.
fn read(directory: &Path, epoch: Epoch) -> Memory {
    let epoch = directory.join(epoch_name(epoch));
    let reader = Manifest::read(&epoch)
        .unwrap()
        .open_image(&epoch, Rank(0))
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

/// Returns the unchanged stretches and the changed ones, in blocks of `block` bytes; no stretch lies in two regions.
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

/// Removes the epochs that `--keep` would not keep: the newest ones stay, with those that they need.
fn prune(directory: &Path, committed: &mut Vec<Epoch>, keep: usize) -> Vec<Epoch> {
    let newest = committed[committed.len().saturating_sub(keep)..].to_vec();
    let mut stay: BTreeSet<Epoch> = newest.iter().copied().collect();
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
        let mut history: BTreeMap<Epoch, Memory> = BTreeMap::new();
        let mut committed = vec![];
        for (epoch, step) in (1..).map(Epoch).zip(steps) {
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
            prop_assert_eq!(reader.base(), written.base(epoch, Rank(0)));
            if step.given_up {
                std::fs::remove_dir_all(directory.join(epoch_name(epoch))).unwrap();
                continue;
            }
            let next = match step.restarted {
                true => reader.base(),
                false => written.base(epoch, Rank(0)),
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
