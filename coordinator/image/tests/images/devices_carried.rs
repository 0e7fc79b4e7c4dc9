//! Tests of devices' memory whose unchanged bytes lie in earlier epochs: every epoch gives back all bytes, in order.

use std::ops::Range;
use std::path::{Path, PathBuf};

use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::delta::Unchanged;
use stillpoint_image::devices::Uuid;
use stillpoint_image::{
    Base, Compression, Identity, Origin, PageRun, Reader, Written, epoch_name, image_name, inspect,
    verify,
};

use crate::common::{self, some_bytes};

const BLOCK: usize = 1 << 16;
/// The most epochs in which one may have chunks.
const MOST: u64 = 3;

fn path(directory: &Path, epoch: Epoch) -> PathBuf {
    directory.join(epoch_name(epoch)).join(image_name(Rank(1)))
}

/// A device's memory, with its content when it was last written.
#[derive(Clone)]
struct Memory {
    uuid: Uuid,
    bytes: Vec<u8>,
    was: Option<(u32, Vec<u8>)>,
}

impl Memory {
    fn new(name: u8, bytes: Vec<u8>) -> Memory {
        Memory {
            uuid: Uuid([name; 16]),
            bytes,
            was: None,
        }
    }

    /// Returns the blocks to write, and the unchanged ones that do not lie in images that are dropped.
    fn blocks(&self, base: Option<&Base>, left: &[Origin]) -> [Vec<Range<usize>>; 2] {
        let before = self.was.as_ref().zip(base);
        let old: Vec<Range<u64>> =
            before.map_or(Vec::new(), |((was, _), base)| base.lying_in(*was, left));
        let stays = |block: &Range<usize>| {
            let same = before.is_some_and(|((_, old), _)| {
                old.get(block.clone()) == self.bytes.get(block.clone())
            });
            let (start, end) = (block.start as u64, block.end as u64);
            same && !old.iter().any(|old| old.start < end && start < old.end)
        };
        let starts = (0..self.bytes.len()).step_by(BLOCK);
        let blocks = starts.map(|at| at..(at + BLOCK).min(self.bytes.len()));
        let (unchanged, changed) = blocks.partition(stays);
        [changed, unchanged]
    }
}

/// Writes an epoch, with what has changed of the memories since.
fn write(directory: &Path, epoch: Epoch, memories: &mut [Memory], base: Option<&Base>) -> Written {
    let path = path(directory, epoch);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let is_old = |image: &&Origin| image.epoch.0 + MOST < epoch.0;
    let left: Vec<Origin> = base.map_or(Vec::new(), |base| {
        base.images().filter(is_old).cloned().collect()
    });
    let identity = Identity {
        epoch,
        ..common::identity()
    };
    common::write_beside(&path, Compression::Lz4, &identity, |writer| {
        let mut unchanged = Vec::new();
        for memory in memories.iter_mut() {
            let number = writer
                .device(memory.uuid, memory.bytes.len() as u64)
                .unwrap();
            let [changed, same] = memory.blocks(base, &left);
            let runs: Vec<PageRun> = (changed.iter())
                .map(|block| PageRun {
                    address: block.start as u64,
                    bytes: memory.bytes[block.clone()].into(),
                })
                .collect();
            writer.device_runs(number, &runs).unwrap();
            if let Some((was, _)) = memory.was.replace((number, memory.bytes.clone())) {
                let wide = |block: &Range<usize>| block.start as u64..block.end as u64;
                unchanged.push(Unchanged {
                    was,
                    is: number,
                    ranges: same.iter().map(wide).collect(),
                });
            }
        }
        if let Some(base) = base {
            writer.carry(base.carry_with_devices(&[], &unchanged));
        }
    })
}

fn is_read(path: &Path, memories: &[Memory], at_a_time: usize) {
    verify(path, 2).unwrap();
    let reader = Reader::open(path).unwrap();
    assert_eq!(reader.devices().len(), memories.len());
    for (device, memory) in reader.devices().iter().zip(memories) {
        assert_eq!(device.uuid, memory.uuid);
        let mut found = vec![1; memory.bytes.len()];
        let mut stream = reader.device_stream(device);
        for some in found.chunks_mut(at_a_time) {
            stream.read(some).unwrap();
        }
        let same = found == memory.bytes;
        assert!(same, "{}, {at_a_time} at a time", path.display());
    }
    let shared = reader.content_bytes(1, 1 << 20).unwrap();
    assert_eq!(
        shared,
        some_bytes(2, 2 * common::PAGE),
        "no other is carried"
    );
}

/// Writes two epochs, of which the second changes one block of 40.
fn two(directory: &Path) -> Vec<Memory> {
    let bytes = some_bytes(7, 40 * BLOCK);
    let mut memories = vec![Memory::new(0xa1, bytes)];
    let base = write(directory, Epoch(1), &mut memories, None).base(Epoch(1), Rank(1));
    memories[0].bytes[17 * BLOCK + 5] ^= 1;
    write(directory, Epoch(2), &mut memories, Some(&base));
    memories
}

#[test]
fn an_epoch_holds_the_block_that_has_changed() {
    let directory = tempfile::tempdir().unwrap();
    let memories = two(directory.path());
    let second = path(directory.path(), Epoch(2));
    is_read(&second, &memories, 1 << 20);
    let reader = Reader::open(&second).unwrap();
    let carried = reader.carried_device_bytes(&reader.devices()[0]);
    assert_eq!(carried, 39 * BLOCK as u64);
    let shown = serde_json::to_value(inspect(&second).unwrap()).unwrap();
    assert_eq!(shown["devices"][0]["bytes"], 40 * BLOCK);
    assert_eq!(shown["devices"][0]["carried"], 39 * BLOCK);
    let bytes = |epoch| {
        std::fs::metadata(path(directory.path(), epoch))
            .unwrap()
            .len()
    };
    assert!(
        bytes(Epoch(2)) < bytes(Epoch(1)) / 10,
        "{} bytes, then {}",
        bytes(Epoch(1)),
        bytes(Epoch(2))
    );
}

/// Two devices that grow and shrink and change places, with blocks that are written to, or become zeros. Epochs too old for the newest one
/// are removed.
#[test]
fn every_epoch_gives_back_all_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let mut memories = vec![
        Memory::new(0xa1, some_bytes(1, 50 * BLOCK + 777)),
        Memory::new(0x02, some_bytes(2, 9 * BLOCK)),
    ];
    let mut base: Option<Base> = None;
    // In every third byte, 7 bits are random.
    let mut dice = some_bytes(99, 3 * 4096).into_iter().step_by(3);
    let mut die = |below: usize| {
        let [a, b, c] = [(); 3].map(|()| usize::from(dice.next().unwrap() >> 1));
        (a | b << 7 | c << 14) % below
    };
    for epoch in (1..=12).map(Epoch) {
        let written = write(directory.path(), epoch, &mut memories, base.as_ref());
        let tables = &written.tables;
        if epoch > Epoch(1) {
            assert!(!tables.origins.is_empty(), "epoch {epoch} is whole");
        }
        let mut origins = tables.origins.iter();
        assert!(origins.all(|origin| origin.epoch.0 + MOST >= epoch.0));
        let image = path(directory.path(), epoch);
        is_read(
            &image,
            &memories,
            [1 << 20, 4097, 300_001][epoch.0 as usize % 3],
        );
        base = Some(written.base(epoch, Rank(1)));
        if epoch.0 > MOST {
            let old = path(directory.path(), Epoch(epoch.0 - MOST));
            std::fs::remove_dir_all(old.parent().unwrap()).unwrap();
        }
        for memory in &mut memories {
            for _ in 0..3 {
                let block = die(memory.bytes.len() / BLOCK) * BLOCK;
                let fill = if die(2) == 0 { 0 } else { die(256) as u8 };
                memory.bytes[block..block + 1 + die(BLOCK)].fill(fill);
            }
            let bytes = memory.bytes.len() + die(3 * BLOCK);
            memory.bytes.resize(bytes - die(3 * BLOCK).min(BLOCK), 9);
        }
        memories.swap(0, 1);
    }
}

#[test]
fn what_is_referred_to_and_is_not_there_is_named() {
    let directory = tempfile::tempdir().unwrap();
    two(directory.path());
    let second = path(directory.path(), Epoch(2));
    verify(&second, 1).unwrap();
    let needed = path(directory.path(), Epoch(1));
    std::fs::remove_file(&needed).unwrap();
    let error = verify(&second, 1).unwrap_err().to_string();
    assert!(error.contains(&epoch_name(Epoch(1))), "{error}");
}
