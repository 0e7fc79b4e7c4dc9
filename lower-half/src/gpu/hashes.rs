//! What is staged is hashed where it lies, and only what is wanted of it comes to the rank.

use std::io::Read;

use stillpoint_gpu_messages::hashed::{HASH_BYTES, Spent, blocks, to_bits};
use stillpoint_gpu_messages::{Answer, Hashed, Hashers, Memory, Request};

use super::client::{Client, MOVES, Trouble, helper, unexpected};
use super::wanted::Wanted;

/// How blocks of devices' memory are to be hashed before they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Their size.
    pub block: u64,
    pub hashers: Hashers,
}

/// What came of it.
#[derive(Debug)]
pub struct Told {
    /// Of each memory, of each of its blocks; `None`: nobody has hashed it.
    pub hashes: Vec<Vec<Option<u128>>>,
    pub by_gpus: Spent,
    pub by_processor: Spent,
}

impl Client {
    /// Has these memories, which are going to be drained, hashed where they lie.
    ///
    /// # Errors
    /// The helper's; also where it says hashes of blocks that there are not.
    pub fn hashes(&mut self, asked: Asked, memories: &[Memory]) -> Result<Told, Trouble> {
        let Asked { block, hashers } = asked;
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
        Ok(Told {
            hashes,
            by_gpus,
            by_processor,
        })
    }

    /// Says what of these memories is wanted: nothing else comes.
    ///
    /// # Errors
    /// The helper's.
    pub fn only(
        &mut self,
        block: u64,
        memories: &[Memory],
        wanted: &[Wanted],
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
