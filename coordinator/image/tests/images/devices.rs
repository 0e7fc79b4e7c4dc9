//! Tests that memory of devices is read as it was written.

use std::path::Path;

use stillpoint_image::devices::Uuid;
use stillpoint_image::{Compression, Reader, inspect, verify};

use crate::common::{self, some_bytes};

const FIRST: Uuid = Uuid([0xa1; 16]);
const SECOND: Uuid = Uuid([0x02; 16]);

/// Three megabytes and a bit, with zeros in the middle; and memory that is all zeros.
fn memory() -> [Vec<u8>; 2] {
    let mut bytes = some_bytes(5, (3 << 20) + 777);
    bytes[1_000_000..2_100_000].fill(0);
    [bytes, vec![0; 70_000]]
}

/// Writes the image; bytes of devices come in parts of any size.
fn write(path: &Path, compression: Compression, part: usize) {
    let [first, second] = memory();
    let devices = [(FIRST, first), (SECOND, second)];
    common::write_with_devices(path, compression, part, &devices);
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
