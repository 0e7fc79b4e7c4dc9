//! Tests that an image is read as it was written.

use std::collections::BTreeMap;

use proptest::prelude::*;
use stillpoint_image::{Compression, Crew, PageRun, Reader, Region, Writer, inspect, verify};

use crate::common::{self, PAGE, some_bytes};

#[test]
fn everything_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    for compression in [
        Compression::None,
        Compression::Lz4,
        Compression::Zstd { level: 1 },
    ] {
        let path = directory.path().join("image");
        let written = common::write(&path, compression);
        let reader = Reader::open(&path).unwrap();
        assert_eq!(
            (reader.digest(), reader.file_bytes()),
            (written.digest, written.bytes)
        );
        assert_eq!(std::fs::metadata(&path).unwrap().len(), written.bytes);
        assert_eq!(reader.identity(), &common::identity());
        assert_eq!(reader.environment(), &common::environment());
        assert_eq!(reader.regions(), common::regions());
        assert_eq!(reader.threads(), common::threads());
        assert_eq!(reader.descriptors(), &common::descriptors());
        assert_eq!(reader.inventory(), b"{\"communicators\":2}");
        assert_eq!(reader.blob("gate").unwrap().bytes, b"opaque");
        assert!(reader.blob("other").is_none());
        assert_eq!(
            reader.content_bytes(1, 1 << 20).unwrap(),
            some_bytes(2, 2 * PAGE)
        );
        assert!(reader.content_bytes(1, PAGE as u64).is_err());
        let summary = verify(&path, 2).unwrap();
        assert_eq!(
            (summary.bytes, summary.digest),
            (written.bytes, written.digest)
        );
        assert_eq!(summary.page_bytes, written.page_bytes);
        let description = serde_json::to_value(inspect(&path).unwrap()).unwrap();
        assert_eq!(description["objects"]["communicators"], 2);
        assert_eq!(description["threads"][0]["driver"], true);
    }
}

/// Loads all of an image's memory, page by page.
fn load(reader: &Reader) -> BTreeMap<u64, Vec<u8>> {
    let mut pages = BTreeMap::new();
    let mut scratch = Reader::scratch();
    for chunk in reader.chunks_of(0) {
        let mut bytes = vec![0; chunk.bytes as usize];
        reader.load(chunk, &mut scratch, &mut bytes).unwrap();
        let mut rest = bytes.as_slice();
        for run in reader.runs(chunk) {
            let (mine, more) = rest.split_at(run.bytes as usize);
            for (index, page) in mine.chunks(PAGE).enumerate() {
                assert!(
                    pages
                        .insert(run.address + (index * PAGE) as u64, page.to_vec())
                        .is_none()
                );
            }
            rest = more;
        }
    }
    pages
}

fn compression() -> impl Strategy<Value = Compression> {
    prop_oneof![
        Just(Compression::None),
        Just(Compression::Lz4),
        Just(Compression::Zstd { level: 1 })
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Stretches of any length, at any distance, some pages zero: the loaded memory is the memory that was there.
    #[test]
    fn memory_comes_back(
        stretches in prop::collection::vec((0_u64..5, 1_usize..300, any::<u64>()), 0..20),
        compression in compression(),
        threads in 1_usize..4,
    ) {
        let mut address = 0x1000_0000_0000;
        let mut memory = Vec::new();
        for (gap, pages, seed) in stretches {
            address += gap * PAGE as u64;
            let mut bytes = some_bytes(seed, pages * PAGE);
            for page in 0..pages {
                if (seed >> (page % 60)) & 3 == 0 {
                    bytes[page * PAGE..(page + 1) * PAGE].fill(0);
                }
            }
            let length = bytes.len() as u64;
            memory.push((address, bytes));
            address += length;
        }
        let runs: Vec<PageRun> = memory.iter().map(|(address, bytes)| PageRun { address: *address, bytes: bytes[..].into() }).collect();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        let mut writer = Writer::create(&path, compression).unwrap();
        writer.use_crew(Crew::of(threads));
        writer.memory(&runs).unwrap();
        writer.identity(&common::identity()).unwrap();
        writer.environment(&common::environment()).unwrap();
        let region = Region { start: 0x1000_0000_0000, end: address + PAGE as u64, ..Region::default() };
        writer.regions(&[region]).unwrap();
        writer.threads(&[]).unwrap();
        writer.descriptors(&Default::default()).unwrap();
        let written = writer.finish().unwrap();

        let mut expected = BTreeMap::new();
        for (address, bytes) in &memory {
            for (index, page) in bytes.chunks(PAGE).enumerate() {
                if page.iter().any(|byte| *byte != 0) {
                    expected.insert(address + (index * PAGE) as u64, page.to_vec());
                }
            }
        }
        prop_assert_eq!(written.page_bytes, (expected.len() * PAGE) as u64);
        prop_assert_eq!(load(&Reader::open(&path).unwrap()), expected);
    }
}

#[test]
fn a_full_disk_is_said_to_be_full() {
    let path = std::path::Path::new("/dev/full");
    let full = std::fs::File::options().write(true).open(path).unwrap();
    let mut writer = Writer::into_store(path, Box::new(full), Compression::None);
    let bytes = some_bytes(1, PAGE);
    let error = writer
        .memory(&[PageRun {
            address: 0,
            bytes: bytes[..].into(),
        }])
        // Writes of other threads may be known to have failed only at the end.
        .and_then(|()| writer.finish().map(drop))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/dev/full") && error.contains("free some space"),
        "{error}"
    );
}

#[test]
fn a_directory_that_may_not_be_written_is_named() {
    let error = Writer::create(std::path::Path::new("/nowhere/image"), Compression::Lz4)
        .map(|_| ())
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("/nowhere/image: cannot create the image"),
        "{error}"
    );
}
