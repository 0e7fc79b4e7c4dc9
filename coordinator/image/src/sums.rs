//! Sums over the parts of an image, which its writer and its reader compute alike.

use xxhash_rust::xxh3::Xxh3;
use zerocopy::IntoBytes;

use crate::format::{ChunkRecord, Header, SectionRecord, Trailer};

/// Returns the checksum of the page data section: that of its chunks' checksums. The table of chunks covers chunks in other images.
pub(crate) fn page_data_checksum(chunks: &[ChunkRecord]) -> u64 {
    let mut hash = Xxh3::new();
    for chunk in chunks.iter().filter(|chunk| chunk.origin == 0) {
        hash.update(&chunk.checksum.to_le_bytes());
    }
    hash.digest()
}

/// Returns the image's digest.
pub(crate) fn digest(header: &Header, table: &[SectionRecord], trailer: &Trailer) -> u128 {
    let mut hash = Xxh3::new();
    hash.update(header.as_bytes());
    hash.update(table.as_bytes());
    hash.update(trailer.as_bytes());
    hash.digest128()
}
