//! A table of the chunks that an epoch has already, by their contents. A rank that is about to write a chunk looks there for an equal one.
//!
//! ```text
//! slot: 24 bytes, [low half of the key, other half, place]     empty: zeros     place: rank << 44 | offset
//! behind the slots: one word, the seed of all keys
//! ```
//!
//! The table may lie in memory that the ranks of a node share. A rank takes a slot by an exchange of its first word, and the slot
//! counts when its last word is there. No rank waits for another one that has taken a slot. So a rank that ends in the middle
//! leaves a useless slot, and nothing else. The table does not grow: when it is full, ranks write chunks although others have
//! them.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};

use stillpoint_ids::Rank;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::compression::Codec;
use crate::format::checksum;

/// Bytes of memory for which the table has one slot. Chunks that ranks look for have at least 64 KiB, and usually 300 KiB.
const BYTES_A_SLOT: u64 = 128 << 10;
/// The number of words of a slot.
const WORDS: usize = 3;
/// The most slots that a search looks at.
const PROBES: usize = 32;
/// How often a search looks at a slot that another rank has just taken.
const PATIENCE: usize = 1000;
const OFFSET_BITS: u32 = 44;
const MOST_RANKS: u32 = 1 << (64 - OFFSET_BITS);

/// The key by which a chunk is found, with the chunk's checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    low: u64,
    high: u64,
    pub checksum: u64,
}

impl Key {
    /// Makes the key of a chunk as it is stored. Equal bytes of the same codec are decompressed to equal bytes, of equal number. The seed
    /// keeps an attacker from preparing different chunks with the same key.
    pub fn of(stored: &[u8], codec: Codec, bytes: u32, seed: u64) -> Key {
        let (sum, checksum) = (xxh3_128_with_seed(stored, seed), checksum(stored));
        let form = u64::from(bytes) << 2 | u64::from(codec as u32);
        Key {
            low: (sum as u64).max(1),
            high: (sum >> 64) as u64 ^ form,
            checksum,
        }
    }
}

/// The place of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkLocation {
    /// In the image of that rank, at that offset.
    There { rank: Rank, offset: u64 },
    /// Nowhere yet: the caller writes it at the offset that was made for it, and others may refer to it there.
    Here(u64),
    /// At no known place, and no other rank will refer to it.
    Unknown,
}

/// The table of chunks.
pub struct Index {
    words: Box<dyn AsRef<[AtomicU64]> + Send + Sync>,
    /// The number of slots, a power of two.
    slots: usize,
    seed: u64,
}

impl Index {
    /// Returns how many words the table for so many bytes of memory has: 24 bytes for 64 to 128 KiB. The last word is the seed; all others
    /// begin as zeros.
    pub fn words_for(bytes: u64) -> usize {
        let slots = bytes.div_ceil(BYTES_A_SLOT).max(64).next_power_of_two();
        slots as usize * WORDS + 1
    }

    /// Returns a seed that others cannot guess.
    pub fn new_seed() -> u64 {
        // The standard library asks the kernel for it.
        RandomState::new().build_hasher().finish()
    }

    /// Makes a table of these words: zeros and a seed, or the state in which other ranks have left them.
    pub fn in_words(words: impl AsRef<[AtomicU64]> + Send + Sync + 'static) -> Index {
        let last = words.as_ref().last();
        let seed = last.map_or(0, |word| word.load(Ordering::Relaxed));
        let slots = words.as_ref().len() / WORDS;
        Index {
            words: Box::new(words),
            slots: slots.checked_ilog2().map_or(0, |bits| 1 << bits),
            seed,
        }
    }

    /// Returns the key of a chunk as it is stored.
    pub(crate) fn key(&self, stored: &[u8], codec: Codec, bytes: u32) -> Key {
        Key::of(stored, codec, bytes, self.seed)
    }

    /// Makes a table for one image of so many bytes of memory.
    pub fn of_one(bytes: u64) -> Index {
        let zeros = (1..Index::words_for(bytes)).map(|_| AtomicU64::new(0));
        let words = zeros.chain([AtomicU64::new(Index::new_seed())]);
        Index::in_words(words.collect::<Vec<_>>())
    }

    /// Looks for a chunk, and takes a slot for it if it is not there. `make` returns the offset at which `rank` is going to write it.
    pub(crate) fn find(&self, key: Key, rank: Rank, make: impl FnOnce() -> u64) -> ChunkLocation {
        let (slots, _) = (*self.words).as_ref().as_chunks::<WORDS>();
        let Some(last) = self.slots.checked_sub(1).filter(|_| rank.0 < MOST_RANKS) else {
            return ChunkLocation::Unknown;
        };
        for probe in 0..PROBES.min(self.slots) {
            let [low, high, place] = &slots[(key.high as usize).wrapping_add(probe) & last];
            let found = match low.load(Ordering::Relaxed) {
                0 => low.compare_exchange(0, key.low, Ordering::AcqRel, Ordering::Acquire),
                taken => Err(taken),
            };
            match found {
                Ok(_) => {
                    let offset = make();
                    high.store(key.high, Ordering::Relaxed);
                    // Other ranks do not find a chunk that lies too far behind.
                    if offset >> OFFSET_BITS == 0 {
                        let here = u64::from(rank.0) << OFFSET_BITS | offset;
                        place.store(here, Ordering::Release);
                    }
                    return ChunkLocation::Here(offset);
                }
                Err(taken) if taken == key.low => match there(place) {
                    None => return ChunkLocation::Unknown,
                    Some(place) if high.load(Ordering::Relaxed) == key.high => return place,
                    Some(_) => {}
                },
                Err(_) => {}
            }
        }
        ChunkLocation::Unknown
    }
}

/// Returns the place in a slot whose first word is set, or `None` if the rest does not come.
fn there(place: &AtomicU64) -> Option<ChunkLocation> {
    for _ in 0..PATIENCE {
        // No chunk lies at offset 0.
        match place.load(Ordering::Acquire) {
            0 => spin_loop(),
            place => {
                return Some(ChunkLocation::There {
                    rank: Rank((place >> OFFSET_BITS) as u32),
                    offset: place & ((1 << OFFSET_BITS) - 1),
                });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn key(seed: u64) -> Key {
        Key::of(&seed.to_le_bytes(), Codec::None, 8, 7)
    }

    /// Images contain the checksum, so everybody can read it; the key by which chunks are found has to stay secret.
    #[test]
    fn keys_are_seeded_and_checksums_are_not() {
        let stored = [7; 5000];
        let one = Key::of(&stored, Codec::Lz4, 9, 1);
        let other = Key::of(&stored, Codec::Lz4, 9, 2);
        assert_eq!(
            (one.checksum, other.checksum),
            (checksum(&stored), one.checksum)
        );
        assert!(one.low != other.low && one.high != other.high);
        let tables = [Index::of_one(0), Index::of_one(0)];
        let [one, other] = tables
            .each_ref()
            .map(|table| table.key(&stored, Codec::Lz4, 9));
        assert_ne!(one, other);
    }

    #[test]
    fn what_is_decompressed_otherwise_is_another_chunk() {
        let stored = [7; 5000];
        let keys = [
            Key::of(&stored, Codec::None, 5000, 7),
            Key::of(&stored, Codec::Lz4, 5001, 7),
            Key::of(&stored, Codec::Zstd, 5001, 7),
            Key::of(&stored, Codec::Zstd, 5002, 7),
        ];
        for (number, key) in keys.iter().enumerate() {
            assert!(keys[number + 1..].iter().all(|other| other != key));
        }
    }

    #[test]
    fn a_chunk_is_found_where_it_was_put() {
        let index = Index::of_one(1 << 30);
        assert_eq!(index.find(key(1), Rank(3), || 64), ChunkLocation::Here(64));
        let there = ChunkLocation::There {
            rank: Rank(3),
            offset: 64,
        };
        assert_eq!(index.find(key(1), Rank(4), || panic!("it is there")), there);
        assert_eq!(index.find(key(2), Rank(4), || 99), ChunkLocation::Here(99));
        // A place that does not fit into a slot is not found.
        assert_eq!(
            index.find(key(3), Rank(1 << 20), || 5),
            ChunkLocation::Unknown
        );
        assert_eq!(
            index.find(key(4), Rank(1), || 1 << 44),
            ChunkLocation::Here(1 << 44)
        );
        assert_eq!(index.find(key(4), Rank(2), || 5), ChunkLocation::Unknown);
    }

    #[test]
    fn a_full_table_finds_what_it_has_and_takes_no_more() {
        let index = Index::of_one(0);
        let taken = (0..1000)
            .filter(|seed| index.find(key(*seed), Rank(0), || 64) == ChunkLocation::Here(64));
        let taken = taken.count();
        assert!((33..=64).contains(&taken), "{taken}");
        let there = |seed: &u64| index.find(key(*seed), Rank(0), || 64) != ChunkLocation::Unknown;
        assert_eq!((0..1000).filter(there).count(), 64);
        assert_eq!(
            Index::in_words(Vec::new()).find(key(1), Rank(0), || 64),
            ChunkLocation::Unknown
        );
    }

    /// Many threads at once: one of them writes each chunk, and all others refer to it.
    #[test]
    fn of_many_one_writes() {
        let index = Arc::new(Index::of_one(1 << 30));
        let written = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for rank in Rank::all(4) {
                let (index, written) = (&index, &written);
                scope.spawn(move || {
                    for seed in 0..2000 {
                        match index.find(key(seed), rank, || 64 + seed) {
                            ChunkLocation::There { offset, .. } => assert_eq!(offset, 64 + seed),
                            // A thread that has taken a slot may have been stopped in the middle; others then get `Unknown`.
                            ChunkLocation::Here(_) => _ = written.fetch_add(1, Ordering::Relaxed),
                            ChunkLocation::Unknown => {}
                        }
                    }
                });
            }
        });
        assert_eq!(written.into_inner(), 2000);
    }
}
