//! Collects the blocks of one image, each from the nearest place that has it. Blocks of other hosts come into this process's memory, as far as there is room.
//! All blocks of a staged image come to the slow tier.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use stillpoint_ids::Rank;
use stillpoint_image::blocks::{BlockRecord, Blocks, SLOW, blocks_name, read_block};
use stillpoint_image::nearest::FastParts;
use stillpoint_image::{ImageError, Manifest, image_name};
use stillpoint_protocol::tier::Gathered;

use super::Task;
use super::fetch::Fetch;
use super::fetched::Fetched;

/// The source of a block.
enum From {
    Near,
    Peer,
    Slow,
}

pub struct Collector<'a> {
    blocks: &'a Blocks,
    /// The files on this host's fast tiers.
    near: FastParts,
    fetch: Fetch<'a>,
    fetched: Fetched,
    slow: Option<Slow>,
}

/// A staged image on the slow tier, which has to become whole.
struct Slow {
    path: PathBuf,
    file: File,
}

impl<'a> Collector<'a> {
    pub fn open(
        task: &Task,
        blocks: &'a Blocks,
        host: &str,
        fetch: Fetch<'a>,
        fetched: Fetched,
    ) -> Result<Collector<'a>, ImageError> {
        let image = image_name(task.rank);
        let slow = task
            .staged
            .then(|| Slow::open(&task.directory.join(&image)));
        Ok(Collector {
            blocks,
            near: FastParts::open(blocks, Path::new(&image), host, None),
            fetch,
            fetched,
            slow: slow.transpose()?,
        })
    }

    /// Collects all blocks. Returns the places that each is then read from, and the fetched ones.
    pub fn run(mut self) -> Result<(Gathered, Fetched), ImageError> {
        let mut gathered = Gathered::default();
        let blocks = self.blocks;
        for (number, record) in blocks.records.iter().enumerate() {
            let bytes = u64::from(record.bytes);
            match self.block(number, record)? {
                From::Near => gathered.near += bytes,
                From::Peer => gathered.peers += bytes,
                From::Slow => gathered.slow += bytes,
            }
        }
        if let Some(slow) = &self.slow {
            let sync = slow.file.sync_all();
            sync.map_err(ImageError::io(&slow.path, "sync the image"))?;
        }
        Ok((gathered, self.fetched))
    }

    fn block(&mut self, number: usize, record: &BlockRecord) -> Result<From, ImageError> {
        if record.place == SLOW {
            return Ok(From::Slow);
        }
        // A restart from a durable epoch finds lost blocks of a fast tier by itself, and reads the slow tier instead.
        if self.slow.is_none() && self.near.was_given(record) {
            return Ok(From::Near);
        }
        if let Some(bytes) = self.near.read(record) {
            self.secure(record, &bytes)?;
            return Ok(From::Near);
        }
        let Some(bytes) = self.fetch.block(number) else {
            return Ok(From::Slow);
        };
        self.secure(record, &bytes)?;
        let kept = self.fetched.keep(record, &bytes);
        Ok(if kept { From::Peer } else { From::Slow })
    }

    /// Copies a block of a staged image to the slow tier, if it is not there yet.
    fn secure(&self, record: &BlockRecord, bytes: &[u8]) -> Result<(), ImageError> {
        let Some(slow) = &self.slow else {
            return Ok(());
        };
        if read_block(&slow.file, record).is_some() {
            return Ok(());
        }
        slow.file
            .write_all_at(bytes, record.offset)
            .map_err(ImageError::io(&slow.path, "write the image"))
    }
}

impl Slow {
    fn open(path: &Path) -> Result<Slow, ImageError> {
        let file = stillpoint_directory::rewrite(path);
        Ok(Slow {
            file: file.map_err(ImageError::io(path, "open the image"))?,
            path: path.to_owned(),
        })
    }
}

/// Describes what a rank's image lacks on the slow tier; `None`: it is whole.
pub fn lacks(directory: &Path, rank: Rank) -> Option<String> {
    match lost(directory, rank) {
        Ok(lost) => lost,
        Err(error) => Some(error.to_string()),
    }
}

fn lost(directory: &Path, rank: Rank) -> Result<Option<String>, ImageError> {
    let blocks = Blocks::read(&directory.join(blocks_name(rank)))?;
    let path = directory.join(image_name(rank));
    let slow =
        stillpoint_directory::open(&path).map_err(ImageError::io(&path, "open the image"))?;
    let lost: Vec<_> = blocks
        .records
        .iter()
        .filter(|record| read_block(&slow, record).is_none())
        .collect();
    let Some(first) = lost.first() else {
        let image = Manifest::read(directory)?.open_image(directory, rank);
        return image.map(|_| None);
    };
    let bytes: u64 = lost.iter().map(|record| u64::from(record.bytes)).sum();
    let held = match (first.place as usize).checked_sub(1) {
        Some(place) => format!(
            "{} on {}",
            blocks.places[place].directory.display(),
            blocks.places[place].host
        ),
        None => "the slow tier".to_owned(),
    };
    Ok(Some(format!(
        "{}: {bytes} bytes in {} blocks are lost; the first was in {held}",
        path.display(),
        lost.len()
    )))
}
