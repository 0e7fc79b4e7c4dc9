//! Files that the image refers to. Each file is opened and compared before anything is changed, and mapped at once at free addresses. So the file that is
//! mapped is the one that was compared, even if its name changes, and a file that cannot be mapped is found out in time. Later the mapping is moved to its
//! place.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use stillpoint_faults::{Point, strike};
use stillpoint_image::format::vm_flags;
use stillpoint_image::mapped_files::{Kept, MappedFiles, Referred};
use stillpoint_image::{Reader, Region};
use stillpoint_refusals::{Refusal, refusal};

use super::RestoreError;
use super::region::{failed, map_at, size};

/// Mappings of files that wait to be moved to their place.
#[derive(Default)]
pub struct InFiles {
    files: MappedFiles,
    waiting: Vec<Waiting>,
}

/// One of them; dropping it unmaps it, unless it has been moved.
struct Waiting {
    region: u64,
    address: usize,
    bytes: usize,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.address != 0 {
            // SAFETY: this is a mapping of this value's own, which nothing else uses.
            unsafe { libc::munmap(self.address as *mut _, self.bytes) };
        }
    }
}

impl InFiles {
    /// Opens, compares and maps the files that the image refers to.
    ///
    /// # Errors
    /// In words for people: the file that cannot be used, and why.
    pub fn hold(image: &Reader) -> Result<InFiles, Refusal> {
        strike(Point::RestartRefers).map_err(|error| refusal!(FaultPoint, "{error}"))?;
        let refused = |reason: String| refusal!(MappedFile, "{reason}");
        let files = MappedFiles::of(image).map_err(refused)?;
        let mut held = InFiles::default();
        let found = files.find(|number, opened| {
            let referred = files.regions.iter().filter(|one| one.file == number);
            for region in referred.filter_map(|one| region_of(image, one)) {
                let mapped = held.map(region, &opened);
                mapped
                    .map_err(|error| format!("but this process cannot map the file ({error})"))?;
            }
            Ok(())
        });
        found.map_err(refused)?;
        held.waiting.sort_by_key(|one| one.region);
        held.files = files;
        Ok(held)
    }

    fn map(&mut self, region: &Region, file: &File) -> io::Result<()> {
        let mut flags = libc::MAP_PRIVATE;
        if region.vm_flags & vm_flags::NO_RESERVE != 0 {
            flags |= libc::MAP_NORESERVE;
        }
        // SAFETY: the kernel chooses a free address for the mapping.
        let place = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size(region),
                region.protection as i32,
                flags,
                file.as_raw_fd(),
                region.file_offset as libc::off_t,
            )
        };
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.waiting.push(Waiting {
            region: region.start,
            address: place as usize,
            bytes: size(region),
        });
        Ok(())
    }

    /// Returns the part of this region that the image leaves to a file, if any.
    pub fn referred(&self, region: &Region) -> Option<&Referred> {
        self.files.referred(region)
    }

    /// Returns what is known of a region of which the image has every byte.
    pub fn kept(&self, region: &Region) -> Option<&Kept> {
        self.files.kept(region)
    }

    /// Moves the region's mapping to its place.
    pub fn place(&mut self, region: &Region) -> Result<(), RestoreError> {
        let found = self
            .waiting
            .binary_search_by_key(&region.start, |one| one.region);
        let waiting = found.ok().and_then(|index| self.waiting.get_mut(index));
        let Some(waiting) = waiting.filter(|one| one.address != 0) else {
            let error = io::Error::from(io::ErrorKind::NotFound);
            return Err(failed(region, "find the mapped file of", error));
        };
        // `mremap` would silently replace a mapping there, so the addresses are claimed first.
        let nothing = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        map_at(region, libc::PROT_NONE, nothing, -1, 0)
            .map_err(|error| failed(region, "map", error))?;
        let (from, to) = (waiting.address as *mut _, region.start as *mut libc::c_void);
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: the waiting mapping and the addresses that were just claimed both belong to this restart, and nothing uses them yet.
        let moved = unsafe { libc::mremap(from, waiting.bytes, waiting.bytes, flags, to) };
        if moved == libc::MAP_FAILED {
            return Err(failed(region, "move", io::Error::last_os_error()));
        }
        waiting.address = 0;
        Ok(())
    }
}

fn region_of<'a>(image: &'a Reader, referred: &Referred) -> Option<&'a Region> {
    let regions = image.regions();
    let index = regions.partition_point(|region| region.start < referred.start);
    regions
        .get(index)
        .filter(|region| region.start == referred.start)
}
