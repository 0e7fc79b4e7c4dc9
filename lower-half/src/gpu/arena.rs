//! Host memory of the helper, which copies device memory to it and from it. It is mapped into this process, so that no byte is copied again on its way to the
//! image or back.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use memmap2::{Advice, MmapOptions, MmapRaw};
use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};

use crate::ground::hidden_child;

/// The helper's memory.
pub struct Arena(MmapRaw);

impl Arena {
    /// Maps the first `bytes` bytes of a file, for writing or only for reading.
    ///
    /// # Errors
    /// The kernel's.
    pub fn map(file: &OwnedFd, bytes: u64, to_be_written: bool) -> io::Result<Arena> {
        let mut options = MmapOptions::new();
        options.len(usize::try_from(bytes).map_err(io::Error::other)?);
        let mapped = match to_be_written {
            true => options.map_raw(file.as_raw_fd()),
            false => options.map_raw_read_only(file.as_raw_fd()),
        }?;
        // A process that the application starts meanwhile would inherit the mapping.
        mapped.advise(Advice::DontFork)?;
        Ok(Arena(mapped))
    }

    fn is_inside(&self, at: u64, bytes: u64) -> bool {
        at.checked_add(bytes)
            .is_some_and(|end| end <= self.0.len() as u64)
    }

    /// Returns the bytes in this range. The helper leaves them alone until it is asked for the next ones.
    pub fn bytes(&self, at: u64, bytes: u64) -> Option<&[u8]> {
        let memory = self.0.as_ptr().wrapping_add(at as usize);
        // SAFETY: the range lies in the mapping, which lives as long as this; nothing writes there, since the helper waits for the next request.
        (self.is_inside(at, bytes))
            .then(|| unsafe { std::slice::from_raw_parts(memory, bytes as usize) })
    }

    /// The same for writing, if the arena was mapped for that.
    pub fn bytes_mut(&mut self, at: u64, bytes: u64) -> Option<&mut [u8]> {
        let memory = self.0.as_mut_ptr().wrapping_add(at as usize);
        // SAFETY: the range lies in the mapping, which lives as long as this; the helper waits, so it neither reads nor writes there, and the mutable borrow
        // keeps others out.
        (self.is_inside(at, bytes))
            .then(|| unsafe { std::slice::from_raw_parts_mut(memory, bytes as usize) })
    }
}

/// Receives the file descriptor that comes with one byte.
///
/// # Errors
/// The kernel's, or no descriptor came.
pub fn receive(from: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = [0];
    let mut room = cmsg_space!([i32; 1]);
    let mut into = [IoSliceMut::new(&mut byte)];
    let message = recvmsg::<()>(
        from.as_raw_fd(),
        &mut into,
        Some(&mut room),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    let files = message.cmsgs()?.find_map(|beside| match beside {
        ControlMessageOwned::ScmRights(files) => files.first().copied(),
        _ => None,
    });
    let number = files.ok_or(io::ErrorKind::UnexpectedEof)?;
    // SAFETY: the number has just come with the message, and nothing else owns it.
    hidden_child::out_of_the_way(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use nix::sys::memfd::{MFdFlags, memfd_create};

    use super::*;

    #[test]
    fn what_lies_in_the_file_is_seen_and_what_is_written_arrives() {
        let file = memfd_create("arena", MFdFlags::MFD_CLOEXEC).expect("a file");
        let same = File::from(file.try_clone().expect("a second one"));
        same.set_len(4096).expect("longer");
        same.write_all_at(b"seen", 4092).expect("written");
        let looks = Arena::map(&file, 4096, false).expect("mapped");
        assert_eq!(looks.bytes(4092, 4), Some(&b"seen"[..]));
        assert_eq!(looks.bytes(4092, 5), None);
        assert_eq!(looks.bytes(u64::MAX, 1), None);
        let mut writes = Arena::map(&file, 4096, true).expect("mapped");
        let into = writes.bytes_mut(7, 3).expect("inside");
        into.copy_from_slice(b"abc");
        let mut found = [0; 3];
        same.read_exact_at(&mut found, 7).expect("read");
        assert_eq!(&found, b"abc");
    }
}
