//! Changes of a pretended process's memory between two epochs.

use proptest::prelude::*;
use stillpoint_image::Compression;

use super::{Memory, START};
use crate::common::PAGE;

#[derive(Clone, Debug)]
pub enum Change {
    /// Bytes anywhere: start, length and value.
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
    pub fn make(&self, memory: &mut Memory) {
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
pub struct Step {
    pub changes: Vec<Change>,
    pub block: usize,
    pub compression: Compression,
    /// The epoch is written, but not committed.
    pub given_up: bool,
    /// The next epoch is written by a process that was restarted from this one.
    pub restarted: bool,
}

pub fn step() -> impl Strategy<Value = Step> {
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
