//! An image file, on its own: every table and page is read, and the same is written again.

use std::path::Path;

use stillpoint_image::Stream;
use stillpoint_image::devices::{DeviceMemory, Uuid};
use stillpoint_image::format::NOWHERE;
use stillpoint_image::{Compression, ImageError, PageRun, Reader, Writer, inspect, verify_opened};

use crate::input_directory::InputDirectory;
use crate::parts::{Parts, summed};

/// Images with more bytes of memory are not written again, since only small ones are worth it.
const MOST_WRITTEN: u64 = 256 << 10;

/// The first byte selects the meaning of the others. 0: a file; 1: a file with corrected sums; else a file in parts.
pub fn image(input: &[u8]) -> bool {
    let Some((form, rest)) = input.split_first() else {
        return false;
    };
    let bytes = match form {
        0 => rest.to_vec(),
        1 => summed(rest),
        _ => Parts::of_open(rest).file(),
    };
    let place = InputDirectory::new();
    looked_at(&place.file("image", &bytes), &place.path().join("again"))
}

/// Reads a whole image, writes it again to `again`, and returns whether it was accepted.
pub(crate) fn looked_at(path: &Path, again: &Path) -> bool {
    let Ok(reader) = Reader::open(path) else {
        return false;
    };
    // Every accepted image has a description for people, even if pages are broken.
    if let Ok(description) = inspect(path) {
        serde_json::to_string(&description).expect("JSON");
    }
    for number in 0..=reader.contents().len() as u32 + 1 {
        let _ = reader.content_bytes(number, MOST_WRITTEN);
    }
    let Ok(summary) = verify_opened(&reader, 1) else {
        return false;
    };
    assert_eq!(summary.page_bytes, reader.tables().page_bytes());
    for file in &summary.mapped_files.files {
        file.mapped_bytes();
        assert!(file.wants_the_same(file));
    }
    if summary.page_bytes <= MOST_WRITTEN {
        gpus(&reader).for_each(|gpu| streamed(&reader, &gpu));
        let written = write(&reader, again).expect("what was read can be written");
        let second = Reader::open(again).expect("what was written can be read");
        assert_eq!(second.digest(), written);
        same(&reader, &second);
    }
    true
}

/// A stretch of bytes: its space, its address, and its content.
pub(crate) type Stretch = (u32, u64, Vec<u8>);

/// Returns all bytes of an image, by space and address.
pub(crate) fn stretches(reader: &Reader) -> Result<Vec<Stretch>, ImageError> {
    let (mut scratch, mut stretches) = (Reader::scratch(), vec![]);
    for chunk in reader.chunks() {
        let mut bytes = vec![0; chunk.bytes as usize];
        reader.load(chunk, &mut scratch, &mut bytes)?;
        let mut rest = bytes.as_slice();
        for run in reader.runs(chunk) {
            let (mine, after) = rest.split_at(run.bytes as usize);
            rest = after;
            if run.space != NOWHERE {
                stretches.push((run.space, run.address, mine.to_vec()));
            }
        }
    }
    stretches.sort();
    Ok(stretches)
}

/// Returns every byte that is not zero. Two images with the same memory have these in common, however they cut it.
pub(crate) fn bytes(stretches: &[Stretch]) -> Vec<(u32, u64, u8)> {
    let each = stretches.iter().flat_map(|(space, address, bytes)| {
        let numbered = bytes.iter().enumerate();
        numbered.map(move |(at, byte)| (*space, address + at as u64, *byte))
    });
    each.filter(|(_, _, byte)| *byte != 0).collect()
}

/// Returns the GPU whose memory a content is, under the name that the writer gives it.
fn gpu(reader: &Reader, number: u32) -> Option<Uuid> {
    let uuid = gpus(reader).find(|gpu| gpu.content == number)?.uuid;
    let name = &reader.contents().get(number as usize - 1)?.name;
    (*name == format!("GPU {uuid}")).then_some(uuid)
}

fn gpus(reader: &Reader) -> impl Iterator<Item = DeviceMemory> + '_ {
    reader.devices().iter().copied()
}

/// Reads a GPU's memory from its first byte to its last, as a restart does: the stretches, and zeros between them.
fn streamed(reader: &Reader, of: &DeviceMemory) {
    let length = reader.device_bytes(of);
    if length > MOST_WRITTEN {
        return;
    }
    let mut wanted = vec![0; length as usize];
    for (space, address, bytes) in stretches(reader).expect("its pages were read before") {
        if space == of.content {
            wanted[address as usize..][..bytes.len()].copy_from_slice(&bytes);
        }
    }
    let (mut stream, mut found) = (Stream::new(reader, of.content), vec![]);
    for part in wanted.chunks(1000) {
        let mut bytes = vec![1; part.len()];
        stream.read(&mut bytes).expect("its pages were read before");
        found.extend(bytes);
    }
    assert!(found == wanted, "GPU {} has other bytes", of.uuid);
}

/// Writes the image again, with nothing in other files, and returns its digest.
fn write(reader: &Reader, path: &Path) -> Result<u128, ImageError> {
    let stretches = stretches(reader)?;
    let of = |wanted: u32| -> Vec<PageRun<'_>> {
        let mine = stretches.iter().filter(|(space, _, _)| *space == wanted);
        mine.map(|(_, address, bytes)| PageRun {
            address: *address,
            bytes: bytes[..].into(),
        })
        .collect()
    };
    let mut writer = Writer::create(path, Compression::Lz4)?;
    writer.memory(&of(0))?;
    for (number, content) in (1..).zip(reader.contents()) {
        match gpu(reader, number) {
            Some(uuid) => {
                let again = writer.device(uuid, content.bytes)?;
                writer.device_runs(again, &of(number))?;
            }
            None => drop(writer.content(&content.name, content.bytes, &of(number))?),
        }
    }
    writer.identity(reader.identity())?;
    writer.environment(reader.environment())?;
    writer.regions(reader.regions())?;
    writer.threads(reader.threads())?;
    writer.descriptors(reader.descriptors())?;
    writer.inventory(reader.inventory())?;
    for blob in reader.blobs() {
        writer.blob(&blob.name, blob.version, &blob.bytes)?;
    }
    Ok(writer.finish()?.digest)
}

fn same(one: &Reader, other: &Reader) {
    assert_eq!(one.identity(), other.identity());
    assert_eq!(one.environment(), other.environment());
    assert_eq!(one.regions(), other.regions());
    assert_eq!(one.threads(), other.threads());
    assert_eq!(one.contents(), other.contents());
    if gpus(one).all(|known| gpu(one, known.content).is_some()) {
        assert_eq!(one.devices(), other.devices());
    }
    assert_eq!(one.descriptors(), other.descriptors());
    assert_eq!(one.inventory(), other.inventory());
    assert_eq!(one.blobs(), other.blobs());
    let all = |reader: &Reader| bytes(&stretches(reader).expect("its pages were read before"));
    assert!(all(one) == all(other), "memory has other bytes");
}
