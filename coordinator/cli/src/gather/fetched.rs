//! Memory in which fetched blocks wait until the rank is restored. The process keeps it when it becomes its lower half, and it goes with the process. The
//! node's fast tier has no room: it is full of its own ranks' blocks.

use std::fs::File;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt;

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, getrlimit};
use stillpoint_image::blocks::BlockRecord;

/// Blocks of one image, each at its own offset.
pub struct Fetched {
    file: File,
    /// The bytes that may still be kept.
    room: u64,
    kept: bool,
}

impl Fetched {
    /// `sharing`: the number of ranks of this host that fetch blocks at the same time.
    pub fn new(sharing: u64) -> io::Result<Fetched> {
        let memory = memfd_create("stillpoint-fetched", MFdFlags::MFD_CLOEXEC)?;
        Ok(Fetched {
            file: File::from(memory),
            // The rank itself needs memory too.
            room: available() / 2 / sharing.max(1),
            kept: false,
        })
    }

    /// Keeps a block, if there is room.
    pub fn keep(&mut self, record: &BlockRecord, bytes: &[u8]) -> bool {
        // A block may touch one page more than it fills.
        let takes = bytes.len() as u64 + 4096;
        if takes > self.room || self.file.write_all_at(bytes, record.offset).is_err() {
            return false;
        }
        self.room -= takes;
        self.kept = true;
        true
    }

    /// Returns a descriptor that outlives `execve`, with a number that applications seldom use; `None`: no block was kept.
    pub fn hand_over(self) -> Option<RawFd> {
        if !self.kept {
            return None;
        }
        let high = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft.min(65_536));
        let high = i32::try_from(high / 4 * 3).unwrap_or(0);
        fcntl(&self.file, FcntlArg::F_DUPFD(high)).ok()
    }
}

/// The memory that this host has available, in bytes.
fn available() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| {
        line.trim()
            .trim_end_matches("kB")
            .trim()
            .parse::<u64>()
            .ok()
    });
    kilobytes.map_or(0, |kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_can_be_read_under_another_number() {
        let record = BlockRecord {
            offset: 5000,
            checksum: 0,
            bytes: 3,
            place: 1,
            copy: 0,
            reserved: 0,
        };
        let mut fetched = Fetched::new(1).unwrap();
        assert!(available() > 0);
        assert!(fetched.keep(&record, b"abc"));
        fetched.room = 10;
        assert!(!fetched.keep(&record, b"abc"), "no room");
        let number = fetched.hand_over().unwrap();
        let mut bytes = [0; 3];
        // The file is closed, but its memory stays.
        let file = File::open(format!("/proc/self/fd/{number}")).unwrap();
        file.read_exact_at(&mut bytes, 5000).unwrap();
        assert_eq!(&bytes, b"abc");
        assert!(Fetched::new(1).unwrap().hand_over().is_none());
        nix::unistd::close(number).unwrap();
    }
}
