//! The blocks that this agent keeps on its node's fast tier, its own rank's and those of peers, and their copying to the slow tier. The
//! layout is in `stillpoint_image::fast_tier`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use stillpoint_faults::{Point, strike};
use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::blocks::{BlockRecord, SLOW, read_block};
use stillpoint_image::fast_tier::JobPart;
use stillpoint_image::format::checksum;
use stillpoint_image::image_name;

use super::error::StagingError;
use super::throttle::Throttle;
use crate::ground::disk;

/// Blocks by epoch and rank.
type ByImage = BTreeMap<(Epoch, Rank), Vec<BlockRecord>>;

/// The blocks that are kept.
#[derive(Debug)]
pub struct Held {
    fast: PathBuf,
    part: JobPart,
    capacity: u64,
    blocks: Mutex<Blocks>,
}

/// One rank's image, in one attempt at an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageId {
    pub attempt: u64,
    pub epoch: Epoch,
    pub rank: Rank,
}

#[derive(Debug, Default)]
struct Blocks {
    /// The attempt whose blocks are kept.
    attempt: u64,
    /// Blocks to be copied to the slow tier.
    first: ByImage,
    /// Bytes on the tier that came through this agent, copies included.
    bytes: u64,
    /// The epoch whose blocks a restart may need: it is being staged, or is staged and not durable yet.
    needed: Option<Epoch>,
}

impl Held {
    pub fn new(fast: &Path, job: &str, capacity: u64) -> Held {
        Held {
            fast: fast.to_owned(),
            part: JobPart::new(fast, job),
            capacity,
            blocks: Mutex::default(),
        }
    }

    fn blocks(&self) -> std::sync::MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the file for a rank's blocks.
    pub fn create(&self, image: ImageId) -> io::Result<File> {
        let directory = self.part.make_epoch(image.epoch)?;
        strike(Point::FastCreate)?;
        directory.open_or_create(&image_name(image.rank))
    }

    /// Keeps a block in a file of [`Held::create`]. A second copy is not copied to the slow tier.
    pub fn keep(
        &self,
        file: &File,
        image: ImageId,
        offset: u64,
        bytes: &[u8],
        copy: bool,
    ) -> io::Result<()> {
        {
            let mut blocks = self.blocks();
            if blocks.attempt != image.attempt {
                return Err(io::Error::other("the attempt is over"));
            }
            if blocks.bytes + bytes.len() as u64 > self.capacity {
                return Err(io::ErrorKind::StorageFull.into());
            }
            blocks.bytes += bytes.len() as u64;
        }
        disk::write(file, bytes, offset)?;
        if !copy {
            let record = BlockRecord {
                offset,
                checksum: checksum(bytes),
                bytes: bytes.len() as u32,
                place: SLOW,
                copy: SLOW,
                reserved: 0,
            };
            let mut blocks = self.blocks();
            // A block of an attempt that has ended meanwhile must not be flushed with those of the next.
            if blocks.attempt == image.attempt {
                let image = (image.epoch, image.rank);
                blocks.first.entry(image).or_default().push(record);
            }
        }
        Ok(())
    }

    /// Removes every epoch of this job from the node, because another attempt begins.
    pub fn make_room(&self, attempt: u64) {
        let mut blocks = self.blocks();
        *blocks = Blocks {
            attempt,
            ..Blocks::default()
        };
        self.part.keep_only(None);
    }

    /// Notes that an epoch is about to be staged: from now on a restart may need its blocks.
    pub fn need(&self, epoch: Epoch) {
        self.blocks().needed = Some(epoch);
    }

    /// Gives up an attempt that makes no epoch: its blocks are removed, and no more of them are taken.
    pub fn give_up(&self, attempt: u64) {
        if self.blocks().attempt == attempt {
            self.make_room(0);
        }
    }

    /// Returns how much may be kept here now: the node's capacity, as far as its file system has room.
    pub fn room(&self) -> u64 {
        self.capacity.min(available(&self.fast))
    }

    /// Copies an epoch's blocks to the images in `slow`, and syncs them.
    pub fn flush(
        &self,
        epoch: Epoch,
        slow: &Path,
        throttle: &Throttle,
    ) -> Result<(), StagingError> {
        let images: Vec<(Rank, Vec<BlockRecord>)> = self
            .blocks()
            .first
            .range((epoch, Rank(0))..=(epoch, Rank(u32::MAX)))
            .map(|((_, rank), records)| (*rank, records.clone()))
            .collect();
        for (rank, records) in images {
            self.flush_image(epoch, rank, &records, slow, throttle)?;
        }
        Ok(())
    }

    fn flush_image(
        &self,
        epoch: Epoch,
        rank: Rank,
        records: &[BlockRecord],
        slow: &Path,
        throttle: &Throttle,
    ) -> Result<(), StagingError> {
        let name = image_name(rank);
        let from = self.part.epoch(epoch).join(&name);
        let to = slow.join(&name);
        let fast = self
            .part
            .held_epoch(epoch)
            .and_then(|it| it.open_file(&name));
        let fast = fast.map_err(StagingError::file(&from, "open the fast tier's part"))?;
        let slow = stillpoint_directory::overwrite(&to)
            .map_err(StagingError::file(&to, "open the image"))?;
        for record in records {
            strike(Point::FlushRead).map_err(StagingError::file(&from, "read a block"))?;
            let bytes = read_block(&fast, record).ok_or_else(|| StagingError::LostBlock {
                path: from.clone(),
                offset: record.offset,
            })?;
            throttle.wait(bytes.len());
            strike(Point::FlushWrite)
                .and_then(|()| disk::write(&slow, &bytes, record.offset))
                .map_err(StagingError::file(&to, "write the image"))?;
        }
        strike(Point::FlushSync)
            .and_then(|()| slow.sync_all())
            .map_err(StagingError::file(&to, "sync the image"))
    }

    /// Notes that the epoch is durable: its fast parts only make a restart quicker.
    pub fn note_durable(&self, epoch: Epoch) {
        let mut blocks = self.blocks();
        if blocks.needed == Some(epoch) {
            blocks.needed = None;
        }
    }

    /// Removes, at the end of the process, blocks that no restart needs, so that they do not fill the node's memory.
    pub fn leave(&self) {
        self.part.keep_only(self.blocks().needed);
        self.part.leave();
    }
}

/// Returns how much a file system still takes, or 0 if it does not tell.
pub fn available(path: &Path) -> u64 {
    nix::sys::statvfs::statvfs(path)
        .map_or(0, |about| about.blocks_available() * about.fragment_size())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn blocks_come_to_the_slow_tier_and_copies_do_not() {
        let directory = tempfile::tempdir().unwrap();
        let (fast, slow) = (directory.path().join("fast"), directory.path().join("slow"));
        fs::create_dir(&slow).unwrap();
        fs::write(slow.join(image_name(Rank(3))), [0; 20]).unwrap();
        let held = Held::new(&fast, "job", 15);
        held.make_room(2);
        held.need(Epoch(7));
        let image = ImageId {
            attempt: 2,
            epoch: Epoch(7),
            rank: Rank(3),
        };
        let file = held.create(image).unwrap();
        let earlier = ImageId {
            attempt: 1,
            ..image
        };
        assert!(held.keep(&file, earlier, 5, b"stale", false).is_err());
        held.keep(&file, image, 5, b"abcde", false).unwrap();
        held.keep(&file, image, 10, b"fghij", true).unwrap();
        let full = held.keep(&file, image, 15, b"too much", false).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        held.flush(Epoch(7), &slow, &Throttle::new(None)).unwrap();
        let whole = fs::read(slow.join(image_name(Rank(3)))).unwrap();
        assert_eq!(&whole[5..15], b"abcde\0\0\0\0\0");
        // A fast tier that has lost its bytes says so.
        fs::write(
            JobPart::new(&fast, "job")
                .epoch(Epoch(7))
                .join(image_name(Rank(3))),
            [1; 20],
        )
        .unwrap();
        let error = held
            .flush(Epoch(7), &slow, &Throttle::new(None))
            .unwrap_err();
        assert!(
            error.to_string().contains("lost the block at offset 5"),
            "{error}"
        );
    }

    #[test]
    fn what_a_restart_needs_stays_and_everything_else_goes() {
        let directory = tempfile::tempdir().unwrap();
        let there = |epoch: Epoch| JobPart::new(directory.path(), "job").epoch(epoch).exists();
        let held = Held::new(directory.path(), "job", 100);
        let stage = |attempt: u64, epoch: Epoch| {
            held.make_room(attempt);
            held.need(epoch);
            let rank = Rank(0);
            let image = ImageId {
                attempt,
                epoch,
                rank,
            };
            let file = held.create(image).unwrap();
            held.keep(&file, image, 0, b"abc", false).map(|()| image)
        };
        let image = stage(1, Epoch(4)).unwrap();
        let file = held.create(image).unwrap();
        held.give_up(2);
        assert!(there(Epoch(4)), "another attempt was given up");
        held.give_up(1);
        assert!(!there(Epoch(4)), "the epoch is not wanted");
        assert!(held.keep(&file, image, 0, b"abc", false).is_err());
        stage(3, Epoch(5)).unwrap();
        held.leave();
        assert!(there(Epoch(5)), "it may be staged, and is not durable");
        held.note_durable(Epoch(5));
        held.leave();
        assert!(!directory.path().join("job").exists());
    }
}
