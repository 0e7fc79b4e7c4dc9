//! Hashes staged memory where it lies, so that only wanted bytes come to the rank.

use std::io::Read;

use stillpoint_gpu_messages::hashed::{HASH_BYTES, Spent, blocks, to_bits};
use stillpoint_gpu_messages::{Answer, Hashed, Hashers, Memory, Request};

use super::client::{Client, MOVES, Trouble, helper, unexpected};
use super::remaining_ranges::RemainingRanges;

/// How blocks of device memory are to be hashed before they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashRequest {
    /// The size of a block.
    pub block: u64,
    pub hashers: Hashers,
}

/// The hashes, and the time that they took.
#[derive(Debug)]
pub struct HashReply {
    /// The hash of each block, by memory; `None`: the block was not hashed.
    pub hashes: Vec<Vec<Option<u128>>>,
    pub by_gpus: Spent,
    pub by_processor: Spent,
}

impl Client {
    /// Has these memories hashed where they lie, before they are drained.
    ///
    /// # Errors
    /// The helper's; also if it reports hashes of blocks that do not exist.
    pub fn hashes(
        &mut self,
        asked: HashRequest,
        memories: &[Memory],
    ) -> Result<HashReply, Trouble> {
        let HashRequest { block, hashers } = asked;
        let hashed = match self.ask_with(&Request::Hashes { block, hashers }, &[], MOVES)? {
            Answer::Hashes(hashed) => hashed,
            other => return Err(unexpected(&other)),
        };
        let of = |memory: &Memory| vec![None; blocks(memory.bytes, block) as usize];
        let mut hashes: Vec<Vec<Option<u128>>> = memories.iter().map(of).collect();
        let Hashed {
            runs,
            by_gpus,
            by_processor,
            ..
        } = hashed;
        for run in runs {
            let end = run.first.saturating_add(run.blocks);
            let places = hashes
                .get_mut(run.memory)
                .and_then(|of| of.get_mut(run.first as usize..end as usize));
            let Some(places) = places else {
                let reason =
                    format!("the node's helper says hashes of blocks that there are not: {run:?}");
                return Err(Trouble::Refused(reason));
            };
            for place in places {
                let mut hash = [0; HASH_BYTES];
                let read = self.from.read_exact(&mut hash);
                read.map_err(helper("says no more"))?;
                *place = Some(u128::from_le_bytes(hash));
            }
        }
        Ok(HashReply {
            hashes,
            by_gpus,
            by_processor,
        })
    }

    /// Tells the helper which blocks of these memories are wanted; only those come.
    ///
    /// # Errors
    /// The helper's.
    pub fn only(
        &mut self,
        block: u64,
        memories: &[Memory],
        wanted: &[RemainingRanges],
    ) -> Result<(), Trouble> {
        let mut all = Vec::new();
        for (memory, wanted) in memories.iter().zip(wanted) {
            all.extend(to_bits(wanted.ranges(), memory.bytes, block));
        }
        match self.ask_with(&Request::Only { block }, &all, MOVES)? {
            Answer::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }
}
