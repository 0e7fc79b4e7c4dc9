//! Whether two descriptors lead to one open file: one was made from the other with `dup`, and they share offset and flags.
//!
//! `kcmp` tells. The seccomp profiles of containers forbid it, and kernels may be built without. Then it shows in the signal that a file is told
//! of its events by (`F_SETSIG`): it belongs to the open file, whatever kind that is, and means nothing as long as nobody is to be
//! told (`F_SETOWN`, `O_ASYNC`, leases, `F_NOTIFY`). It is changed through one descriptor and looked at through the other.

use std::os::fd::RawFd;

use super::{Open, owner};

/// What is known of two descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Same {
    One,
    Two,
    /// It cannot be told.
    Unclear,
}

pub fn compare(one: &Open, other: &Open) -> Same {
    if one.key() != other.key()
        || one.flags != other.flags
        || one.info.position != other.info.position
    {
        return Same::Two;
    }
    match by_kernel(one.number, other.number) {
        Same::Unclear => by_signal(one.number, other.number, one.flags),
        told => told,
    }
}

fn by_kernel(one: RawFd, other: RawFd) -> Same {
    const KCMP_FILE: libc::c_int = 0;
    // SAFETY: kcmp compares two descriptors of this thread's table; it touches no memory.
    let result = unsafe {
        let own = libc::gettid();
        libc::syscall(libc::SYS_kcmp, own, own, KCMP_FILE, one, other)
    };
    match result {
        0 => Same::One,
        1.. => Same::Two,
        _ => Same::Unclear,
    }
}

fn by_signal(one: RawFd, other: RawFd, flags: i32) -> Same {
    // A path alone has nothing that two could share.
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
    // Ignored where nobody handles it.
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

    /// Both ways say the same.
    fn told(one: &impl AsRawFd, other: &impl AsRawFd) -> Same {
        let (one, other) = (one.as_raw_fd(), other.as_raw_fd());
        let before = owner::signal(one);
        let told = by_signal(one, other, 0);
        assert_eq!(told, by_kernel(one, other));
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
    fn what_tells_of_events_is_not_touched() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let number = reader.as_raw_fd();
        assert_eq!(by_signal(number, number, libc::O_ASYNC), Same::Unclear);
        assert_eq!(by_signal(number, number, libc::O_PATH), Same::Two);
    }
}
