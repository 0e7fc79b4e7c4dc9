//! Chunks that images of one epoch share.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use stillpoint_ids::Rank;

use crate::compression::Codec;
use crate::index::{ChunkLocation, Index, Key};

/// Most images of its own epoch that one is written to need: a restart opens each of these files.
const MOST_SIBLINGS: usize = 256;

/// A table of existing chunks, as one image uses it.
pub struct Sharing {
    index: Index,
    /// The rank whose image it is.
    rank: Rank,
    /// The ranks whose images hold chunks of this one.
    needs: Mutex<BTreeSet<Rank>>,
}

impl Sharing {
    /// Shares chunks between the image of a rank and those of all others that have the same table: each chunk is written once.
    pub fn with(index: Index, rank: Rank) -> Sharing {
        Sharing {
            index,
            rank,
            needs: Mutex::default(),
        }
    }

    /// Shares chunks only within the image of a rank, of at most so many bytes of memory.
    pub fn in_one_image(rank: Rank, bytes: u64) -> Sharing {
        Sharing::with(Index::of_one(bytes), rank)
    }

    pub(crate) fn key(&self, stored: &[u8], codec: Codec, bytes: u32) -> Key {
        self.index.key(stored, codec, bytes)
    }

    pub(crate) fn find(&self, key: Key, make: impl FnOnce() -> u64) -> ChunkLocation {
        match self.index.find(key, self.rank, make) {
            ChunkLocation::There { rank, .. } if !self.may_need(rank) => ChunkLocation::Unknown,
            place => place,
        }
    }

    fn may_need(&self, rank: Rank) -> bool {
        let mut needs = self.needs.lock().unwrap_or_else(PoisonError::into_inner);
        needs.contains(&rank) || needs.len() < MOST_SIBLINGS && needs.insert(rank)
    }
}
