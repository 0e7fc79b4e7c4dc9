//! Shared mappings: files by their path, memory without a name and System V segments from their content.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use stillpoint_image::tables::RegionKind;
use stillpoint_image::{Reader, Region};

use super::RestoreError;
use super::memory::{advise, check, failed, kept, map_at, size};
use super::objects::{self, Objects};

/// Shared mappings of files that are not here and whose bytes are not in the image.
pub fn missing(regions: &[Region]) -> Vec<String> {
    regions
        .iter()
        .filter(|region| region.kind == RegionKind::SharedFile && region.content.is_none())
        .filter_map(|region| {
            let error = File::open(&region.name).err()?;
            Some(format!(
                "the program has mapped {}, which cannot be opened: {error}",
                region.name
            ))
        })
        .collect()
}

/// Shared memory that only this process has.
pub fn anonymous(
    reader: &Reader,
    region: &Region,
    objects: &mut Objects,
) -> Result<(), RestoreError> {
    let Some(content) = region.content else {
        return Err(failed(
            region,
            "find the content of",
            io::Error::from(io::ErrorKind::NotFound),
        ));
    };
    let file = objects.file(reader, content)?;
    map_at(
        region,
        region.protection as i32,
        libc::MAP_SHARED,
        file.as_raw_fd(),
        region.file_offset,
    )
    .map_err(|error| failed(region, "map", error))
}

/// Maps shared files again and writes their bytes back as they were at the checkpoint.
///
/// # Safety
/// The regions' addresses must be nobody's.
pub unsafe fn map_files(reader: &Reader) -> Result<(), RestoreError> {
    let mut written = Vec::new();
    for region in reader
        .regions()
        .iter()
        .filter(|region| region.kind == RegionKind::SharedFile)
    {
        let path = Path::new(&region.name);
        let writes = region.content.is_some();
        let file = OpenOptions::new()
            .read(true)
            .write(writes)
            .create(writes)
            .truncate(false)
            .open(path);
        let file = file.map_err(RestoreError::system(format!(
            "cannot open {} again, which is mapped",
            region.name
        )))?;
        if let Some(content) = region.content
            && !written.contains(&content)
        {
            objects::write(reader, content, &file)?;
            written.push(content);
        }
        map_at(
            region,
            region.protection as i32,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            region.file_offset,
        )
        .map_err(|error| failed(region, "map", error))?;
        advise(region);
    }
    Ok(())
}

/// A System V segment, if possible the very one (the application knows its id).
pub fn system_v(reader: &Reader, region: &Region) -> Result<(), RestoreError> {
    let refused = |problem: &str| {
        RestoreError::Refused(format!(
            "System V memory segment {} at {:#x}: {problem}",
            region.name, region.start
        ))
    };
    // The name is `/SYSVkkkkkkkk id`, the key in hexadecimal.
    let (key, id) = region
        .name
        .strip_prefix("/SYSV")
        .and_then(|rest| rest.split_once(' '))
        .ok_or_else(|| refused("its name is not sound"))?;
    let key =
        u32::from_str_radix(key, 16).map_err(|_| refused("its key is not sound"))? as libc::key_t;
    let id: libc::c_int = id.parse().map_err(|_| refused("its id is not sound"))?;
    let id = existing(id, key, size(region)).or_else(|| created(id, key, size(region)));
    let id = id.ok_or_else(|| {
        refused("its id cannot be had again: restart on the node it was on, or as a user who may set /proc/sys/kernel/shm_next_id")
    })?;
    let flags = if kept(region) { libc::SHM_REMAP } else { 0 };
    // SAFETY: without SHM_REMAP nothing is mapped over; what was kept, was kept for this.
    let address = unsafe { libc::shmat(id, region.start as *const _, flags) };
    if address as isize == -1 {
        return Err(failed(region, "attach", io::Error::last_os_error()));
    }
    if let Some(content) = region.content {
        // SAFETY: the segment has just been attached here, writable, and is this process's alone.
        unsafe { fill(reader, content, region)? };
    }
    let protection = region.protection as i32;
    // SAFETY: as above.
    check(region, "protect", unsafe {
        libc::mprotect(region.start as *mut _, size(region), protection)
    })
}

/// The segment itself, where it has outlived the process and nobody else uses it.
fn existing(id: libc::c_int, key: libc::key_t, bytes: usize) -> Option<libc::c_int> {
    let mut status = std::mem::MaybeUninit::<libc::shmid_ds>::zeroed();
    // SAFETY: IPC_STAT fills the structure, for which zeros are valid too.
    let status = unsafe {
        if libc::shmctl(id, libc::IPC_STAT, status.as_mut_ptr()) != 0 {
            return None;
        }
        status.assume_init()
    };
    let same =
        status.shm_perm.__key == key && status.shm_segsz.div_ceil(4096) == bytes.div_ceil(4096);
    (same && status.shm_nattch == 0).then_some(id)
}

/// A new segment under the same id, which only the privileged may ask for.
fn created(id: libc::c_int, key: libc::key_t, bytes: usize) -> Option<libc::c_int> {
    std::fs::write("/proc/sys/kernel/shm_next_id", id.to_string()).ok()?;
    // SAFETY: shmget touches no memory.
    let made = unsafe { libc::shmget(key, bytes, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) };
    if made >= 0 && made != id {
        // SAFETY: removes the segment that was just made.
        unsafe { libc::shmctl(made, libc::IPC_RMID, std::ptr::null_mut()) };
    }
    (made == id).then_some(id)
}

/// Fills a segment from its content.
///
/// # Safety
/// The region must be mapped, writable, and used by nobody.
unsafe fn fill(reader: &Reader, content: u32, region: &Region) -> Result<(), RestoreError> {
    let mut scratch = Reader::scratch();
    // SAFETY: the caller's.
    let memory = unsafe { std::slice::from_raw_parts_mut(region.start as *mut u8, size(region)) };
    memory.fill(0);
    for chunk in reader.chunks_of(content) {
        let mut loaded = vec![0; chunk.bytes as usize];
        reader.load(chunk, &mut scratch, &mut loaded)?;
        let mut rest = loaded.as_slice();
        for run in reader.runs(chunk) {
            let (mine, more) = rest.split_at(run.bytes as usize);
            // An offset in the segment; the region shows it from `file_offset` on.
            let at = run.address.wrapping_sub(region.file_offset) as usize;
            if let Some(place) = memory.get_mut(at..at.saturating_add(mine.len())) {
                place.copy_from_slice(mine);
            }
            rest = more;
        }
    }
    Ok(())
}
