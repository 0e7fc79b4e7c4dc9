//! Memory of devices in an image: contents, of which a section of their own says whose they are.
//!
//! Their bytes are pages in chunks like any other, so that compression, checksums, tiers and deduplication need to know nothing of devices. They
//! are written whole with every epoch: no page fault tells what a device has written to.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::ImageError;
use crate::format::{CHUNK_BYTES, ChunkRecord};
use crate::reader::Reader;

/// A device's identity, as its driver says it: 32 hexadecimal digits in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Uuid(pub [u8; 16]);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<Uuid> for String {
    fn from(uuid: Uuid) -> String {
        uuid.to_string()
    }
}

impl TryFrom<String> for Uuid {
    type Error = String;

    fn try_from(text: String) -> Result<Uuid, String> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u128::from_str_radix(&text, 16) {
            Ok(number) if digits => Ok(Uuid(number.to_be_bytes())),
            _ => Err(format!("'{text}' is no identity of a device")),
        }
    }
}

/// Which content is a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceMemory {
    pub uuid: Uuid,
    /// Its number.
    pub content: u32,
}

/// The bytes of a content from the first to the last, chunk by chunk.
#[derive(Debug)]
pub struct Stream<'a> {
    reader: &'a Reader,
    content: u32,
    /// By their first addresses.
    chunks: Vec<&'a ChunkRecord>,
    next: usize,
    /// The chunk before, and where its runs begin in it.
    loaded: Vec<u8>,
    runs: Vec<Piece>,
    scratch: Vec<u8>,
    at: u64,
}

/// Bytes of the loaded chunk.
#[derive(Clone, Copy, Debug)]
struct Piece {
    address: u64,
    from: usize,
    bytes: usize,
}

impl<'a> Stream<'a> {
    pub fn new(reader: &'a Reader, content: u32) -> Stream<'a> {
        let address = |chunk: &&ChunkRecord| reader.live_runs(chunk).next().map(|run| run.address);
        let mut chunks: Vec<_> = reader.chunks_of(content).collect();
        chunks.sort_by_key(address);
        Stream {
            reader,
            content,
            chunks,
            next: 0,
            loaded: vec![0; CHUNK_BYTES],
            runs: Vec::new(),
            scratch: Reader::scratch(),
            at: 0,
        }
    }

    /// The next bytes; zeros where the image has none.
    ///
    /// # Errors
    /// They cannot be read, or are not what was written.
    pub fn read(&mut self, into: &mut [u8]) -> Result<(), ImageError> {
        into.fill(0);
        let end = self.at + into.len() as u64;
        loop {
            while let Some(&Piece {
                address,
                from,
                bytes,
            }) = self.runs.last()
            {
                let Some(offset) = address.checked_sub(self.at) else {
                    return Err(self.out_of_order(address));
                };
                if address >= end {
                    break;
                }
                let offset = offset as usize;
                let now = bytes.min(into.len() - offset);
                into[offset..offset + now].copy_from_slice(&self.loaded[from..from + now]);
                self.runs.pop();
                if now < bytes {
                    self.runs.push(Piece {
                        address: address + now as u64,
                        from: from + now,
                        bytes: bytes - now,
                    });
                    break;
                }
            }
            if !self.runs.is_empty() || !self.load()? {
                self.at = end;
                return Ok(());
            }
        }
    }

    /// Loads the next chunk; false where there is none.
    fn load(&mut self) -> Result<bool, ImageError> {
        let Some(&chunk) = self.chunks.get(self.next) else {
            return Ok(false);
        };
        self.next += 1;
        let room = &mut self.loaded[..chunk.bytes as usize];
        self.reader.load(chunk, &mut self.scratch, room)?;
        let mut from = 0;
        for run in self.reader.runs(chunk) {
            let bytes = run.bytes as usize;
            if run.space == self.content {
                self.runs.push(Piece {
                    address: run.address,
                    from,
                    bytes,
                });
            }
            from += bytes;
        }
        self.runs.sort_unstable_by_key(|piece| piece.address);
        self.runs.reverse();
        Ok(true)
    }

    fn out_of_order(&self, address: u64) -> ImageError {
        let field = format!("content {}", self.content);
        let problem = format!("{address:#x} comes behind {:#x}", self.at);
        ImageError::malformed(self.reader.path(), 0, field, problem)
    }
}
