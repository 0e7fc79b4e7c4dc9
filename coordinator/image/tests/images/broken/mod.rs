//! Tests every way in which an image can be broken: each is noticed, and the error names the file, the place and the field.

mod carried;
mod devices;
mod file;
mod sections;
mod shared;
mod tables;

use std::path::PathBuf;

use stillpoint_image::{Compression, ImageError, verify};

use crate::common;
use crate::common::patch::Patch;

struct Sample {
    _directory: tempfile::TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
}

fn sample() -> Sample {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    common::write(&path, Compression::Lz4);
    let bytes = std::fs::read(&path).unwrap();
    Sample {
        _directory: directory,
        path,
        bytes,
    }
}

impl Sample {
    /// Returns the error of `verify` for these bytes.
    fn error(&self, bytes: &[u8]) -> ImageError {
        std::fs::write(&self.path, bytes).unwrap();
        verify(&self.path, 1).unwrap_err()
    }

    /// Returns the error of `verify` for the image with a change whose checksums are right.
    fn changed(&self, change: impl FnOnce(&mut Patch)) -> String {
        let mut patch = Patch {
            bytes: self.bytes.clone(),
        };
        change(&mut patch);
        assert_ne!(patch.bytes, self.bytes);
        let text = self.error(&patch.bytes).to_string();
        assert!(text.starts_with(self.path.to_str().unwrap()), "{text}");
        assert!(!text.contains('\n'), "{text}");
        text
    }
}

#[track_caller]
fn says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "'{word}' is missing in: {text}");
    }
}
