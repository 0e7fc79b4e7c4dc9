//! The memory that a snapshot's two processes share: requests and answers.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64};

use stillpoint_image::format::CHUNK_BYTES;

/// A thread's request: some stretches of memory, which are listed before the slot's bytes.
#[repr(C)]
pub struct Slot {
    /// One of [`FREE`], [`ASKED`], [`DONE`], [`FAILED`].
    pub state: AtomicU32,
    pub stretches: AtomicU32,
    /// The address that cannot be read, and the error.
    pub failed_at: AtomicU64,
    pub error: AtomicU32,
}

/// One stretch of a request.
#[repr(C)]
pub struct Stretch {
    pub from: AtomicU64,
    pub length: AtomicU64,
    /// 1 if a load cannot fail; 0 if the kernel is to read it.
    pub loadable: AtomicU64,
}

/// The most stretches in one request.
pub const MOST_STRETCHES: usize = 4096;
const LIST_BYTES: usize = MOST_STRETCHES * size_of::<Stretch>();
const SLOT_BYTES: usize = LIST_BYTES + CHUNK_BYTES;

pub const FREE: u32 = 0;
pub const ASKED: u32 = 1;
pub const DONE: u32 = 2;
pub const FAILED: u32 = 3;

/// The start of the memory that both processes share.
#[repr(C)]
pub struct Head {
    /// The number of requests; the child sleeps on it.
    pub asked: AtomicU32,
    /// Not 0 once the child answers requests.
    pub ready: AtomicU32,
}

const HEAD_BYTES: usize = 4096;
pub const MOST_SLOTS: usize = (HEAD_BYTES - size_of::<Head>()) / size_of::<Slot>();

/// The memory that both processes share: head, slots, and room for each slot's bytes.
#[derive(Clone, Copy)]
pub struct SharedSlots {
    start: usize,
    pub slots: usize,
}

impl SharedSlots {
    pub fn head(&self) -> &Head {
        // SAFETY: the room is mapped as long as the snapshot, begins at a page, and a head is made of atomics.
        unsafe { &*(self.start as *const Head) }
    }

    pub fn slot(&self, index: usize) -> &Slot {
        let at = self.start + size_of::<Head>() + index * size_of::<Slot>();
        // SAFETY: the room is mapped as long as the snapshot, and a slot is made of atomics; `index` is below `slots`, which is at most MOST_SLOTS.
        unsafe { &*(at as *const Slot) }
    }

    pub fn stretch(&self, index: usize, number: usize) -> &Stretch {
        let at = self.start + HEAD_BYTES + index * SLOT_BYTES + number * size_of::<Stretch>();
        // SAFETY: the room is mapped as long as the snapshot, and a stretch is made of atomics; `index` is below `slots`, and `number` below MOST_STRETCHES.
        unsafe { &*(at as *const Stretch) }
    }

    pub fn bytes(&self, index: usize) -> *mut u8 {
        (self.start + HEAD_BYTES + index * SLOT_BYTES + LIST_BYTES) as *mut u8
    }
}

impl SharedSlots {
    pub fn map(slots: usize) -> io::Result<SharedSlots> {
        // SAFETY: the kernel chooses a free address for this memory.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SharedSlots::bytes_of(slots),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        match start {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            start => Ok(SharedSlots {
                start: start as usize,
                slots,
            }),
        }
    }

    const fn bytes_of(slots: usize) -> usize {
        HEAD_BYTES + slots * SLOT_BYTES
    }

    /// # Safety
    /// Nothing may use it any more.
    pub unsafe fn unmap(self) {
        // SAFETY: the caller says that nothing uses the memory any more; it is exactly what `map` mapped.
        unsafe { libc::munmap(self.start as *mut _, SharedSlots::bytes_of(self.slots)) };
    }
}
