//! Blocks of the image that were fetched from other hosts before this process became its lower half. They lie in a memory file, whose descriptor came through
//! `execve`; it is closed when the rank is restored.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

use stillpoint_image::descriptors::Descriptors;
use stillpoint_protocol::launch;

#[derive(Debug, Default)]
pub struct Fetched {
    file: Option<OwnedFd>,
}

impl Fetched {
    /// Takes over the file that the launch has left for this restart.
    pub fn take(wanted: &launch::Restart) -> Fetched {
        // SAFETY: the launch left it open for this process, and nothing else here uses it.
        let own = |number| unsafe { OwnedFd::from_raw_fd(number) };
        let open = wanted.fetched.filter(|number| *number > 2);
        Fetched {
            file: open.map(own),
        }
    }

    /// Returns a path by which the file can be opened.
    pub fn path(&self) -> Option<PathBuf> {
        let number = self.file.as_ref()?.as_raw_fd();
        Some(PathBuf::from(format!("/proc/self/fd/{number}")))
    }

    /// Drops the file if the application needs its descriptor number; the blocks are then read from the slow tier.
    pub fn out_of_the_way_of(self, table: &Descriptors) -> Fetched {
        let number = self.file.as_ref().map(AsRawFd::as_raw_fd);
        let needed = |number| {
            let mut numbers = table.numbers.iter();
            numbers.any(|needed| Some(needed.number) == number)
        };
        match number.is_some() && needed(number) {
            true => Fetched::default(),
            false => self,
        }
    }
}
