//! Images with chunks in earlier ones, and the chunks that a later one carries.

use std::ops::Range;

use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::format::SectionKind;
use stillpoint_image::{
    Compression, Identity, Origin, Reader, Writer, epoch_name, image_name, verify,
};

use crate::image::{bytes, looked_at, stretches};
use crate::input_directory::InputDirectory;
use crate::parts::{Parts, split};

/// The border between two images.
pub(crate) const BORDER: &[u8] = b"\xfc\n#\xfc";
/// The rank of all images.
pub(crate) const RANK: Rank = Rank(1);
/// The latest epoch of an input.
const MOST_EPOCHS: usize = 5;
/// The limit of memory that is carried further.
const MOST_CARRIED: u64 = 256 << 10;

/// The first bytes choose the memory that has not changed since the newest image. Then come images in parts, the earliest first,
/// each with chunks in earlier ones. If the first byte is even, an image's description of those that it needs is corrected.
pub fn delta(input: &[u8]) -> bool {
    let place = InputDirectory::new();
    let mut pieces = split(input, BORDER).into_iter();
    let choices = pieces.next().unwrap_or_default();
    let right = choices.first().is_none_or(|choice| choice % 2 == 0);
    let mut newest = None;
    let mut before: Vec<Origin> = vec![];
    for (epoch, piece) in (1..).map(Epoch).zip(pieces.take(MOST_EPOCHS)) {
        let mut parts = Parts::of_open(piece);
        if right {
            put_right(&mut parts, &before);
        }
        let directory = place.path().join(epoch_name(epoch));
        std::fs::create_dir(&directory).expect("a directory for the epoch");
        let path = directory.join(image_name(RANK));
        let file = parts.file();
        std::fs::write(&path, &file).expect("a file for the image");
        if let Ok(reader) = Reader::open(&path) {
            before.push(Origin::of(epoch, RANK, file.len() as u64, reader.digest()));
        }
        newest = Some(path);
    }
    let Some(newest) = newest else { return false };
    let accepted = looked_at(&newest, &place.path().join("again"));
    if let (true, Ok(reader)) = (accepted, Reader::open(&newest)) {
        carry_on(&reader, choices, &place);
    }
    accepted
}

/// Corrects the lengths and digests of the needed images to those of the files.
fn put_right(parts: &mut Parts, before: &[Origin]) {
    let Some(section) = parts.section(SectionKind::Origins) else {
        return;
    };
    let Ok(mut origins) = serde_json::from_slice::<Vec<Origin>>(section) else {
        return;
    };
    for origin in &mut origins {
        if let Some(known) = before.iter().find(|known| known.epoch == origin.epoch) {
            (origin.bytes, origin.digest) = (known.bytes, known.digest);
        }
    }
    *section = serde_json::to_vec(&origins).expect("JSON");
}

/// Returns the ranges that each choice leaves unchanged: in each region, from a place in it on.
fn unchanged(reader: &Reader, choices: &[u8]) -> Vec<Range<u64>> {
    let mut choices = choices.iter().copied().chain(std::iter::repeat(0));
    let mut ranges = vec![];
    for region in reader.regions() {
        let choice = choices.next().unwrap_or(0);
        let from = region.start + u64::from(choice / 2) * 8;
        let middle = from + 4 * u64::from(choice % 7);
        let both = [from..middle, middle + u64::from(choice % 3)..region.end];
        ranges.extend(both.into_iter().filter(|range| range.start < range.end));
    }
    ranges
}

/// Writes the next epoch's image without data of its own: its memory is all unchanged.
fn carry_on(reader: &Reader, choices: &[u8], place: &InputDirectory) {
    let base = reader.base();
    if base.image.epoch == Epoch(u64::MAX) || reader.tables().page_bytes() > MOST_CARRIED {
        return;
    }
    let regions: Vec<Range<u64>> = reader
        .regions()
        .iter()
        .map(|region| region.range())
        .collect();
    let kept = unchanged(reader, choices);
    let most = choices
        .first()
        .map_or(usize::MAX, |most| usize::from(most / 4));
    let (mut carried, mut renewed) = base.carry_within(&kept, &regions, most.max(1));
    if let Some(first) = carried.shares().first().filter(|_| choices.len() % 2 == 1) {
        renewed.extend(carried.leave(|image| image.epoch == first.epoch));
    }
    assert!(carried.shares().len() <= most.max(1));
    let whole = bytes(&stretches(reader).expect("its pages were read before"));
    let expected: Vec<_> = whole
        .into_iter()
        .filter(|(space, address, _)| {
            *space == 0
                && kept.iter().any(|range| range.contains(address))
                && !renewed.iter().any(|range| range.contains(address))
        })
        .collect();
    let Identity { epoch, rank, .. } = *reader.identity();
    // Only images in the usual place of their epoch can be referred to.
    let there = base.check(&place.path().join("next").join("image")).is_ok();
    let (epoch, path) = (epoch.next(), place.path().join("next"));
    std::fs::create_dir(&path).expect("a directory for the next epoch");
    let path = path.join(image_name(rank));
    let mut writer = Writer::create(&path, Compression::None).expect("a file for the next image");
    let needs = !carried.is_empty();
    writer.carry(carried);
    let identity = Identity {
        epoch,
        ..reader.identity().clone()
    };
    // Regions may name contents: these exist, and are empty.
    for content in reader.contents() {
        let number = writer.content(&content.name, content.bytes, &[]);
        number.expect("it was read before");
    }
    let rest = [
        writer.identity(&identity),
        writer.environment(reader.environment()),
        writer.regions(reader.regions()),
        writer.threads(reader.threads()),
        writer.descriptors(reader.descriptors()),
    ];
    let rest: Result<(), _> = rest.into_iter().collect();
    rest.expect("it was read before");
    writer.finish().expect("what is carried can be written");
    match verify(&path, 1) {
        Ok(_) => {
            let next = Reader::open(&path).expect("it has been verified");
            let found = bytes(&stretches(&next).expect("it has been verified"));
            assert!(found == expected, "what is carried has other bytes");
        }
        Err(error) => assert!(needs && !there, "{error}"),
    }
}
