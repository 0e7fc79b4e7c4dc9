//! Tests of the section of devices.

use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::delta::Unchanged;
use stillpoint_image::devices::Uuid;
use stillpoint_image::format::SectionKind;
use stillpoint_image::{Base, Compression, Identity, Reader, epoch_name, image_name};

use crate::common;
use crate::common::patch::Patch;

#[test]
fn devices_that_cannot_be() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    let memory = common::some_bytes(3, 50_000);
    let devices = [(Uuid([0xa1; 16]), memory.clone()), (Uuid([2; 16]), memory)];
    common::write_with_devices(&path, Compression::Lz4, 1 << 20, &devices);
    let whole = std::fs::read(&path).unwrap();
    let (a, b) = ("a1".repeat(16), "02".repeat(16));
    let entry = |uuid: &str, content: u64| format!(r#"{{"uuid":"{uuid}","content":{content}}}"#);
    let many: Vec<String> = (1..=1025).map(|number| entry(&a, number)).collect();
    for (text, says) in [
        (format!("[{},{}]", entry(&a, 3), entry(&b, 2)), "content 2"),
        (format!("[{}]", entry(&a, 4)), "refers to content 4"),
        (format!("[{}]", entry(&a, 0)), "content 0"),
        (format!("[{}]", entry(&a, 1)), "belongs to a region as well"),
        (format!("[{}]", entry(&a[1..], 2)), "not the identity"),
        (
            format!("[{}]", entry(&"+".repeat(32), 2)),
            "not the identity",
        ),
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

/// Only contents of devices may lie in an earlier image.
#[test]
fn what_is_carried_is_a_devices() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = common::some_bytes(3, 50_000);
    let mut base: Option<Base> = None;
    let mut path = directory.path().to_owned();
    for epoch in (1..=2).map(Epoch) {
        path = directory
            .path()
            .join(epoch_name(epoch))
            .join(image_name(Rank(1)));
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let identity = Identity {
            epoch,
            ..common::identity()
        };
        let written = common::write_beside(&path, Compression::Lz4, &identity, |writer| {
            let number = writer.device(Uuid([0xa1; 16]), 50_000).unwrap();
            let unchanged = Unchanged {
                was: number,
                is: number,
                ranges: std::iter::once(0..50_000).collect(),
            };
            match &base {
                None => writer.device_bytes(number, 0, &bytes).unwrap(),
                Some(base) => writer.carry(base.carry_with_devices(&[], &[unchanged])),
            }
        });
        base = Some(written.base(epoch, Rank(1)));
    }
    let whole = std::fs::read(&path).unwrap();
    assert!(Reader::open(&path).is_ok());
    let mut patch = Patch { bytes: whole };
    patch.replace_section(SectionKind::Devices, b"[]");
    std::fs::write(&path, &patch.bytes).unwrap();
    let error = Reader::open(&path).unwrap_err().to_string();
    assert!(error.contains("its runs lie in several spaces"), "{error}");
}
