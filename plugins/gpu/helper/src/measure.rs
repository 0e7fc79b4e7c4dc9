//! `stillpoint-gpu --measure DIR BYTES` measures each GPU of this node with so much memory of this process's own. The memory is hashed in place, staged in
//! host memory and drained, and every byte is compared. DIR's record of copies then holds the speeds of the ways, for `stillpoint plan streams`.

use std::path::Path;
use std::time::Instant;

use stillpoint_gpu_hash::hash;
use stillpoint_gpu_plan::record::{FROM_HOST, PROBE};
use stillpoint_gpu_plan::{Source, StagingPlace};
use stillpoint_gpu_staging::{
    Bytes, BytesError, Device, Digest, Drain, Settings, Sink, SinkError, fill_from, stage,
};
use stillpoint_ids::Rank;

use crate::checkpoint::driver;
use crate::facts;
use crate::staging::node::{Surveyed, host_room};

/// Sizes of the blocks that are hashed.
const BLOCKS: [u64; 2] = [64 << 10, 1 << 20];

/// Measures, and prints a line for each result.
///
/// # Errors
/// The driver's, or the returned bytes differ from the originals; the text is for people.
pub fn measure(directory: &Path, bytes: u64) -> Result<(), String> {
    facts::see_every_device();
    let driver = driver()?;
    let mut surveyed = Surveyed::begin(driver, directory, None)?;
    // The hash needs whole units.
    let bytes = bytes.next_multiple_of(16);
    for gpu in 0..surveyed.described.len() {
        let spot = surveyed.gpus.reserve(StagingPlace::Gpu(gpu), bytes);
        let spot = spot.map_err(told)?;
        let source = Source {
            rank: Rank(0),
            gpu,
            address: spot.address,
            bytes,
        };
        let measured = surveyed.fill(source).and_then(|()| {
            surveyed.hash(source)?;
            surveyed.stage(source)
        });
        surveyed.gpus.give_back(spot);
        measured?;
    }
    Ok(())
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn say(bytes: u64, what: &str, seconds: f64) {
    let rate = bytes as f64 / seconds / 1e9;
    println!("{bytes} bytes: {what}: {seconds:.4} s, {rate:.2} GB/s");
}

impl Surveyed {
    fn fill(&mut self, source: Source) -> Result<(), String> {
        let choice = |gpu: usize, bytes| {
            let uuid = &self.node.gpus[gpu].uuid;
            let room = host_room();
            let chosen = self
                .record
                .choose_in(uuid, &self.version, FROM_HOST, bytes, room);
            chosen.0
        };
        fill_from(&mut self.gpus, &[source], &mut Pattern(0), &choice).map_err(told)
    }

    fn hash(&mut self, source: Source) -> Result<(), String> {
        let spot = stillpoint_gpu_staging::Spot {
            place: StagingPlace::Gpu(source.gpu),
            address: source.address,
        };
        let name = self.node.gpus[source.gpu].uuid.clone();
        for block in BLOCKS {
            let found = self.gpus.hashes(spot, source.bytes, block).map_err(told)?;
            let found = found.ok_or_else(|| format!("{name} cannot hash unaligned memory"))?;
            let what = format!("hashed by {name} in blocks of {block}");
            say(source.bytes, &what, found.took.as_secs_f64());
            let mut room = vec![0; block as usize];
            let (mut at, mut seconds) = (0, 0.0);
            for hashed in found.hashes {
                let here = (source.bytes - at).min(block);
                let bytes = &mut room[..here as usize];
                pattern(at, bytes);
                let begun = Instant::now();
                let right = hash(bytes);
                seconds += begun.elapsed().as_secs_f64();
                if hashed != right {
                    return Err(format!(
                        "{name} hashes the block of {here} bytes at {at} to {hashed:032x}, a processor to {right:032x}"
                    ));
                }
                at += here;
            }
            if at != source.bytes {
                return Err(format!("{name} has hashed {at} of {} bytes", source.bytes));
            }
            let what = format!("hashed by one processor in blocks of {block}");
            say(source.bytes, &what, seconds);
        }
        Ok(())
    }

    /// Stages everything in host memory, whatever room GPUs have.
    fn stage(&mut self, source: Source) -> Result<(), String> {
        let drain = self.drain(1)?;
        let mut node = self.node.clone();
        (node.margin, node.host.room) = (u64::MAX, host_room());
        let staged = {
            let choice = self.record.choice(&node, &self.version);
            let settings = Settings {
                choice: &choice,
                drain,
                ..Settings::default()
            };
            stage(&mut self.gpus, &node, &[source], &settings).map_err(told)?
        };
        let measured = staged.measured.clone();
        let ways = measured.ways.iter();
        let streams: Vec<String> = ways
            .map(|by| format!("{} streams of {} bytes", by.copies.streams, by.copies.slot))
            .collect();
        let what = format!(
            "staged in host memory in {}, {:.4} s expected",
            streams.join(", "),
            measured.predicted
        );
        say(source.bytes, &what, measured.seconds);
        self.note(&measured, PROBE);
        let mut compared = Compared(0);
        let mut drain = Drain::new(staged);
        let drained = drain.run(&mut self.gpus, &mut compared);
        drain.end(&mut self.gpus);
        drained.map_err(told)?;
        match compared.0 == source.bytes {
            true => Ok(()),
            false => Err(format!(
                "{} of {} bytes came out of host memory",
                compared.0, source.bytes
            )),
        }
    }
}

/// Fills a buffer with the pattern from an offset, which is a multiple of eight.
fn pattern(from: u64, into: &mut [u8]) {
    for (number, word) in (from / 8 + 1..).zip(into.chunks_mut(8)) {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bytes = (mixed ^ mixed >> 29).to_le_bytes();
        word.copy_from_slice(&bytes[..word.len()]);
    }
}

/// The offset up to which the pattern has been read.
struct Pattern(u64);

impl Bytes for Pattern {
    fn read(&mut self, _: usize, into: &mut [u8]) -> Result<Option<Digest>, BytesError> {
        pattern(self.0, into);
        self.0 += into.len() as u64;
        Ok(None)
    }
}

/// The offset up to which the pattern has come back.
struct Compared(u64);

impl Sink for Compared {
    fn write(
        &mut self,
        _: usize,
        offset: u64,
        bytes: &[u8],
        _: Option<Digest>,
    ) -> Result<(), SinkError> {
        let mut right = vec![0; bytes.len()];
        pattern(offset, &mut right);
        if right != bytes {
            let (rank, problem) = (Rank(0), format!("other bytes came back at {offset}"));
            return Err(SinkError { rank, problem });
        }
        self.0 += bytes.len() as u64;
        Ok(())
    }
}
