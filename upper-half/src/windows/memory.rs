//! Memory that MPI gives for a window (`MPI_Win_allocate`, `MPI_Win_allocate_shared`).
//!
//! The real MPI's own memory lies in the lower half and is gone after a restart. But if it is shared, as among the processes of a host, it can be mapped a
//! second time: the application uses that mapping. The real MPI works on the memory as natively. After a restart the new memory is mapped where the application
//! had the old one. An image holds the second mapping as private memory. If all members map all of it, only the first member's image has the bytes.
//!
//! A restart may have a library that lays the parts of the members out differently, or at another place of a page. Then another window lends whole pages, and
//! the window's own is made of memory that the real MPI gets from us, as for `MPI_Win_create`.
//!
//! If the memory cannot be shared, or no other process shares it, it is this library's, and the real MPI gets it too.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use stillpoint_wrappers::neutral::Word;

use crate::ground::arch;
use crate::objects::memory;

/// Bytes of a page of the kernel's.
pub const PAGE: usize = 4096;

/// The origin of a window's memory.
pub enum Memory {
    /// From the application, or no memory.
    Given,
    /// From this library: address and bytes.
    Block(usize, usize),
    /// From the real MPI.
    Mapped(Mapped),
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Memory::Block(at, bytes) = *self {
            // SAFETY: the window has ended: no code may use its memory any more.
            unsafe { memory::give_back(std::ptr::with_exposed_provenance_mut(at), bytes) };
        }
    }
}

/// Memory of the real MPI's, mapped a second time.
pub struct Mapped {
    /// The first page, as the application has it, and the number of bytes of the pages.
    at: usize,
    bytes: usize,
    /// The offsets of the window's bytes in these pages.
    content: Range<usize>,
    /// Whether this member's image has the bytes.
    held: bool,
    /// The lower half's word of another window that the pages belong to, or 0 if they are the window's own.
    lender: AtomicU64,
}

impl Mapped {
    /// Maps the memory from `content.start` to `content.end` of the real MPI's a second time. Returns `None` if that is not possible.
    ///
    /// # Safety
    /// Inside a stub; the memory must be the real MPI's, in a window that lives.
    pub unsafe fn of(content: Range<usize>, held: bool) -> Option<Mapped> {
        let below = content.start / PAGE * PAGE;
        let bytes = content.end.max(content.start + 1).next_multiple_of(PAGE) - below;
        let room = arch::map(bytes);
        if room.is_null() {
            return None;
        }
        let at = room.expose_provenance();
        let mapped = Mapped {
            at,
            bytes,
            content: content.start - below..content.end - below,
            held,
            lender: AtomicU64::new(0),
        };
        // SAFETY: the pages at `at` are ours.
        unsafe { mapped.map(below) }.then_some(mapped)
    }

    /// Whether the window's bytes in the real MPI's new memory fit the application's old mapping. A library that counts in whole pages may have
    /// more bytes, but not more pages.
    pub fn fits(&self, content: &Range<usize>) -> bool {
        let in_pages = content.start % PAGE + content.len();
        content.start % PAGE == self.content.start
            && content.len() >= self.content.len()
            && in_pages.next_multiple_of(PAGE) == self.bytes
    }

    /// Copies the image's bytes to pages of the real MPI's; zeros are left out.
    ///
    /// # Safety
    /// From `page` on the real MPI must have as many bytes, which are zero; no other code writes to either.
    pub unsafe fn fill(&self, page: usize) {
        if !self.held {
            return;
        }
        let mut from = self.at + self.content.start;
        let end = self.at + self.content.end;
        while from < end {
            let stretch = (from + 1).next_multiple_of(PAGE).min(end) - from;
            let to = page + (from - self.at);
            // SAFETY: both lie in the window's memory.
            unsafe {
                let bytes =
                    std::slice::from_raw_parts(std::ptr::with_exposed_provenance(from), stretch);
                if bytes.iter().any(|byte| *byte != 0) {
                    let to = std::ptr::with_exposed_provenance_mut::<u8>(to);
                    to.copy_from_nonoverlapping(bytes.as_ptr(), stretch);
                }
            }
            from += stretch;
        }
    }

    /// Maps the real MPI's memory from that page on over the application's mapping.
    ///
    /// # Safety
    /// It must be the real MPI's, with this window's bytes.
    pub unsafe fn map(&self, page: usize) -> bool {
        // SAFETY: the pages at `at` are this window's.
        unsafe {
            if !arch::map_again(page, self.bytes, self.at) {
                return false;
            }
            if !self.held {
                arch::leave_out(self.at, self.bytes);
            }
        }
        true
    }

    /// Notes the window of the lower half that the pages belong to, or 0 for the window itself. Returns the one before.
    pub fn lend(&self, lender: Word) -> Word {
        self.lender.swap(lender, Ordering::Relaxed)
    }

    /// The application's address for an address in the memory that this was [made of](Self::of); 0 for any other.
    pub fn above(&self, address: usize, content: &Range<usize>) -> usize {
        let offset = address.checked_sub(content.start);
        let inside = offset.filter(|offset| *offset <= content.len());
        inside.map_or(0, |offset| self.content().start + offset)
    }

    /// The window's bytes, as the application has them.
    pub fn content(&self) -> Range<usize> {
        self.at + self.content.start..self.at + self.content.end
    }

    /// Bytes of all pages that it lies on.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the pages are ours, and no code may use them any more.
        unsafe { arch::unmap(std::ptr::with_exposed_provenance_mut(self.at), self.bytes) };
    }
}
