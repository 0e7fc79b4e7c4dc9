//! The source of descriptors' bytes: the image in a restart, the contents that an image is going to hold in a rehearsal.

use std::fs::File;

use stillpoint_image::Reader;
use stillpoint_image::descriptors::Descriptors;

use super::{RestoreError, objects};

/// The descriptors, and the contents that they name by number.
pub trait Supply {
    fn table(&self) -> &Descriptors;
    /// The bytes of a content that is known to be small: at most `limit`.
    fn bytes(&self, content: u32, limit: u64) -> Result<Vec<u8>, RestoreError>;
    /// Makes an empty file hold a content.
    fn fill(&self, content: u32, file: &File) -> Result<(), RestoreError>;
}

impl Supply for Reader {
    fn table(&self) -> &Descriptors {
        self.descriptors()
    }

    fn bytes(&self, content: u32, limit: u64) -> Result<Vec<u8>, RestoreError> {
        Ok(self.content_bytes(content, limit)?)
    }

    fn fill(&self, content: u32, file: &File) -> Result<(), RestoreError> {
        objects::write(self, content, file)
    }
}
