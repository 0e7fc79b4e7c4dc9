//! The destination and the source of an image's bytes: one file, or blocks in several places.

use std::fmt;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Takes an image's bytes, each of them once, in any order and from several threads at once.
pub trait Store: Send + Sync {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Returns when every byte is in its place and lasts there. `file_bytes` is the image's length.
    fn finish(&self, file_bytes: u64) -> io::Result<()>;
}

impl Store for File {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn finish(&self, _file_bytes: u64) -> io::Result<()> {
        self.sync_all()
    }
}

/// Gives an image's bytes.
pub trait Source: fmt::Debug + Send + Sync {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Returns the image's length.
    fn length(&self) -> io::Result<u64>;

    /// Announces that these bytes are going to be read soon. A source on a disk begins to read them.
    fn expect(&self, _bytes: Range<u64>) {}
}

impl Source for File {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, bytes, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.metadata().map(|data| data.len())
    }

    fn expect(&self, bytes: Range<u64>) {
        // If the kernel does not take the advice, reading is only slower.
        let _ = rustix::fs::fadvise(
            self,
            bytes.start,
            NonZeroU64::new(bytes.end.saturating_sub(bytes.start)),
            rustix::fs::Advice::WillNeed,
        );
    }
}
