//! Restores shared mappings: files by their path, memory without a name and System V segments from their content.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};

use stillpoint_image::descriptors::DescriptorKind;
use stillpoint_image::tables::RegionKind;
use stillpoint_image::{Reader, Region};
use stillpoint_refusals::{Refusal, refusal};

use super::RestoreError;
use super::objects::{self, Objects};
use super::region::{advise, check, failed, kept, map_at, size};
use crate::arch::PAGE;
use crate::capture::descriptors::OWN;
use crate::capture::maps::Mapping;
use crate::capture::memory::REMOVED;
use crate::capture::segments::Segment;

/// Returns shared mappings of files that do not exist here and whose bytes are not in the image.
pub fn missing(regions: &[Region]) -> Vec<Refusal> {
    regions
        .iter()
        .filter(|region| region.kind == RegionKind::SharedFile && region.content.is_none())
        .filter_map(|region| {
            let error = File::open(&region.name).err()?;
            Some(refusal!(
                MissingFile,
                "the program has mapped {}, which cannot be opened: {error}",
                region.name
            ))
        })
        .collect()
}

/// Maps shared memory that only this process has.
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
    let mut file = objects.file(reader, content)?;
    let readable;
    if sealed(reader, content) {
        // A file cannot be sealed against writing while it is mapped through a descriptor that may write.
        readable = File::open(format!("{OWN}/fd/{}", file.as_raw_fd()))
            .map_err(|error| failed(region, "open", error))?;
        file = &readable;
    }
    map_at(
        region,
        region.protection as i32,
        libc::MAP_SHARED,
        file.as_raw_fd(),
        region.file_offset,
    )
    .map_err(|error| failed(region, "map", error))
}

/// Whether the content belongs to a memory file that is sealed against writing.
fn sealed(reader: &Reader, content: u32) -> bool {
    let descriptions = &reader.descriptors().descriptions;
    descriptions.iter().any(|description| {
        matches!(description.kind, DescriptorKind::Memory { content: of, seals, .. }
            if of == content && seals & libc::F_SEAL_WRITE != 0)
    })
}

/// Maps shared files again and writes their bytes back as they were at the checkpoint.
///
/// # Safety
/// The regions' addresses must be free.
pub unsafe fn map_files(reader: &Reader) -> Result<(), RestoreError> {
    let mut written = Vec::new();
    for region in reader
        .regions()
        .iter()
        .filter(|region| region.kind == RegionKind::SharedFile)
    {
        let writes = region.content.is_some();
        let file = open(&region.name, writes, writes).map_err(RestoreError::system(format!(
            "cannot open the mapped file {} again",
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

fn open(path: &str, writes: bool, makes: bool) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(writes)
        .create(makes)
        .truncate(false)
        .open(path)
}

/// Returns, for people, mapped files that a restart could not open; changes nothing.
pub fn rehearse(mappings: &[Mapping]) -> Vec<Refusal> {
    let mut reasons: Vec<Refusal> = Vec::new();
    for mapping in mappings
        .iter()
        .filter(|mapping| mapping.shared && mapping.inode != 0)
    {
        let problem = match crate::capture::memory::kind(mapping) {
            RegionKind::SharedFile => unopenable(mapping),
            RegionKind::SharedAnonymous => lost(mapping),
            RegionKind::SystemV | RegionKind::Anonymous | RegionKind::PrivateFile => None,
        };
        let Some(problem) = problem else { continue };
        let reason = refusal!(
            LostMapping,
            "the program has mapped {}, which {problem}: unmap it before a checkpoint",
            mapping.path()
        );
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}

fn unopenable(mapping: &Mapping) -> Option<String> {
    if std::fs::metadata(mapping.path()).is_ok_and(|file| !file.is_file()) {
        // Opening a device may have effects; device memory is refused anyway.
        return None;
    }
    let found = open(mapping.path(), mapping.may_write, false).and_then(|file| file.metadata());
    match found {
        Err(error) => Some(format!("cannot be opened: {error}")),
        Ok(file) if (file.dev(), file.ino()) != (mapping.device, mapping.inode) => {
            Some("is another file now".to_owned())
        }
        Ok(_) => None,
    }
}

/// Returns a reason if the file that the image would take for this process's own memory is still visible to others.
fn lost(mapping: &Mapping) -> Option<String> {
    if !mapping.deleted() {
        let made_up = !mapping.path().starts_with('/') || mapping.path() == "/dev/zero";
        return (!made_up).then(|| "no path leads to".to_owned());
    }
    // Only privileged processes may look here; a file that is also open is checked through its descriptor.
    let place = format!("/proc/self/map_files/{:x}-{:x}", mapping.start, mapping.end);
    let file = std::fs::metadata(place).ok()?;
    (file.nlink() > 0 && file.is_file() && !mapping.path().starts_with("/memfd:"))
        .then(|| "has lost this name and is known by another".to_owned())
}

/// Attaches a System V segment, if possible the original one (the application knows its id).
pub fn system_v(reader: &Reader, region: &Region) -> Result<(), RestoreError> {
    let refused = |problem: &str| {
        RestoreError::Refused(refusal!(
            IpcObject,
            "System V memory segment {} at {:#x}: {problem}",
            region.name,
            region.start
        ))
    };
    // The name is `/SYSVkkkkkkkk id`, the key in hexadecimal, and one more word if the segment is marked for removal.
    let (key, id) = region
        .name
        .strip_prefix("/SYSV")
        .and_then(|rest| rest.split_once(' '))
        .ok_or_else(|| refused("its name is not valid"))?;
    let key =
        u32::from_str_radix(key, 16).map_err(|_| refused("its key is not valid"))? as libc::key_t;
    let removed = id.ends_with(REMOVED);
    let id = id.strip_suffix(REMOVED).unwrap_or(id);
    let id: libc::c_int = id.parse().map_err(|_| refused("its id is not valid"))?;
    let bytes = size(region);
    let flags = if kept(region) { libc::SHM_REMAP } else { 0 };
    let attach = |id: libc::c_int| {
        // SAFETY: without SHM_REMAP the kernel maps over nothing; with it, the region was reserved for this segment (`kept`), which is as large.
        match unsafe { libc::shmat(id, region.start as *const _, flags) } as isize {
            -1 => Err(failed(region, "attach", io::Error::last_os_error())),
            _ => Ok(()),
        }
    };
    if removed || !attached_again(id, key, bytes, attach)? {
        let made = match removed {
            true => removed_one(id, bytes),
            false => created(id, key, bytes),
        };
        let made = made.ok_or_else(|| {
            refused(
                "cannot get its id again: restart on the node where it ran, or as a user who may set \
                 /proc/sys/kernel/shm_next_id",
            )
        })?;
        let attached = attach(made);
        if removed {
            // SAFETY: the segment was made by this process; its attachments stay, and more may be made by its id.
            unsafe { libc::shmctl(made, libc::IPC_RMID, std::ptr::null_mut()) };
        }
        attached?;
    }
    if let Some(content) = region.content {
        // SAFETY: the segment has just been attached here, writable, and this process alone uses it.
        unsafe { fill(reader, content, region)? };
    }
    let protection = region.protection as i32;
    // SAFETY: the region is the segment that has just been attached, and nothing uses it yet.
    check(region, "protect", unsafe {
        libc::mprotect(region.start as *mut _, size(region), protection)
    })
}

/// An attachment that nothing uses, at an address of the kernel's choice.
struct Held(*mut libc::c_void);

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the attachment is this value's own, and nothing uses it.
        unsafe { libc::shmdt(self.0) };
    }
}

/// Attaches the segment itself, if it has outlived the process and no other process has attached it. It is looked at while it is attached: from then on no other
/// segment can take its place.
fn attached_again(
    id: libc::c_int,
    key: libc::key_t,
    bytes: usize,
    attach: impl FnOnce(libc::c_int) -> Result<(), RestoreError>,
) -> Result<bool, RestoreError> {
    // SAFETY: the kernel chooses a free address.
    let held = unsafe { libc::shmat(id, std::ptr::null(), 0) };
    if held as isize == -1 {
        return Ok(false);
    }
    let _held = Held(held);
    let Some(segment) = Segment::of(id) else {
        return Ok(false);
    };
    let same =
        segment.key == key && segment.bytes.div_ceil(PAGE) == bytes.div_ceil(PAGE) && !segment.goes;
    match same && !segment.is_attached_elsewhere() {
        true => attach(id).map(|()| true),
        false => Ok(false),
    }
}

/// Returns a new segment in place of one that was marked for removal, the same one for all attachments of the old one. It gets the old id if this process may
/// ask for that.
fn removed_one(id: libc::c_int, bytes: usize) -> Option<libc::c_int> {
    static MADE: Mutex<BTreeMap<libc::c_int, libc::c_int>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(made) = made.get(&id) {
        return Some(*made);
    }
    let new = created(id, libc::IPC_PRIVATE, bytes).or_else(|| {
        // SAFETY: shmget takes numbers and touches no memory.
        let new = unsafe { libc::shmget(libc::IPC_PRIVATE, bytes, libc::IPC_CREAT | 0o600) };
        (new >= 0).then_some(new)
    })?;
    made.insert(id, new);
    Some(new)
}

/// Makes a new segment under the same id, which only privileged processes may ask for.
fn created(id: libc::c_int, key: libc::key_t, bytes: usize) -> Option<libc::c_int> {
    std::fs::write("/proc/sys/kernel/shm_next_id", id.to_string()).ok()?;
    // SAFETY: shmget takes numbers and touches no memory.
    let made = unsafe { libc::shmget(key, bytes, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) };
    if made >= 0 && made != id {
        // SAFETY: the segment has just been made here, so it is this process's to remove; IPC_RMID ignores the pointer.
        unsafe { libc::shmctl(made, libc::IPC_RMID, std::ptr::null_mut()) };
    }
    (made == id).then_some(id)
}

/// Fills a segment from its content.
///
/// # Safety
/// The region must be mapped, writable, and used by nothing else.
unsafe fn fill(reader: &Reader, content: u32, region: &Region) -> Result<(), RestoreError> {
    let mut scratch = Reader::scratch();
    // SAFETY: the caller says that the region is mapped, writable, and used by nothing else.
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
