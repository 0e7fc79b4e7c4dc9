//! Hashing of a rank's staged memory in place, and the choice of blocks that the rank wants drained.

use std::io::{self, Read, Write};
use std::time::Instant;

use stillpoint_gpu_hash::hash;
use stillpoint_gpu_messages::hashed::{Run, bits, blocks, from_bits};
use stillpoint_gpu_messages::{Answer, Hashed, Hashers, send};
use stillpoint_gpu_plan::StagingPlace;
use stillpoint_gpu_staging::{Device, Staged, Stretch};

use super::Draining;

/// The whole blocks of a source within a stretch, and the offset of the first of them in the stretch.
struct Whole {
    run: Run,
    skipped: u64,
    bytes: u64,
}

fn whole(stretch: &Stretch, source_bytes: u64, block: u64) -> Option<Whole> {
    let end = stretch.offset + stretch.bytes;
    let first = stretch.offset.div_ceil(block);
    // A source's last block may be shorter.
    let behind = match end == source_bytes {
        true => blocks(end, block),
        false => end / block,
    };
    let start = first * block;
    let count = behind.checked_sub(first).filter(|count| *count > 0)?;
    Some(Whole {
        run: Run {
            memory: stretch.source,
            first,
            blocks: count,
        },
        skipped: start - stretch.offset,
        bytes: (behind * block).min(end) - start,
    })
}

impl Draining {
    /// Sends the hashes of blocks of so many bytes.
    ///
    /// # Errors
    /// The rank that drains is gone.
    pub fn hashes(&mut self, block: u64, hashers: Hashers, to: &mut impl Write) -> io::Result<()> {
        let Some(staged) = self.staged.take().filter(|_| block > 0) else {
            return send(to, &Answer::Failed("it is drained already".to_owned()));
        };
        let (hashed, hashes) = self.hash(&staged, block, hashers);
        self.staged = Some(staged);
        send(to, &Answer::Hashes(hashed))?;
        let bytes: Vec<u8> = hashes.into_iter().flat_map(u128::to_le_bytes).collect();
        to.write_all(&bytes)
    }

    fn hash(&mut self, staged: &Staged, block: u64, hashers: Hashers) -> (Hashed, Vec<u128>) {
        let (mut hashed, mut hashes) = (Hashed::default(), Vec::new());
        for stretch in staged.stretches() {
            let of = staged.sources()[stretch.source].bytes;
            let Some(whole) = whole(&stretch, of, block) else {
                continue;
            };
            let spot = stretch.spot.after(whole.skipped);
            let found = match spot.place {
                StagingPlace::Gpu(_) if hashers.gpus && hashed.problem.is_none() => {
                    match self.gpus.hashes(spot, whole.bytes, block) {
                        Ok(Some(found)) => {
                            let seconds = found.took.as_secs_f64();
                            hashed.by_gpus.add(whole.bytes, seconds);
                            found.hashes
                        }
                        Ok(None) => continue,
                        // The rank receives this stretch without hashes, and hashes it itself if that pays.
                        Err(error) => {
                            hashed.problem = Some(error.to_string());
                            continue;
                        }
                    }
                }
                StagingPlace::Host if hashers.processor => {
                    let begun = Instant::now();
                    let Ok(bytes) = self.gpus.host(spot, whole.bytes) else {
                        continue;
                    };
                    let found = bytes.chunks(block as usize).map(hash).collect();
                    let seconds = begun.elapsed().as_secs_f64();
                    hashed.by_processor.add(whole.bytes, seconds);
                    found
                }
                _ => continue,
            };
            hashed.runs.push(whole.run);
            hashes.extend(found);
        }
        (hashed, hashes)
    }

    /// Reads which blocks the rank wants. Only these are drained.
    ///
    /// # Errors
    /// The rank that drains is gone.
    pub fn only(&mut self, block: u64, from: &mut impl Read) -> io::Result<Answer> {
        let mut wanted = Vec::new();
        for memory in &self.memories {
            let mut all = vec![0; bits(memory.bytes, block) as usize];
            from.read_exact(&mut all)?;
            wanted.push(from_bits(&all, memory.bytes, block));
        }
        let Some(staged) = self.staged.take() else {
            return Ok(Answer::Failed("it is drained already".to_owned()));
        };
        self.staged = Some(staged.only(&wanted));
        Ok(Answer::Done)
    }
}

#[cfg(test)]
mod tests {
    use stillpoint_gpu_staging::Spot;

    use super::*;

    /// Returns the first block, the number of blocks, the skipped bytes, and the hashed bytes.
    fn of(offset: u64, bytes: u64, source: u64) -> Option<(u64, u64, u64, u64)> {
        let spot = Spot {
            place: StagingPlace::Host,
            address: 0,
        };
        let stretch = Stretch {
            source: 0,
            offset,
            bytes,
            spot,
        };
        let found = whole(&stretch, source, 100)?;
        Some((
            found.run.first,
            found.run.blocks,
            found.skipped,
            found.bytes,
        ))
    }

    #[test]
    fn blocks_that_lie_in_two_places_are_left_out() {
        assert_eq!(of(0, 300, 300), Some((0, 3, 0, 300)));
        assert_eq!(of(0, 250, 300), Some((0, 2, 0, 200)));
        assert_eq!(of(250, 50, 300), None);
        assert_eq!(of(150, 150, 300), Some((2, 1, 50, 100)));
        // The last block is short, and whole.
        assert_eq!(of(250, 80, 330), Some((3, 1, 50, 30)));
        assert_eq!(of(310, 20, 330), None);
        assert_eq!(of(0, 0, 0), None);
    }
}
