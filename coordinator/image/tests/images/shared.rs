//! Tests that memory is written once if an epoch has it more than once: in one image, and in those of several ranks with one table.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::format::NOWHERE;
use stillpoint_image::{
    Base, Compression, Crew, Identity, Index, Manifest, PageRun, RankImage, Reader, Region,
    Sharing, Writer, Written, epoch_name, image_name, verify,
};

use crate::common;

const START: u64 = 0x1000_0000_0000;
const MEGABYTE: usize = 1 << 20;

fn path(directory: &Path, epoch: Epoch, rank: Rank) -> PathBuf {
    directory.join(epoch_name(epoch)).join(image_name(rank))
}

/// Returns bytes that cannot be compressed.
fn random(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed;
    let word = |_| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        ((state >> 20) ^ state).to_le_bytes()
    };
    (0..bytes.div_ceil(8)).flat_map(word).take(bytes).collect()
}

/// Memory of a rank: stretches, each with its start.
type Memory = Vec<(u64, Vec<u8>)>;

fn starts(memory: &Memory, how: impl FnOnce(&mut Writer), at: (&Path, Epoch, Rank)) -> Written {
    let (directory, epoch, rank) = at;
    let path = path(directory, epoch, rank);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut writer = Writer::create(&path, Compression::Lz4).unwrap();
    how(&mut writer);
    let identity = Identity {
        epoch,
        rank,
        size: 3,
        ..common::identity()
    };
    writer.identity(&identity).unwrap();
    writer.environment(&common::environment()).unwrap();
    let region = |(start, bytes): &(u64, Vec<u8>)| Region {
        start: *start,
        end: start + bytes.len() as u64,
        ..Region::default()
    };
    let regions: Vec<Region> = memory.iter().map(region).collect();
    writer.regions(&regions).unwrap();
    writer.threads(&[]).unwrap();
    writer.descriptors(&Default::default()).unwrap();
    writer.finish().unwrap()
}

fn runs(memory: &Memory) -> Vec<PageRun<'_>> {
    let all = memory.iter().map(|(address, bytes)| PageRun {
        address: *address,
        bytes: bytes.as_slice().into(),
    });
    all.collect()
}

fn whole(memory: &Memory, sharing: Sharing, threads: usize, at: (&Path, Epoch, Rank)) -> Written {
    let write = |writer: &mut Writer| {
        writer.use_crew(Crew::of(threads));
        writer.share(sharing);
        writer.memory(&runs(memory)).unwrap();
    };
    starts(memory, write, at)
}

/// Returns the memory that a restart makes of an image.
fn read(reader: &Reader, like: &Memory) -> Memory {
    let zeros = |(start, bytes): &(u64, Vec<u8>)| (*start, vec![0; bytes.len()]);
    let mut memory: Memory = like.iter().map(zeros).collect();
    let mut scratch = Reader::scratch();
    for chunk in reader.chunks() {
        let mut bytes = vec![0; chunk.bytes as usize];
        reader.load(chunk, &mut scratch, &mut bytes).unwrap();
        let mut rest = bytes.as_slice();
        for run in reader.runs(chunk) {
            let (mine, more) = rest.split_at(run.bytes as usize);
            rest = more;
            if run.space != NOWHERE {
                let inside = |(start, bytes): &&mut (u64, Vec<u8>)| {
                    (*start..start + bytes.len() as u64).contains(&run.address)
                };
                let (start, place) = memory.iter_mut().find(inside).unwrap();
                let at = (run.address - *start) as usize;
                place[at..at + mine.len()].copy_from_slice(mine);
            }
        }
    }
    memory
}

#[test]
fn two_copies_in_one_rank_are_written_once() {
    let directory = tempfile::tempdir().unwrap();
    let table = random(1, 12 * MEGABYTE);
    let mut second = table.clone();
    second.extend(random(2, 4096));
    let memory = vec![
        (START, [random(3, 8192), table].concat()),
        (START + (1 << 30), second),
    ];
    for threads in [1, 2] {
        let at = (directory.path(), Epoch(threads as u64), Rank(1));
        let sharing = Sharing::in_one_image(Rank(1), 30 << 20);
        let written = whole(&memory, sharing, threads, at);
        assert_eq!(written.tables.siblings, [Rank(1)]);
        assert_eq!(written.page_bytes, 24 * MEGABYTE as u64 + 3 * 4096);
        assert!(written.bytes < 15 * MEGABYTE as u64, "{}", written.bytes);
        let path = path(directory.path(), at.1, at.2);
        verify(&path, 2).unwrap();
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.siblings().count(), 0);
        assert!(read(&reader, &memory) == memory);
    }
}

/// A table that several writers share.
#[derive(Clone)]
struct Words(Arc<Vec<AtomicU64>>);

impl Words {
    fn new() -> Words {
        let words = (0..Index::words_for(1 << 30)).map(|_| AtomicU64::new(0));
        Words(Arc::new(words.collect()))
    }
}

impl AsRef<[AtomicU64]> for Words {
    fn as_ref(&self) -> &[AtomicU64] {
        &self.0
    }
}

/// Returns memory of three ranks: each has one common table at its own address, 16 bytes into a page, and pages of its own.
fn three_ranks() -> Vec<Memory> {
    let table = random(10, 20 * MEGABYTE);
    let memory = |rank: u64| {
        let mut heap = random(20 + rank, 16 + 4096 * rank as usize);
        heap.resize(heap.len().next_multiple_of(4096) + 16, 9);
        heap.extend(&table);
        heap.resize(heap.len().next_multiple_of(4096), 8);
        vec![(START + rank * (1 << 25), heap)]
    };
    (0..3).map(memory).collect()
}

fn manifest(directory: &Path, epoch: Epoch, images: &[Written]) -> Manifest {
    let needs = images.iter().flat_map(|image| image.tables.needs());
    let mut needs: Vec<Epoch> = needs.collect();
    needs.sort_unstable();
    needs.dedup();
    let ranks = Rank::of_each(images).map(|(rank, image)| RankImage {
        rank,
        file: image_name(rank),
        bytes: image.bytes,
        digest: image.digest,
        ..RankImage::default()
    });
    let manifest = Manifest {
        job: "job".into(),
        epoch,
        needs,
        ranks: ranks.collect(),
        ..Manifest::default()
    };
    manifest.write(&directory.join(epoch_name(epoch))).unwrap();
    manifest
}

fn epoch_of_three(directory: &Path, memories: &[Memory]) -> Vec<Written> {
    let words = Words::new();
    std::thread::scope(|scope| {
        let ranks = Rank::of_each(memories).map(|(rank, memory)| {
            let sharing = Sharing::with(Index::in_words(words.clone()), rank);
            scope.spawn(move || whole(memory, sharing, 1, (directory, Epoch(1), rank)))
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

#[test]
fn a_table_that_three_ranks_have_is_written_once() {
    let directory = tempfile::tempdir().unwrap();
    let memories = three_ranks();
    let images = epoch_of_three(directory.path(), &memories);
    let together: u64 = images.iter().map(|image| image.bytes).sum();
    assert!(together < 24 * MEGABYTE as u64, "{together}");
    let manifest = manifest(directory.path(), Epoch(1), &images);
    for (rank, memory) in Rank::of_each(&memories) {
        let epoch = directory.path().join(epoch_name(Epoch(1)));
        let reader = manifest.open_image(&epoch, rank).unwrap();
        reader.check_pages(2).unwrap();
        assert!(read(&reader, memory) == *memory);
        let shared: u64 = reader.tables().shared().iter().map(|it| it.bytes).sum();
        let own = reader.chunks().iter().filter(|chunk| chunk.origin == 0);
        let own: u64 = own.map(|chunk| u64::from(chunk.bytes)).sum();
        assert_eq!(shared + own, images[rank.index()].page_bytes);
    }
}

#[test]
fn an_image_that_is_not_there_or_another_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let memories = three_ranks();
    let images = epoch_of_three(directory.path(), &memories);
    let manifest = manifest(directory.path(), Epoch(1), &images);
    let epoch = directory.path().join(epoch_name(Epoch(1)));
    let (rank, sibling) = Rank::of_each(&images)
        .find_map(|(rank, image)| {
            let siblings = image.tables.siblings.iter();
            let other = siblings.copied().find(|sibling| *sibling != rank)?;
            Some((rank, other))
        })
        .expect("one refers to another");
    let said = |name: &str| {
        let error = manifest.open_image(&epoch, rank).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
        error
    };
    let file = epoch.join(image_name(sibling));
    let sound = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let error = said(&image_name(sibling));
    assert!(error.contains(&format!("needs the image of rank {sibling}")));
    assert!(error.contains("cannot be opened"), "{error}");
    // The image's own sections can still be read.
    let alone = Reader::open_alone(&epoch.join(image_name(rank))).unwrap();
    let needed = alone.chunks().last().unwrap();
    let mut room = vec![0; needed.bytes as usize];
    let loaded = alone.load(needed, &mut Reader::scratch(), &mut room);
    assert!(
        loaded
            .unwrap_err()
            .to_string()
            .contains("that holds it is not open")
    );
    std::fs::write(&file, &sound[..sound.len() - 1]).unwrap();
    assert!(said(&image_name(sibling)).contains("truncated"));
    std::fs::write(&file, b"no image").unwrap();
    assert!(said(&image_name(sibling)).contains("offset 0, magic"));
    // An image that another attempt has written: sound, but not of this epoch.
    let memory = vec![(START, random(99, 8 * MEGABYTE))];
    let sharing = Sharing::in_one_image(sibling, 1 << 23);
    whole(&memory, sharing, 1, (directory.path(), Epoch(1), sibling));
    assert!(said(&image_name(sibling)).contains("digest"));
    // Changed bytes are found when they are read.
    let mut broken = sound.clone();
    let tables = &images[rank.index()].tables;
    let number = tables.siblings.iter().position(|it| *it == sibling);
    let number = number.unwrap() as u32 + 1;
    let mut chunks = tables.chunks.iter();
    let at = chunks.find(|chunk| chunk.origin == number).unwrap();
    broken[at.offset as usize + 5] ^= 1;
    std::fs::write(&file, &broken).unwrap();
    let reader = manifest.open_image(&epoch, rank).unwrap();
    let error = reader.check_pages(1).unwrap_err().to_string();
    assert!(
        error.contains(&image_name(sibling)) && error.contains("checksum"),
        "{error}"
    );
    std::fs::write(&file, &sound).unwrap();
    manifest
        .open_image(&epoch, rank)
        .unwrap()
        .check_pages(1)
        .unwrap();
}

/// The next epoch carries unchanged memory from any rank's image.
#[test]
fn what_is_shared_is_carried_on() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut memories = three_ranks();
    // The same memory once more in each rank.
    for memory in &mut memories {
        let again = (memory[0].0 + (1 << 40), memory[0].1.clone());
        memory.push(again);
    }
    let images = epoch_of_three(directory, &memories);
    manifest(directory, Epoch(1), &images);
    let mut bases: Vec<Base> = Rank::of_each(&images)
        .map(|(rank, image)| image.base(Epoch(1), rank))
        .collect();
    for epoch in (2..=4).map(Epoch) {
        let mut images = vec![];
        for (rank, (memory, base)) in Rank::of_each(memories.iter_mut().zip(&mut bases)) {
            let at = path(directory, epoch, rank);
            std::fs::create_dir_all(at.parent().unwrap()).unwrap();
            if !base.images().all(|image| image.bytes > 0) {
                assert!(base.check(&at).is_err(), "its siblings are not known");
            }
            base.settle(&at).unwrap();
            base.check(&at).unwrap();
            // A page in the middle of each copy.
            let mut changed = vec![];
            for (start, bytes) in memory.iter_mut() {
                let at = (5 + epoch.0 as usize) << 20;
                bytes[at..at + 4096].fill(epoch.0 as u8);
                changed.push(*start + at as u64..*start + at as u64 + 4096);
            }
            let unchanged = [
                0..changed[0].start,
                changed[0].end..changed[1].start,
                changed[1].end..u64::MAX,
            ];
            let write = |writer: &mut Writer| {
                writer.share(Sharing::in_one_image(rank, 1 << 20));
                writer.carry(base.carry(&unchanged));
                let runs: Vec<PageRun<'_>> = changed
                    .iter()
                    .zip(memory.iter())
                    .map(|(range, (start, bytes))| PageRun {
                        address: range.start,
                        bytes: bytes[(range.start - start) as usize..][..4096].into(),
                    })
                    .collect();
                writer.memory(&runs).unwrap();
            };
            let written = starts(memory, write, (directory, epoch, rank));
            assert!(written.bytes < 1 << 20, "{}", written.bytes);
            images.push(written);
        }
        let manifest = manifest(directory, epoch, &images);
        for (rank, memory) in Rank::of_each(&memories) {
            let reader = manifest
                .open_image(&directory.join(epoch_name(epoch)), rank)
                .unwrap();
            reader.check_pages(1).unwrap();
            assert!(
                read(&reader, memory) == *memory,
                "epoch {epoch}, rank {rank}"
            );
            assert_eq!(
                reader.tables().needs(),
                (1..epoch.0).map(Epoch).collect::<Vec<_>>()
            );
        }
        bases = Rank::of_each(&images)
            .map(|(rank, image)| image.base(epoch, rank))
            .collect();
    }
    // If another rank's image is dropped, its chunks are written again.
    let all = 0..u64::MAX;
    let mut carried = bases[0].carry(std::slice::from_ref(&all));
    let renewed = carried.leave(|image| image.rank() != Some(Rank(0)));
    assert!(renewed.is_sorted_by(|one, next| one.end <= next.start));
    assert!(
        carried
            .tables()
            .origins
            .iter()
            .all(|image| image.rank() == Some(Rank(0)))
    );
}
