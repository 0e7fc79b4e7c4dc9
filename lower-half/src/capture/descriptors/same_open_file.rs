//! Finds out whether two descriptors lead to one open file: one was made from the other with `dup`, and they share offset and flags.
//!
//! `kcmp` tells. But seccomp profiles of containers forbid it, and kernels may be built without it. Then the signal for a file's
//! events (`F_SETSIG`) shows it: it belongs to the open file, of whatever kind, and has no effect until a receiver is set
//! (`F_SETOWN`, `O_ASYNC`, leases, `F_NOTIFY`). It is changed through one descriptor and read through the other.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::os::fd::RawFd;

use super::{OpenDescriptor, owner};
use crate::capture::contents::FileKey;

/// The answer about two descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Same {
    One,
    Two,
    /// There is no way to tell.
    Unclear,
}

/// The properties that two descriptors of one open file have in common.
type Looks = (FileKey, i32, u64);

fn looks(open: &OpenDescriptor) -> Looks {
    (open.key(), open.flags, open.info.position)
}

pub fn compare(one: &OpenDescriptor, other: &OpenDescriptor) -> Same {
    if looks(one) != looks(other) {
        return Same::Two;
    }
    match by_kernel(one.number, other.number) {
        Some(Ordering::Equal) => Same::One,
        Some(_) => Same::Two,
        None => by_signal(one.number, other.number, one.flags),
    }
}

/// Open files that have been met: a descriptor of each, and the file's name. Files that look alike are in the kernel's order, if the kernel
/// tells it.
#[derive(Default)]
pub struct Known(HashMap<Looks, Vec<(RawFd, usize)>>);

impl Known {
    /// Returns the name of the open file, or `None` if it has not been met.
    ///
    /// # Errors
    /// The number of a descriptor that may lead to the same file, if there is no way to tell.
    pub fn find(&self, open: &OpenDescriptor) -> Result<Option<usize>, RawFd> {
        let Some(alike) = self.0.get(&looks(open)) else {
            return Ok(None);
        };
        match place(alike, open.number) {
            Some(Ok(index)) => return Ok(alike.get(index).map(|(_, name)| *name)),
            Some(Err(_)) => return Ok(None),
            None => {}
        }
        let mut alike = alike.iter();
        let found =
            alike.find_map(
                |(number, name)| match by_signal(*number, open.number, open.flags) {
                    Same::One => Some(Ok(*name)),
                    Same::Two => None,
                    Same::Unclear => Some(Err(*number)),
                },
            );
        found.transpose()
    }

    /// Adds an open file that has not been met; for one that has been met, sets another name.
    pub fn add(&mut self, open: &OpenDescriptor, name: usize) {
        let alike = self.0.entry(looks(open)).or_default();
        let met = (open.number, name);
        match place(alike, open.number) {
            Some(Ok(index)) => alike[index] = met,
            Some(Err(index)) => alike.insert(index, met),
            None => alike.push(met),
        }
    }
}

/// Returns the place of a number's file among these, or the place where it belongs. Returns `None` if the kernel does not tell.
fn place(alike: &[(RawFd, usize)], number: RawFd) -> Option<Result<usize, usize>> {
    let mut told = true;
    let place = alike.binary_search_by(|(known, _)| {
        let order = by_kernel(*known, number);
        told &= order.is_some();
        order.unwrap_or(Ordering::Less)
    });
    told.then_some(place)
}

/// Returns the order of the files that two numbers lead to; one file is equal to itself.
fn by_kernel(one: RawFd, other: RawFd) -> Option<Ordering> {
    const KCMP_FILE: libc::c_int = 0;
    // SAFETY: kcmp only compares two descriptors of this thread's table, and touches no memory.
    let result = unsafe {
        let own = libc::gettid();
        libc::syscall(libc::SYS_kcmp, own, own, KCMP_FILE, one, other)
    };
    match result {
        0 => Some(Ordering::Equal),
        1 => Some(Ordering::Less),
        2 => Some(Ordering::Greater),
        _ => None,
    }
}

fn by_signal(one: RawFd, other: RawFd, flags: i32) -> Same {
    // `O_PATH` descriptors have no state that two could share.
    if flags & libc::O_PATH != 0 {
        return Same::Two;
    }
    if flags & libc::O_ASYNC != 0 || owner::raw(one).is_some() {
        return Same::Unclear;
    }
    let (before, others) = (owner::signal(one), owner::signal(other));
    if before != others {
        return Same::Two;
    }
    // A signal that is ignored if it has no handler.
    let probe = match before {
        libc::SIGURG => libc::SIGWINCH,
        _ => libc::SIGURG,
    };
    if !owner::set_signal(one, probe) {
        return Same::Unclear;
    }
    let seen = owner::signal(other);
    owner::set_signal(one, before);
    match seen == probe {
        true => Same::One,
        false => Same::Two,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::{AsRawFd, OwnedFd};

    use super::*;

    /// Checks that both ways have the same result.
    fn told(one: &impl AsRawFd, other: &impl AsRawFd) -> Same {
        let (one, other) = (one.as_raw_fd(), other.as_raw_fd());
        let before = owner::signal(one);
        let told = by_signal(one, other, 0);
        let is_one = by_kernel(one, other) == Some(Ordering::Equal);
        assert_eq!(told == Same::One, is_one);
        assert_eq!(owner::signal(one), before);
        told
    }

    #[test]
    fn duplicates_are_told_from_second_openings_without_kcmp() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = |path: &std::path::Path| File::open(path).unwrap();
        for path in [
            file.path(),
            std::path::Path::new("/dev/null"),
            std::path::Path::new("/tmp"),
        ] {
            let (first, second) = (open(path), open(path));
            let twin = first.try_clone().unwrap();
            assert_eq!(told(&first, &twin), Same::One, "{}", path.display());
            assert_eq!(told(&first, &second), Same::Two, "{}", path.display());
            assert!(owner::set_signal(first.as_raw_fd(), libc::SIGURG));
            assert_eq!(told(&first, &twin), Same::One, "{}", path.display());
        }
        let (reader, writer) = std::io::pipe().unwrap();
        let twin: OwnedFd = reader.try_clone().unwrap().into();
        assert_eq!(told(&reader, &twin), Same::One);
        assert_eq!(told(&reader, &writer), Same::Two);
    }

    #[test]
    fn files_are_known_again_among_many_that_look_alike() {
        let counter = || {
            // SAFETY: the call takes numbers and makes a descriptor, which `owned` takes over at once.
            super::super::owned(unsafe { libc::eventfd(0, 0) }).unwrap()
        };
        let files: Vec<OwnedFd> = (0..100).map(|_| counter()).collect();
        let look =
            |file: &OwnedFd| OpenDescriptor::look(file.as_raw_fd(), super::super::OWN).unwrap();
        let mut known = Known::default();
        for (name, file) in files.iter().enumerate() {
            assert_eq!(known.find(&look(file)), Ok(None));
            known.add(&look(file), name);
        }
        for (name, file) in files.iter().enumerate() {
            let twin = file.try_clone().unwrap();
            assert_eq!(known.find(&look(&twin)), Ok(Some(name)));
        }
        assert_eq!(known.find(&look(&counter())), Ok(None));
    }

    #[test]
    fn what_tells_of_events_is_not_touched() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let number = reader.as_raw_fd();
        assert_eq!(by_signal(number, number, libc::O_ASYNC), Same::Unclear);
        assert_eq!(by_signal(number, number, libc::O_PATH), Same::Two);
    }
}
