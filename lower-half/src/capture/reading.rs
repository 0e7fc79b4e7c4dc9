//! Reads memory of this process without being killed by it.
//!
//! A load from memory may end the process: from a page behind the end of a file that has been cut short, from a broken page, or
//! from one that cannot be read from a disk. So this module loads only pages that are known to exist and belong to this process
//! alone. The kernel copies all others, at a third of the speed, and reports the pages that it cannot read.

use std::io;
use std::ops::Range;

use super::maps;
use crate::arch::syscall::{failed, syscall6};

/// Lets the kernel read one stretch. Returns the number of bytes read, or an error in the form of system calls. Allocates nothing.
///
/// # Safety
/// `into` must have room for `length` bytes that nothing else uses.
pub unsafe fn by_kernel(process: usize, from: usize, into: *mut u8, length: usize) -> isize {
    let mut done = 0;
    while done < length {
        let here = libc::iovec {
            iov_base: into.wrapping_add(done).cast(),
            iov_len: length - done,
        };
        let there = libc::iovec {
            iov_base: (from + done) as *mut _,
            iov_len: length - done,
        };
        let arguments = [
            process,
            &raw const here as usize,
            1,
            &raw const there as usize,
            1,
            0,
        ];
        // SAFETY: the caller has room for `length` bytes at `into`; the kernel checks the source.
        let result = unsafe { syscall6(libc::SYS_process_vm_readv, arguments) };
        match result {
            0 => return done as isize,
            _ if failed(result) && done == 0 => return result,
            _ if failed(result) => return done as isize,
            _ => done += result as usize,
        }
    }
    done as isize
}

/// Returns whether the kernel reads this process's memory for it: some sandboxes forbid that.
pub fn is_permitted() -> bool {
    let (byte, mut copy) = (1u8, 0u8);
    let process = std::process::id() as usize;
    // SAFETY: `copy` is one byte of this function.
    unsafe { by_kernel(process, &raw const byte as usize, &raw mut copy, 1) == 1 }
}

/// Memory that can be loaded: stretches in order.
#[derive(Debug, Default)]
pub struct Loadable(Vec<Range<usize>>);

impl Loadable {
    /// Makes it of these stretches, or of all addresses if the kernel does not read memory.
    pub fn new(stretches: Vec<Range<usize>>) -> Loadable {
        match is_permitted() {
            true => Loadable(stretches),
            false => Loadable(std::iter::once(0..usize::MAX).collect()),
        }
    }

    /// Returns whether all of a range can be loaded.
    pub fn has(&self, range: &Range<usize>) -> bool {
        let index = self.0.partition_point(|it| it.end <= range.start);
        let it = self.0.get(index);
        it.is_some_and(|it| it.start <= range.start && range.end <= it.end)
    }

    /// Copies the bytes at `from`.
    ///
    /// # Errors
    /// Some of them cannot be read.
    ///
    /// # Safety
    /// Loadable memory must still be there.
    pub unsafe fn copy(&self, from: usize, into: &mut [u8]) -> io::Result<()> {
        let length = into.len();
        if self.has(&(from..from + length)) {
            // SAFETY: the bytes at `from` are loadable and, as the caller promises, still there; `into` has as many and is exclusively borrowed.
            unsafe { std::ptr::copy_nonoverlapping(from as *const u8, into.as_mut_ptr(), length) };
            return Ok(());
        }
        let process = std::process::id() as usize;
        // SAFETY: `into` has `length` bytes and is exclusively borrowed.
        let read = unsafe { by_kernel(process, from, into.as_mut_ptr(), length) };
        match read {
            _ if failed(read) => Err(cannot(from, -read as i32)),
            _ if (read as usize) < length => Err(cannot(from + read as usize, libc::EFAULT)),
            _ => Ok(()),
        }
    }
}

/// Returns the error for memory at this address, which cannot be read.
pub fn cannot(address: usize, error: i32) -> io::Error {
    let all = maps::without_details().unwrap_or_default();
    let mapping = all
        .iter()
        .find(|mapping| mapping.addresses().contains(&address));
    let of = match mapping {
        None => "where nothing is mapped".to_owned(),
        Some(mapping) => {
            let name = match mapping.name.as_str() {
                "" => "memory without a name",
                name => name,
            };
            format!("of {name}, mapped at {}", mapping.range())
        }
    };
    let error = io::Error::from_raw_os_error(error);
    io::Error::new(
        error.kind(),
        format!(
            "the page at {address:#x} cannot be read ({error}), {of}: unmap it, or write it anew, before a checkpoint"
        ),
    )
}

#[cfg(test)]
mod tests {
    use memmap2::MmapMut;

    use super::*;
    use crate::arch::PAGE;

    #[test]
    fn what_can_be_loaded_lies_in_one_stretch() {
        let loadable = Loadable(vec![10..20, 20..30, 40..50]);
        for (range, can) in [
            (10..20, true),
            (12..13, true),
            (18..22, false),
            (40..50, true),
            (39..50, false),
            (49..51, false),
            (60..61, false),
        ] {
            assert_eq!(loadable.has(&range), can, "{range:?}");
        }
    }

    /// A file that has been cut short, under its mapping.
    #[test]
    fn what_cannot_be_read_is_an_error_that_says_where() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(3 * PAGE as u64).unwrap();
        // SAFETY: nothing loads from the pages that the file does not have any more; the kernel copies them.
        let mut map = unsafe { MmapMut::map_mut(file.as_file()).unwrap() };
        map[PAGE - 1] = 7;
        file.as_file().set_len(PAGE as u64).unwrap();
        let start = map.as_ptr() as usize;
        let mut room = vec![1; 2 * PAGE];
        let loadable = Loadable::new(Vec::new());
        // SAFETY: the list of loadable memory is empty, so nothing is loaded.
        let read = |from: usize, into: &mut [u8]| unsafe { loadable.copy(from, into) };
        read(start, &mut room[..PAGE]).unwrap();
        assert_eq!((room[0], room[PAGE - 1]), (0, 7));
        let error = read(start, &mut room).unwrap_err().to_string();
        let name = file.path().to_str().unwrap();
        let at = format!("{:#x}", start + PAGE);
        assert!(error.contains(&at) && error.contains(name), "{error}");
    }
}
