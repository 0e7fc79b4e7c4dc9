//! Memory that MPI gives for a window (`MPI_Win_allocate`, `MPI_Win_allocate_shared`).
//!
//! The real MPI's own memory lies in the lower half and is gone after a restart. But where it is shared, as among the processes of a host, it can be mapped a second
//! time: there the application has it. The real MPI works on it as natively, and after a restart, when it is other memory, that is mapped where the application
//! had it. An image has the second mapping as memory that nobody shares; of memory that all members have whole, only the first member's has the bytes.
//!
//! A restart may have a library that lays the parts of the members out in another way, or at another place of a page. There another window lends whole pages, and the window's
//! own is made of memory that the real MPI is given, as for `MPI_Win_create`.
//!
//! Where it cannot be shared, or there is nobody to share it with, the memory is this library's, and the real MPI is given it too.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use stillpoint_wrappers::neutral::Word;

use crate::ground::arch;
use crate::objects::memory;

/// Bytes of a page of the kernel's.
pub const PAGE: usize = 4096;

/// Where a window's memory comes from.
pub enum Memory {
    /// From the application, or there is none.
    Given,
    /// From this library: address and bytes.
    Block(usize, usize),
    /// From the real MPI.
    Mapped(Mapped),
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Memory::Block(at, bytes) = *self {
            // SAFETY: the window has ended: nobody may use its memory any more.
            unsafe { memory::give_back(std::ptr::with_exposed_provenance_mut(at), bytes) };
        }
    }
}

/// Memory of the real MPI's, mapped a second time.
pub struct Mapped {
    /// The first page, as the application has it, and how many bytes the pages are.
    at: usize,
    bytes: usize,
    /// Where the window's bytes are in these pages.
    content: Range<usize>,
    /// Whether this member's image has the bytes.
    held: bool,
    /// The lower half's word of another window that the pages belong to; 0: they are the window's own.
    lender: AtomicU64,
}

impl Mapped {
    /// Maps the memory from `content.start` to `content.end` of the real MPI's a second time; `None` where that is not possible.
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

    /// Whether the window's bytes, which the real MPI has there now, fit to where the application had them. Of a library that tells of whole pages there may be
    /// more, but no more pages.
    pub fn fits(&self, content: &Range<usize>) -> bool {
        let in_pages = content.start % PAGE + content.len();
        content.start % PAGE == self.content.start
            && content.len() >= self.content.len()
            && in_pages.next_multiple_of(PAGE) == self.bytes
    }

    /// Copies the bytes that the image had to pages of the real MPI's; what is zero there is left out.
    ///
    /// # Safety
    /// From `page` on the real MPI must have as many bytes, which are zero; nobody else writes to either.
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

    /// Maps the real MPI's memory from that page on where the application has it.
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

    /// The pages belong to that window of the lower half's, or, for 0, to the window itself. What was said before.
    pub fn lend(&self, lender: Word) -> Word {
        self.lender.swap(lender, Ordering::Relaxed)
    }

    /// An address in the memory that this was [made of](Self::of), as the application has it; 0 for any other.
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
        // SAFETY: the pages are ours, and nobody may use them any more.
        unsafe { arch::unmap(std::ptr::with_exposed_provenance_mut(self.at), self.bytes) };
    }
}
