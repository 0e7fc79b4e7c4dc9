//! Files that are written to the disk while they are being written, not all at once when they are synced, so that the disk is busy meanwhile.
//!
//! * [`direct`] - past the page cache, if the file system supports that
//! * [`windows`] - bytes that come in any order, put together into pieces that the disk can write at once
//! * [`queue`] - the thread that writes these pieces, and the pieces that wait for it

mod direct;
mod queue;
mod windows;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use stillpoint_image::store::Store;

use super::{cores, free};
use crate::arch::PAGE;
use direct::Direct;
use queue::Queue;

/// Returns the store that writes an image into its file.
pub fn image(file: File) -> Box<dyn Store> {
    match Direct::offers(&file) {
        true => {
            let bytes = windows::bytes_for(cores::ranks_here(), free::left());
            Box::new(Queue::new(Direct::new(file), bytes))
        }
        false => Box::new(Disk(file)),
    }
}

/// An image's file, written through the page cache.
struct Disk(File);

impl Store for Disk {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        write(&self.0, bytes, offset)
    }

    fn finish(&self, file_bytes: u64) -> io::Result<()> {
        self.0.finish(file_bytes)
    }
}

/// Writes into a file, and has the kernel begin to write that to the disk.
pub fn write(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    FileExt::write_all_at(file, bytes, offset)?;
    let page = PAGE as u64;
    // The neighbours of these bytes in the first and last page have not come yet: these pages wait for the sync.
    let start = offset.next_multiple_of(page);
    let end = (offset + bytes.len() as u64) & !(page - 1);
    if start < end {
        // SAFETY: the call takes numbers and touches no memory. It promises nothing, so its errors mean nothing: the sync reports errors.
        unsafe {
            libc::sync_file_range(
                file.as_raw_fd(),
                start as libc::off64_t,
                (end - start) as libc::off64_t,
                libc::SYNC_FILE_RANGE_WRITE,
            )
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn bytes_lie_where_they_were_written_to() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..3 * PAGE + 100).map(|at| (at / 7) as u8).collect();
        // The middle first, in pieces that end within pages.
        let disk = Disk(file.try_clone().unwrap());
        let cuts = [2000, PAGE + 50, PAGE + 60, bytes.len()];
        for piece in [1, 3, 2, 0] {
            let from = if piece == 0 { 0 } else { cuts[piece - 1] };
            disk.write_all_at(&bytes[from..cuts[piece]], from as u64)
                .unwrap();
        }
        disk.finish(bytes.len() as u64).unwrap();
        let mut read = Vec::new();
        file.read_to_end(&mut read).unwrap();
        assert!(read == bytes);
    }
}
