//! Memory that the application keeps from being swapped out: `mlock` and `mlockall`, for present and for future mappings.

use serde::{Deserialize, Serialize};
use stillpoint_part::Kind;

use super::maps::Mapping;
use crate::ground::proc_files;

/// The payload of an image with locked memory: JSON, [`Locked`]. An image without locked memory has none.
pub const KIND: Kind = Kind {
    name: "locked memory",
    version: 1,
    always: false,
};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locked {
    /// Start and end of stretches of the upper half.
    pub ranges: Vec<(usize, usize)>,
    /// `MCL_FUTURE`: new mappings are locked from the start.
    pub future: bool,
}

/// Returns the locked parts of these mappings, or `None` if nothing is locked.
pub fn survey(mappings: &[Mapping]) -> Option<Locked> {
    let future = is_locked_from_the_start();
    if !future && locked_kilobytes() == Some(0) {
        return None;
    }
    let locked = mappings.iter().filter(|mapping| mapping.locked);
    let ranges = locked.map(|mapping| (mapping.start, mapping.end)).collect();
    let found = Locked { ranges, future };
    (found != Locked::default()).then_some(found)
}

/// Returns `VmLck` of this process.
fn locked_kilobytes() -> Option<u64> {
    let status = proc_files::by("/proc/self/status").ok()?;
    let lines = &mut status.lines();
    let all = lines.find_map(|line| line.strip_prefix("VmLck:"))?;
    all.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// Returns whether new mappings are locked from the start. It maps a page and looks whether one more is locked then.
fn is_locked_from_the_start() -> bool {
    use crate::arch::PAGE;
    let (protection, flags) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let before = locked_kilobytes();
    // SAFETY: the kernel chooses a free address for the page, and nothing touches it.
    let probe = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, protection, flags, -1, 0) };
    if probe == libc::MAP_FAILED {
        return false;
    }
    let after = locked_kilobytes();
    // SAFETY: this unmaps exactly the page that was mapped above, which nothing else uses.
    unsafe { libc::munmap(probe, PAGE) };
    after > before
}

impl Locked {
    /// Locks the memory again; returns false if this launch may not.
    pub fn restore(&self) -> bool {
        let lock = |(start, end): &(usize, usize)| {
            // SAFETY: locking changes nothing in the memory, and the kernel refuses a range that is not mapped.
            unsafe { libc::mlock(*start as *const libc::c_void, end - start) == 0 }
        };
        let future = || {
            // SAFETY: the call takes flags and changes no memory: later mappings are locked.
            unsafe { libc::mlockall(libc::MCL_FUTURE) == 0 }
        };
        self.ranges.iter().all(lock) && (!self.future || future())
    }
}

#[cfg(test)]
mod tests {
    use super::super::maps;
    use super::*;

    #[test]
    fn nothing_is_locked_until_somebody_locks_it() {
        let mappings = || maps::read(std::fs::File::open("/proc/self/smaps").unwrap()).unwrap();
        let page = vec![1u8; 3 * 4096];
        let address = page.as_ptr() as usize + 4096;
        let is_here = |start: usize, end: usize| (start..end).contains(&address);
        let locked = || {
            let found = survey(&mappings()).unwrap_or_default();
            let here = found
                .ranges
                .iter()
                .any(|(start, end)| is_here(*start, *end));
            (here, found.future)
        };
        assert_eq!(locked(), (false, false));
        // SAFETY: the address lies in a buffer of this test; locking changes nothing in it.
        if unsafe { libc::mlock(address as *const libc::c_void, 1) } == 0 {
            assert_eq!(locked(), (true, false));
            // SAFETY: this unlocks the page that was locked above; it changes nothing in it.
            unsafe { libc::munlock(address as *const libc::c_void, 1) };
        }
        assert_eq!(locked(), (false, false));
        // SAFETY: the call takes flags; locking changes nothing in any memory.
        if unsafe { libc::mlockall(libc::MCL_FUTURE) } == 0 {
            let future = locked().1;
            // SAFETY: the call takes no argument; unlocking changes nothing in any memory.
            unsafe { libc::munlockall() };
            assert!(future);
        }
        assert_eq!(locked(), (false, false));
    }
}
