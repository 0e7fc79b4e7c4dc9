//! Memory that the application keeps from being swapped out: `mlock`, `mlockall`, now and for what it will map.

use serde::{Deserialize, Serialize};
use stillpoint_part::Kind;

use super::maps;
use crate::ground::told;

/// What an image holds of it: JSON, [`Locked`]. There is none where nothing is locked.
pub const KIND: Kind = Kind {
    name: "locked memory",
    version: 1,
    always: false,
};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locked {
    /// Start and end of stretches of the upper half.
    pub ranges: Vec<(usize, usize)>,
    /// `MCL_FUTURE`: whatever is mapped is locked.
    pub future: bool,
}

/// What is locked; `None`: nothing.
pub fn survey() -> Option<Locked> {
    let status = told::by("/proc/self/status").ok()?;
    let all = status
        .lines()
        .find_map(|line| line.strip_prefix("VmLck:"))?;
    let future = maps_locked();
    if !future && all.trim().starts_with("0 ") {
        return None;
    }
    let mappings = maps::upper().unwrap_or_default();
    let locked = mappings.iter().filter(|mapping| mapping.locked);
    let ranges = locked.map(|mapping| (mapping.start, mapping.end)).collect();
    let found = Locked { ranges, future };
    (found != Locked::default()).then_some(found)
}

/// Whether what is mapped now is locked from the start: the kernel says so of a mapping alone.
fn maps_locked() -> bool {
    use crate::arch::PAGE;
    let (protection, flags) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a mapping of its own, which nobody touches.
    let probe = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, protection, flags, -1, 0) };
    if probe == libc::MAP_FAILED {
        return false;
    }
    let locked = locked_at(probe as usize);
    // SAFETY: as above.
    unsafe { libc::munmap(probe, PAGE) };
    locked
}

fn locked_at(address: usize) -> bool {
    let file = std::fs::File::open("/proc/self/smaps");
    let mappings = file.and_then(maps::read).unwrap_or_default();
    let mut holding = mappings.iter();
    holding
        .find(|mapping| (mapping.start..mapping.end).contains(&address))
        .is_some_and(|mapping| mapping.locked)
}

impl Locked {
    /// Locks it again; false where this launch may not.
    pub fn restore(&self) -> bool {
        let lock = |(start, end): &(usize, usize)| {
            // SAFETY: the call changes no memory.
            unsafe { libc::mlock(*start as *const libc::c_void, end - start) == 0 }
        };
        let future = || {
            // SAFETY: as above.
            unsafe { libc::mlockall(libc::MCL_FUTURE) == 0 }
        };
        self.ranges.iter().all(lock) && (!self.future || future())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_locked_until_somebody_locks_it() {
        assert!(!maps_locked());
        let page = vec![1u8; 3 * 4096];
        let address = page.as_ptr() as usize + 4096;
        // SAFETY: memory of ours; locking changes nothing in it.
        if unsafe { libc::mlock(address as *const libc::c_void, 1) } == 0 {
            assert!(locked_at(address));
            // SAFETY: as above.
            unsafe { libc::munlock(address as *const libc::c_void, 1) };
        }
        assert!(!locked_at(address));
    }
}
