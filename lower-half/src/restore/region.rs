//! One region of an image at its old addresses: mapped there, or not, and why.

use std::io;
use std::ops::Range;

use stillpoint_image::Region;
use stillpoint_image::format::vm_flags;
use stillpoint_refusals::refusal;

use super::RestoreError;
use crate::gate::memory;

pub fn range(region: &Region) -> Range<usize> {
    region.start as usize..region.end as usize
}

/// Whether the region's addresses have been reserved for it (`place`).
pub fn kept(region: &Region) -> bool {
    !memory::settled(&range(region))
}

pub fn size(region: &Region) -> usize {
    region.bytes() as usize
}

pub fn check(region: &Region, what: &str, result: libc::c_int) -> Result<(), RestoreError> {
    if result == 0 {
        Ok(())
    } else {
        Err(failed(region, what, io::Error::last_os_error()))
    }
}

pub fn failed(region: &Region, what: &str, error: io::Error) -> RestoreError {
    let place = format!("{:#x}..{:#x} ({})", region.start, region.end, region.name);
    if error.raw_os_error() == Some(libc::EEXIST) {
        return RestoreError::Refused(refusal!(
            TakenMemory,
            "this process uses the memory at {place} already: {}",
            taken_by(region.start..region.end)
        ));
    }
    RestoreError::System {
        what: format!("cannot {what} memory at {place}"),
        source: error,
    }
}

/// Returns the mappings that lie in a wanted range.
pub fn taken_by(wanted: Range<u64>) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let overlaps = |line: &&str| {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        let parse = |text| u64::from_str_radix(text, 16).unwrap_or(0);
        range.is_some_and(|(start, end)| parse(start) < wanted.end && wanted.start < parse(end))
    };
    maps.lines()
        .find(overlaps)
        .unwrap_or("a mapping that is gone now")
        .to_owned()
}

/// Maps at exactly the region's addresses, which must be free or reserved for it.
pub fn map_at(
    region: &Region,
    protection: i32,
    flags: i32,
    descriptor: i32,
    offset: u64,
) -> io::Result<()> {
    let wanted = region.start as *mut libc::c_void;
    let flags = match kept(region) {
        true => flags | libc::MAP_FIXED,
        false => flags | libc::MAP_FIXED_NOREPLACE,
    };
    // SAFETY: MAP_FIXED_NOREPLACE maps over nothing; addresses that were reserved (`kept`) were reserved for this region.
    let address = unsafe {
        libc::mmap(
            wanted,
            size(region),
            protection,
            flags,
            descriptor,
            offset as libc::off_t,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    if address != wanted {
        // Kernels before 4.17 take the address as a hint.
        // SAFETY: this unmaps exactly what was just mapped, which nothing uses yet.
        unsafe { libc::munmap(address, size(region)) };
        return Err(io::Error::from_raw_os_error(libc::EEXIST));
    }
    Ok(())
}

/// Applies a mapping's `madvise` and `mlock` settings again. If this kernel does not accept some advice, the memory is only slower.
pub fn advise(region: &Region) {
    const ADVICE: [(u64, i32); 9] = [
        (vm_flags::DONT_DUMP, libc::MADV_DONTDUMP),
        (vm_flags::HUGE_PAGE, libc::MADV_HUGEPAGE),
        (vm_flags::NO_HUGE_PAGE, libc::MADV_NOHUGEPAGE),
        (vm_flags::DONT_FORK, libc::MADV_DONTFORK),
        (vm_flags::WIPE_ON_FORK, libc::MADV_WIPEONFORK),
        (vm_flags::MERGEABLE, libc::MADV_MERGEABLE),
        (vm_flags::SEQUENTIAL, libc::MADV_SEQUENTIAL),
        (vm_flags::RANDOM, libc::MADV_RANDOM),
        (vm_flags::LOCKED, 0),
    ];
    for (flag, advice) in ADVICE {
        if region.vm_flags & flag == 0 {
            continue;
        }
        // SAFETY: the region was mapped by this restart, and neither call changes what it holds.
        unsafe {
            match flag {
                vm_flags::LOCKED => libc::mlock(region.start as *const _, size(region)),
                _ => libc::madvise(region.start as *mut _, size(region), advice),
            }
        };
    }
}
