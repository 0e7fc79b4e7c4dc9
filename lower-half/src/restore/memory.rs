//! Restores memory at its old addresses.
//!
//! Every byte of an image is read once. Private anonymous memory, which is most of it, is read into its place while the image is being checked ([`read`]); that
//! changes only this process, which has no application yet. Other chunks are checked at the same time and kept until [`map`] puts them in place; if they are
//! larger than those of a small application, they are read again. Memory that comes while the application already runs (`arrival`) is not read here.

use stillpoint_image::format::vm_flags;
use stillpoint_image::tables::RegionKind;
use stillpoint_image::{Reader, Region};
use stillpoint_refusals::refusal;

use super::arrival::Plan;
use super::files::FromFiles;
use super::mapped_files::InFiles;
use super::objects::Objects;
use super::pages::{self, Loaded};
use super::region::{advise, check, failed, map_at, range, size};
use super::{RestoreError, files, shared};
use crate::gate::memory;

const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Maps private anonymous memory and reads it, and checks every other byte of the image; but not memory that comes late.
///
/// # Safety
/// The upper half's addresses must be free.
pub unsafe fn read(
    reader: &Reader,
    late: Option<Plan>,
    workers: usize,
) -> Result<Loaded, RestoreError> {
    let filled = filled_regions(reader);
    let regions = reader.regions();
    if let Some(region) = regions.iter().find(|it| memory::touches_gate(&range(it))) {
        return Err(RestoreError::Refused(refusal!(
            BrokenImage,
            "{}: region {:#x}..{:#x} lies at addresses that no application can use: the image is damaged, use another epoch",
            reader.path().display(),
            region.start,
            region.end
        )));
    }
    for (region, filled) in regions.iter().zip(&filled) {
        if region.kind == RegionKind::Anonymous {
            private(region, *filled)?;
        }
    }
    // SAFETY: the caller says that the addresses are free; the regions have just been mapped there, readable and writable where there are runs, and nothing
    // else uses them.
    unsafe { pages::read(reader, late, workers) }
}

/// Maps every other region except shared files and fills it, and sets protections and advice.
///
/// # Safety
/// The upper half's addresses must be free, except for those that [`read`] has mapped.
pub unsafe fn map(
    reader: &Reader,
    in_files: &mut InFiles,
    objects: &mut Objects,
    loaded: &Loaded,
    workers: usize,
) -> Result<(), RestoreError> {
    let filled = filled_regions(reader);
    let mut from_files = FromFiles::default();
    for (region, filled) in reader.regions().iter().zip(&filled) {
        match region.kind {
            RegionKind::Anonymous | RegionKind::SharedFile => {}
            RegionKind::PrivateFile if in_files.referred(region).is_some() => {
                files::leave(region, in_files, &mut from_files)?;
            }
            RegionKind::PrivateFile => {
                if !files::map(region, in_files.kept(region), &mut from_files)? {
                    private(region, *filled)?;
                }
            }
            RegionKind::SharedAnonymous => shared::anonymous(reader, region, objects)?,
            RegionKind::SystemV => shared::system_v(reader, region)?,
        }
    }
    // SAFETY: the regions are mapped by this restart, readable and writable where there are runs, and nothing else uses them.
    unsafe {
        pages::fill(reader, &from_files, loaded, workers)?;
        files::clear(reader, &from_files);
    };
    for (region, filled) in reader.regions().iter().zip(&filled) {
        let private = matches!(region.kind, RegionKind::Anonymous | RegionKind::PrivateFile);
        let opened = *filled || region.kind == RegionKind::PrivateFile;
        if private && opened && region.protection as i32 != READ_WRITE {
            let protection = region.protection as i32;
            // SAFETY: the region was mapped by this restart and is filled; nothing uses it yet.
            check(region, "protect", unsafe {
                libc::mprotect(region.start as *mut _, size(region), protection)
            })?;
        }
        if region.kind != RegionKind::SharedFile {
            advise(region);
        }
    }
    Ok(())
}

/// Returns which regions have any page in the image.
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

/// A kind of memory like `MAP_PRIVATE`, whose pages the kernel may drop when it needs room.
const MAP_DROPPABLE: i32 = 8;

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
    if region.vm_flags & vm_flags::DROPPABLE != 0 {
        match map_at(
            region,
            protection,
            MAP_DROPPABLE | libc::MAP_ANONYMOUS,
            -1,
            0,
        ) {
            Ok(()) => return Ok(()),
            // Kernels before 6.11 have no such memory: what may be dropped may stay as well.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(error) => return Err(failed(region, "map", error)),
        }
    }
    if region.vm_flags & vm_flags::HUGE_TLB != 0 {
        match map_at(region, protection, flags | libc::MAP_HUGETLB, -1, 0) {
            Ok(()) => return Ok(()),
            // No huge pages are reserved here: small pages hold the same bytes.
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {}
            Err(error) => return Err(failed(region, "map", error)),
        }
    }
    map_at(region, protection, flags, -1, 0).map_err(|error| failed(region, "map", error))
}
