//! Memory that no image can hold, or that no restart can have again.

use stillpoint_image::tables::RegionKind;
use stillpoint_refusals::{Refusal, refusal};
use stillpoint_wrappers::gate::is_upper_code;

use super::contents::FileKey;
use super::descriptors::holders;
use super::increment;
use super::maps::Mapping;
use super::memory;
use super::segments::Segment;
use super::window_memory::Below;
use crate::arch::PAGE;

/// The name under which memory that a process shares with its children alone is shown.
const ANONYMOUS: &str = "/dev/zero";

/// Returns why a mapping cannot be carried, in words for people.
pub fn mapping(mapping: &Mapping, below: &Below) -> Option<Refusal> {
    let what = || {
        if mapping.name.is_empty() {
            "memory".to_owned()
        } else {
            mapping.name.clone()
        }
    };
    if mapping.device_memory {
        return Some(refusal!(
            DeviceMemory,
            "{} at {} is memory of a device: release it before a checkpoint",
            what(),
            mapping.range()
        ));
    }
    if mapping.protection & libc::PROT_EXEC != 0 && !is_upper_code(mapping.start) {
        return Some(refusal!(
            UnseenCode,
            "{} at {} is code where its system calls are not seen: unmap it before a checkpoint",
            what(),
            mapping.range()
        ));
    }
    if mapping.path().starts_with("/secretmem") {
        return Some(refusal!(
            SecretMemory,
            "secret memory at {}, which nobody else can read, cannot be carried: unmap it before a checkpoint",
            mapping.range()
        ));
    }
    if mapping.userfault && !increment::follows(mapping) {
        return Some(refusal!(
            FaultHandling,
            "page faults of {} at {} are handled with userfaultfd, which cannot be carried over a restart",
            what(),
            mapping.range()
        ));
    }
    if !mapping.shared || mapping.inode == 0 || below.has(mapping) {
        return None;
    }
    if mapping.path().starts_with("/dev/shm/") {
        let holder = other_process_that_maps(mapping)?;
        return Some(refusal!(
            SharedMemory,
            "it shares memory {} with process {holder}: unmap it before a checkpoint",
            mapping.path()
        ));
    }
    match memory::kind(mapping) {
        RegionKind::SystemV => unmovable_segment(mapping),
        _ if mapping.path().starts_with("anon_inode:") => Some(refusal!(
            UnmovableMemory,
            "{} at {} cannot be carried over a restart",
            mapping.name,
            mapping.range()
        )),
        _ if mapping.name.ends_with(" (deleted)") && mapping.path() != ANONYMOUS => {
            let key = FileKey {
                device: mapping.device,
                inode: mapping.inode,
            };
            let holder = holders::sharer(key)?;
            Some(refusal!(
                SharedMemory,
                "it shares the file {}, which has no name any more, with {}: unmap it before a checkpoint",
                mapping.path(),
                holders::in_words(holder)
            ))
        }
        _ => None,
    }
}

/// Returns another process that maps the same file, as far as this user may see.
fn other_process_that_maps(mapping: &Mapping) -> Option<u32> {
    let own = std::process::id();
    let inode = format!(" {} ", mapping.inode);
    let processes = std::fs::read_dir("/proc").ok()?;
    let mut pids =
        processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| {
        *pid != own
            && std::fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| {
                maps.lines()
                    .any(|line| line.ends_with(&mapping.name) && line.contains(&inode))
            })
    })
}

/// Returns a refusal if a System V segment is attached by more than this process, or not as a whole.
fn unmovable_segment(mapping: &Mapping) -> Option<Refusal> {
    let segment = Segment::of(mapping.inode as libc::c_int)?;
    if segment.is_attached_elsewhere() {
        return Some(refusal!(
            SharedMemory,
            "it shares System V memory segment {} with another process: detach it before a checkpoint",
            mapping.inode
        ));
    }
    let is_whole = mapping.offset == 0 && mapping.bytes() >= segment.bytes.next_multiple_of(PAGE);
    (!is_whole).then(|| {
        refusal!(
            UnmovableMemory,
            "System V memory segment {} at {} is attached in parts, or its parts have different protections: detach it before a checkpoint",
            mapping.inode,
            mapping.range()
        )
    })
}
