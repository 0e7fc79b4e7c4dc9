//! Memory at its old addresses.

use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use stillpoint_image::format::{CHUNK_BYTES, ChunkRecord, NOWHERE, vm_flags};
use stillpoint_image::tables::RegionKind;
use stillpoint_image::{Reader, Region};

use super::mapped_files::InFiles;
use super::objects::Objects;
use super::{RestoreError, files, loader, shared};
use crate::gate::memory;

const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Maps and fills every region but shared files, and sets protections and advice.
///
/// # Safety
/// The upper half's addresses must be nobody's.
pub unsafe fn map(
    reader: &Reader,
    in_files: &mut InFiles,
    objects: &mut Objects,
    workers: usize,
) -> Result<(), RestoreError> {
    let filled = filled_regions(reader);
    // What holds a file's bytes already, and is to hold the image's, by address.
    let mut from_files = Vec::new();
    for (region, filled) in reader.regions().iter().zip(&filled) {
        if memory::touches_gate(&range(region)) {
            return Err(RestoreError::Refused(format!(
                "{}: region {:#x}..{:#x} lies where no application's memory can be: the image is not sound",
                reader.path().display(),
                region.start,
                region.end
            )));
        }
        match region.kind {
            RegionKind::Anonymous => private(region, *filled)?,
            RegionKind::PrivateFile if in_files.referred(region).is_some() => {
                from_files.extend(files::leave(region, in_files)?);
            }
            RegionKind::PrivateFile if files::map(region)? => from_files.push(range(region)),
            RegionKind::PrivateFile => private(region, *filled)?,
            RegionKind::SharedAnonymous => shared::anonymous(reader, region, objects)?,
            RegionKind::SystemV => shared::system_v(reader, region)?,
            RegionKind::SharedFile => {}
        }
    }
    // SAFETY: the regions have just been mapped, readable and writable where there are runs, and nobody else
    // uses them.
    unsafe {
        fill(reader, &from_files, workers)?;
        files::clear(reader, &from_files);
    };
    for (region, filled) in reader.regions().iter().zip(&filled) {
        let private = matches!(region.kind, RegionKind::Anonymous | RegionKind::PrivateFile);
        let opened = *filled || region.kind == RegionKind::PrivateFile;
        if private && opened && region.protection as i32 != READ_WRITE {
            let protection = region.protection as i32;
            // SAFETY: the region is ours alone.
            check(region, "protect", unsafe {
                libc::mprotect(region.start as *mut _, size(region), protection)
            })?;
        }
        if region.kind != RegionKind::SharedFile {
            advise(region);
        }
    }
    loader::make_room(reader)
}

/// Which regions have any page in the image.
fn filled_regions(reader: &Reader) -> Vec<bool> {
    let mut filled = vec![false; reader.regions().len()];
    for chunk in reader.chunks_of(0) {
        for run in reader.live_runs(chunk) {
            let index = reader
                .regions()
                .partition_point(|region| region.end <= run.address);
            if let Some(flag) = filled.get_mut(index) {
                *flag = true;
            }
        }
    }
    filled
}

pub(super) fn range(region: &Region) -> Range<usize> {
    region.start as usize..region.end as usize
}

/// Whether the region's addresses have been kept for it (`place`).
pub(super) fn kept(region: &Region) -> bool {
    !memory::settled(&range(region))
}

pub(super) fn size(region: &Region) -> usize {
    region.bytes() as usize
}

pub(super) fn check(region: &Region, what: &str, result: libc::c_int) -> Result<(), RestoreError> {
    if result == 0 {
        Ok(())
    } else {
        Err(failed(region, what, io::Error::last_os_error()))
    }
}

pub(super) fn failed(region: &Region, what: &str, error: io::Error) -> RestoreError {
    let place = format!("{:#x}..{:#x} ({})", region.start, region.end, region.name);
    if error.raw_os_error() == Some(libc::EEXIST) {
        return RestoreError::Refused(format!(
            "memory at {place} is taken in this process: {}",
            taken_by(region.start..region.end)
        ));
    }
    RestoreError::System {
        what: format!("cannot {what} memory at {place}"),
        source: error,
    }
}

/// What lies where memory should be.
pub(super) fn taken_by(wanted: Range<u64>) -> String {
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
        .unwrap_or("something that has gone again")
        .to_owned()
}

/// Maps at exactly the region's addresses, which must be free, or kept for it.
pub(super) fn map_at(
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
    // SAFETY: MAP_FIXED_NOREPLACE maps over nothing; what was kept, was kept for this.
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
        // A kernel before 4.17 takes the address for a hint.
        // SAFETY: unmaps exactly what was just mapped.
        unsafe { libc::munmap(address, size(region)) };
        return Err(io::Error::from_raw_os_error(libc::EEXIST));
    }
    Ok(())
}

fn private(region: &Region, filled: bool) -> Result<(), RestoreError> {
    let protection = if filled {
        READ_WRITE
    } else {
        region.protection as i32
    };
    let mut flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    if region.vm_flags & vm_flags::GROWS_DOWN != 0 {
        flags |= libc::MAP_GROWSDOWN;
    }
    if region.vm_flags & vm_flags::NO_RESERVE != 0 || !filled {
        flags |= libc::MAP_NORESERVE;
    }
    if region.vm_flags & vm_flags::HUGE_TLB != 0 {
        match map_at(region, protection, flags | libc::MAP_HUGETLB, -1, 0) {
            Ok(()) => return Ok(()),
            // No huge pages are set aside here: small ones hold the same bytes.
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {}
            Err(error) => return Err(failed(region, "map", error)),
        }
    }
    map_at(region, protection, flags, -1, 0).map_err(|error| failed(region, "map", error))
}

/// Loads every page of memory.
///
/// # Safety
/// Every run must lie in memory that is mapped, writable and used by nobody.
unsafe fn fill(
    reader: &Reader,
    from_files: &[Range<usize>],
    workers: usize,
) -> Result<(), RestoreError> {
    let chunks: Vec<&ChunkRecord> = reader.chunks_of(0).collect();
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let first_error: Mutex<Option<RestoreError>> = Mutex::new(None);
    let work = || {
        let (mut scratch, mut gathered) = (Reader::scratch(), vec![0; CHUNK_BYTES]);
        while !failed.load(Ordering::Relaxed) {
            let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            // SAFETY: the caller's; each chunk is loaded by one worker, and runs do not overlap.
            let result = unsafe { load(reader, chunk, from_files, &mut scratch, &mut gathered) };
            if let Err(error) = result {
                failed.store(true, Ordering::Relaxed);
                if let Ok(mut first) = first_error.lock() {
                    first.get_or_insert(error);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers.min(chunks.len()) {
            scope.spawn(work);
        }
        work();
    });
    match first_error.into_inner() {
        Ok(Some(error)) => Err(error),
        _ => Ok(()),
    }
}

/// Loads one chunk into place.
///
/// # Safety
/// As [`fill`].
unsafe fn load(
    reader: &Reader,
    chunk: &ChunkRecord,
    from_files: &[Range<usize>],
    scratch: &mut Vec<u8>,
    gathered: &mut [u8],
) -> Result<(), RestoreError> {
    let runs = reader.runs(chunk);
    if let [run] = runs
        && !files::holds(from_files, run.address as usize)
    {
        // SAFETY: the caller's.
        let place =
            unsafe { std::slice::from_raw_parts_mut(run.address as *mut u8, run.bytes as usize) };
        return Ok(reader.load(chunk, scratch, place)?);
    }
    let gathered = &mut gathered[..chunk.bytes as usize];
    reader.load(chunk, scratch, gathered)?;
    let mut rest = &*gathered;
    for run in runs {
        let (mine, more) = rest.split_at(run.bytes as usize);
        rest = more;
        if run.space == NOWHERE {
            continue;
        }
        // SAFETY: the caller's; the source is a buffer of our own.
        unsafe {
            match files::holds(from_files, run.address as usize) {
                true => files::correct(run.address as usize, mine),
                false => {
                    std::ptr::copy_nonoverlapping(mine.as_ptr(), run.address as *mut u8, mine.len())
                }
            }
        };
    }
    Ok(())
}

/// Gives a mapping back what `madvise` and `mlock` had made of it. Advice that this kernel does not take
/// is only slower without.
pub(super) fn advise(region: &Region) {
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
        // SAFETY: neither call changes what the memory holds.
        unsafe {
            match flag {
                vm_flags::LOCKED => libc::mlock(region.start as *const _, size(region)),
                _ => libc::madvise(region.start as *mut _, size(region), advice),
            }
        };
    }
}
