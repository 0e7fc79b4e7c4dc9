//! Tests that carried memory is what was there, as far as it has not changed.
#![expect(
    clippy::single_range_in_vec_init,
    reason = "lists of ranges, some with one"
)]

use std::collections::{BTreeMap, BTreeSet};
use stillpoint_ids::{Epoch, Rank};

use proptest::prelude::*;

use super::*;

fn run(address: u64, bytes: u32, space: u32) -> RunRecord {
    RunRecord {
        address,
        bytes,
        space,
    }
}

fn gone(bytes: u32) -> RunRecord {
    run(0, bytes, NOWHERE)
}

fn chunk(origin: u32, offset: u64, bytes: u32) -> ChunkRecord {
    ChunkRecord {
        offset,
        checksum: offset,
        stored_bytes: bytes,
        bytes,
        first_run: 0,
        runs: 0,
        codec: 0,
        origin,
    }
}

fn origin(epoch: Epoch) -> Origin {
    Origin::of(epoch, Rank(0), 1000, epoch.0.into())
}

fn base(epoch: Epoch, origins: &[u64], chunks: &[(u32, u64, &[RunRecord])]) -> Base {
    let mut tables = Tables {
        origins: origins.iter().map(|epoch| origin(Epoch(*epoch))).collect(),
        ..Tables::default()
    };
    for (origin, offset, runs) in chunks {
        let bytes = runs.iter().map(|run| run.bytes).sum();
        tables.push(chunk(*origin, *offset, bytes), runs);
    }
    Base::new(origin(epoch), Arc::new(tables))
}

/// Epoch, offset and runs of each chunk.
fn told(tables: &Tables) -> Vec<(Epoch, u64, Vec<RunRecord>)> {
    let of = |chunk: &ChunkRecord| tables.origins[chunk.origin as usize - 1].epoch;
    let chunks = tables.chunks.iter();
    chunks
        .map(|chunk| (of(chunk), chunk.offset, tables.runs_of(chunk).to_vec()))
        .collect()
}

fn example() -> Base {
    base(
        Epoch(4),
        &[1, 2],
        &[
            (0, 64, &[run(0x1000, 300, 0), run(0x2000, 100, 0)]),
            (0, 464, &[run(0, 50, 1)]),
            (1, 64, &[run(0x3000, 100, 0), gone(20), run(0x3400, 80, 0)]),
            (2, 64, &[gone(5), run(0x5000, 10, 0)]),
        ],
    )
}

#[test]
fn runs_are_cut_where_memory_has_changed() {
    let carried = example().carry(&[0x1010..0x1020, 0x1020..0x1040, 0x2000..0x3040]);
    let expected = [
        (Epoch(1), 64, vec![run(0x3000, 0x40, 0), gone(140 - 4)]),
        (
            Epoch(4),
            64,
            vec![
                gone(16),
                run(0x1010, 16, 0),
                run(0x1020, 32, 0),
                gone(300 - 64),
                run(0x2000, 100, 0),
            ],
        ),
    ];
    assert_eq!(told(carried.tables()), expected);
    assert_eq!(
        carried.tables().needs(),
        [1, 4].map(Epoch),
        "epoch 2 has nothing left"
    );
    let shares: Vec<_> = carried
        .shares()
        .iter()
        .map(|share| (share.epoch, share.bytes, share.stored_bytes, share.chunks))
        .collect();
    assert_eq!(shares, [(Epoch(1), 64, 200, 1), (Epoch(4), 148, 400, 1)]);
}

#[test]
fn nothing_is_carried_of_what_has_all_changed() {
    let base = example();
    for unchanged in [
        vec![],
        vec![0..0x1000, 0x9000..0xa000],
        vec![0x1100..0x1100],
    ] {
        let carried = base.carry(&unchanged);
        assert!(carried.is_empty());
        assert_eq!(*carried.tables(), Tables::default());
    }
}

#[test]
fn what_lies_in_the_oldest_images_is_written_again() {
    let all = [0..u64::MAX];
    let mut carried = example().carry(&all);
    assert_eq!(carried.tables().needs(), [1, 2, 4].map(Epoch));
    assert_eq!(carried.keep_newest(3), []);
    let renewed = carried.keep_newest(2);
    assert_eq!(renewed, [0x3000..0x3064, 0x3400..0x3450]);
    assert_eq!(carried.tables().needs(), [2, 4].map(Epoch));
    assert_eq!(carried.leave(|image| image.epoch == Epoch(1)), []);
    assert_eq!(
        carried.leave(|image| image.epoch == Epoch(4)),
        [0x1000..0x112c, 0x2000..0x2064]
    );
    assert_eq!(carried.tables().needs(), [2].map(Epoch));
    assert_eq!(carried.keep_newest(0), [0x5000..0x500a]);
    assert_eq!(*carried.tables(), Tables::default());
}

#[test]
fn no_run_lies_in_two_regions() {
    let regions = [0x1000..0x1100, 0x1100..0x1200, 0x2010..0x2020];
    let (carried, renewed) = example().carry_within(&[0x1050..0x4000], &regions, 1);
    let expected = vec![
        gone(0x50),
        run(0x1050, 0xb0, 0),
        run(0x1100, 44, 0),
        gone(16),
        run(0x2010, 16, 0),
        gone(68),
    ];
    assert_eq!(told(carried.tables()), [(Epoch(4), 64, expected)]);
    assert_eq!(renewed, []);
}

/// The place of each byte of memory: epoch, offset of its chunk, position there.
fn places(base: &Tables, itself: Epoch) -> BTreeMap<u64, (Epoch, u64, u32)> {
    let mut places = BTreeMap::new();
    for chunk in &base.chunks {
        let epoch = match chunk.origin {
            0 => itself,
            origin => base.origins[origin as usize - 1].epoch,
        };
        let mut at = 0;
        for run in base.runs_of(chunk) {
            for byte in 0..run.bytes {
                if run.space == 0 {
                    let place = (epoch, chunk.offset, at + byte);
                    assert_eq!(places.insert(run.address + u64::from(byte), place), None);
                }
            }
            at += run.bytes;
        }
        assert_eq!(at, chunk.bytes);
    }
    places
}

/// Sorted ranges that do not overlap, some side by side.
fn ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
    prop::collection::vec((0_u64..40, 0_u64..60), 0..12).prop_map(|steps| {
        let mut at = 0;
        let range = |(gap, bytes)| {
            let start = at + gap;
            at = start + bytes;
            start..at
        };
        steps.into_iter().map(range).collect()
    })
}

/// An image's tables: memory in pieces, which lie in its own chunks or in those of epochs 1 to 3.
fn tables() -> impl Strategy<Value = Base> {
    let piece = (0_u64..20, 1_u32..40, 0_u32..4, 0_u32..10);
    prop::collection::vec(piece, 0..20).prop_map(|pieces| {
        let (mut address, mut offset) = (0, 64);
        let mut chunks: Vec<(u32, u64, Vec<RunRecord>)> = Vec::new();
        for (gap, bytes, origin, other) in pieces {
            address += gap;
            let mut runs = vec![run(address, bytes, 0)];
            if origin > 0 && other > 0 {
                runs.insert((other % 2) as usize, gone(other));
            }
            // Some share a chunk.
            match chunks.last_mut() {
                Some(last) if last.0 == origin && other > 6 => {
                    let neighbours = last.2.last().map(|run| run.space) == Some(NOWHERE);
                    let from = usize::from(neighbours && runs[0].space == NOWHERE);
                    last.2.extend_from_slice(&runs[from..]);
                }
                _ => chunks.push((origin, offset, runs)),
            }
            (address, offset) = (address + u64::from(bytes), offset + 1000);
        }
        chunks.sort_by_key(|(origin, offset, _)| (*origin, *offset));
        let used: BTreeSet<u32> = chunks.iter().map(|(origin, ..)| *origin).collect();
        let used: Vec<u32> = used.into_iter().filter(|origin| *origin > 0).collect();
        let number = |origin: u32| used.iter().position(|used| *used == origin);
        let chunks: Vec<(u32, u64, &[RunRecord])> = chunks
            .iter()
            .map(|(origin, offset, runs)| {
                let origin = number(*origin).map_or(0, |index| index as u32 + 1);
                (origin, *offset, runs.as_slice())
            })
            .collect();
        let epochs: Vec<u64> = used.iter().map(|origin| u64::from(*origin)).collect();
        base(Epoch(7), &epochs, &chunks)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn carried_bytes_are_the_unchanged_ones(base in tables(), unchanged in ranges(), most in 0_usize..5) {
        let within = |address: &u64| unchanged.iter().any(|range| range.contains(address));
        let mut expected = places(&base.tables, Epoch(7));
        expected.retain(|address, _| within(address));
        let mut carried = base.carry(&unchanged);
        prop_assert_eq!(&places(carried.tables(), Epoch(0)), &expected);
        let shares: u64 = carried.shares().iter().map(|share| share.bytes).sum();
        prop_assert_eq!(shares, expected.len() as u64);

        // The chunks are in order, every origin is needed, every chunk is needed, and dead stretches are as long as can be.
        let tables = carried.tables();
        let order = |chunk: &ChunkRecord| (chunk.origin, chunk.offset);
        prop_assert!(tables.chunks.is_sorted_by_key(order));
        let used: BTreeSet<u32> = tables.chunks.iter().map(|chunk| chunk.origin).collect();
        prop_assert!(used.into_iter().eq(1..=tables.origins.len() as u32));
        prop_assert!(tables.origins.is_sorted_by(|one, next| one.epoch < next.epoch));
        for chunk in &tables.chunks {
            prop_assert!(tables.live_bytes(chunk) > 0);
            let mut pairs = tables.runs_of(chunk).windows(2);
            prop_assert!(!pairs.any(|pair| pair[0].space == NOWHERE && pair[1].space == NOWHERE));
        }

        // The newest images stay; memory that was in the others is returned, once.
        let epochs = tables.needs();
        let kept = &epochs[epochs.len().saturating_sub(most)..];
        let renewed = carried.keep_newest(most);
        prop_assert_eq!(carried.tables().needs(), kept);
        prop_assert!(renewed.is_sorted_by(|one, next| one.end <= next.start));
        let told: BTreeSet<u64> = renewed.into_iter().flatten().collect();
        let (stay, go): (BTreeMap<_, _>, BTreeMap<_, _>) =
            expected.into_iter().partition(|(_, (epoch, ..))| kept.contains(epoch));
        prop_assert!(told.into_iter().eq(go.into_keys()));
        prop_assert_eq!(places(carried.tables(), Epoch(0)), stay);
    }

    #[test]
    fn ranges_within_regions_are_what_both_have(one in ranges(), other in ranges()) {
        let bytes = |ranges: &[Range<u64>]| -> BTreeSet<u64> { ranges.iter().cloned().flatten().collect() };
        let inside = within(&one, &other);
        let both: BTreeSet<u64> = bytes(&one).intersection(&bytes(&other)).copied().collect();
        prop_assert_eq!(bytes(&inside), both);
        prop_assert!(inside.is_sorted_by(|one, next| one.end <= next.start));
        let in_one = |range: &Range<u64>| {
            let holds = |region: &&Range<u64>| region.start <= range.start && range.end <= region.end;
            other.iter().filter(holds).count() >= 1
        };
        prop_assert!(inside.iter().all(in_one));
    }
}
