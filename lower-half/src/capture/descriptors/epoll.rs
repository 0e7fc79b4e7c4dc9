//! Epoll sets: the open file that each entry watches, and the number of the entry.
//!
//! An entry belongs to an open file description and keeps the number that it was made with. The number may have been closed, or lead
//! elsewhere, while a duplicate keeps the description. The entry lives on then, and reports events to waiting threads.

use std::collections::HashMap;

use stillpoint_image::descriptors::{DescriptorKind, Watched};
use stillpoint_refusals::{Refusal, refusal};

use super::info::field;
use super::{All, OpenDescriptor};

/// `struct kcmp_epoll_slot`.
#[repr(C)]
struct Slot {
    set: u32,
    number: u32,
    /// The index among the entries with this number.
    nth: u32,
}

/// Describes the files that an epoll set watches, or says why it cannot be carried.
pub fn describe(open: &OpenDescriptor, all: &All<'_>) -> Result<DescriptorKind, Refusal> {
    let unclear = || {
        refusal!(
            UnclearDescriptor,
            "{}, about which this kernel does not tell enough",
            open.link
        )
    };
    let mut watched: Vec<Watched> = Vec::new();
    let mut met: HashMap<i32, u32> = HashMap::new();
    for line in open.info.all("tfd:") {
        let mut entry = parse(line).ok_or_else(unclear)?;
        let nth = met.entry(entry.number).or_insert(0);
        let slot = Slot {
            set: open.number as u32,
            number: entry.number as u32,
            nth: *nth,
        };
        *nth += 1;
        let inode = field(line, "ino:").and_then(|inode| u64::from_str_radix(inode, 16).ok());
        let mut through = all.iter().filter(|other| watches(other, &slot, inode));
        let found = all.number(entry.number);
        if !found.is_some_and(|itself| watches(itself, &slot, inode)) {
            let other = through.next().map(|other| other.number);
            entry.through = Some(other.ok_or_else(|| {
                refusal!(EpollEntry, "an epoll set that watches a file under the number {}, which no descriptor of the program leads to any \
                     more: close the set before a checkpoint",
                    entry.number
                )
            })?);
        }
        watched.push(entry);
    }
    Ok(DescriptorKind::Epoll { watched })
}

/// Returns whether the entry, whose file has this inode, watches the description of `open`.
fn watches(open: &OpenDescriptor, slot: &Slot, inode: Option<u64>) -> bool {
    const KCMP_EPOLL_TFD: libc::c_int = 7;
    // SAFETY: kcmp only compares, and reads the slot, which is alive (a reference). The numbers are looked up in this thread's table.
    let result = unsafe {
        let own = libc::gettid();
        libc::syscall(
            libc::SYS_kcmp,
            own,
            own,
            KCMP_EPOLL_TFD,
            open.number as libc::c_ulong,
            std::ptr::from_ref(slot),
        )
    };
    // Without kcmp (kernels, containers' seccomp profiles), an entry watches the file that its number leads to, if the inode is the same.
    let likely = || slot.number == open.number as u32 && inode == Some(open.status.st_ino);
    result == 0 || result < 0 && likely()
}

/// Reads `5 events: 19 data: 5  pos:0 ino:2 sdev:d`, with the number first.
fn parse(line: &str) -> Option<Watched> {
    Some(Watched {
        number: line.split_whitespace().next()?.parse().ok()?,
        events: u32::from_str_radix(field(line, "events:")?, 16).ok()?,
        data: u64::from_str_radix(field(line, "data:")?, 16).ok()?,
        through: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_understood() {
        let line = "       5 events:       19 data:     7fffffff00000005  pos:0 ino:2f sdev:d";
        let expected = Watched {
            number: 5,
            events: 0x19,
            data: 0x7fff_ffff_0000_0005,
            through: None,
        };
        assert_eq!(parse(line.trim()), Some(expected));
    }
}
