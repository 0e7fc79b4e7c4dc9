//! Memory that MPI gives for a window (`MPI_Win_allocate`, `MPI_Win_allocate_shared`).
//!
//! The real MPI's own memory lies in the lower half and is gone after a restart. But where it is shared, as among the processes of a host, it can be mapped a second
//! time: there the application has it. The real MPI works on it as natively, and after a restart, when it is other memory, that is mapped where the application
//! had it. An image has the second mapping as memory that nobody shares; of memory that all members have whole, only the first member's has the bytes.
//!
//! Where it cannot be shared, the memory is this library's, and the real MPI is given it as for `MPI_Win_create`.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ground::arch;
use crate::objects::memory;

/// Bytes of a page of the kernel's.
const PAGE: usize = 4096;

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
        // SAFETY: the window has ended: nobody may use its memory any more.
        unsafe {
            match *self {
                Memory::Given => {}
                Memory::Block(at, bytes) => {
                    memory::give_back(std::ptr::with_exposed_provenance_mut(at), bytes);
                }
                Memory::Mapped(ref it) => it.unmap(),
            }
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
    /// The first page, as the real MPI has it now; 0: the application's pages are nobody else's.
    below: AtomicUsize,
    /// Whether this member's image has the bytes.
    held: bool,
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
            below: AtomicUsize::new(0),
            held,
        };
        // SAFETY: the pages at `at` are ours.
        let done = unsafe { mapped.map(below) };
        if !done {
            // SAFETY: ours, and nobody has used them.
            unsafe { mapped.unmap() };
        }
        done.then_some(mapped)
    }

    /// Whether the window's bytes, which the real MPI has there now, fit to where the application had them.
    pub fn fits(&self, content: &Range<usize>) -> bool {
        content.start % PAGE == self.content.start && content.len() == self.content.len()
    }

    /// Copies the bytes that the image had to the real MPI's new memory; what is zero there is left out.
    ///
    /// # Safety
    /// `content` must [fit](Self::fits), be zero, and be the real MPI's; nobody else writes to either.
    pub unsafe fn fill(&self, content: &Range<usize>) {
        if !self.held {
            return;
        }
        let mut from = self.at + self.content.start;
        let end = self.at + self.content.end;
        while from < end {
            let stretch = (from + 1).next_multiple_of(PAGE).min(end) - from;
            let to = content.start + (from - self.at - self.content.start);
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
    pub unsafe fn map(&self, below: usize) -> bool {
        // SAFETY: the pages at `at` are this window's.
        unsafe {
            if !arch::map_again(below / PAGE * PAGE, self.bytes, self.at) {
                return false;
            }
            if !self.held {
                arch::leave_out(self.at, self.bytes);
            }
        }
        self.below.store(below / PAGE * PAGE, Ordering::Relaxed);
        true
    }

    /// The real MPI has no part in the memory any more: it is as any other.
    pub fn keep(&self) {
        self.below.store(0, Ordering::Relaxed);
    }

    /// An address of the real MPI's, as the application has it.
    pub fn above(&self, address: usize) -> usize {
        let below = self.below.load(Ordering::Relaxed);
        match address.checked_sub(below) {
            Some(offset) if below != 0 && offset <= self.bytes => self.at + offset,
            _ => address,
        }
    }

    /// How many bytes of the window there are.
    pub fn len(&self) -> usize {
        self.content.len()
    }

    /// # Safety
    /// Nobody may use the memory any more.
    unsafe fn unmap(&self) {
        // SAFETY: the caller's.
        unsafe { arch::unmap(std::ptr::with_exposed_provenance_mut(self.at), self.bytes) };
    }
}
