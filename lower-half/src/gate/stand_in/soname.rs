//! The name that a library gives itself (`DT_SONAME`). The file's bytes may be invalid.
//!
//! Rules of this place: runs in the trap's handler.

use crate::arch::syscall::syscall4;
use crate::ground::elf::{self, PT_LOAD};

const PT_DYNAMIC: u32 = 2;
const DT_STRTAB: u64 = 5;
const DT_SONAME: u64 = 14;
/// The size of the file's header with its program headers: more than any linker writes.
const HEAD: usize = 1024;
/// The most entries of the dynamic section that are read, in pieces.
const MOST_PIECES: usize = 64;
const PIECE: usize = 16;

/// The longest name that is known here.
pub const LONGEST: usize = 64;

/// Reads at an offset, and returns the bytes that are there.
fn read(fd: isize, into: &mut [u8], at: u64) -> &[u8] {
    // SAFETY: the kernel writes at most `into.len()` bytes there.
    let bytes = unsafe {
        let place = into.as_mut_ptr() as usize;
        syscall4(
            libc::SYS_pread64,
            fd as usize,
            place,
            into.len(),
            at as usize,
        )
    };
    into.get(..bytes.max(0) as usize).unwrap_or_default()
}

/// Returns the name of an open library; `None`: it has none, or a longer one.
pub fn of(fd: isize, name: &mut [u8; LONGEST]) -> Option<&[u8]> {
    let mut head = [0; HEAD];
    let head = read(fd, &mut head, 0);
    let header = elf::header(head).ok()?;
    let segments = || (0..header.segments).filter_map(|index| elf::segment(head, &header, index));
    let dynamic = segments().find(|segment| segment.p_type == PT_DYNAMIC)?;
    let (mut strings, mut place) = (None, None);
    'all: for piece in 0..MOST_PIECES {
        let mut bytes = [0; 16 * PIECE];
        let at = (piece * 16 * PIECE) as u64;
        let bytes = read(fd, &mut bytes, dynamic.p_offset.checked_add(at)?);
        let (words, _) = bytes.as_chunks::<8>();
        let (entries, _) = words.as_chunks::<2>();
        for [tag, value] in entries {
            match (u64::from_le_bytes(*tag), u64::from_le_bytes(*value)) {
                (0, _) => break 'all,
                (DT_STRTAB, value) => strings = Some(value),
                (DT_SONAME, value) => place = Some(value),
                _ => {}
            }
        }
        if entries.is_empty() {
            break;
        }
    }
    let address = strings?.checked_add(place?)?;
    let at = segments()
        .filter(|segment| segment.p_type == PT_LOAD)
        .find_map(|load| {
            let within = address.checked_sub(load.p_vaddr)?;
            (within < load.p_filesz).then(|| load.p_offset.checked_add(within))?
        })?;
    let text = read(fd, name, at);
    let end = text.iter().position(|byte| *byte == 0)?;
    text.get(..end)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;

    fn name(file: &File) -> Option<Vec<u8>> {
        Some(of(file.as_raw_fd() as isize, &mut [0; LONGEST])?.to_vec())
    }

    #[test]
    fn the_c_library_has_a_name_and_a_program_has_none() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let libc = maps.lines().find(|line| line.contains("/libc.so")).unwrap();
        let libc = File::open(&libc[libc.find('/').unwrap()..]).unwrap();
        assert_eq!(name(&libc).as_deref(), Some(&b"libc.so.6"[..]));
        for other in ["/proc/self/exe", "/dev/null"] {
            assert_eq!(name(&File::open(other).unwrap()), None);
        }
    }

    #[test]
    fn a_cut_or_damaged_library_is_never_read_past_its_end() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let libc = maps.lines().find(|line| line.contains("/libc.so")).unwrap();
        let whole = std::fs::read(&libc[libc.find('/').unwrap()..]).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        for at in (0..HEAD).step_by(3) {
            let mut damaged = whole[..whole.len().min(HEAD + at)].to_vec();
            damaged[at] ^= 0xff;
            std::fs::write(file.path(), &damaged).unwrap();
            let _ = name(file.as_file());
        }
    }
}
