//! Epoll sets: the open file that each entry watches, and the number of the entry.
//!
//! An entry belongs to an open file description and keeps the number that it was made with. The number may have been closed, or lead
//! elsewhere, while a duplicate keeps the description. The entry lives on then, and reports events to waiting threads.
//!
//! An entry with `EPOLLET` tells of a ready file once. The kernel shows whether it still has something to tell only by telling it, and an
//! entry that is changed tells again. So a set with such entries is asked, and what it has told is told again.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use stillpoint_image::descriptors::{DescriptorKind, Watched};
use stillpoint_refusals::{Refusal, refusal};

use super::info::field;
use super::{All, OpenDescriptor, owned};

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
    ask(open.number, &mut watched).map_err(|error| {
        refusal!(
            UnclearDescriptor,
            "an epoll set that cannot be asked what it has told: {error}"
        )
    })?;
    Ok(DescriptorKind::Epoll { watched })
}

const EDGE: u32 = libc::EPOLLET as u32;
const ONCE: u32 = libc::EPOLLONESHOT as u32;
const EXCLUSIVE: u32 = libc::EPOLLEXCLUSIVE as u32;
/// Events that an entry tells of without being asked for them.
pub const ALWAYS: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;

/// Whether an `EPOLLONESHOT` entry has fired: the kernel has then cleared its events.
pub fn is_spent(entry: &Watched) -> bool {
    entry.events & ONCE != 0 && entry.events & ALWAYS == 0
}

/// Finds the entries with `EPOLLET` that have told of their ready files. Of entries with the same data, none counts as such if one of them
/// has something to tell: an event that comes twice does less harm than one that does not come.
fn ask(set: RawFd, watched: &mut [Watched]) -> io::Result<()> {
    let mut edges: Vec<&mut Watched> = watched
        .iter_mut()
        .filter(|entry| entry.events & EDGE != 0 && !is_spent(entry))
        .collect();
    if edges.is_empty() {
        return Ok(());
    }
    // A file that becomes ready from here on has an event of its own.
    for entry in &mut edges {
        entry.told = is_ready(entry, entry.events)?;
    }
    let told = events(set, watched.len())?;
    let data: Vec<u64> = told.iter().map(|event| event.u64).collect();
    let mut failed = None;
    for entry in watched.iter_mut().filter(|entry| !is_spent(entry)) {
        if data.contains(&entry.data) {
            entry.told = false;
            // The application waits for the other entries all the same.
            if let Err(error) = tell_again(set, entry) {
                failed.get_or_insert(error);
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Whether the file that an entry watches has one of these events, an error or a hangup.
pub fn is_ready(entry: &Watched, events: u32) -> io::Result<bool> {
    let mut poll = libc::pollfd {
        fd: entry.through.unwrap_or(entry.number),
        // The low bits of both interfaces are the same.
        events: events as i16,
        revents: 0,
    };
    // SAFETY: poll reads and writes one structure, which lives on this stack, and does not wait.
    match unsafe { libc::poll(&raw mut poll, 1, 0) } {
        -1 => Err(io::Error::last_os_error()),
        found => Ok(found > 0),
    }
}

/// Takes everything that a set with this many entries has to tell.
pub fn events(set: RawFd, entries: usize) -> io::Result<Vec<libc::epoll_event>> {
    let mut told = vec![libc::epoll_event { events: 0, u64: 0 }; entries.max(1)];
    // SAFETY: the kernel writes at most as many events as the vector has, and does not wait.
    let count = unsafe { libc::epoll_wait(set, told.as_mut_ptr(), told.len() as i32, 0) };
    told.truncate(usize::try_from(count).map_err(|_| io::Error::last_os_error())?);
    Ok(told)
}

/// Has an entry that has just told an event tell it again.
fn tell_again(set: RawFd, entry: &Watched) -> io::Result<()> {
    if entry.events & (EDGE | ONCE) == 0 {
        return Ok(());
    }
    if entry.events & EXCLUSIVE == 0 {
        return control(set, libc::EPOLL_CTL_MOD, entry, entry.events);
    }
    // The kernel does not change such an entry.
    control(set, libc::EPOLL_CTL_DEL, entry, 0)?;
    control(set, libc::EPOLL_CTL_ADD, entry, entry.events)
}

/// Does something to an entry of a set, while the entry's number leads to the description that it watches. To be called where no thread of
/// the application sees the calling thread's descriptors.
pub fn control(set: RawFd, what: i32, entry: &Watched, events: u32) -> io::Result<()> {
    let mut event = libc::epoll_event {
        events,
        u64: entry.data,
    };
    let mut control = || {
        // SAFETY: the kernel reads the event, which lives on this stack.
        match unsafe { libc::epoll_ctl(set, what, entry.number, &raw mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    let Some(through) = entry.through else {
        return control();
    };
    // The number leads elsewhere, or nowhere.
    let now = match duplicate(entry.number) {
        Ok(now) => Some(now),
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => None,
        Err(error) => return Err(error),
    };
    put(through, entry.number, libc::O_CLOEXEC)?;
    let done = control();
    match now {
        Some((now, flags)) => put(now.as_raw_fd(), entry.number, flags)?,
        None => {
            // SAFETY: the number led to no file before; what is closed is the duplicate that `put` has put there.
            unsafe { libc::close(entry.number) };
        }
    }
    done
}

/// Duplicates a descriptor; also returns the original's flags.
fn duplicate(number: RawFd) -> io::Result<(OwnedFd, i32)> {
    // SAFETY: these calls take numbers and touch no memory; the duplicate belongs to nothing else.
    unsafe {
        let flags = libc::fcntl(number, libc::F_GETFD);
        let made = owned(libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3))?;
        let close_on_exec = flags & libc::FD_CLOEXEC != 0;
        Ok((made, if close_on_exec { libc::O_CLOEXEC } else { 0 }))
    }
}

fn put(from: RawFd, onto: RawFd, flags: i32) -> io::Result<()> {
    // SAFETY: the file under this number has been duplicated, or is such a duplicate, so nothing is lost; no value owns the number.
    match unsafe { libc::dup3(from, onto, flags) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
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
        told: false,
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
            told: false,
        };
        assert_eq!(parse(line.trim()), Some(expected));
    }
}
