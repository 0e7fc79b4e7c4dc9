//! A drain reads only the wanted parts of the staged memory.

use std::ops::Range;

use proptest::prelude::*;
use stillpoint_gpu_plan::Scheduling;
use stillpoint_gpu_staging::{Digest, Drain, Sink, SinkError, digest, stage};

use super::staging::{contents, example, settings};

/// The received bytes, by source and offset; they must come in order.
#[derive(Default)]
struct Came(Vec<(usize, u64, Vec<u8>)>);

impl Sink for Came {
    fn write(
        &mut self,
        source: usize,
        offset: u64,
        bytes: &[u8],
        said: Option<Digest>,
    ) -> Result<(), SinkError> {
        assert_eq!(said, Some(digest(bytes)));
        if let Some((last, before, had)) = self.0.last() {
            let end = before + had.len() as u64;
            assert!(
                *last < source || *last == source && end <= offset,
                "in order"
            );
        }
        self.0.push((source, offset, bytes.to_vec()));
        Ok(())
    }
}

/// Adjacent bytes are one stretch, wherever their pieces end; the stretches together are the whole.
#[test]
fn stretches_are_all_of_it() {
    for scheduling in Scheduling::ALL {
        let (mut machine, sources) = example();
        let node = machine.node.clone();
        let before = contents(&machine, &sources);
        let staged = stage(&mut machine, &node, &sources, &settings(scheduling)).expect("staged");
        let stretches = staged.stretches();
        assert!(stretches.len() < staged.pieces().len(), "{scheduling:?}");
        let mut came: Vec<Vec<u8>> = vec![Vec::new(); sources.len()];
        for one in stretches {
            assert_eq!(came[one.source].len() as u64, one.offset, "in order");
            came[one.source].extend(machine.at(one.spot, one.bytes));
        }
        assert!(came == before, "{scheduling:?}");
        staged.give_back(&mut machine);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn what_is_wanted_comes_and_nothing_else(
        wanted in proptest::collection::vec(proptest::collection::btree_map(0u64..80, 1u64..5, 0..20), 0..5),
        hashes: bool,
    ) {
        const BLOCK: u64 = 4096;
        let (mut machine, sources) = example();
        machine.hashes = hashes;
        let before = contents(&machine, &sources);
        let node = machine.node.clone();
        let ranges: Vec<Vec<Range<u64>>> = wanted.iter().zip(&sources).map(|(blocks, source)| {
            let mut ranges: Vec<Range<u64>> = Vec::new();
            for (first, count) in blocks {
                let start = (first * BLOCK).max(ranges.last().map_or(0, |last| last.end)).min(source.bytes);
                let end = ((first + count) * BLOCK).min(source.bytes);
                if start < end {
                    ranges.push(start..end);
                }
            }
            ranges
        }).collect();
        let staged = stage(&mut machine, &node, &sources, &settings(Scheduling::Exact)).expect("staged");
        let mut drain = Drain::new(staged.only(&ranges));
        let mut came = Came::default();
        drain.run(&mut machine, &mut came).expect("drained");
        drain.end(&mut machine);
        prop_assert!(machine.nothing_is_reserved());
        let mut expected: Vec<(usize, u64)> = Vec::new();
        for (source, ranges) in ranges.iter().enumerate() {
            expected.extend(ranges.iter().cloned().flatten().map(|offset| (source, offset)));
        }
        let mut found = Vec::new();
        for (source, offset, bytes) in &came.0 {
            let there = &before[*source][*offset as usize..][..bytes.len()];
            prop_assert!(there == bytes.as_slice());
            found.extend((*offset..offset + bytes.len() as u64).map(|offset| (*source, offset)));
        }
        prop_assert!(found == expected);
    }
}
