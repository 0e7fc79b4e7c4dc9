//! The table of a staged image's blocks: it says which stretch of the image lies on which fast tier.
//!
//! A staged image is a sparse file in several places at once: each block lies at its own offset in the file of the place that
//! holds it. This table lies beside the image on the slow tier and names each block's place. It stays there when the image has
//! become whole, so that a restart can read from the fast tiers what they still hold.
//!
//! ```text
//! BlocksHeader (40 bytes): magic, version, bytes of the places, number of blocks, checksum of what follows
//! places: JSON, [{"host", "directory"}, ...]
//! BlockRecord[]: in order of offset, without gaps
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stillpoint_faults::{Point, strike};
use stillpoint_ids::Rank;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::ImageError;
use crate::format::checksum;

const MAGIC: [u8; 8] = *b"STILLBLK";
const VERSION: u32 = 1;
/// The most bytes that a table may have; the table of an image of 100 TiB has fewer.
const MAX_BYTES: u64 = 4 << 30;
/// The length of the longest block.
pub const MAX_BLOCK_BYTES: usize = 4 << 20;
/// [`BlockRecord::place`] of a block that was written to the slow tier at once; [`BlockRecord::copy`] of one without a copy.
pub const SLOW: u32 = 0;

/// The header of the table, at offset 0.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
struct BlocksHeader {
    magic: [u8; 8],
    version: u32,
    reserved: u32,
    place_bytes: u64,
    blocks: u64,
    checksum: u64,
}

const _: () = {
    assert!(size_of::<BlocksHeader>() == 40);
    assert!(size_of::<BlockRecord>() == 32);
};

/// A stretch of an image.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct BlockRecord {
    pub offset: u64,
    pub checksum: u64,
    pub bytes: u32,
    /// [`SLOW`], or 1 + the place's index.
    pub place: u32,
    /// The place of a second copy, in the same form; [`SLOW`] if there is none.
    pub copy: u32,
    pub reserved: u32,
}

/// A node's fast tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FastTierDirectory {
    pub host: String,
    /// The absolute path of the directory that holds this epoch's parts of images.
    pub directory: PathBuf,
}

/// The places of an image's blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    pub places: Vec<FastTierDirectory>,
    pub records: Vec<BlockRecord>,
}

/// The name of the table of a rank's image, beside the image.
pub fn blocks_name(rank: Rank) -> String {
    format!("rank-{rank:06}.blocks")
}

/// Returns the path of the table that belongs to an image.
pub(crate) fn beside(image: &Path) -> PathBuf {
    image.with_extension("blocks")
}

impl Blocks {
    /// Makes a table of these blocks. If several blocks were written at the same offset, the last one counts.
    pub fn new(
        places: Vec<FastTierDirectory>,
        written: impl IntoIterator<Item = BlockRecord>,
    ) -> Blocks {
        let by_offset: BTreeMap<u64, BlockRecord> = written
            .into_iter()
            .map(|record| (record.offset, record))
            .collect();
        Blocks {
            places,
            records: by_offset.into_values().collect(),
        }
    }

    /// Writes the table and waits until the disk has it.
    pub fn write(&self, path: &Path) -> Result<(), ImageError> {
        let places = serde_json::to_vec(&self.places).map_err(|error| ImageError::Unwritable {
            path: path.to_owned(),
            problem: error.to_string(),
        })?;
        let mut body = places;
        let place_bytes = body.len() as u64;
        body.extend_from_slice(self.records.as_bytes());
        let header = BlocksHeader {
            magic: MAGIC,
            version: VERSION,
            reserved: 0,
            place_bytes,
            blocks: self.records.len() as u64,
            checksum: checksum(&body),
        };
        let write = || -> io::Result<()> {
            let mut file = stillpoint_directory::create(path)?;
            strike(Point::BlocksWrite)?;
            file.write_all(header.as_bytes())?;
            file.write_all(&body)?;
            strike(Point::BlocksSync)?;
            file.sync_all()
        };
        write().map_err(ImageError::io(path, "write the table of blocks"))
    }

    /// Reads and checks a table.
    pub fn read(path: &Path) -> Result<Blocks, ImageError> {
        let bytes = stillpoint_directory::read(path, MAX_BYTES)
            .map_err(ImageError::io(path, "read the table of blocks"))?;
        let bad = |offset, field: &str, problem: String| {
            ImageError::malformed(path, offset, field, problem)
        };
        let Ok((header, body)) = BlocksHeader::read_from_prefix(&bytes) else {
            return Err(bad(0, "header", format!("{} bytes", bytes.len())));
        };
        if header.magic != MAGIC {
            return Err(ImageError::NotOurs {
                path: path.to_owned(),
                what: "table of blocks",
            });
        }
        if header.version != VERSION {
            return Err(ImageError::Version {
                path: path.to_owned(),
                found: header.version,
                oldest: VERSION,
                expected: VERSION,
            });
        }
        let found = checksum(body);
        if found != header.checksum {
            return Err(ImageError::Checksum {
                path: path.to_owned(),
                offset: 40,
                field: "blocks".into(),
                found,
                expected: header.checksum,
            });
        }
        let Some((places, records)) = usize::try_from(header.place_bytes)
            .ok()
            .and_then(|at| body.split_at_checked(at))
        else {
            return Err(bad(16, "places", format!("{} bytes", header.place_bytes)));
        };
        let places: Vec<FastTierDirectory> =
            serde_json::from_slice(places).map_err(|error| bad(40, "places", error.to_string()))?;
        let records: Vec<BlockRecord> = records
            .chunks_exact(size_of::<BlockRecord>())
            .filter_map(|record| BlockRecord::read_from_bytes(record).ok())
            .collect();
        if records.len() as u64 != header.blocks {
            return Err(bad(
                24,
                "blocks",
                format!("{} of {}", records.len(), header.blocks),
            ));
        }
        let mut end = 0;
        for record in &records {
            let outside = [record.place, record.copy]
                .iter()
                .any(|place| *place as usize > places.len());
            if record.offset != end || outside || record.bytes as usize > MAX_BLOCK_BYTES {
                return Err(bad(record.offset, "block", format!("{record:?}")));
            }
            end += u64::from(record.bytes);
        }
        Ok(Blocks { places, records })
    }

    /// Returns the image's length.
    pub fn length(&self) -> u64 {
        self.records
            .last()
            .map_or(0, |last| last.offset + u64::from(last.bytes))
    }
}

/// Reads one block from a file that holds it at its offset. Returns `None` if the file does not hold it (any more).
pub fn read_block(file: &File, record: &BlockRecord) -> Option<Vec<u8>> {
    let mut bytes = vec![0; record.bytes as usize];
    FileExt::read_exact_at(file, &mut bytes, record.offset).ok()?;
    (checksum(&bytes) == record.checksum).then_some(bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;

    fn record(offset: u64, bytes: &[u8], place: u32) -> BlockRecord {
        BlockRecord {
            offset,
            checksum: checksum(bytes),
            bytes: bytes.len() as u32,
            place,
            copy: SLOW,
            reserved: 0,
        }
    }

    /// Makes an image of 30 bytes: the middle third lies on a fast tier, and the file on the slow tier has the given bytes.
    pub(crate) fn staged(directory: &Path, slow: &[u8; 30]) -> PathBuf {
        let whole: Vec<u8> = (0..30).collect();
        let fast = directory.join("fast");
        fs::create_dir(&fast).unwrap();
        fs::write(fast.join("rank-000000.img"), &whole[..20]).unwrap();
        let image = directory.join("rank-000000.img");
        fs::write(&image, slow).unwrap();
        let place = FastTierDirectory {
            host: "here".into(),
            directory: fast,
        };
        let records = [
            record(20, &whole[20..], SLOW),
            record(10, &whole[10..20], 1),
            record(0, &whole[..10], SLOW),
        ];
        let blocks = Blocks::new(vec![place], records);
        blocks.write(&directory.join(blocks_name(Rank(0)))).unwrap();
        assert_eq!(
            Blocks::read(&directory.join(blocks_name(Rank(0)))).unwrap(),
            blocks
        );
        image
    }

    #[test]
    fn a_broken_table_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let image = staged(directory.path(), &[0; 30]);
        let path = beside(&image);
        let right = fs::read(&path).unwrap();
        for at in 0..right.len() {
            let mut wrong = right.clone();
            wrong[at] ^= 1;
            fs::write(&path, &wrong).unwrap();
            // Bytes 12 to 15 are reserved.
            assert!(
                Blocks::read(&path).is_err() || (12..16).contains(&at),
                "byte {at}"
            );
        }
        fs::write(&path, &right[..right.len() - 1]).unwrap();
        assert!(Blocks::read(&path).is_err());
    }
}
