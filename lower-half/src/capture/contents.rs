//! Bytes that an image holds besides memory: unlinked files, shared memory, the contents of pipes.
//!
//! One file may be open and mapped at the same time; it is then one content, found by its device and
//! inode.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

use memmap2::Mmap;
use stillpoint_image::{ImageError, PageRun, Writer};

use super::access::Memory;
use crate::arch::PAGE;

/// The identity of a file, wherever it is open or mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileKey {
    pub device: u64,
    pub inode: u64,
}

/// A source of a content's bytes.
enum ContentSource {
    /// Mapped memory of the upper half: addresses, and the offset of the first one.
    Memory {
        offset: u64,
        addresses: Range<usize>,
    },
    /// A mapping of our own.
    Map {
        offset: u64,
        map: Mmap,
    },
    Bytes(Vec<u8>),
}

struct Source {
    key: Option<FileKey>,
    name: String,
    bytes: u64,
    /// Whether the parts are all there is (read through a descriptor), so that mappings add nothing.
    complete: bool,
    parts: Vec<ContentSource>,
}

/// The contents that an image is going to hold; the first one has number 1.
#[derive(Default)]
pub struct Contents {
    sources: Vec<Source>,
}

impl Contents {
    /// Adds bytes that are in hand.
    pub fn add_bytes(&mut self, name: &str, bytes: Vec<u8>) -> u32 {
        self.sources.push(Source {
            key: None,
            name: name.to_owned(),
            bytes: bytes.len() as u64,
            complete: true,
            parts: vec![ContentSource::Bytes(bytes)],
        });
        self.sources.len() as u32
    }

    /// Adds a whole file; its holes take no room.
    pub fn add_file(&mut self, key: FileKey, name: &str, file: &File) -> io::Result<u32> {
        if let Some(known) = self.find(key) {
            return Ok(known);
        }
        let bytes = file.metadata()?.len();
        let mut parts = Vec::new();
        for range in data(file, 0..bytes)? {
            // SAFETY: the file has no name, no other process was found to have it, and this process's threads are stopped, so nothing changes it.
            let map = unsafe {
                memmap2::MmapOptions::new()
                    .offset(range.start)
                    .len((range.end - range.start) as usize)
                    .map(file)?
            };
            parts.push(ContentSource::Map {
                offset: range.start,
                map,
            });
        }
        self.sources.push(Source {
            key: Some(key),
            name: name.to_owned(),
            bytes,
            complete: true,
            parts,
        });
        Ok(self.sources.len() as u32)
    }

    /// Adds a part of a file that is mapped shared: the addresses that hold its bytes.
    pub fn add_mapped(
        &mut self,
        key: FileKey,
        name: &str,
        end: u64,
        stretches: impl IntoIterator<Item = (u64, Range<usize>)>,
    ) -> u32 {
        let number = self.find(key).unwrap_or_else(|| {
            let source = Source {
                key: Some(key),
                name: name.to_owned(),
                bytes: 0,
                complete: false,
                parts: Vec::new(),
            };
            self.sources.push(source);
            self.sources.len() as u32
        });
        let Some(source) = self.sources.get_mut(number as usize - 1) else {
            return number;
        };
        if !source.complete {
            source.bytes = source.bytes.max(end);
            source.parts.extend(
                stretches
                    .into_iter()
                    .map(|(offset, addresses)| ContentSource::Memory { offset, addresses }),
            );
        }
        number
    }

    /// Returns the addresses of mapped memory from which the contents take bytes.
    pub fn mapped(&self) -> impl Iterator<Item = Range<usize>> {
        let parts = self.sources.iter().flat_map(|source| &source.parts);
        parts.filter_map(|part| match part {
            ContentSource::Memory { addresses, .. } => Some(addresses.clone()),
            ContentSource::Map { .. } | ContentSource::Bytes(_) => None,
        })
    }

    /// Returns the length of a content.
    pub fn bytes_of(&self, number: u32) -> u64 {
        self.source(number).map_or(0, |source| source.bytes)
    }

    /// Returns the bytes of a content that was given as such.
    pub fn bytes_in_hand(&self, number: u32) -> Option<&[u8]> {
        match self.source(number)?.parts.as_slice() {
            [ContentSource::Bytes(bytes)] => Some(bytes),
            _ => None,
        }
    }

    fn source(&self, number: u32) -> Option<&Source> {
        self.sources.get((number as usize).checked_sub(1)?)
    }

    fn find(&self, key: FileKey) -> Option<u32> {
        self.sources
            .iter()
            .position(|source| source.key == Some(key))
            .map(|index| index as u32 + 1)
    }

    /// Writes all contents; `memory` reads the mappings that were named.
    pub fn write(&self, writer: &mut Writer, memory: &Memory<'_>) -> Result<(), ImageError> {
        for source in &self.sources {
            let mut runs: Vec<PageRun<'_>> = Vec::new();
            for part in &source.parts {
                runs.push(match part {
                    ContentSource::Memory { offset, addresses } => PageRun {
                        address: *offset,
                        bytes: memory.bytes(addresses.clone()),
                    },
                    // The file belongs to the upper half, which may change or shorten it when it runs on.
                    ContentSource::Map { offset, map } => PageRun {
                        address: *offset,
                        bytes: memory.bytes(range_of(map)),
                    },
                    ContentSource::Bytes(bytes) => PageRun {
                        address: 0,
                        bytes: bytes.as_slice().into(),
                    },
                });
            }
            writer.content(&source.name, source.bytes, &without_overlap(runs))?;
        }
        Ok(())
    }
}

fn range_of(map: &Mmap) -> Range<usize> {
    let start = map.as_ptr() as usize;
    start..start + map.len()
}

/// Removes overlaps: a stretch of a file that is mapped several times is written once.
fn without_overlap(mut runs: Vec<PageRun<'_>>) -> Vec<PageRun<'_>> {
    runs.sort_by_key(|run| run.address);
    let mut reached = 0;
    runs.retain_mut(|run| {
        let length = run.bytes.len();
        let end = run.address + length as u64;
        let skip = reached.max(run.address) - run.address;
        if end <= reached {
            return false;
        }
        run.bytes = run.bytes.part(skip as usize, length - skip as usize);
        run.address += skip;
        reached = end;
        true
    });
    runs
}

/// Returns the stretches of a file that are not holes, within a range; starts are multiples of a page.
pub fn data(file: &File, range: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    unmoved(|offset, whence| seek(file, offset, whence), range)
}

/// Finds them by seeks, and puts the offset back, which the file's owner sees: also after a seek that has failed.
fn unmoved(
    mut seek: impl FnMut(u64, i32) -> io::Result<u64>,
    range: Range<u64>,
) -> io::Result<Vec<Range<u64>>> {
    let keep = seek(0, libc::SEEK_CUR)?;
    let found = sought(&mut seek, range);
    seek(keep, libc::SEEK_SET)?;
    found
}

fn sought(
    mut seek: impl FnMut(u64, i32) -> io::Result<u64>,
    range: Range<u64>,
) -> io::Result<Vec<Range<u64>>> {
    let mut found = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let start = match seek(at, libc::SEEK_DATA) {
            Ok(start) if start < range.end => start,
            Ok(_) => break,
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => break,
            Err(error) => return Err(error),
        };
        let end = seek(start, libc::SEEK_HOLE)?.min(range.end);
        found.push(start & !(PAGE as u64 - 1)..end);
        at = end;
    }
    Ok(found)
}

fn seek(file: &File, offset: u64, whence: i32) -> io::Result<u64> {
    // SAFETY: lseek touches no memory.
    let result = unsafe { libc::lseek(file.as_raw_fd(), offset as i64, whence) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_that_is_mapped_twice_is_written_once() {
        let bytes = [1u8; 30];
        let at = |address, length: usize| PageRun {
            address,
            bytes: bytes[..length].into(),
        };
        let joined = without_overlap(vec![at(20, 10), at(0, 10), at(5, 10), at(6, 2)]);
        let ranges: Vec<(u64, usize)> = joined
            .iter()
            .map(|run| (run.address, run.bytes.len()))
            .collect();
        assert_eq!(ranges, [(0, 10), (10, 5), (20, 10)]);
    }

    #[test]
    fn the_offset_stays_when_a_seek_fails() {
        for fails in [libc::SEEK_DATA, libc::SEEK_HOLE, -1] {
            let mut at = 7;
            let seek = |offset, whence| match whence {
                libc::SEEK_CUR => Ok(at),
                whence if whence == fails => Err(io::ErrorKind::TimedOut.into()),
                libc::SEEK_HOLE => {
                    at = 8192;
                    Ok(at)
                }
                _ => {
                    at = offset;
                    Ok(at)
                }
            };
            let found = unmoved(seek, 4096..8192);
            assert_eq!(found.is_err(), fails >= 0);
            assert_eq!(at, 7, "{fails}");
        }
    }
}
