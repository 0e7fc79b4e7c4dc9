//! The memory of `MPI_Win_allocate_shared`: a file in memory that all members map, each where its own upper half has room.
//!
//! The real MPI's own shared windows lie in the lower half and are gone after a restart. So the memory is this library's, and the real MPI is given each member's part
//! of it as for `MPI_Win_create`. The file has no name any more once all have mapped it: nothing is left of a job that is killed.
//!
//! The image of the window's first member holds the bytes, the others' images hold nothing of it (`holder_of_window_memory`). A restart finds private memory in
//! its place; there the first member makes a new file of its bytes, and all map that at the addresses where they had the old one.

use std::ffi::{CStr, CString, c_void};
use std::fmt::Write;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::names::WINDOW_MEMORY;
use stillpoint_wrappers::neutral::Word;

use crate::ground::abi;
use crate::ground::arch::{self, SharedFile};
use crate::ground::crossing::cross;
use crate::objects::info::pairs::Pairs;
use crate::objects::outcome::{Outcome, check, class};

/// Standard-ABI value of `MPI_BYTE`.
const BYTE: i32 = 583;
/// Bytes of a page of the kernel's.
const PAGE: usize = 4096;
/// Longest path of a file, with the zero at its end.
const LONGEST: usize = 96;
/// The hint that each member's part begins on a page of its own.
const APART: &[u8] = b"alloc_shared_noncontig";

/// A member's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it begins; `None` where it is empty and lies apart.
    pub offset: Option<usize>,
    pub bytes: isize,
    pub unit: i32,
}

/// What one member has of the memory.
#[derive(Debug)]
pub struct Shared {
    address: usize,
    bytes: usize,
    apart: bool,
    /// By rank of the window.
    parts: Vec<Part>,
}

impl Shared {
    /// What the real MPI would say of how it has laid the parts out.
    pub fn hints(&self) -> Pairs {
        let mut hints = Pairs::new();
        hints.set(APART, if self.apart { b"true" } else { b"false" });
        hints
    }

    /// How long all parts are together.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// A member's part as this process has it: where it is, how long, its unit. Of `MPI_PROC_NULL` (`None`) the first that is not empty.
    pub fn part(&self, rank: Option<usize>) -> Option<(usize, isize, i32)> {
        let part = match rank {
            Some(rank) => self.parts.get(rank)?,
            None => match self.parts.iter().find(|part| part.bytes != 0) {
                Some(part) => part,
                None => return Some((0, 0, 0)),
            },
        };
        let address = part.offset.map_or(0, |offset| self.address + offset);
        Some((address, part.bytes, part.unit))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let address = std::ptr::with_exposed_provenance_mut(self.address);
        // SAFETY: the window has ended: nobody may use its memory any more.
        unsafe { arch::unmap(address, self.bytes) };
    }
}

/// Where the parts lie, and how long all are together.
fn lay_out(wanted: &[(isize, i32)], apart: bool) -> Option<(Vec<Part>, usize)> {
    let mut end = 0usize;
    let mut parts = Vec::with_capacity(wanted.len());
    for &(bytes, unit) in wanted {
        let offset = (!apart || bytes != 0).then_some(end);
        let bytes = match usize::try_from(bytes).ok()? {
            // Open MPI tells of whole pages then.
            bytes if apart => bytes.checked_next_multiple_of(PAGE)?,
            bytes => bytes,
        };
        parts.push(Part {
            offset,
            bytes: isize::try_from(bytes).ok()?,
            unit,
        });
        end = end.checked_add(bytes)?;
    }
    Some((parts, end.max(1).checked_next_multiple_of(PAGE)?))
}

/// Makes the memory of a new window. Collective over the members, which `on` is a communicator of.
///
/// # Safety
/// Inside a stub, MPI running; `members` are world ranks, and `me` the own one's place among them.
pub unsafe fn allocate(
    on: Word,
    members: &[i32],
    me: usize,
    own: (isize, i32),
    hints: &Pairs,
) -> Outcome<Shared> {
    let mut wanted = vec![(0isize, 0i32); members.len()];
    let bytes = size_of::<(isize, i32)>() as i32;
    // SAFETY: the caller's communicator; the buffers are as large as is said.
    unsafe {
        let (from, to) = ((&raw const own).cast(), wanted.as_mut_ptr().cast());
        let word = byte();
        check(cross(|d| {
            (d.allgather)(from, bytes, word, to, bytes, word, on)
        }))?;
        let apart = hints
            .iter()
            .any(|(key, value)| key == APART && value.eq_ignore_ascii_case(b"true"));
        // All come to the same.
        let (parts, bytes) = lay_out(&wanted, apart).ok_or(class::NO_MEM)?;
        let fresh = |file: &SharedFile| file.map(bytes, None);
        let address = map(on, members, me, bytes, fresh, |_| Ok(()))?.expose_provenance();
        Ok(Shared {
            address,
            bytes,
            apart,
            parts,
        })
    }
}

/// Maps a new file where the memory was, with the bytes that the first member has there. Collective over the members.
///
/// # Safety
/// As [`allocate`], in a restart.
pub unsafe fn map_again(on: Word, members: &[i32], me: usize, shared: &Shared) -> Outcome {
    let (at, bytes) = (shared.address, shared.bytes);
    // SAFETY: the memory is the window's, whose bytes are in the file before it is mapped there.
    unsafe {
        let in_place = |file: &SharedFile| file.map(bytes, Some(at));
        map(on, members, me, bytes, in_place, |file| {
            fill(file, at, bytes)
        })?;
    }
    Ok(())
}

/// Makes a file, which all members map by `place`; the first one fills it before.
unsafe fn map(
    on: Word,
    members: &[i32],
    me: usize,
    bytes: usize,
    place: impl Fn(&SharedFile) -> Result<*mut u8, i32>,
    fill: impl Fn(&SharedFile) -> Result<(), i32>,
) -> Outcome<*mut u8> {
    let mut path = [0u8; LONGEST];
    let mut made = None;
    if me == 0
        && let Some((name, file)) = create(members[0], bytes)
        && fill(&file).is_ok()
    {
        let text = name.as_bytes_with_nul();
        path[..text.len()].copy_from_slice(text);
        made = Some((name, file));
    }
    // SAFETY: the caller's communicator; the buffers are as large as is said.
    unsafe {
        let (text, word) = (path.as_mut_ptr().cast::<c_void>(), byte());
        let told = check(cross(|d| (d.bcast)(text, LONGEST as i32, word, 0, on)));
        let address = match (told, &made) {
            (Ok(()), Some((_, file))) => place(file).ok(),
            (Ok(()), None) => open(&path).and_then(|file| place(&file).ok()),
            (Err(_), _) => None,
        };
        let all = everybody(on, members.len(), address.is_some());
        if let Some((name, _)) = &made {
            arch::unlink(name);
        }
        match (address, all) {
            (Some(address), Ok(true)) => Ok(address),
            (address, all) => {
                if let Some(address) = address {
                    arch::unmap(address, bytes);
                }
                all.and(Err(class::NO_MEM))
            }
        }
    }
}

/// A new file of the first member's.
fn create(holder: i32, bytes: usize) -> Option<(CString, SharedFile)> {
    loop {
        let mut path = String::with_capacity(LONGEST);
        write!(path, "{WINDOW_MEMORY}{holder}.{:016x}", arch::random()).ok()?;
        let path = CString::new(path).ok()?;
        match SharedFile::create(&path, bytes) {
            Ok(file) => return Some((path, file)),
            Err(libc::EEXIST) => {}
            Err(_) => return None,
        }
    }
}

fn open(path: &[u8]) -> Option<SharedFile> {
    let path = CStr::from_bytes_until_nul(path).ok()?;
    SharedFile::open(path).ok()
}

/// Copies what is not zero.
fn fill(file: &SharedFile, from: usize, bytes: usize) -> Result<(), i32> {
    // SAFETY: a mapping of our own, of the file's length; the memory is the window's, and nobody writes to it.
    unsafe {
        let to = file.map(bytes, None)?;
        for at in (0..bytes).step_by(PAGE) {
            let page = std::ptr::with_exposed_provenance::<[u64; PAGE / 8]>(from + at);
            if (*page).iter().any(|word| *word != 0) {
                to.add(at)
                    .cast::<[u64; PAGE / 8]>()
                    .copy_from_nonoverlapping(page, 1);
            }
        }
        arch::unmap(to, bytes);
    }
    Ok(())
}

/// Whether all members can say so.
unsafe fn everybody(on: Word, members: usize, mine: bool) -> Outcome<bool> {
    let mut all = vec![0u8; members];
    let word = byte();
    // SAFETY: the caller's communicator; the buffers are as large as is said.
    unsafe {
        let (from, to) = ((&raw const mine).cast(), all.as_mut_ptr().cast());
        check(cross(|d| (d.allgather)(from, 1, word, to, 1, word, on)))?;
    }
    Ok(all.iter().all(|one| *one != 0))
}

fn byte() -> Word {
    // SAFETY: a predefined object.
    unsafe { (*abi::predefined(HandleKind::Datatype, BYTE)).lower }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_one_behind_the_other() {
        let (parts, bytes) = lay_out(&[(10, 1), (0, 4), (5000, 8)], false).unwrap();
        let offsets: Vec<_> = parts.iter().map(|part| part.offset).collect();
        assert_eq!(offsets, [Some(0), Some(10), Some(10)]);
        assert_eq!(bytes, 2 * PAGE);
    }

    #[test]
    fn or_each_on_pages_of_its_own() {
        let (parts, bytes) = lay_out(&[(10, 1), (0, 4), (5000, 8)], true).unwrap();
        let offsets: Vec<_> = parts.iter().map(|part| part.offset).collect();
        assert_eq!(offsets, [Some(0), None, Some(PAGE)]);
        assert_eq!(bytes, 3 * PAGE);
    }

    #[test]
    fn a_window_of_nothing_has_a_page() {
        assert_eq!(lay_out(&[(0, 1)], false).unwrap().1, PAGE);
        assert_eq!(lay_out(&[(-1, 1)], false), None);
    }
}
