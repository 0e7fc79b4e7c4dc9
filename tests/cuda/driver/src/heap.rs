//! The library's own heap. A thread of the program may be stopped inside `malloc`, and hold its lock until the checkpoint is over. The
//! service thread must do without that lock, as the real driver's restore thread does while all others are frozen. So free blocks are
//! kept in lock-free lists.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Blocks have 2^4 to 2^20 bytes; a larger one has a mapping of its own.
const SMALLEST: u32 = 4;
const LARGEST: u32 = 20;
const SIZES: usize = (LARGEST - SMALLEST + 1) as usize;
/// The least size of a mapping.
const CHUNK: usize = 1 << 16;

const ADDRESS: u64 = (1 << 48) - 1;
const CHANGE: u64 = 1 << 48;

/// Free blocks of one size: the address of the first, which holds the address of the next, and the number of changes of the
/// list.
struct List(AtomicU64);

impl List {
    fn put(&self, block: *mut u8) {
        let mut seen = self.0.load(Ordering::Acquire);
        loop {
            // SAFETY: a free block, aligned to its size of 16 bytes or more, without another owner until it is in the
            // list.
            unsafe { &*block.cast::<AtomicU64>() }.store(seen & ADDRESS, Ordering::Relaxed);
            let first = (seen & !ADDRESS).wrapping_add(CHANGE) | block as u64;
            match self
                .0
                .compare_exchange(seen, first, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    fn take(&self) -> Option<*mut u8> {
        let mut seen = self.0.load(Ordering::Acquire);
        loop {
            let block = (seen & ADDRESS) as *mut u8;
            if block.is_null() {
                return None;
            }
            // SAFETY: blocks stay mapped for good. If another thread has taken it meanwhile, the list has changed, and the value read here is not used.
            let next = unsafe { &*block.cast::<AtomicU64>() }.load(Ordering::Relaxed) & ADDRESS;
            let first = (seen & !ADDRESS).wrapping_add(CHANGE) | next;
            match self
                .0
                .compare_exchange(seen, first, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Some(block),
                Err(now) => seen = now,
            }
        }
    }
}

pub struct Heap([List; SIZES]);

#[global_allocator]
static HEAP: Heap = Heap::new();

/// Returns the power of two that is a block's size.
fn power(layout: Layout) -> u32 {
    let size = layout.size().max(layout.align()).max(1 << SMALLEST);
    size.next_power_of_two().trailing_zeros()
}

fn map(bytes: usize) -> *mut u8 {
    // SAFETY: fresh memory wherever there is room.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    match start {
        libc::MAP_FAILED => ptr::null_mut(),
        start => start.cast(),
    }
}

impl Heap {
    const fn new() -> Heap {
        Heap([const { List(AtomicU64::new(0)) }; SIZES])
    }

    fn list(&self, power: u32) -> &List {
        &self.0[(power - SMALLEST) as usize]
    }

    /// Returns a block out of new memory; the rest goes into the list.
    fn fresh(&self, power: u32) -> *mut u8 {
        let (size, bytes) = (1 << power, CHUNK.max(1 << power));
        let start = map(bytes);
        if !start.is_null() {
            for offset in (size..bytes).step_by(size) {
                // SAFETY: within the new mapping.
                self.list(power).put(unsafe { start.add(offset) });
            }
        }
        start
    }
}

// SAFETY: each block has one owner or is in one list; it is as large as the layout's power of two and, where that is at most a page, aligned to it.
// Larger ones are aligned to a page: no code here asks for more, and such a request fails.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > 4096 {
            return ptr::null_mut();
        }
        match power(layout) {
            power if power > LARGEST => map(layout.size()),
            power => {
                let block = self.list(power).take();
                block.unwrap_or_else(|| self.fresh(power))
            }
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match power(layout) {
            // SAFETY: it was mapped by itself, with so many bytes.
            power if power > LARGEST => unsafe {
                libc::munmap(block.cast(), layout.size());
            },
            power => self.list(power).put(block),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    /// The tests' own memory comes from this heap.
    #[test]
    fn blocks_are_nobody_elses() {
        let fill = |seed: usize| {
            move || {
                let mut all: Vec<Vec<usize>> = Vec::new();
                for round in 0..20_000 {
                    let length = 1 + (round * 7919 + seed) % 3000;
                    all.push(vec![seed + round; length]);
                    if all.len() > 50 {
                        let old = all.swap_remove(round % 50);
                        assert!(old.iter().all(|word| *word == old[0]));
                    }
                }
                let large = vec![seed; 1 << 19];
                assert!(large.iter().all(|word| *word == seed));
            }
        };
        let threads: Vec<_> = (0..4)
            .map(|seed| thread::spawn(fill(seed * 1_000_000)))
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
