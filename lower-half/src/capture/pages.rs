//! Which pages of a mapping have ever been touched.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use linux_raw_sys::general::{page_region, pm_scan_arg};

use super::maps::Mapping;
pub use crate::arch::PAGE;

/// `_IOWR('f', 16, struct pm_scan_arg)` (linux/fs.h, since Linux 6.7).
const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
const IS_PRESENT: u64 = 1 << 3;
const IS_SWAPPED: u64 = 1 << 4;
const IS_ZERO_PAGE: u64 = 1 << 5;

/// Bits of an entry of `/proc/self/pagemap`.
const ENTRY_PRESENT: u64 = 1 << 63;
const ENTRY_SWAPPED: u64 = 1 << 62;

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

    /// The stretches of a mapping whose pages exist. The kernel's shared zero page is left out.
    pub fn touched(&mut self, mapping: &Mapping) -> io::Result<Vec<Range<usize>>> {
        let range = mapping.start..mapping.end;
        if self.scans {
            match self.scan(range.clone()) {
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTTY | libc::EINVAL)) => {
                    self.scans = false
                }
                other => return other,
            }
        }
        self.read(range)
    }

    fn scan(&self, range: Range<usize>) -> io::Result<Vec<Range<usize>>> {
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
                flags: 0,
                start: start as u64,
                end: range.end as u64,
                walk_end: 0,
                vec: regions.as_mut_ptr() as u64,
                vec_len: regions.len() as u64,
                max_pages: 0,
                // Not the zero page, and present or swapped out.
                category_inverted: IS_ZERO_PAGE,
                category_mask: IS_ZERO_PAGE,
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
                push(&mut found, region.start as usize..region.end as usize);
            }
            let reached = argument.walk_end as usize;
            if reached <= start {
                return Err(io::Error::other("the kernel's page scan does not get on"));
            }
            start = reached;
        }
        Ok(found)
    }

    fn read(&self, range: Range<usize>) -> io::Result<Vec<Range<usize>>> {
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
                if word & (ENTRY_PRESENT | ENTRY_SWAPPED) != 0 {
                    push(&mut found, at..at + PAGE);
                }
                at += PAGE;
            }
        }
        Ok(found)
    }
}

/// Adds a stretch, joined to the last one where they touch.
fn push(found: &mut Vec<Range<usize>>, range: Range<usize>) {
    match found.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => found.push(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_see_the_same_pages() {
        let mut map = memmap2::MmapMut::map_anon(1 << 20).unwrap();
        for page in [0, 1, 7, 100, 255] {
            map[page * PAGE] = 1;
        }
        let start = map.as_ptr() as usize;
        let expected: Vec<Range<usize>> = [(0, 2), (7, 8), (100, 101), (255, 256)]
            .map(|(from, to)| start + from * PAGE..start + to * PAGE)
            .to_vec();
        let pages = PageMap::open().unwrap();
        assert_eq!(pages.read(start..start + map.len()).unwrap(), expected);
        if let Ok(scanned) = pages.scan(start..start + map.len()) {
            assert_eq!(scanned, expected);
        }
    }
}
