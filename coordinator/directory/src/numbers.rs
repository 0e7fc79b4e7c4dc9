//! The numbers of this crate's descriptors: in an application's process they keep out of the way of the application's own.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::fcntl_dupfd_cloexec;

/// 0: the kernel chooses.
static LOWEST: AtomicI32 = AtomicI32::new(0);

/// Gives later descriptors at least this number, if the process may have such numbers.
pub fn number_from(lowest: i32) {
    LOWEST.store(lowest, Ordering::Relaxed);
}

/// Moves an open file to such a number.
pub(crate) fn away(opened: rustix::io::Result<OwnedFd>) -> rustix::io::Result<OwnedFd> {
    let opened = opened?;
    match LOWEST.load(Ordering::Relaxed) {
        0 => Ok(opened),
        lowest => Ok(fcntl_dupfd_cloexec(&opened, lowest).unwrap_or(opened)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::os::fd::AsRawFd;

    #[test]
    fn what_is_opened_keeps_out_of_the_way() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("file");
        number_from(64);
        let file = crate::create(&path);
        number_from(0);
        assert!(file?.as_raw_fd() >= 64);
        Ok(())
    }
}
