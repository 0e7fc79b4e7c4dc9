//! An image whose blocks are each read from the nearest place that has them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::blocks::{BlockRecord, Blocks, SLOW, beside, read_block};
use crate::store::Source;

/// An image with some blocks on fast tiers within reach; the rest is read from the slow tier.
#[derive(Debug)]
pub struct Nearest {
    slow: File,
    fast: FastParts,
    blocks: Blocks,
}

/// The files on this host's fast tiers that hold parts of one image.
#[derive(Debug)]
pub struct FastParts {
    /// The files in the order of the table's places, with `None` for a place on another host, or a lost file.
    places: Vec<Option<File>>,
    /// A file with blocks that were fetched from other hosts.
    fetched: Option<File>,
}

impl FastParts {
    /// Opens the parts of `image` (a file name) that `host` has, and those in the file `fetched`.
    pub fn open(blocks: &Blocks, image: &Path, host: &str, fetched: Option<&Path>) -> FastParts {
        let part = |directory: &Path| stillpoint_directory::open(&directory.join(image)).ok();
        let places = blocks.places.iter();
        FastParts {
            places: places
                .map(|place| (place.host == host).then(|| part(&place.directory))?)
                .collect(),
            fetched: fetched.and_then(|path| File::open(path).ok()),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.fetched.is_none() && self.places.iter().all(Option::is_none)
    }

    /// Returns whether one of them was given a block; it does not read what they hold now.
    pub fn was_given(&self, record: &BlockRecord) -> bool {
        self.of(record).next().is_some()
    }

    fn of(&self, record: &BlockRecord) -> impl Iterator<Item = &File> {
        holders(record).filter_map(|place| self.places.get(place as usize - 1)?.as_ref())
    }

    /// Reads a block, if one of them holds it, whole.
    pub fn read(&self, record: &BlockRecord) -> Option<Vec<u8>> {
        let files = self.of(record).chain(&self.fetched);
        files.into_iter().find_map(|file| read_block(file, record))
    }
}

/// Returns the places of the fast tiers that were given a block.
pub fn holders(record: &BlockRecord) -> impl Iterator<Item = u32> {
    let places = [record.place, record.copy].into_iter();
    places.filter(|place| *place != SLOW)
}

impl Nearest {
    /// Opens the image at `image`. Returns `None` if neither the fast tiers of this host nor the file `fetched` hold any of it.
    pub fn open(image: &Path, host: &str, fetched: Option<&Path>) -> Option<Nearest> {
        let table = beside(image);
        if !table.exists() {
            return None;
        }
        let blocks = Blocks::read(&table).ok()?;
        let fast = FastParts::open(&blocks, image.file_name()?.as_ref(), host, fetched);
        if fast.is_empty() {
            return None;
        }
        let slow = stillpoint_directory::open(image).ok()?;
        // The table may belong to another image.
        (slow.metadata().ok()?.len() == blocks.length()).then_some(Nearest { slow, fast, blocks })
    }

    /// Reads a block from a fast tier. Returns `None` if the block was written to the slow tier at once, or is lost.
    fn near(&self, record: &BlockRecord) -> Option<Vec<u8>> {
        (record.place != SLOW).then(|| self.fast.read(record))?
    }
}

impl Source for Nearest {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset + bytes.len() as u64;
        let first = self
            .blocks
            .records
            .partition_point(|record| record.offset + u64::from(record.bytes) <= offset);
        let mut at = offset;
        for record in &self.blocks.records[first..] {
            if at >= end {
                break;
            }
            let stop = end.min(record.offset + u64::from(record.bytes));
            let part = &mut bytes[(at - offset) as usize..(stop - offset) as usize];
            let skip = (at - record.offset) as usize;
            match self.near(record) {
                Some(block) => part.copy_from_slice(&block[skip..skip + part.len()]),
                None => FileExt::read_exact_at(&self.slow, part, at)?,
            }
            at = stop;
        }
        match at < end {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Ok(()),
        }
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.blocks.length())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::blocks::tests::staged;

    /// Returns bytes 0 to 9 and 20 to 29, which are on the slow tier; a fast tier has those between.
    fn with_a_hole() -> [u8; 30] {
        let mut slow = [0; 30];
        slow[..10].copy_from_slice(&(0..10).collect::<Vec<u8>>());
        slow[20..].copy_from_slice(&(20..30).collect::<Vec<u8>>());
        slow
    }

    fn read(nearest: &Nearest) -> Vec<u8> {
        let mut bytes = vec![0; 30];
        nearest.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn a_block_is_read_where_it_is_nearest() {
        let directory = tempfile::tempdir().unwrap();
        let image = staged(directory.path(), &with_a_hole());
        let nearest = Nearest::open(&image, "here", None).unwrap();
        assert_eq!(read(&nearest), (0..30).collect::<Vec<u8>>());
        let mut few = [0; 4];
        nearest.read_exact_at(&mut few, 8).unwrap();
        assert_eq!(few, [8, 9, 10, 11]);
        assert!(nearest.read_exact_at(&mut few, 28).is_err());
        assert!(Nearest::open(&image, "elsewhere", None).is_none());
    }

    #[test]
    fn what_was_fetched_from_other_hosts_need_not_be_on_the_slow_tier() {
        let directory = tempfile::tempdir().unwrap();
        let image = staged(directory.path(), &with_a_hole());
        let fetched = directory.path().join("fetched");
        assert!(Nearest::open(&image, "elsewhere", Some(&fetched)).is_none());
        fs::write(&fetched, (0..20).collect::<Vec<u8>>()).unwrap();
        let nearest = Nearest::open(&image, "elsewhere", Some(&fetched)).unwrap();
        assert_eq!(read(&nearest), (0..30).collect::<Vec<u8>>());
    }

    #[test]
    fn a_block_that_the_fast_tier_has_lost_comes_from_the_slow_one() {
        let directory = tempfile::tempdir().unwrap();
        let whole: Vec<u8> = (0..30).collect();
        let image = staged(directory.path(), whole.as_slice().try_into().unwrap());
        fs::write(directory.path().join("fast/rank-000000.img"), [9; 20]).unwrap();
        let nearest = Nearest::open(&image, "here", None).unwrap();
        assert_eq!(read(&nearest), whole);
    }
}
