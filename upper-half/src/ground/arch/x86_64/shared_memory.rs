//! Files in memory that several processes map, by system calls.
//!
//! Rules: as in `kernel`.

use core::ffi::CStr;

use super::kernel::syscall;

/// A number of the kernel's for an error, or what the call gives.
fn result(value: isize) -> Result<usize, i32> {
    usize::try_from(value).map_err(|_| -value as i32)
}

/// An open file.
pub struct SharedFile(usize);

impl Drop for SharedFile {
    fn drop(&mut self) {
        // SAFETY: ours, used no more.
        unsafe { syscall(libc::SYS_close as usize, [self.0, 0, 0, 0, 0, 0]) };
    }
}

impl SharedFile {
    /// Makes a file of that length, which nobody has made before. Refused where there is no room for it: otherwise whoever touches it would end by SIGBUS.
    pub fn create(path: &CStr, bytes: usize) -> Result<SharedFile, i32> {
        let how = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        let file = Self::call_open(path, how)?;
        let made = file
            .has_room(bytes)
            // SAFETY: a descriptor of ours; no memory.
            .and_then(|()| {
                result(unsafe {
                    syscall(libc::SYS_ftruncate as usize, [file.0, bytes, 0, 0, 0, 0])
                })
            });
        if let Err(error) = made {
            unlink(path);
            return Err(error);
        }
        Ok(file)
    }

    /// Opens a file that another process has made.
    pub fn open(path: &CStr) -> Result<SharedFile, i32> {
        Self::call_open(path, libc::O_RDWR | libc::O_CLOEXEC)
    }

    fn call_open(path: &CStr, how: i32) -> Result<SharedFile, i32> {
        // SAFETY: the path ends in a zero.
        let opened = unsafe {
            syscall(
                libc::SYS_open as usize,
                [path.as_ptr() as usize, how as usize, 0o600, 0, 0, 0],
            )
        };
        result(opened).map(SharedFile)
    }

    fn has_room(&self, bytes: usize) -> Result<(), i32> {
        let mut all = core::mem::MaybeUninit::<libc::statfs>::zeroed();
        // SAFETY: the kernel fills the structure, for which zeros are valid too.
        let all = unsafe {
            result(syscall(
                libc::SYS_fstatfs as usize,
                [self.0, all.as_mut_ptr() as usize, 0, 0, 0, 0],
            ))?;
            all.assume_init()
        };
        // A file system without a limit says that it has no blocks at all.
        let room = all.f_bavail.saturating_mul(all.f_bsize as u64);
        if all.f_blocks != 0 && room < bytes as u64 {
            return Err(libc::ENOSPC);
        }
        Ok(())
    }

    /// Maps the file, in the place of what is there if an address is given.
    ///
    /// # Safety
    /// What is at the address must be nobody's but the caller's.
    pub unsafe fn map(&self, bytes: usize, at: Option<usize>) -> Result<*mut u8, i32> {
        let fixed = at.map_or(0, |_| libc::MAP_FIXED);
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | fixed);
        let arguments = [
            at.unwrap_or(0),
            bytes,
            protection as usize,
            flags as usize,
            self.0,
            0,
        ];
        // SAFETY: the caller's.
        result(unsafe { syscall(libc::SYS_mmap as usize, arguments) }).map(|at| at as *mut u8)
    }
}

/// Takes a file's name away.
pub fn unlink(path: &CStr) {
    // SAFETY: the path ends in a zero.
    unsafe {
        syscall(
            libc::SYS_unlink as usize,
            [path.as_ptr() as usize, 0, 0, 0, 0, 0],
        )
    };
}

/// A number that nobody else has.
pub fn random() -> u64 {
    let mut number = 0u64;
    // SAFETY: eight bytes are written. Where the kernel has none yet the number is the address alone, which `create` finds taken at worst.
    unsafe {
        syscall(
            libc::SYS_getrandom as usize,
            [(&raw mut number) as usize, 8, 0, 0, 0, 0],
        )
    };
    number ^ (&raw const number).addr() as u64
}
