//! Maps private file mappings from their files again, if the files exist. `/proc/self/maps` then shows the same mappings, unchanged memory is shared with other
//! processes, and `MADV_DONTNEED` drops pages that can be read again. If the image has every byte of a mapping, another file under its name does no harm, and
//! without a file the memory is anonymous. Otherwise (`mapped_files`), the restart has checked that the file is the same.

use std::fs::OpenOptions;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use stillpoint_image::mapped_files::{Kept, Referred};
use stillpoint_image::{Reader, Region};

use super::RestoreError;
use super::mapped_files::InFiles;
use super::region::{check, failed, map_at, size};
use crate::arch::PAGE;

/// Memory that already holds the bytes of files, in order of address.
#[derive(Debug, Default)]
pub struct FromFiles {
    /// Memory that is to hold the image's bytes.
    pub filled: Vec<Range<usize>>,
    /// The part of it that is the process's own, and not the file's, whatever it holds.
    pub own: Vec<Range<usize>>,
}

impl FromFiles {
    /// Whether an address lies in memory that is to hold the image's bytes.
    pub fn have(&self, address: usize) -> bool {
        holds(&self.filled, address)
    }

    /// Makes memory hold these bytes. Pages that already do stay the file's, unless they are the process's own.
    ///
    /// # Safety
    /// As many bytes must be mapped at the address, writable, and used by nothing else.
    pub unsafe fn correct(&self, address: usize, bytes: &[u8]) {
        for (index, page) in bytes.chunks(PAGE).enumerate() {
            let at = address + index * PAGE;
            // SAFETY: the caller says that these bytes are mapped, writable, and used by nothing else; the pages of `bytes` follow each other there.
            let place = unsafe { std::slice::from_raw_parts_mut(at as *mut u8, page.len()) };
            if place != page || holds(&self.own, at) {
                place.copy_from_slice(page);
            }
        }
    }
}

/// Maps the region's file, readable and writable; returns `false` if that is not possible. `kept` tells more of the mapping.
pub fn map(
    region: &Region,
    kept: Option<&Kept>,
    from_files: &mut FromFiles,
) -> Result<bool, RestoreError> {
    // O_NONBLOCK and O_NOCTTY: something other than a regular file must not block this process.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(&region.name);
    let Ok(file) = file else {
        return Ok(false);
    };
    let end = region.file_offset.saturating_add(region.bytes());
    // Behind the file's end there was nothing.
    let needed = kept.map_or(end, |kept| {
        end.min(kept.bytes.next_multiple_of(PAGE as u64))
    });
    let whole = file
        .metadata()
        .is_ok_and(|about| about.is_file() && about.len().next_multiple_of(PAGE as u64) >= needed);
    if !whole {
        return Ok(false);
    }
    let protection = region.protection as i32;
    let flags = libc::MAP_PRIVATE;
    match map_at(
        region,
        protection,
        flags,
        file.as_raw_fd(),
        region.file_offset,
    ) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {
            return Err(failed(region, "map", error));
        }
        // The file system may be mounted noexec or not support mappings: the image's bytes suffice.
        Err(_) => return Ok(false),
    }
    open(region)?;
    let there = needed.saturating_sub(region.file_offset) as usize;
    let start = region.start as usize;
    if there > 0 {
        from_files.filled.push(start..start + there);
    }
    from_files.own.extend(
        kept.into_iter()
            .flat_map(Kept::own)
            .map(|it| it.start as usize..it.end as usize),
    );
    Ok(true)
}

/// Moves the mapping of a file that the image refers to into its place. Regions with bytes in the image are writable then.
pub fn leave(
    region: &Region,
    in_files: &mut InFiles,
    from_files: &mut FromFiles,
) -> Result<(), RestoreError> {
    in_files.place(region)?;
    let own = in_files
        .referred(region)
        .into_iter()
        .flat_map(Referred::own);
    let own: Vec<Range<usize>> = own.map(|it| it.start as usize..it.end as usize).collect();
    if !own.is_empty() {
        open(region)?;
    }
    from_files.filled.extend(own.iter().cloned());
    from_files.own.extend(own);
    Ok(())
}

/// Makes a region writable until it is filled.
fn open(region: &Region) -> Result<(), RestoreError> {
    let open = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the region has just been mapped by this restart, and nothing uses it yet.
    let result = unsafe { libc::mprotect(region.start as *mut _, size(region), open) };
    check(region, "fill", result)
}

/// Whether an address lies in one of these ranges, which are sorted.
fn holds(ranges: &[Range<usize>], address: usize) -> bool {
    let index = ranges.partition_point(|range| range.end <= address);
    ranges
        .get(index)
        .is_some_and(|range| range.contains(&address))
}

/// Clears everything that the image leaves out, such as pages of zeros: the file may hold other bytes there.
///
/// # Safety
/// The ranges must be mapped, readable, writable, and used by nothing else.
pub unsafe fn clear(reader: &Reader, from_files: &FromFiles) {
    let ranges = &from_files.filled[..];
    if ranges.is_empty() {
        return;
    }
    let mut runs: Vec<Range<usize>> = reader
        .chunks_of(0)
        .flat_map(|chunk| reader.live_runs(chunk))
        .map(|run| run.address as usize..run.address as usize + run.bytes as usize)
        .filter(|run| holds(ranges, run.start))
        .collect();
    runs.sort_by_key(|run| run.start);
    let zeros = [0; PAGE];
    for range in ranges {
        let mut at = range.start;
        let first = runs.partition_point(|run| run.end <= range.start);
        let last = range.end..range.end;
        let inside = runs
            .iter()
            .skip(first)
            .take_while(|run| run.start < range.end);
        for run in inside.chain([&last]) {
            while at < run.start {
                let bytes = PAGE.min(run.start - at);
                // SAFETY: the caller says that the range is mapped, writable, and used by nothing else; these bytes lie in it, before the next run.
                unsafe { from_files.correct(at, &zeros[..bytes]) };
                at += bytes;
            }
            at = at.max(run.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_what_lies_in_them() {
        let ranges = [1..3, 5..8];
        let held: Vec<usize> = (0..9).filter(|at| holds(&ranges, *at)).collect();
        assert_eq!(held, [1, 2, 5, 6, 7]);
    }

    #[test]
    fn only_pages_that_differ_are_written() {
        let mut place = vec![1u8; 3 * PAGE];
        let mut wanted = place.clone();
        wanted[PAGE + 5] = 9;
        // SAFETY: the vector has as many bytes as `wanted`, and is this test's own.
        unsafe { FromFiles::default().correct(place.as_mut_ptr() as usize, &wanted) };
        assert!(place == wanted);
        // Memory that cannot be written to, and is right already.
        let right = [7u8; PAGE];
        let map = memmap2::MmapMut::map_anon(PAGE).unwrap();
        let mut map = map;
        map.copy_from_slice(&right);
        let map = map.make_read_only().unwrap();
        // SAFETY: the page is mapped and holds these bytes already, so nothing is written to it.
        unsafe { FromFiles::default().correct(map.as_ptr() as usize, &right) };
    }
}
