//! Memory that the application keeps from being swapped out: `mlock` and `mlockall`, for present and for future mappings.

use std::io;

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
    /// Those of them that are locked page by page, as they are touched (`MLOCK_ONFAULT`).
    #[serde(default)]
    pub on_fault: Vec<(usize, usize)>,
    /// `MCL_FUTURE`: new mappings are locked from the start.
    pub future: bool,
    /// `MCL_ONFAULT` with it.
    #[serde(default)]
    pub future_on_fault: bool,
}

/// Returns the locked parts of these mappings, or `None` if nothing is locked.
///
/// # Errors
/// The kernel does not tell how new mappings are locked.
pub fn survey(mappings: &[Mapping]) -> io::Result<Option<Locked>> {
    let future = of_new_mappings()?;
    if future.is_none() && locked_kilobytes() == Some(0) {
        return Ok(None);
    }
    let ranges = |which: fn(&Mapping) -> bool| {
        let found = mappings.iter().filter(|mapping| which(mapping));
        found.map(|mapping| (mapping.start, mapping.end)).collect()
    };
    let found = Locked {
        ranges: ranges(|mapping| mapping.locked),
        on_fault: ranges(|mapping| mapping.locked && mapping.on_fault),
        future: future.is_some(),
        future_on_fault: future == Some(true),
    };
    Ok((found != Locked::default()).then_some(found))
}

/// Returns `VmLck` of this process.
fn locked_kilobytes() -> Option<u64> {
    let status = proc_files::by("/proc/self/status").ok()?;
    let lines = &mut status.lines();
    let all = lines.find_map(|line| line.strip_prefix("VmLck:"))?;
    all.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// Returns whether new mappings are locked only as they are touched, or `None` if they are not locked. It maps a page, and looks whether one
/// more is locked then, and whether that one is there before it is touched.
fn of_new_mappings() -> io::Result<Option<bool>> {
    use crate::arch::PAGE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let before = locked_kilobytes();
    // SAFETY: the kernel chooses a free address for the page, and nothing touches it.
    let probe = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, protection, flags, -1, 0) };
    if probe == libc::MAP_FAILED {
        return Ok(None);
    }
    let locked = locked_kilobytes() > before;
    let mut there = 0u8;
    // SAFETY: the kernel writes one byte for the one page.
    let looked = unsafe { libc::mincore(probe, PAGE, &raw mut there) } == 0;
    let error = io::Error::last_os_error();
    // SAFETY: this unmaps exactly the page that was mapped above, which nothing else uses.
    unsafe { libc::munmap(probe, PAGE) };
    match looked {
        true => Ok(locked.then_some(there & 1 == 0)),
        false => Err(error),
    }
}

impl Locked {
    /// Locks the memory again; returns false if this launch may not.
    pub fn restore(&self) -> bool {
        let lock = |range: &(usize, usize)| {
            let (start, end) = *range;
            let place = start as *const libc::c_void;
            // SAFETY: locking changes nothing in the memory, and the kernel refuses a range that is not mapped.
            let locked = unsafe {
                match self.on_fault.contains(range) {
                    true => libc::mlock2(place, end - start, libc::MLOCK_ONFAULT),
                    false => libc::mlock(place, end - start),
                }
            };
            locked == 0
        };
        let future = || {
            let on_fault = match self.future_on_fault {
                true => libc::MCL_ONFAULT,
                false => 0,
            };
            // SAFETY: the call takes flags and changes no memory: later mappings are locked.
            unsafe { libc::mlockall(libc::MCL_FUTURE | on_fault) == 0 }
        };
        self.ranges.iter().all(lock) && (!self.future || future())
    }
}

#[cfg(test)]
mod tests {
    use super::super::maps;
    use super::*;

    /// Returns what is known of the page at an address: whether it is locked, whether on fault; and the same of new mappings.
    fn known(address: usize) -> (bool, bool, bool, bool) {
        let smaps = std::fs::File::open("/proc/self/smaps").unwrap();
        let found = survey(&maps::read(smaps).unwrap()).unwrap();
        let found = found.unwrap_or_default();
        let is_here = |ranges: &[(usize, usize)]| {
            let mut ranges = ranges.iter();
            ranges.any(|(start, end)| (*start..*end).contains(&address))
        };
        let (ranges, on_fault) = (is_here(&found.ranges), is_here(&found.on_fault));
        (ranges, on_fault, found.future, found.future_on_fault)
    }

    #[test]
    fn nothing_is_locked_until_somebody_locks_it() {
        let page = vec![1u8; 3 * 4096];
        let address = page.as_ptr() as usize + 4096;
        let nothing = (false, false, false, false);
        assert_eq!(known(address), nothing);
        let place = address as *const libc::c_void;
        // SAFETY: the address lies in a buffer of this test; locking changes nothing in it.
        if unsafe { libc::mlock(place, 1) } == 0 {
            assert_eq!(known(address), (true, false, false, false));
            // SAFETY: as above.
            unsafe { libc::mlock2(place, 1, libc::MLOCK_ONFAULT) };
            assert_eq!(known(address), (true, true, false, false));
            // SAFETY: this unlocks the page that was locked above; it changes nothing in it.
            unsafe { libc::munlock(place, 1) };
        }
        assert_eq!(known(address), nothing);
        for (flags, expected) in [
            (libc::MCL_FUTURE, (true, false)),
            (libc::MCL_FUTURE | libc::MCL_ONFAULT, (true, true)),
        ] {
            // SAFETY: the call takes flags; locking changes nothing in any memory.
            if unsafe { libc::mlockall(flags) } == 0 {
                let (_, _, future, on_fault) = known(address);
                // SAFETY: the call takes no argument; unlocking changes nothing in any memory.
                unsafe { libc::munlockall() };
                assert_eq!((future, on_fault), expected);
            }
        }
        assert_eq!(known(address), nothing);
    }
}
