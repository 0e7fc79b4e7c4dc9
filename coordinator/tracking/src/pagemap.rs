//! The pages of a mapping that have ever been touched, and those of a private file mapping that are the process's own.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use linux_raw_sys::general::{page_region, pm_scan_arg};

/// The bytes of a page.
pub const PAGE: usize = 4096;

/// `_IOWR('f', 16, struct pm_scan_arg)` (linux/fs.h, since Linux 6.7).
const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
const IS_FOLLOWED: u64 = 1;
const IS_WRITTEN: u64 = 1 << 1;
const IS_FILE: u64 = 1 << 2;
const IS_PRESENT: u64 = 1 << 3;
const IS_SWAPPED: u64 = 1 << 4;
const IS_ZERO_PAGE: u64 = 1 << 5;
/// Since Linux 6.16.
const IS_GUARDED: u64 = 1 << 8;

/// Fails with `EPERM` if the kernel does not give back the right to write by itself.
const ONLY_FOLLOWED: u64 = 1 << 1;
/// Takes the right to write away from the pages that are found, if the kernel gives it back by itself.
const PROTECT: u64 = 1 | ONLY_FOLLOWED;

/// Bits of an entry of `/proc/self/pagemap`.
const ENTRY_PRESENT: u64 = 1 << 63;
const ENTRY_SWAPPED: u64 = 1 << 62;
const ENTRY_FILE: u64 = 1 << 61;

/// The kind of pages to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// Pages that exist, without the kernel's shared zero page, if it can be told apart.
    Touched,
    /// Pages that exist and do not belong to a file: a private mapping gets them when it is written to. Swapped out, they are still its
    /// own. The shared zero page counts as well, since it may stand where the file has other bytes.
    Own,
    /// Pages that have been written to since they were protected, or never were protected. They are protected from then on.
    Written,
    /// Pages that nothing may touch (`MADV_GUARD_INSTALL`).
    Guarded,
}

impl Which {
    /// Returns the properties that a page must not have.
    fn excluded(self) -> u64 {
        match self {
            Which::Touched => IS_ZERO_PAGE,
            Which::Own => IS_FILE,
            Which::Written | Which::Guarded => 0,
        }
    }

    /// Returns the properties that a page must have.
    fn demanded(self) -> u64 {
        match self {
            Which::Touched | Which::Own => 0,
            Which::Written => IS_WRITTEN,
            Which::Guarded => IS_GUARDED,
        }
    }

    /// Returns whether an entry of `/proc/self/pagemap` belongs to such a page.
    fn has(self, entry: u64) -> bool {
        let exists = entry & (ENTRY_PRESENT | ENTRY_SWAPPED) != 0;
        exists && (self != Which::Own || entry & ENTRY_FILE == 0)
    }
}

/// Returns whether the kernel finds the pages of a mapping (PAGEMAP_SCAN), without a look at each place where one could be.
pub fn are_found_quickly() -> bool {
    let found = PageMap::open().and_then(|mut pages| {
        pages.touched(0..PAGE)?;
        Ok(pages.scans)
    });
    found.unwrap_or(false)
}

/// `/proc/self/pagemap`, open.
pub struct PageMap {
    file: File,
    /// Whether this kernel has PAGEMAP_SCAN, as far as is known.
    scans: bool,
}

impl PageMap {
    pub fn open() -> io::Result<PageMap> {
        Ok(PageMap {
            file: File::open("/proc/self/pagemap")?,
            scans: true,
        })
    }

    /// Returns the stretches of a mapping whose pages exist, without the kernel's shared zero page.
    pub fn touched(&mut self, mapping: Range<usize>) -> io::Result<Vec<Range<usize>>> {
        self.look(Which::Touched, mapping, &mut Vec::new())
    }

    /// Does the same, and adds to `away` those stretches that are not in memory: swapped out, broken, or guarded.
    pub fn touched_and_away(
        &mut self,
        mapping: Range<usize>,
        away: &mut Vec<Range<usize>>,
    ) -> io::Result<Vec<Range<usize>>> {
        self.look(Which::Touched, mapping, away)
    }

    /// Returns the stretches of a mapping that nothing may touch (`MADV_GUARD_INSTALL`).
    ///
    /// # Errors
    /// `EINVAL` if the kernel has such stretches, but does not report them (Linux 6.13 to 6.15).
    pub fn guarded(&self, mapping: Range<usize>) -> io::Result<Vec<Range<usize>>> {
        self.scan(Which::Guarded, mapping, &mut Vec::new())
    }

    /// Returns the stretches of a private file mapping whose pages are the process's own. Everywhere else the mapping shows the file.
    pub fn own(&mut self, mapping: Range<usize>) -> io::Result<Vec<Range<usize>>> {
        self.look(Which::Own, mapping, &mut Vec::new())
    }

    /// Returns the stretches of a mapping that have been written to since the last call. It must be registered
    /// ([`wp_async::register`](super::wp_async::register)).
    pub fn written(&self, range: Range<usize>) -> io::Result<Vec<Range<usize>>> {
        self.scan(Which::Written, range, &mut Vec::new())
    }

    /// Returns whether the kernel keeps track of writes to everything mapped in a range
    /// ([`wp_async::register`](super::wp_async::register)). A mapping that grows keeps its registration; one that moves loses it.
    pub fn is_followed(&self, range: Range<usize>) -> io::Result<bool> {
        // The scan looks for mappings that are not followed, so that the kernel passes over the pages of followed ones.
        let mut argument = pm_scan_arg {
            size: size_of::<pm_scan_arg>() as u64,
            flags: ONLY_FOLLOWED,
            start: range.start as u64,
            end: range.end as u64,
            walk_end: 0,
            vec: 0,
            vec_len: 0,
            max_pages: 0,
            category_inverted: IS_FOLLOWED,
            category_mask: IS_FOLLOWED,
            category_anyof_mask: 0,
            return_mask: IS_FOLLOWED,
        };
        // SAFETY: the argument lives on this stack, and names no vector.
        match unsafe { libc::ioctl(self.file.as_raw_fd(), PAGEMAP_SCAN, &raw mut argument) } {
            0.. => Ok(true),
            _ => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::EPERM) => Ok(false),
                error => Err(error),
            },
        }
    }

    fn look(
        &mut self,
        which: Which,
        range: Range<usize>,
        away: &mut Vec<Range<usize>>,
    ) -> io::Result<Vec<Range<usize>>> {
        if self.scans {
            match self.scan(which, range.clone(), away) {
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTTY | libc::EINVAL)) => {
                    self.scans = false
                }
                other => return other,
            }
        }
        self.read(which, range, away)
    }

    fn scan(
        &self,
        which: Which,
        range: Range<usize>,
        away: &mut Vec<Range<usize>>,
    ) -> io::Result<Vec<Range<usize>>> {
        let empty = page_region {
            start: 0,
            end: 0,
            categories: 0,
        };
        let mut regions = [empty; 512];
        let mut found = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let mut argument = pm_scan_arg {
                size: size_of::<pm_scan_arg>() as u64,
                flags: if which == Which::Written { PROTECT } else { 0 },
                start: start as u64,
                end: range.end as u64,
                walk_end: 0,
                vec: regions.as_mut_ptr() as u64,
                vec_len: regions.len() as u64,
                max_pages: 0,
                // Present or swapped out, and without the excluded properties.
                category_inverted: which.excluded(),
                category_mask: which.excluded() | which.demanded(),
                category_anyof_mask: IS_PRESENT | IS_SWAPPED,
                return_mask: IS_PRESENT,
            };
            // SAFETY: the argument and the vector that it names live on this stack; the kernel writes at
            // most `vec_len` regions.
            let count =
                unsafe { libc::ioctl(self.file.as_raw_fd(), PAGEMAP_SCAN, &raw mut argument) };
            if count < 0 {
                return Err(io::Error::last_os_error());
            }
            for region in regions.iter().take(count as usize) {
                let stretch = region.start as usize..region.end as usize;
                if region.categories & IS_PRESENT == 0 {
                    push(away, stretch.clone());
                }
                push(&mut found, stretch);
            }
            let reached = argument.walk_end as usize;
            if reached <= start {
                return Err(io::Error::other("the kernel's page scan makes no progress"));
            }
            start = reached;
        }
        Ok(found)
    }

    fn read(
        &self,
        which: Which,
        range: Range<usize>,
        away: &mut Vec<Range<usize>>,
    ) -> io::Result<Vec<Range<usize>>> {
        let mut found = Vec::new();
        let mut entries = vec![0u8; 1 << 16];
        let mut at = range.start;
        while at < range.end {
            let bytes = entries.len().min((range.end - at) / PAGE * 8);
            self.file
                .read_exact_at(&mut entries[..bytes], (at / PAGE * 8) as u64)?;
            for entry in entries[..bytes].chunks_exact(8) {
                let word = entry
                    .iter()
                    .rev()
                    .fold(0u64, |word, byte| word << 8 | u64::from(*byte));
                if which.has(word) {
                    if word & ENTRY_PRESENT == 0 {
                        push(away, at..at + PAGE);
                    }
                    push(&mut found, at..at + PAGE);
                }
                at += PAGE;
            }
        }
        Ok(found)
    }
}

/// Adds a stretch; joins it to the last one if they touch.
fn push(found: &mut Vec<Range<usize>>, range: Range<usize>) {
    match found.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => found.push(range),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Checks that both ways see exactly these pages of a mapping, given as the first of each stretch and the one behind it.
    fn both_see(which: Which, map: &[u8], pages: &[(usize, usize)]) {
        let start = map.as_ptr() as usize;
        let at = |&(from, to): &(usize, usize)| start + from * PAGE..start + to * PAGE;
        let expected: Vec<Range<usize>> = pages.iter().map(at).collect();
        let (map_of_pages, mut away) = (PageMap::open().unwrap(), Vec::new());
        let range = start..start + map.len();
        assert_eq!(
            map_of_pages.read(which, range.clone(), &mut away).unwrap(),
            expected
        );
        match map_of_pages.scan(which, range, &mut Vec::new()) {
            Ok(scanned) => assert_eq!(scanned, expected),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOTTY), "{error}"),
        }
    }

    #[test]
    fn both_ways_see_the_same_pages() {
        let mut map = memmap2::MmapMut::map_anon(1 << 20).unwrap();
        for page in [0, 1, 7, 100, 255] {
            map[page * PAGE] = 1;
        }
        both_see(
            Which::Touched,
            &map,
            &[(0, 2), (7, 8), (100, 101), (255, 256)],
        );
    }

    #[test]
    fn guarded_pages_are_told_from_memory_that_is_there() {
        let mut map = memmap2::MmapMut::map_anon(16 * PAGE).unwrap();
        let start = map.as_ptr() as usize;
        let at = |from: usize, to: usize| start + from * PAGE..start + to * PAGE;
        (map[0], map[4 * PAGE]) = (1, 1);
        // SAFETY: the pages lie in the map, and nothing touches them any more.
        if unsafe { libc::madvise(at(4, 7).start as *mut _, 3 * PAGE, 102) } != 0 {
            return;
        }
        let (mut pages, mut away) = (PageMap::open().unwrap(), Vec::new());
        match pages.guarded(at(0, 16)) {
            Ok(guarded) => assert_eq!(guarded, [at(4, 7)]),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{error}"),
        }
        let touched = pages.touched_and_away(at(0, 16), &mut away).unwrap();
        assert_eq!((touched, away), (vec![at(0, 1), at(4, 7)], vec![at(4, 7)]));
    }

    #[test]
    fn both_ways_tell_own_pages_from_the_files() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![3; 64 * PAGE]).unwrap();
        // SAFETY: the file is this test's own, and nothing changes it while it is mapped.
        let mut map = unsafe { memmap2::MmapOptions::new().map_copy(&file).unwrap() };
        both_see(Which::Own, &map, &[]);
        for page in 0..32 {
            // SAFETY: `page` is below 32, and the mapping has 64 pages.
            assert_eq!(unsafe { map.as_ptr().add(page * PAGE).read_volatile() }, 3);
        }
        both_see(Which::Own, &map, &[]);
        // A page that was read before, and one that was not; one with the file's bytes, and one with zeros.
        (map[5 * PAGE], map[40 * PAGE]) = (4, 4);
        map[41 * PAGE] = 3;
        map[9 * PAGE..10 * PAGE].fill(0);
        both_see(Which::Own, &map, &[(5, 6), (9, 10), (40, 42)]);
        // A dropped page shows the file again.
        // SAFETY: page 40 lies in the test's own mapping; the kernel drops it, and the slice of the mapping stays mapped.
        unsafe {
            libc::madvise(
                map.as_mut_ptr().add(40 * PAGE).cast(),
                PAGE,
                libc::MADV_DONTNEED,
            )
        };
        both_see(Which::Own, &map, &[(5, 6), (9, 10), (41, 42)]);
        // Swapped out, if there is swap.
        // SAFETY: the range is the test's own mapping; MADV_PAGEOUT changes no byte of it.
        unsafe { libc::madvise(map.as_mut_ptr().cast(), map.len(), libc::MADV_PAGEOUT) };
        both_see(Which::Own, &map, &[(5, 6), (9, 10), (41, 42)]);
    }
}
