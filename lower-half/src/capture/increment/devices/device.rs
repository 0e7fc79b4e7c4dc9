//! One device's memory on its way into the image.

use std::io;
use std::ops::Range;
use std::time::Instant;

use stillpoint_image::delta::Unchanged;
use stillpoint_image::format::CHUNK_BYTES;
use stillpoint_image::{ImageError, PageRun, Writer};

use super::comparing::{Comparing, Wrong};
use super::{Hashes, Spent};

/// The most bytes that wait for the image's writer, apart from those that arrive at once.
const AT_ONCE: usize = 16 * CHUNK_BYTES;

/// The hashes of a memory, and its parts that stay where they are.
pub type Came = (Hashes, Option<Unchanged>);

/// A memory that is one content of the image.
pub struct Device {
    number: u32,
    /// The comparison, or `None` if all of it is written.
    comparing: Option<Comparing>,
    /// The number of its content in the base, with which it is compared.
    was: Option<u32>,
    /// The beginning of a block whose end has not arrived, with that block's offset.
    part: (u64, Vec<u8>),
    /// The ranges to write; `bytes` has their bytes one behind the other.
    runs: Vec<Range<u64>>,
    bytes: Vec<u8>,
    /// The number of bytes that arrived, and of those given to the writer.
    pub came: u64,
    pub written: u64,
    /// The cost of hashing the bytes that arrived.
    pub hashed: Spent,
}

impl Device {
    /// Makes a memory that is content `number` now; it is compared with content `was` of the base.
    pub fn new(number: u32, comparing: Option<Comparing>, was: Option<u32>) -> Device {
        Device {
            number,
            comparing,
            was,
            part: (0, Vec::new()),
            runs: Vec::new(),
            bytes: Vec::new(),
            came: 0,
            written: 0,
            hashed: Spent::default(),
        }
    }

    pub fn comparing(&self) -> Option<&Comparing> {
        self.comparing.as_ref()
    }

    /// Takes the hashes of blocks that were hashed where they lie. If there are none, and the processor is not to hash either, all of it is
    /// written.
    pub fn told(&mut self, hashes: &[Option<u128>], processor: bool) {
        if !processor && hashes.iter().all(Option::is_none) {
            self.comparing = None;
        }
        if let Some(comparing) = &mut self.comparing {
            comparing.told(hashes);
        }
    }

    /// Takes its next bytes, however many, from an offset on.
    pub fn next(
        &mut self,
        writer: &mut Writer,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), ImageError> {
        self.came += bytes.len() as u64;
        if self.comparing.is_none() {
            self.written += bytes.len() as u64;
            return writer.device_bytes(self.number, offset, bytes);
        }
        let begun = Instant::now();
        self.compare(offset, bytes).map_err(cannot(writer))?;
        self.hashed
            .add(bytes.len() as u64, begun.elapsed().as_secs_f64());
        match self.bytes.len() >= AT_ONCE {
            true => self.put(writer),
            false => Ok(()),
        }
    }

    /// Ends it when all bytes that were wanted have arrived.
    pub fn end(&mut self, writer: &mut Writer) -> Result<Option<Came>, ImageError> {
        self.put(writer)?;
        let Some(comparing) = self.comparing.take() else {
            return Ok(None);
        };
        let (hashes, ranges) = comparing.end().map_err(cannot(writer))?;
        let unchanged = self.was.map(|was| Unchanged {
            was,
            is: self.number,
            ranges,
        });
        Ok(Some(((self.number, hashes), unchanged)))
    }

    /// Cuts the arriving bytes into blocks, wherever the parts end in which they arrive.
    fn compare(&mut self, mut offset: u64, mut bytes: &[u8]) -> Result<(), Wrong> {
        let Some(comparing) = &mut self.comparing else {
            return Ok(());
        };
        let (start, part) = &mut self.part;
        if !part.is_empty() {
            let expected = *start + part.len() as u64;
            if expected != offset {
                return Err(Wrong::Missing(*start));
            }
            let length = comparing.length(*start) as usize;
            let now = (length - part.len()).min(bytes.len());
            part.extend_from_slice(&bytes[..now]);
            (offset, bytes) = (offset + now as u64, &bytes[now..]);
            if part.len() < length {
                return Ok(());
            }
            if comparing.has_come(*start, part)? {
                add(&mut self.runs, &mut self.bytes, *start, part);
            }
            part.clear();
        }
        while !bytes.is_empty() {
            let length = comparing.length(offset) as usize;
            if bytes.len() < length {
                *start = offset;
                part.extend_from_slice(bytes);
                break;
            }
            let (block, rest) = bytes.split_at(length);
            if comparing.has_come(offset, block)? {
                add(&mut self.runs, &mut self.bytes, offset, block);
            }
            (offset, bytes) = (offset + length as u64, rest);
        }
        Ok(())
    }

    /// Gives the bytes that are to be written to the writer.
    fn put(&mut self, writer: &mut Writer) -> Result<(), ImageError> {
        let mut rest = self.bytes.as_slice();
        let mut runs = Vec::with_capacity(self.runs.len());
        for range in &self.runs {
            let (bytes, behind) = rest.split_at((range.end - range.start) as usize);
            runs.push(PageRun {
                address: range.start,
                bytes: bytes.into(),
            });
            rest = behind;
        }
        writer.device_runs(self.number, &runs)?;
        self.written += self.bytes.len() as u64;
        self.runs.clear();
        self.bytes.clear();
        Ok(())
    }
}

/// Adds a block to those that are to be written.
fn add(runs: &mut Vec<Range<u64>>, all: &mut Vec<u8>, at: u64, bytes: &[u8]) {
    let end = at + bytes.len() as u64;
    match runs.last_mut() {
        Some(last) if last.end == at => last.end = end,
        _ => runs.push(at..end),
    }
    all.extend_from_slice(bytes);
}

fn cannot(writer: &Writer) -> impl FnOnce(Wrong) -> ImageError {
    let cannot = ImageError::io(writer.path(), "compare a device's memory");
    move |wrong| cannot(io::Error::other(wrong))
}
