//! What the section of devices says.

use stillpoint_image::devices::Uuid;
use stillpoint_image::format::SectionKind;
use stillpoint_image::{Compression, Reader};

use super::common;
use super::patch::Patch;

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
