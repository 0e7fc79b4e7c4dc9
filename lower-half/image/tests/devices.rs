//! Memory of devices: what is written is what is read, and what cannot be is refused.

mod common;
#[path = "common/patch.rs"]
mod patch;

use std::path::Path;

use common::{PAGE, some_bytes};
use patch::Patch;
use stillpoint_image::devices::Uuid;
use stillpoint_image::format::SectionKind;
use stillpoint_image::{Compression, PageRun, Reader, Writer, inspect, verify};

const FIRST: Uuid = Uuid([0xa1; 16]);
const SECOND: Uuid = Uuid([0x02; 16]);

/// Three megabytes and a bit, with zeros in the middle; and memory that is all zeros.
fn memory() -> [Vec<u8>; 2] {
    let mut bytes = some_bytes(5, (3 << 20) + 777);
    bytes[1_000_000..2_100_000].fill(0);
    [bytes, vec![0; 70_000]]
}

/// Bytes of devices come in parts of any size.
fn write(path: &Path, compression: Compression, part: usize) {
    let mut writer = Writer::create(path, compression).unwrap();
    writer.use_threads(2);
    let shared = some_bytes(2, 2 * PAGE);
    let run = PageRun {
        address: 0,
        bytes: shared[..].into(),
    };
    writer
        .content("/tmp/shared", shared.len() as u64, &[run])
        .unwrap();
    for (uuid, bytes) in [FIRST, SECOND].into_iter().zip(memory()) {
        let number = writer.device(uuid, bytes.len() as u64).unwrap();
        for (index, some) in bytes.chunks(part).enumerate() {
            let offset = (index * part) as u64;
            writer.device_bytes(number, offset, some).unwrap();
        }
    }
    writer.identity(&common::identity()).unwrap();
    writer.environment(&common::environment()).unwrap();
    writer.regions(&common::regions()).unwrap();
    writer.threads(&common::threads()).unwrap();
    writer.descriptors(&common::descriptors()).unwrap();
    writer.finish().unwrap();
}

#[test]
fn every_byte_comes_back_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    for (compression, part) in [
        (Compression::None, 1 << 20),
        (Compression::Lz4, 4 << 20),
        (Compression::Zstd { level: 1 }, 100_001),
    ] {
        write(&path, compression, part);
        verify(&path, 2).unwrap();
        let reader = Reader::open(&path).unwrap();
        let uuids: Vec<Uuid> = reader.devices().iter().map(|device| device.uuid).collect();
        assert_eq!(uuids, [FIRST, SECOND]);
        for (device, wanted) in reader.devices().iter().zip(memory()) {
            assert_eq!(reader.device_bytes(device), wanted.len() as u64);
            for at_a_time in [wanted.len(), 4097, 1 << 20] {
                let mut stream = reader.device_stream(device);
                let mut found = vec![1; wanted.len()];
                for some in found.chunks_mut(at_a_time) {
                    stream.read(some).unwrap();
                }
                assert!(found == wanted, "{compression:?}, {at_a_time} at a time");
            }
        }
        let shown = serde_json::to_value(inspect(&path).unwrap()).unwrap();
        assert_eq!(shown["devices"][0]["uuid"], "a1".repeat(16));
        assert_eq!(shown["devices"][0]["bytes"], (3 << 20) + 777);
        assert_eq!(shown["devices"][1]["bytes"], 70_000);
    }
}

#[test]
fn zeros_take_no_room() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    write(&path, Compression::None, 1 << 20);
    let bytes = std::fs::metadata(&path).unwrap().len();
    // Whole pages of zeros are left out.
    assert!(bytes < (3 << 20) - 1_000_000, "{bytes}");
}

#[test]
fn a_changed_byte_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    write(&path, Compression::None, 1 << 20);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[500_000] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let reader = Reader::open(&path).unwrap();
    let mut found = vec![0; (3 << 20) + 777];
    let read = reader
        .device_stream(&reader.devices()[0])
        .read(&mut found)
        .unwrap_err();
    assert!(read.to_string().contains("page data"), "{read}");
    assert!(verify(&path, 1).is_err());
}

#[test]
fn devices_that_cannot_be() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    write(&path, Compression::Lz4, 1 << 20);
    let whole = std::fs::read(&path).unwrap();
    let (a, b) = ("a1".repeat(16), "02".repeat(16));
    let entry = |uuid: &str, content: u64| format!(r#"{{"uuid":"{uuid}","content":{content}}}"#);
    let many: Vec<String> = (1..=1025).map(|number| entry(&a, number)).collect();
    for (text, says) in [
        (format!("[{},{}]", entry(&a, 3), entry(&b, 2)), "content 2"),
        (format!("[{}]", entry(&a, 4)), "content 4 of 3"),
        (format!("[{}]", entry(&a, 0)), "content 0"),
        (format!("[{}]", entry(&a, 1)), "a region's too"),
        (format!("[{}]", entry(&a[1..], 2)), "no identity"),
        (format!("[{}]", entry(&"+".repeat(32), 2)), "no identity"),
        (format!("[{}]", many.join(",")), "at most 1024"),
        ("7".to_owned(), "devices"),
    ] {
        let mut patch = Patch {
            bytes: whole.clone(),
        };
        patch.replace_section(SectionKind::Devices, text.as_bytes());
        std::fs::write(&path, &patch.bytes).unwrap();
        let error = Reader::open(&path).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}
