//! The table of the blocks of a staged image, and an image that is read by that table.

use stillpoint_ids::Rank;
use stillpoint_image::blocks::{Blocks, FastTierDirectory as Tier, blocks_name};
use stillpoint_image::format::checksum;
use stillpoint_image::{Reader, image_name};

use crate::input_directory::InputDirectory;
use crate::seeds;

/// The bytes of the header, and the offset of its sum.
const HEADER: usize = 40;
const SUM: usize = 32;

/// The bits of the first byte select corrections before the other bytes are read. Bit 0: the sum; bit 1: the length of the places, up
/// to the first `]`; bit 2: the number of blocks; bit 3: the sums of the blocks, taken from an image.
pub fn blocks(input: &[u8]) -> bool {
    let Some((form, rest)) = input.split_first() else {
        return false;
    };
    let place = InputDirectory::new();
    let image = place.file(&image_name(Rank(0)), seeds::image_file());
    let table = place.path().join(blocks_name(Rank(0)));
    std::fs::write(&table, put_right(rest, *form)).expect("a file for the table");
    let Ok(mut blocks) = Blocks::read(&table) else {
        return false;
    };
    blocks.write(&table).expect("what was read can be written");
    assert_eq!(
        Blocks::read(&table).expect("what was written can be read"),
        blocks
    );

    // With any table, a read returns the image or nothing. Its places lie in the directory of this input.
    let fast = place.path().join("fast");
    std::fs::create_dir(&fast).expect("a directory for the fast tier");
    std::fs::copy(&image, fast.join(image_name(Rank(0)))).expect("a part on the fast tier");
    for tier in &mut blocks.places {
        *tier = Tier {
            host: tier.host.clone(),
            directory: fast.clone(),
        };
    }
    blocks.write(&table).expect("what was read can be written");
    let expected = Reader::open(&image).expect("it is a whole image").digest();
    if let Ok(reader) = Reader::open_nearest(&image, "here", None) {
        assert_eq!(reader.digest(), expected);
        reader.check_pages(1).expect("it is a whole image");
    }
    true
}

fn put_right(table: &[u8], form: u8) -> Vec<u8> {
    let mut bytes = table.to_vec();
    let Some((header, body)) = bytes.split_at_mut_checked(HEADER) else {
        return bytes;
    };
    if form & 2 != 0 {
        let end = body
            .iter()
            .position(|byte| *byte == b']')
            .map_or(0, |at| at + 1);
        header[16..24].copy_from_slice(&(end as u64).to_le_bytes());
    }
    let places = u64::from_le_bytes(std::array::from_fn(|at| header[16 + at]));
    let records = body.get_mut(usize::try_from(places).unwrap_or(usize::MAX)..);
    let records = records.unwrap_or_default();
    if form & 4 != 0 {
        header[24..32].copy_from_slice(&(records.len() as u64 / 32).to_le_bytes());
    }
    if form & 8 != 0 {
        for record in records.chunks_exact_mut(32) {
            let number =
                |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| record[at + byte]));
            let (offset, length) = (number(0) as usize, number(16) as usize);
            if let Some(block) = seeds::image_file().get(offset..offset + length) {
                record[8..16].copy_from_slice(&checksum(block).to_le_bytes());
            }
        }
    }
    if form & 1 != 0 {
        header[SUM..].copy_from_slice(&checksum(body).to_le_bytes());
    }
    bytes
}
