//! Epoll sets: which open file each entry watches, and under which number.
//!
//! An entry belongs to an open file description and keeps the number that it was made with. The number may have been closed, or
//! lead elsewhere, while a duplicate keeps the description: the entry lives on, and says so to whoever waits.

use std::os::fd::RawFd;

use stillpoint_image::descriptors::{DescriptorKind, Watched};

use super::Open;
use super::info::field;

/// `struct kcmp_epoll_slot`.
#[repr(C)]
struct Slot {
    set: u32,
    number: u32,
    /// Which of the entries with this number.
    nth: u32,
}

/// What an epoll set watches, or why it cannot be carried.
pub fn describe(open: &Open, all: &[Open]) -> Result<DescriptorKind, String> {
    let unclear = || {
        format!(
            "{}, about which this kernel does not tell enough",
            open.link
        )
    };
    let mut watched: Vec<Watched> = Vec::new();
    for line in open.info.all("tfd:") {
        let mut entry = parse(line).ok_or_else(unclear)?;
        let nth = watched
            .iter()
            .filter(|earlier| earlier.number == entry.number)
            .count();
        let slot = Slot {
            set: open.number as u32,
            number: entry.number as u32,
            nth: nth as u32,
        };
        let itself = all.iter().any(|other| other.number == entry.number);
        if !(itself && watches(entry.number, &slot)) {
            let other = all
                .iter()
                .map(|other| other.number)
                .find(|other| *other != entry.number && watches(*other, &slot));
            entry.through = Some(other.ok_or_else(|| {
                format!(
                    "an epoll set that watches a file under the number {}, which no descriptor of the program leads to any \
                     more: close the set before a checkpoint",
                    entry.number
                )
            })?);
        }
        watched.push(entry);
    }
    Ok(DescriptorKind::Epoll { watched })
}

/// Whether the entry watches what is open under `number`.
fn watches(number: RawFd, slot: &Slot) -> bool {
    const KCMP_EPOLL_TFD: libc::c_int = 7;
    // SAFETY: kcmp compares; the structure lives on the caller's stack. The descriptor table is this thread's.
    let result = unsafe {
        let own = libc::gettid();
        libc::syscall(
            libc::SYS_kcmp,
            own,
            own,
            KCMP_EPOLL_TFD,
            number as libc::c_ulong,
            std::ptr::from_ref(slot),
        )
    };
    // Kernels without kcmp: an entry is most likely what its number says.
    result == 0 || result < 0 && slot.number == number as u32
}

/// `5 events: 19 data: 5  pos:0 ino:2 sdev:d`, the number in front.
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
