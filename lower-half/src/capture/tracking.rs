//! The memory that the application has written to since the last epoch, found in the best way that there is.
//!
//! The kernel keeps track of private anonymous memory (`stillpoint_tracking::wp_async`), and each time it is asked which memory
//! that is: a mapping that grows takes its registration along, the new part without protection, and one that moves loses it.
//! Memory that is not registered counts as written. All memory that is not private and anonymous always counts as written: it is
//! little, or other processes write to it.
//!
//! If the kernel does not keep track, everything counts as written, and hashes show what has changed. This is so on an older
//! kernel, as soon as the application handles page faults itself, and as soon as there is a device whose writes cause no faults.
//! There is no way back, because the writes in between are not known. Protection by `mprotect` is no alternative: a system call
//! that writes to protected memory fails, and the application would see that.

use std::io;
use std::ops::Range;

use stillpoint_image::format::vm_flags;
use stillpoint_incremental::tracking::Tracking;
use stillpoint_tracking::pagemap::PageMap;
use stillpoint_tracking::wp_async;

use super::maps::Mapping;
use crate::ground::{faults, ranges};

/// Knows which memory was written to.
pub struct Tracker {
    way: TrackingMethod,
    /// Memory written since the epoch that the next one is to build on.
    written: Vec<Range<usize>>,
}

enum TrackingMethod {
    Kernel(Registered),
    /// Everything counts as written.
    Nobody,
}

/// The kernel keeps track of this process's writes.
struct Registered {
    pages: PageMap,
}

impl Tracker {
    /// Starts tracking in the given way, or in none if that is not possible.
    pub fn open(tracking: Tracking) -> Tracker {
        let way = match tracking {
            Tracking::WpAsync => {
                Registered::open().map_or(TrackingMethod::Nobody, TrackingMethod::Kernel)
            }
            Tracking::None => TrackingMethod::Nobody,
        };
        Tracker {
            way,
            written: Vec::new(),
        }
    }

    /// Returns the way of tracking in use.
    pub fn tracking(&self) -> Tracking {
        match self.way {
            TrackingMethod::Kernel(_) => Tracking::WpAsync,
            TrackingMethod::Nobody => Tracking::None,
        }
    }

    /// Adds the memory written since the last look, and follows these mappings from here on. Nothing may write meanwhile. `unseen` says
    /// whether a device may have written without a page fault.
    ///
    /// # Errors
    /// The kernel does not report the writes. Memory that was written still counts as written.
    pub fn look(&mut self, mappings: &[Mapping], unseen: bool) -> io::Result<()> {
        if unseen || faults::gave_way() {
            self.way = TrackingMethod::Nobody;
            faults::let_go();
        }
        let mut found = std::mem::take(&mut self.written);
        let mut done = Ok(());
        match &mut self.way {
            TrackingMethod::Kernel(registered) => done = registered.look(mappings, &mut found),
            TrackingMethod::Nobody => found.extend(mappings.iter().map(Mapping::addresses)),
        }
        self.written = ranges::joined(found);
        done
    }

    /// Returns the memory written since the epoch that the next one is to build on, as of the last look; in order of address.
    pub fn written(&self) -> &[Range<usize>] {
        &self.written
    }

    /// Notes that the image of the last look is committed: the next one builds on it.
    pub fn committed(&mut self) {
        self.written.clear();
    }

    /// Returns whether the mapping's page faults are handled for tracking, and not for the application.
    pub fn follows(&self, mapping: &Mapping) -> bool {
        match &self.way {
            TrackingMethod::Kernel(registered) => !faults::gave_way() && registered.has(mapping),
            TrackingMethod::Nobody => false,
        }
    }
}

impl Registered {
    /// # Errors
    /// This kernel does not keep track, or the application handles page faults itself.
    fn open() -> io::Result<Registered> {
        if faults::gave_way() {
            return Err(io::Error::other(
                "the application handles page faults itself",
            ));
        }
        let pages = PageMap::open()?;
        faults::keep(wp_async::open()?);
        Ok(Registered { pages })
    }

    /// Returns whether the kernel can keep track of this kind of mapping.
    fn can(mapping: &Mapping) -> bool {
        !mapping.shared && mapping.inode == 0 && mapping.vm_flags & vm_flags::HUGE_TLB == 0
    }

    /// Returns whether the kernel has kept track of a mapping since the last look.
    fn has(&self, mapping: &Mapping) -> bool {
        let followed = self.pages.is_followed(mapping.addresses());
        Self::can(mapping) && followed.unwrap_or(false)
    }

    fn look(&mut self, mappings: &[Mapping], found: &mut Vec<Range<usize>>) -> io::Result<()> {
        for (number, mapping) in mappings.iter().enumerate() {
            if let Err(error) = self.look_at(mapping, found) {
                found.extend(mappings[number..].iter().map(Mapping::addresses));
                return Err(error);
            }
        }
        Ok(())
    }

    fn look_at(&mut self, mapping: &Mapping, found: &mut Vec<Range<usize>>) -> io::Result<()> {
        let whole = mapping.addresses();
        if self.has(mapping) {
            found.extend(self.pages.written(whole)?);
            return Ok(());
        }
        // A mapping that cannot be registered counts as written next time too.
        let descriptor = faults::descriptor().filter(|_| Self::can(mapping));
        let registered = descriptor.filter(|it| wp_async::register(*it, &whole).is_ok());
        let Some(descriptor) = registered else {
            found.push(whole);
            return Ok(());
        };
        let touched = self.pages.touched(whole)?;
        for range in &touched {
            wp_async::protect(descriptor, range)?;
        }
        found.extend(touched);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use memmap2::MmapMut;

    use super::super::maps;
    use super::*;
    use crate::arch::PAGE;

    /// The process has one descriptor, so that tests run one at a time.
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

    /// Returns the mappings that lie in a range.
    fn within(range: &Range<usize>) -> Vec<Mapping> {
        let all = maps::read(std::fs::File::open("/proc/self/smaps").unwrap()).unwrap();
        let parts = all
            .into_iter()
            .filter(|one| one.start < range.end && range.start < one.end);
        let cut = |one: Mapping| Mapping {
            start: one.start.max(range.start),
            end: one.end.min(range.end),
            ..one
        };
        parts.map(cut).collect()
    }

    /// Returns a tracker for each way that this machine has.
    fn trackers() -> Vec<Tracker> {
        let offers = stillpoint_tracking::offer::all();
        let there = offers.into_iter().filter(|offer| offer.lacks.is_none());
        there.map(|offer| Tracker::open(offer.tracking)).collect()
    }

    /// Returns the pages of a map, by number, that the tracker reports as written.
    fn written(tracker: &mut Tracker, range: &Range<usize>) -> Vec<usize> {
        tracker.look(&within(range), false).unwrap();
        let found = tracker.written().iter().cloned();
        let pages = found.flat_map(|found| found.step_by(PAGE));
        let pages = pages.map(|page| (page - range.start) / PAGE).collect();
        tracker.committed();
        pages
    }

    #[test]
    fn every_way_to_change_memory_is_seen() {
        let _alone = ALONE.lock();
        for tracker in trackers() {
            sees_every_way_to_change_memory(tracker);
        }
    }

    fn sees_every_way_to_change_memory(mut tracker: Tracker) {
        let exact = tracker.tracking().tells_pages();
        let mut map = MmapMut::map_anon(32 * PAGE).unwrap();
        let range = map.as_ptr() as usize..map.as_ptr() as usize + map.len();
        let mut look = |expected: &[usize], what: &str| {
            let found = written(&mut tracker, &range);
            match exact {
                true => assert_eq!(found, expected, "{what}"),
                false => assert_eq!(found, (0..32).collect::<Vec<_>>(), "{what}"),
            }
        };
        map[0] = 1;
        map[5 * PAGE] = 1;
        look(&[0, 5], "what was written before");
        look(&[], "nothing");
        assert_eq!(map[6 * PAGE], 0, "reading is not writing");
        look(
            if exact { &[6] } else { &[] },
            "a page that was never there",
        );
        map[5 * PAGE + 7] = 1;
        map[9 * PAGE] = 2;
        look(&[5, 9], "what was written again, and for the first time");
        let mut zeros = std::fs::File::open("/dev/zero").unwrap();
        zeros.read_exact(&mut map[9 * PAGE..11 * PAGE]).unwrap();
        look(&[9, 10], "what a system call has written");
        let at = |page: usize| (range.start + page * PAGE) as *mut libc::c_void;
        // SAFETY: page 5 lies in `map`, which is this test's own and stays mapped.
        unsafe { libc::madvise(at(5), PAGE, libc::MADV_DONTNEED) };
        look(&[], "what was dropped");
        map[5 * PAGE] = 3;
        look(&[5], "what was dropped, and touched again");
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let both = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: page 0 lies in `map`, which is this test's own; a page that can be written to takes its place.
        unsafe { libc::mmap(at(0), PAGE, both, flags, -1, 0) };
        map[0] = 4;
        look(&[0], "a new mapping in the place of one that was protected");
        let fixed = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: pages 9 and 20 lie in `map`, which is this test's own; the page that is left behind is mapped anew.
        unsafe {
            libc::mremap(at(9), PAGE, PAGE, fixed, at(20));
            libc::mmap(at(9), PAGE, both, flags, -1, 0);
        }
        look(&[20], "one page moved over another");
        look(&[], "nothing");
        // SAFETY: page 20 lies in `map`; it can still be read, and nothing writes to it any more.
        unsafe { libc::mprotect(at(20), PAGE, libc::PROT_READ) };
        look(&[], "memory that nobody may write to is no other");
    }

    /// Mappings that have grown, shrunk, moved or been cut since the last look are followed, and do not count as handled by the
    /// application; each write is seen.
    #[test]
    fn mappings_that_change_are_followed() {
        let _alone = ALONE.lock();
        for mut tracker in trackers() {
            let exact = tracker.tracking().tells_pages();
            // Far from the addresses where the kernel places memory of other tests.
            let range = 0x3000_0000_0000..0x3000_0000_0000 + 64 * PAGE;
            let at = |page: usize| (range.start + page * PAGE) as *mut libc::c_void;
            // SAFETY: the calls below write only to pages of this range that are mapped and writable at that moment.
            let write = |page: usize| unsafe { at(page).cast::<u8>().write_volatile(1) };
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            let both = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: the calls map, move and unmap only pages of this range, which no other code uses.
            unsafe { libc::mmap(at(0), 8 * PAGE, both, flags, -1, 0) };
            (0..8).for_each(write);
            let mut look = |expected: &[usize], what: &str| {
                let followed = |tracker: &Tracker| {
                    let of = within(&range).into_iter().filter(|one| one.userfault);
                    of.for_each(|one| assert!(tracker.follows(&one), "{what}: {one:?}"));
                };
                followed(&tracker);
                let found = written(&mut tracker, &range);
                if exact {
                    assert_eq!(found, expected, "{what}");
                }
                followed(&tracker);
                assert_eq!(written(&mut tracker, &range).is_empty(), exact, "{what}");
            };
            let fixed = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            look(&[0, 1, 2, 3, 4, 5, 6, 7], "new memory");
            // SAFETY: all 16 pages lie in this range, which no other code uses.
            unsafe { assert_eq!(libc::mremap(at(0), 8 * PAGE, 16 * PAGE, 0), at(0)) };
            write(3);
            write(9);
            look(&[3, 9], "grown in place");
            // SAFETY: all pages lie in this range, which no other code uses; nothing touches those that are unmapped.
            unsafe {
                assert_eq!(libc::mremap(at(0), 16 * PAGE, 20 * PAGE, 0), at(0));
                libc::munmap(at(0), 16 * PAGE);
            }
            write(17);
            look(&[17], "grown in place, without what it has grown from");
            // SAFETY: both places lie in this range, which no other code uses.
            unsafe {
                assert_eq!(
                    libc::mremap(at(16), 4 * PAGE, 4 * PAGE, fixed, at(40)),
                    at(40)
                )
            };
            look(&[41], "moved");
            write(41);
            look(&[41], "written to after it has moved");
            // SAFETY: all pages lie in this range, which no other code uses; nothing touches what shrinking takes away before it is mapped again.
            unsafe {
                assert_eq!(libc::mremap(at(40), 4 * PAGE, 2 * PAGE, 0), at(40));
                assert_eq!(libc::mremap(at(40), 2 * PAGE, 4 * PAGE, 0), at(40));
            }
            look(&[], "shrunk and grown");
            write(42);
            look(&[42], "written to where it was shrunk");
            // SAFETY: both pages lie in this range, which no other code uses; nothing touches page 40 before it is mapped again.
            unsafe {
                libc::mprotect(at(41), PAGE, libc::PROT_READ);
                libc::munmap(at(40), PAGE);
            }
            write(43);
            look(&[43], "cut, and protected in the middle");
            // SAFETY: page 41 lies in this range and is still mapped.
            unsafe { libc::mprotect(at(41), PAGE, libc::PROT_READ | libc::PROT_WRITE) };
            write(41);
            look(&[41], "one mapping again");
            // SAFETY: these pages are the end of this range, which no other code uses.
            unsafe { libc::mmap(at(44), 20 * PAGE, both, flags, -1, 0) };
            write(50);
            look(&[50], "a neighbour");
            // SAFETY: the child writes to a page of its own and ends; no other code has a child to wait for.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    write(50);
                    libc::_exit(0);
                }
                write(51);
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
            look(&[51], "shared with a child");
            // SAFETY: this is the whole range, which no other code uses.
            unsafe { libc::mmap(at(0), 64 * PAGE, both, flags, -1, 0) };
            look(&[], "a mapping over all of it");
            // SAFETY: this is the whole range, and nothing touches it before it is mapped again.
            unsafe { libc::munmap(at(0), 64 * PAGE) };
        }
    }

    #[test]
    fn what_is_not_committed_is_not_forgotten_and_what_is_not_followed_counts() {
        let _alone = ALONE.lock();
        for mut tracker in trackers() {
            let exact = tracker.tracking().tells_pages();
            let mut map = MmapMut::map_anon(4 * PAGE).unwrap();
            let start = map.as_ptr() as usize;
            let range = start..start + map.len();
            tracker.look(&within(&range), false).unwrap();
            tracker.committed();
            map[0] = 1;
            tracker.look(&within(&range), false).unwrap();
            map[3 * PAGE] = 1;
            tracker.look(&within(&range), false).unwrap();
            let page = |number: usize| start + number * PAGE..start + (number + 1) * PAGE;
            match exact {
                true => assert_eq!(tracker.written(), [page(0), page(3)]),
                false => assert_eq!(tracker.written(), std::slice::from_ref(&range)),
            }
            let shared = within(&range).into_iter().map(|one| Mapping {
                shared: true,
                ..one
            });
            tracker.look(&shared.collect::<Vec<_>>(), false).unwrap();
            assert_eq!(tracker.written(), std::slice::from_ref(&range));
        }
    }

    /// Writes without a page fault are not seen: from then on everything counts as written, and no mapping is protected any more.
    #[test]
    fn who_is_not_seen_makes_everything_count_from_then_on() {
        let _alone = ALONE.lock();
        for mut tracker in trackers() {
            let mut map = MmapMut::map_anon(4 * PAGE).unwrap();
            let range = map.as_ptr() as usize..map.as_ptr() as usize + map.len();
            map[0] = 1;
            tracker.look(&within(&range), false).unwrap();
            tracker.committed();
            tracker.look(&within(&range), true).unwrap();
            assert_eq!(tracker.written(), std::slice::from_ref(&range));
            tracker.committed();
            assert_eq!(written(&mut tracker, &range), [0, 1, 2, 3]);
            assert_eq!(tracker.tracking(), Tracking::None);
            assert!(within(&range).iter().all(|mapping| !mapping.userfault));
        }
    }
}
