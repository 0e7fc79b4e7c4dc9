//! Parts of staged memory: adjacent bytes, and wanted ranges of them.

use std::ops::Range;

use crate::device::Spot;
use crate::stage::{Piece, Staged};

/// Adjacent bytes of a source in one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// The source's number in the list of sources.
    pub source: usize,
    pub offset: u64,
    pub bytes: u64,
    pub spot: Spot,
}

impl Staged {
    /// Returns all staged memory in the fewest stretches, in the order of the sources and their bytes.
    pub fn stretches(&self) -> Vec<Stretch> {
        let mut stretches: Vec<Stretch> = Vec::new();
        for piece in &self.pieces {
            match stretches.last_mut() {
                Some(last)
                    if last.source == piece.source
                        && last.offset + last.bytes == piece.offset
                        && last.spot.after(last.bytes) == piece.spot =>
                {
                    last.bytes += piece.bytes;
                }
                _ => stretches.push(Stretch {
                    source: piece.source,
                    offset: piece.offset,
                    bytes: piece.bytes,
                    spot: piece.spot,
                }),
            }
        }
        stretches
    }

    /// Selects what a drain reads: for each source the wanted ranges of its bytes, which ascend. A source that is not in the list is left out. All memory
    /// stays in place, and is given back as usual.
    ///
    /// A digest covers a whole piece, so a piece that is cut has none any more.
    #[must_use]
    pub fn only(mut self, wanted: &[Vec<Range<u64>>]) -> Staged {
        let mut pieces = Vec::new();
        for piece in &self.pieces {
            let of = wanted.get(piece.source).map_or(&[][..], Vec::as_slice);
            let all = piece.offset..piece.offset + piece.bytes;
            let first = of.partition_point(|range| range.end <= all.start);
            for range in &of[first..] {
                if range.start >= all.end {
                    break;
                }
                let (start, end) = (range.start.max(all.start), range.end.min(all.end));
                if start < end {
                    let whole = end - start == piece.bytes;
                    pieces.push(Piece {
                        offset: start,
                        bytes: end - start,
                        spot: piece.spot.after(start - all.start),
                        digest: piece.digest.filter(|_| whole),
                        ..*piece
                    });
                }
            }
        }
        self.pieces = pieces;
        self
    }
}
