//! Which pages the application has written since the last epoch, as the kernel knows it.
//!
//! Private anonymous memory is registered with `userfaultfd`, write-protected in the way that needs nobody to answer (`UFFD_FEATURE_WP_ASYNC`, since Linux
//! 6.7): the first write to a page takes the protection away, whoever writes, the kernel on behalf of a system call too. `PAGEMAP_SCAN` tells which pages
//! have lost it, and protects them again. What is new, has moved or has grown is not registered, or has no protection, and so counts as
//! written. Everything else than private anonymous memory always counts as written: it is little, or others write to it.
//!
//! On an older kernel all memory counts as written. Protection by `mprotect` is no way here: a system call that writes to protected memory fails,
//! which the application would see.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use linux_raw_sys::general::{uffdio_api, uffdio_range, uffdio_register};
use stillpoint_image::format::vm_flags;

use super::maps::Mapping;
use super::pages::PageMap;
use crate::ground::{faults, ranges};

/// `_IOWR(0xaa, 0x3f, struct uffdio_api)` and `_IOWR(0xaa, 0x00, struct uffdio_register)` (linux/userfaultfd.h).
const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;
const API: u64 = 0xaa;
const WP_ASYNC: u64 = 1 << 15;
const REGISTER_WP: u64 = 1 << 1;
/// Faults of the kernel need no privilege here, since nobody is asked.
const USER_MODE_ONLY: libc::c_long = 1;

/// The kernel keeps track of this process's writes.
pub struct Tracker {
    pages: PageMap,
    /// Written since the epoch that the next one is to build on.
    written: Vec<Range<usize>>,
    /// What has been registered, whether it is mapped any more or not.
    registered: Vec<Range<usize>>,
}

impl Tracker {
    /// # Errors
    /// Where this kernel does not, or the application handles page faults itself.
    pub fn open() -> io::Result<Tracker> {
        if faults::gave_way() {
            return Err(io::Error::other(
                "the application handles page faults itself",
            ));
        }
        let flags = libc::c_long::from(libc::O_CLOEXEC | libc::O_NONBLOCK) | USER_MODE_ONLY;
        // SAFETY: makes a descriptor.
        let number = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: made just now.
        let descriptor = unsafe { OwnedFd::from_raw_fd(number as i32) };
        let mut api = uffdio_api {
            api: API,
            features: WP_ASYNC,
            ioctls: 0,
        };
        // SAFETY: the kernel reads and fills the structure.
        if unsafe { libc::ioctl(descriptor.as_raw_fd(), UFFDIO_API, &raw mut api) } != 0 {
            return Err(io::Error::last_os_error());
        }
        faults::keep(descriptor);
        Ok(Tracker {
            pages: PageMap::open()?,
            written: Vec::new(),
            registered: Vec::new(),
        })
    }

    /// Whether it keeps track of such a mapping.
    fn follows(mapping: &Mapping) -> bool {
        !mapping.shared && mapping.inode == 0 && mapping.vm_flags & vm_flags::HUGE_TLB == 0
    }

    /// Adds what has been written since it last looked, and follows these mappings from here on. To be called while nobody writes.
    ///
    /// # Errors
    /// Where the kernel does not tell. What was written is still known to have been.
    pub fn look(&mut self, mappings: &[Mapping]) -> io::Result<()> {
        let mut found = std::mem::take(&mut self.written);
        let mut done = Ok(());
        let mut registered = Vec::new();
        for mapping in mappings {
            let whole = mapping.start..mapping.end;
            if !Self::follows(mapping) || done.is_err() || !self.register(&whole) {
                found.push(whole);
                continue;
            }
            registered.push(whole.clone());
            match self.pages.written(whole.clone()) {
                Ok(written) => found.extend(written),
                Err(error) => {
                    found.push(whole);
                    done = Err(error);
                }
            }
        }
        self.written = ranges::joined(found);
        registered.append(&mut self.registered);
        self.registered = ranges::joined(registered);
        done
    }

    /// What has been written since the epoch that the next one is to build on, as far as it has been looked at; in order of address.
    pub fn written(&self) -> &[Range<usize>] {
        &self.written
    }

    /// The image of what it last looked at is committed: the next one builds on it.
    pub fn committed(&mut self) {
        self.written.clear();
    }

    /// Whether the mapping lies in what it has registered.
    pub fn has_registered(&self, mapping: &Mapping) -> bool {
        let whole = mapping.start..mapping.end;
        let whole = std::slice::from_ref(&whole);
        !faults::gave_way() && ranges::split(whole, &self.registered).1.is_empty()
    }

    /// `false` where somebody else handles the mapping's faults. What is registered already stays so.
    fn register(&self, range: &Range<usize>) -> bool {
        let mut register = uffdio_register {
            range: uffdio_range {
                start: range.start as u64,
                len: range.len() as u64,
            },
            mode: REGISTER_WP,
            ioctls: 0,
        };
        let Some(descriptor) = faults::descriptor() else {
            return false;
        };
        // SAFETY: nothing but page table entries changes, and no write fails because of it.
        unsafe { libc::ioctl(descriptor, UFFDIO_REGISTER, &raw mut register) == 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use memmap2::MmapMut;

    use super::super::maps;
    use super::super::pages::PAGE;
    use super::*;

    /// The descriptor is the process's: one test at a time.
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

    /// The mappings that lie in a range.
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

    /// The pages of a map, by number, that the tracker says were written.
    fn written(tracker: &mut Tracker, range: &Range<usize>) -> Vec<usize> {
        tracker.look(&within(range)).unwrap();
        let found = tracker.written().iter().cloned();
        let pages = found.flat_map(|found| found.step_by(PAGE));
        let pages = pages.map(|page| (page - range.start) / PAGE).collect();
        tracker.committed();
        pages
    }

    #[test]
    fn every_way_to_change_memory_is_seen() {
        let _alone = ALONE.lock();
        let mut tracker = Tracker::open().expect("a kernel that keeps track: Linux 6.7 or later");
        let mut map = MmapMut::map_anon(32 * PAGE).unwrap();
        let range = map.as_ptr() as usize..map.as_ptr() as usize + map.len();
        map[0] = 1;
        map[5 * PAGE] = 1;
        let mut look = || written(&mut tracker, &range);
        assert_eq!(look(), [0, 5], "what was written before");
        assert!(look().is_empty());
        assert_eq!(map[6 * PAGE], 0, "reading is not writing");
        look();
        map[5 * PAGE + 7] = 1;
        map[9 * PAGE] = 2;
        assert_eq!(look(), [5, 9]);
        // A system call writes.
        let mut zeros = std::fs::File::open("/dev/zero").unwrap();
        zeros.read_exact(&mut map[9 * PAGE..11 * PAGE]).unwrap();
        assert_eq!(look(), [9, 10]);
        // Dropped, and touched again.
        let at = |page: usize| (range.start + page * PAGE) as *mut libc::c_void;
        // SAFETY: pages of the map here.
        unsafe { libc::madvise(at(5), PAGE, libc::MADV_DONTNEED) };
        assert!(look().is_empty());
        map[5 * PAGE] = 3;
        assert_eq!(look(), [5]);
        // A new mapping in the place of one that was protected.
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let both = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: as above.
        unsafe { libc::mmap(at(0), PAGE, both, flags, -1, 0) };
        map[0] = 4;
        assert_eq!(look(), [0]);
        // One page moved over another.
        let fixed = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: as above; the page that is left behind is mapped anew.
        unsafe {
            libc::mremap(at(9), PAGE, PAGE, fixed, at(20));
            libc::mmap(at(9), PAGE, both, flags, -1, 0);
        }
        assert_eq!(look(), [20]);
        assert!(look().is_empty());
        // Memory that nobody may write to is no other.
        // SAFETY: as above.
        unsafe { libc::mprotect(at(20), PAGE, libc::PROT_READ) };
        assert!(look().is_empty());
    }

    #[test]
    fn what_is_not_committed_is_not_forgotten_and_what_is_not_followed_counts() {
        let _alone = ALONE.lock();
        let mut tracker = Tracker::open().unwrap();
        let mut map = MmapMut::map_anon(4 * PAGE).unwrap();
        let start = map.as_ptr() as usize;
        let range = start..start + map.len();
        tracker.look(&within(&range)).unwrap();
        tracker.committed();
        map[0] = 1;
        tracker.look(&within(&range)).unwrap();
        map[3 * PAGE] = 1;
        tracker.look(&within(&range)).unwrap();
        let page = |number: usize| start + number * PAGE..start + (number + 1) * PAGE;
        assert_eq!(tracker.written(), [page(0), page(3)]);
        let shared = within(&range).into_iter().map(|one| Mapping {
            shared: true,
            ..one
        });
        tracker.look(&shared.collect::<Vec<_>>()).unwrap();
        assert_eq!(tracker.written(), std::slice::from_ref(&range));
    }
}
