//! Estimates an image's length before it is written: a few chunks of it, spread evenly, are compressed to see.

use std::io;

use crate::compression::{Compression, Compressor, worst_case};
use crate::format::{CHUNK_BYTES, PAGE};
use crate::pages::Bytes;

/// The most chunks that are compressed for an estimate.
const SAMPLES: usize = 32;
/// Bytes of tables, a rough guess: they are small.
const TABLES: u64 = 64 << 10;

/// Estimates how many bytes an image of these stretches of memory has.
pub fn estimate(stretches: &[Bytes<'_>], compression: Compression) -> io::Result<u64> {
    let chunks: Vec<Bytes<'_>> = stretches.iter().flat_map(chunks).collect();
    let total: u64 = chunks.iter().map(|chunk| chunk.len() as u64).sum();
    let mut compressor = Compressor::new(compression)?;
    let mut output = vec![0; worst_case(CHUNK_BYTES)];
    let step = chunks.len().div_ceil(SAMPLES).max(1);
    let (mut seen, mut stored) = (0u64, 0u64);
    let mut kept = Vec::with_capacity(CHUNK_BYTES);
    let mut room = vec![0; CHUNK_BYTES];
    for chunk in chunks.iter().skip(step / 2).step_by(step) {
        kept.clear();
        let copied = &mut room[..chunk.len()];
        chunk.copy(copied)?;
        for page in copied.chunks(PAGE) {
            if page.iter().any(|byte| *byte != 0) {
                kept.extend_from_slice(page);
            }
        }
        seen += chunk.len() as u64;
        stored += compressor
            .compress(&kept, &mut output)
            .map_or(kept.len(), |(_, bytes)| bytes) as u64;
    }
    let share = stored as f64 / seen.max(1) as f64;
    Ok((total as f64 * share) as u64 + TABLES)
}

fn chunks<'a>(stretch: &Bytes<'a>) -> impl Iterator<Item = Bytes<'a>> {
    let stretch = *stretch;
    let starts = (0..stretch.len()).step_by(CHUNK_BYTES);
    starts.map(move |start| stretch.part(start, CHUNK_BYTES.min(stretch.len() - start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_take_nothing_and_what_cannot_be_compressed_takes_all() {
        let zeros = vec![0u8; 5 << 20];
        let mut state = 1u64;
        let random: Vec<u8> = (0..5 << 20)
            .map(|_| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        for compression in [Compression::None, Compression::Lz4] {
            assert_eq!(estimate(&[zeros[..].into()], compression).unwrap(), TABLES);
            let both =
                estimate(&[zeros[..].into(), random[..].into()], compression).unwrap() as f64;
            let expected = (5 << 20) as f64;
            assert!((both / expected - 1.0).abs() < 0.05, "{both}");
        }
        assert_eq!(estimate(&[], Compression::Lz4).unwrap(), TABLES);
    }
}
