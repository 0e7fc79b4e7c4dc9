//! A file that is written past the page cache, if the file system reports how (`statx`, Linux 6.1). Other files (in memory, on networks, FUSE, older kernels)
//! are written through the page cache.
//!
//! Direct writes lose no time: an epoch waits for the disk in any case. The page cache costs a second copy and its pages, which the application may need.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use super::windows::BLOCK;

/// `STATX_DIOALIGN` of `linux/stat.h`.
const ALIGNMENTS: u32 = 0x2000;

/// `struct statx` of `linux/stat.h`, with the fields that matter.
#[repr(C)]
struct About {
    mask: u32,
    before: [u8; 0x94],
    memory_alignment: u32,
    offset_alignment: u32,
    behind: [u8; 0x60],
}

const _: () = assert!(size_of::<About>() == 256);

/// A file that is written directly.
pub struct Direct {
    file: File,
    /// Whether it is still written past the page cache.
    is_direct: AtomicBool,
}

impl Direct {
    /// Whether the file system accepts direct writes of whole blocks.
    pub fn offers(file: &File) -> bool {
        let mut about = About {
            mask: 0,
            before: [0; 0x94],
            memory_alignment: 0,
            offset_alignment: 0,
            behind: [0; 0x60],
        };
        // SAFETY: the kernel fills the structure, which consists of integers and is as long as the kernel's own.
        let result = unsafe {
            libc::syscall(
                libc::SYS_statx,
                file.as_raw_fd(),
                c"".as_ptr(),
                libc::AT_EMPTY_PATH,
                ALIGNMENTS,
                &raw mut about,
            )
        };
        let fits = |alignment: u32| alignment != 0 && (BLOCK as u32).is_multiple_of(alignment);
        result == 0
            && about.mask & ALIGNMENTS != 0
            && fits(about.memory_alignment)
            && fits(about.offset_alignment)
    }

    pub fn new(file: File) -> Direct {
        let direct = Direct {
            file,
            is_direct: AtomicBool::new(false),
        };
        // If direct writes are refused after all, the page cache is used.
        let taken = direct.set_flags(true).is_ok();
        direct.is_direct.store(taken, Ordering::Relaxed);
        direct
    }

    fn set_flags(&self, is_direct: bool) -> io::Result<()> {
        let descriptor = self.file.as_raw_fd();
        // SAFETY: F_GETFL takes no pointer, and the descriptor is open as long as `self.file`.
        let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
        let flags = match is_direct {
            true => flags | libc::O_DIRECT,
            false => flags & !libc::O_DIRECT,
        };
        // SAFETY: F_SETFL takes flags and no pointer, and the descriptor is open as long as `self.file`.
        match unsafe { libc::fcntl(descriptor, libc::F_SETFL, flags) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn through_the_cache(&self) -> io::Result<()> {
        self.is_direct.store(false, Ordering::Relaxed);
        self.set_flags(false)
    }
}

impl super::queue::Sink for Direct {
    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if self.is_direct.load(Ordering::Relaxed) {
            match self.file.write_all_at(bytes, offset) {
                // The file system does not accept these writes after all.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                    self.through_the_cache()?;
                }
                other => return other,
            }
        }
        super::write(&self.file, bytes, offset)
    }

    fn write_last(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.through_the_cache()?;
        super::write(&self.file, bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}
