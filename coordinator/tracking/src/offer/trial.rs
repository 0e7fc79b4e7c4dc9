//! Tries a mechanism on some memory of this process: it must report everything that is written to here, and nothing else.
//!
//! Two of the tests repeat the ways in which kernels have lost sight of writes: page tables that are moved as a whole (`mremap`
//! of 2 MiB that are aligned), and pages whose right to write comes back (`mprotect`) in a mapping that then joins its neighbour.
//! A kernel's version does not tell whether it has these faults, since distributions change their kernels.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};

use thiserror::Error;

use crate::pagemap::{PAGE, PageMap};
use crate::wp_async;

/// The bytes that one page table maps.
const TABLE: usize = 2 << 20;
/// The bytes of the piece that is protected and joined.
const PIECE: usize = 16 * PAGE;

const ALL_RIGHTS: i32 = libc::PROT_READ | libc::PROT_WRITE;
/// The whole area is of one kind, so that the kernel joins its pieces.
const OWN: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

/// Why the kernel cannot be asked what was written to.
#[derive(Debug, Error)]
pub enum TrackingFault {
    #[error("Linux 6.7 or later is needed")]
    OldKernel,
    #[error("cannot get memory for the test: {0}")]
    Memory(io::Error),
    #[error("{0}: {1}")]
    Call(&'static str, io::Error),
    #[error("this kernel reports memory wrongly if it was {0}")]
    Wrong(&'static str),
}

/// Checks that the kernel reports all writes, and nothing else.
pub fn wp_async() -> Result<(), TrackingFault> {
    let descriptor = wp_async::open().map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => TrackingFault::OldKernel,
        _ => TrackingFault::Call("userfaultfd", error),
    })?;
    let pages =
        PageMap::open().map_err(|error| TrackingFault::Call("/proc/self/pagemap", error))?;
    let tables = Area::of_tables(3).map_err(TrackingFault::Memory)?;
    let pieces = Area::of_pieces(4).map_err(TrackingFault::Memory)?;
    let tried = WpAsync { descriptor, pages };
    sees_writes(&tried, &tables)?;
    sees_moves(&tried, &tables)?;
    sees_what_is_joined(&tried, &pieces)
}

/// The mechanism, which reports writes since the last question.
struct WpAsync {
    descriptor: OwnedFd,
    pages: PageMap,
}

impl WpAsync {
    fn written(&self, range: Range<usize>) -> Result<Vec<Range<usize>>, TrackingFault> {
        let told = wp_async::register(self.descriptor.as_raw_fd(), &range)
            .and_then(|()| self.pages.written(range));
        told.map_err(|error| match error.raw_os_error() {
            Some(libc::ENOTTY | libc::EINVAL) => TrackingFault::OldKernel,
            _ => TrackingFault::Call("userfaultfd", error),
        })
    }

    /// Checks that it reports exactly these pages; `what` says what was done with them.
    fn tells(
        &self,
        range: Range<usize>,
        pages: &[usize],
        what: &'static str,
    ) -> Result<(), TrackingFault> {
        self.agrees(range, what, |told| told == pages)
    }

    /// Checks that this page is among those that it reports.
    fn tells_at_least(
        &self,
        range: Range<usize>,
        page: usize,
        what: &'static str,
    ) -> Result<(), TrackingFault> {
        self.agrees(range, what, |told| told.contains(&page))
    }

    fn agrees(
        &self,
        range: Range<usize>,
        what: &'static str,
        is_so: impl FnOnce(&[usize]) -> bool,
    ) -> Result<(), TrackingFault> {
        let told = self.written(range.clone())?;
        let told = told.into_iter().flat_map(|found| found.step_by(PAGE));
        let told: Vec<usize> = told.map(|at| (at - range.start) / PAGE).collect();
        match is_so(&told) {
            true => Ok(()),
            false => Err(TrackingFault::Wrong(what)),
        }
    }
}

fn sees_writes(tried: &WpAsync, area: &Area) -> Result<(), TrackingFault> {
    let whole = || area.at(0)..area.at(8);
    area.write(0);
    area.write(5);
    tried.tells(whole(), &[0, 5], "written to for the first time")?;
    tried.tells(whole(), &[], "not written to")?;
    area.write(5);
    tried.tells(whole(), &[5], "written to again")
}

fn sees_moves(tried: &WpAsync, area: &Area) -> Result<(), TrackingFault> {
    let (from, to) = (TABLE / PAGE, 2 * TABLE / PAGE);
    let target = || area.at(to)..area.at(to) + TABLE;
    area.write(from + 3);
    area.write(to + 3);
    tried.written(area.at(from)..area.at(from) + TABLE)?;
    tried.written(target())?;
    tried.tells(target(), &[], "not written to")?;
    area.relocate(from, to, TABLE)
        .map_err(|error| TrackingFault::Call("mremap", error))?;
    tried.tells_at_least(target(), 3, "moved (mremap)")?;
    area.write(to + 3);
    tried.tells_at_least(target(), 3, "moved (mremap) and written to")
}

fn sees_what_is_joined(tried: &WpAsync, area: &Area) -> Result<(), TrackingFault> {
    let piece = PIECE / PAGE;
    let (first, second, third) = (0, piece, 2 * piece);
    let both = || area.at(first)..area.at(third);
    let joined = || -> io::Result<()> {
        area.protect(third, 2 * PIECE, libc::PROT_NONE)?;
        area.protect(first, PIECE, libc::PROT_NONE)?;
        // This joins the second piece to the third.
        area.map_anew(third, PIECE)?;
        area.protect(second, PIECE, libc::PROT_READ)?;
        area.protect(second, PIECE, ALL_RIGHTS)?;
        area.write(second);
        area.protect(first, PIECE, ALL_RIGHTS)
    };
    area.write(first);
    area.write(second);
    tried.written(both())?;
    joined().map_err(|error| TrackingFault::Call("mprotect", error))?;
    tried.tells_at_least(both(), piece, "protected and joined (mprotect)")
}

/// Memory for the trial.
struct Area {
    mapped: Range<usize>,
    start: usize,
}

impl Area {
    /// Makes an area of whole page tables, without huge pages.
    fn of_tables(count: usize) -> io::Result<Area> {
        let mut area = Area::map((count + 1) * TABLE)?;
        area.start = area.start.next_multiple_of(TABLE);
        // SAFETY: the range is the area's own memory, and the advice changes no byte of it. A kernel without huge pages refuses, and has none.
        unsafe {
            libc::madvise(
                area.mapped.start as *mut _,
                area.mapped.len(),
                libc::MADV_NOHUGEPAGE,
            )
        };
        Ok(area)
    }

    /// Makes an area of pieces that are like all other memory, so that the kernel joins them; it is too small for huge pages.
    fn of_pieces(count: usize) -> io::Result<Area> {
        Area::map(count * PIECE)
    }

    fn map(length: usize) -> io::Result<Area> {
        // SAFETY: new memory, which no other code knows.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), length, ALL_RIGHTS, OWN, -1, 0) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapped = address as usize..address as usize + length;
        Ok(Area {
            start: mapped.start,
            mapped,
        })
    }

    /// Returns the address of a page.
    fn at(&self, page: usize) -> usize {
        self.start + page * PAGE
    }

    fn write(&self, page: usize) {
        // SAFETY: the area's own memory, which no reference leads to, and which can be written to wherever this is called.
        unsafe { (self.at(page) as *mut u8).write_volatile(1) };
    }

    fn protect(&self, page: usize, bytes: usize, rights: i32) -> io::Result<()> {
        // SAFETY: the range is the area's own memory, and nothing touches it while it lacks these rights.
        match unsafe { libc::mprotect(self.at(page) as *mut _, bytes, rights) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn map_anew(&self, page: usize, bytes: usize) -> io::Result<()> {
        let flags = OWN | libc::MAP_FIXED;
        // SAFETY: the new mapping takes the place of the area's own memory, to which no reference leads.
        let address =
            unsafe { libc::mmap(self.at(page) as *mut _, bytes, ALL_RIGHTS, flags, -1, 0) };
        match address == libc::MAP_FAILED {
            false => Ok(()),
            true => Err(io::Error::last_os_error()),
        }
    }

    /// Moves pages, and maps the memory they leave anew, so that the area stays whole.
    fn relocate(&self, from: usize, to: usize, bytes: usize) -> io::Result<()> {
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: both ranges are the area's own memory, to which no reference leads.
        let address = unsafe {
            libc::mremap(
                self.at(from) as *mut _,
                bytes,
                bytes,
                flags,
                self.at(to) as *mut libc::c_void,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.map_anew(from, bytes)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the range is the area's own memory, which nothing uses after its owner is dropped.
        unsafe { libc::munmap(self.mapped.start as *mut _, self.mapped.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The trial notices a mechanism that misses something: here, memory that is not followed yet, and writes that did not happen.
    #[test]
    fn a_mechanism_that_misses_something_does_not_pass() {
        let Ok(descriptor) = wp_async::open() else {
            assert!(wp_async().is_err());
            return;
        };
        wp_async().unwrap();
        let pages = PageMap::open().unwrap();
        let (tried, area) = (WpAsync { descriptor, pages }, Area::of_pieces(1).unwrap());
        area.write(1);
        let whole = || area.at(0)..area.at(4);
        assert!(tried.tells(whole(), &[0], "").is_err());
        assert!(tried.tells(whole(), &[1], "").is_err());
        tried.tells(whole(), &[], "").unwrap();
    }
}
