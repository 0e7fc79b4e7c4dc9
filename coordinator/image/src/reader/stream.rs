//! The bytes of one content of an image, in order: memory of a device.

use super::Reader;
use crate::error::ImageError;
use crate::format::ChunkRecord;

/// The number of chunks that are kept while their neighbours are read: as many as one stretch may lie in, over all epochs that hold chunks
/// of the image.
const CACHED: usize = 12;

/// The bytes of a content from the first to the last.
#[derive(Debug)]
pub struct Stream<'a> {
    reader: &'a Reader,
    /// The pieces that are still to be read, by address, the last first; they do not overlap.
    left: Vec<Piece<'a>>,
    /// Chunks that were loaded, the most recently needed one at the end.
    loaded: Vec<(&'a ChunkRecord, Vec<u8>)>,
    scratch: Vec<u8>,
    at: u64,
}

/// A stretch of a chunk.
#[derive(Clone, Copy, Debug)]
struct Piece<'a> {
    address: u64,
    chunk: &'a ChunkRecord,
    /// The offset of the piece in the chunk.
    from: usize,
    bytes: usize,
}

impl<'a> Stream<'a> {
    pub fn new(reader: &'a Reader, content: u32) -> Stream<'a> {
        let mut left = Vec::new();
        for chunk in reader.chunks_of(content) {
            let mut from = 0;
            for run in reader.runs(chunk) {
                let bytes = run.bytes as usize;
                if run.space == content {
                    left.push(Piece {
                        address: run.address,
                        chunk,
                        from,
                        bytes,
                    });
                }
                from += bytes;
            }
        }
        left.sort_unstable_by_key(|piece| std::cmp::Reverse(piece.address));
        Stream {
            reader,
            left,
            loaded: Vec::new(),
            scratch: Reader::scratch(),
            at: 0,
        }
    }

    /// Reads the next bytes; they are zero where the image has none.
    ///
    /// # Errors
    /// The bytes cannot be read, or are not what was written.
    pub fn read(&mut self, into: &mut [u8]) -> Result<(), ImageError> {
        into.fill(0);
        let end = self.at + into.len() as u64;
        while let Some(piece) = self.left.pop_if(|piece| piece.address < end) {
            // Earlier pieces have been taken, and runs do not overlap.
            let offset = (piece.address - self.at) as usize;
            let now = piece.bytes.min(into.len() - offset);
            let chunk = self.load(piece.chunk)?;
            into[offset..offset + now].copy_from_slice(&chunk[piece.from..piece.from + now]);
            if now < piece.bytes {
                self.left.push(Piece {
                    address: piece.address + now as u64,
                    from: piece.from + now,
                    bytes: piece.bytes - now,
                    ..piece
                });
                break;
            }
        }
        self.at = end;
        Ok(())
    }

    fn load(&mut self, chunk: &'a ChunkRecord) -> Result<&[u8], ImageError> {
        let is_it = |(loaded, _): &(&ChunkRecord, Vec<u8>)| std::ptr::eq(*loaded, chunk);
        let last = match self.loaded.iter().position(is_it) {
            Some(place) => self.loaded.remove(place),
            None => {
                let mut room = match self.loaded.len() {
                    CACHED => self.loaded.remove(0).1,
                    _ => Vec::new(),
                };
                room.resize(chunk.bytes as usize, 0);
                self.reader.load(chunk, &mut self.scratch, &mut room)?;
                (chunk, room)
            }
        };
        self.loaded.push(last);
        Ok(self.loaded.last().map_or(&[], |(_, bytes)| bytes))
    }
}
