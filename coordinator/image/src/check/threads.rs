//! Checks of the values from which a restart makes threads again: a wrong one would kill the restart by a signal, without a message.

use std::mem::offset_of;

use crate::error::ImageError;
use crate::format::{SectionKind, ThreadRecord};
use crate::sections::Sections;
use crate::tables::{Region, thread_flags};

/// The largest possible id of a thread (PID_MAX_LIMIT).
const LARGEST_ID: u32 = 1 << 22;
/// The least size of the kernel's signal frame: return address, `struct ucontext`, `struct siginfo`.
const FRAME_BYTES: u64 = 8 + 304 + 128;
/// The thread control block's pointer to itself and the words around it that libc reads first.
const CONTROL_BLOCK_BYTES: u64 = 64;
/// The size of `struct robust_list_head`, the only length that the kernel accepts.
const ROBUST_BYTES: u64 = 24;
/// The end of programs' addresses on any processor.
const USER_END: u64 = 1 << 56;
/// SIGKILL and SIGSTOP are never pending for long enough to be seen.
const NEVER_PENDING: u64 = 1 << 8 | 1 << 18;
/// `PROT_READ` and `PROT_WRITE`.
const READ_WRITE: u32 = 3;

/// Reads the thread table and checks every field from which threads are made again.
pub(crate) fn threads(
    sections: &Sections<'_>,
    regions: &[Region],
) -> Result<Vec<ThreadRecord>, ImageError> {
    let records: Vec<ThreadRecord> = sections.table(SectionKind::Threads)?;
    let mut ids: Vec<u32> = records.iter().map(|record| record.virtual_tid).collect();
    ids.sort_unstable();
    for (index, record) in records.iter().enumerate() {
        if let Some((at, field, problem)) = wrong(index, record, regions, &ids) {
            let start = sections.offset(SectionKind::Threads);
            let offset = start + (index * size_of::<ThreadRecord>() + at) as u64;
            return Err(ImageError::malformed(
                sections.path,
                offset,
                format!("threads, thread {index}, {field}"),
                problem,
            ));
        }
    }
    let drivers = records
        .iter()
        .filter(|record| record.flags & thread_flags::DRIVER != 0);
    match drivers.count() {
        0 | 1 => Ok(records),
        several => {
            let problem = format!("{several} threads have started MPI according to the image");
            Err(sections.malformed(SectionKind::Threads, problem))
        }
    }
}

type Wrong = (usize, &'static str, String);

fn wrong(index: usize, record: &ThreadRecord, regions: &[Region], ids: &[u32]) -> Option<Wrong> {
    let id = record.virtual_tid;
    let twice =
        ids.partition_point(|other| *other <= id) - ids.partition_point(|other| *other < id) > 1;
    if id == 0 || id > LARGEST_ID || twice {
        let problem = if twice {
            "occurs twice"
        } else {
            "is not a thread's id"
        };
        return Some((
            offset_of!(ThreadRecord, virtual_tid),
            "id",
            format!("{id} {problem}"),
        ));
    }
    let flags = record.flags;
    let main = flags & thread_flags::MAIN != 0;
    if flags & !thread_flags::ALL != 0 || main != (index == 0) {
        let problem = format!("{flags:#x}: the first thread, and only it, must be the main thread");
        return Some((offset_of!(ThreadRecord, flags), "flags", problem));
    }
    let mapped = [
        (
            offset_of!(ThreadRecord, stop_frame),
            "stop frame",
            record.stop_frame,
            FRAME_BYTES,
        ),
        (
            offset_of!(ThreadRecord, thread_pointer),
            "thread pointer",
            record.thread_pointer,
            CONTROL_BLOCK_BYTES,
        ),
    ];
    for (at, field, address, bytes) in mapped {
        if !lies_in_memory(address, bytes, regions) {
            let problem = format!("{address:#x} is not in readable and writable memory");
            return Some((at, field, problem));
        }
    }
    let told_to_the_kernel = [
        (
            offset_of!(ThreadRecord, clear_child_tid),
            "address of its id",
            record.clear_child_tid,
        ),
        (
            offset_of!(ThreadRecord, robust_list),
            "robust list",
            record.robust_list,
        ),
    ];
    for (at, field, address) in told_to_the_kernel {
        if address >= USER_END {
            return Some((
                at,
                field,
                format!("{address:#x} is not an address of a program"),
            ));
        }
    }
    let robust = record.robust_list_bytes;
    if record.robust_list != 0 && robust != ROBUST_BYTES {
        let at = offset_of!(ThreadRecord, robust_list_bytes);
        return Some((
            at,
            "length of the robust list",
            format!("{robust} instead of {ROBUST_BYTES}"),
        ));
    }
    if record.pending_signals & NEVER_PENDING != 0 {
        let problem = format!("{:#x}", record.pending_signals);
        return Some((
            offset_of!(ThreadRecord, pending_signals),
            "pending signals",
            problem,
        ));
    }
    if record.name[15] != 0 {
        let problem = "does not end in a zero byte".to_owned();
        return Some((offset_of!(ThreadRecord, name), "name", problem));
    }
    None
}

/// Returns whether bytes lie, without a gap, in regions that can be read and written.
fn lies_in_memory(start: u64, bytes: u64, regions: &[Region]) -> bool {
    let Some(end) = start.checked_add(bytes) else {
        return false;
    };
    let mut at = start;
    let first = regions.partition_point(|region| region.end <= start);
    for region in &regions[first..] {
        if region.start > at || region.protection & READ_WRITE != READ_WRITE {
            return false;
        }
        at = region.end;
        if at >= end {
            return true;
        }
    }
    false
}
