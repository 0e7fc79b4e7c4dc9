//! The memory of this library: never the application's `malloc`, so that everything here also works
//! while the application is stopped inside it.
//!
//! Blocks up to 32 KiB come in sizes of powers of two (16 bytes and up) from chunks mapped for them;
//! a freed block waits in its size's list for the next one to want it. Larger ones are mapped and unmapped
//! one by one. All of it is private anonymous memory of the upper half, so an image holds it.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr;

use crate::ground::arch;
use crate::ground::lock::SpinLock;

/// The one allocator of the library.
pub struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

const SMALLEST: usize = 16;
const LARGEST: usize = 32 * 1024;
const CLASSES: usize = (LARGEST / SMALLEST).trailing_zeros() as usize + 1;
const CHUNK: usize = 1024 * 1024;
const PAGE: usize = 4096;

struct Free {
    next: *mut Free,
}

struct Pool {
    /// Free blocks by size class.
    free: [*mut Free; CLASSES],
    /// The rest of the newest chunk.
    next: *mut u8,
    end: *mut u8,
}

static POOL: SpinLock<Pool> = SpinLock::new(Pool {
    free: [ptr::null_mut(); CLASSES],
    next: ptr::null_mut(),
    end: ptr::null_mut(),
});

/// The size class that holds `layout`, or `None` for a mapping of its own.
fn class_of(layout: Layout) -> Option<usize> {
    let bytes = layout.size().max(layout.align()).max(SMALLEST);
    if bytes > LARGEST {
        return None;
    }
    Some((bytes.next_power_of_two() / SMALLEST).trailing_zeros() as usize)
}

fn whole_pages(bytes: usize) -> usize {
    bytes.saturating_add(PAGE - 1) & !(PAGE - 1)
}

impl Pool {
    fn take(&mut self, class: usize) -> *mut u8 {
        let block = self.free[class];
        if !block.is_null() {
            // SAFETY: a block in a list is free memory of ours that begins with the link.
            self.free[class] = unsafe { (*block).next };
            return block.cast();
        }
        let bytes = SMALLEST << class;
        // A block lies on a multiple of its size: so every alignment up to it is met.
        let start = (self.next as usize).wrapping_add(bytes - 1) & !(bytes - 1);
        if self.next.is_null() || start + bytes > self.end as usize {
            // If memory is short, maps only as much as is needed now.
            let sizes = [CHUNK, whole_pages(bytes)];
            let chunks = sizes.map(|size| move || (arch::map(size), size));
            let found = chunks.iter().map(|map| map()).find(|(at, _)| !at.is_null());
            let Some((chunk, size)) = found else {
                return ptr::null_mut();
            };
            self.next = chunk;
            // SAFETY: one past the end of the chunk just mapped.
            self.end = unsafe { chunk.add(size) };
            return self.take(class);
        }
        self.next = (start + bytes) as *mut u8;
        start as *mut u8
    }
}

// SAFETY: blocks are handed out once, are as large and as aligned as asked for, and stay put.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match class_of(layout) {
            Some(class) => POOL.lock().take(class),
            None if layout.align() > PAGE => ptr::null_mut(),
            None => arch::map(whole_pages(layout.size())),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises what `GlobalAlloc` demands of a layout, which `alloc` gets as it is.
        let block = unsafe { self.alloc(layout) };
        // Memory that was mapped just now is zero, and stays untouched, so that it takes no room.
        if !block.is_null() && class_of(layout).is_some() {
            // SAFETY: the block has that many bytes.
            unsafe { ptr::write_bytes(block, 0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match class_of(layout) {
            Some(class) => {
                let block = block.cast::<Free>();
                let mut pool = POOL.lock();
                // SAFETY: the caller gives the block up; it is at least as large as the link.
                unsafe { (*block).next = pool.free[class] };
                pool.free[class] = block;
            }
            // SAFETY: mapped by `alloc` for this layout, given up by the caller.
            None => unsafe { arch::unmap(block, whole_pages(layout.size())) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_distinct_and_reused() {
        let allocator = Allocator;
        for bytes in [
            1usize,
            16,
            17,
            80,
            512,
            4096,
            32 * 1024,
            32 * 1024 + 1,
            5 << 20,
        ] {
            for align in [1usize, 8, 64, 4096] {
                let layout = Layout::from_size_align(bytes, align).unwrap();
                // SAFETY: blocks are used within their layout and given back once.
                unsafe {
                    let one = allocator.alloc_zeroed(layout);
                    let two = allocator.alloc_zeroed(layout);
                    assert!(!one.is_null() && !two.is_null() && one != two);
                    assert_eq!(one as usize % align, 0);
                    assert!(
                        core::slice::from_raw_parts(one, bytes)
                            .iter()
                            .all(|b| *b == 0)
                    );
                    ptr::write_bytes(one, 0xaa, bytes);
                    assert!(
                        core::slice::from_raw_parts(two, bytes)
                            .iter()
                            .all(|b| *b == 0)
                    );
                    allocator.dealloc(one, layout);
                    allocator.dealloc(two, layout);
                }
            }
        }
    }

    #[test]
    fn threads_share_the_pool() {
        std::thread::scope(|scope| {
            for seed in 0..4usize {
                scope.spawn(move || {
                    let mut kept = Vec::new();
                    for round in 0..2000 {
                        kept.push(vec![seed as u8; 1 + (round * 37 + seed) % 3000]);
                        if round % 3 == 0 {
                            kept.swap_remove(round % kept.len());
                        }
                    }
                    assert!(kept.iter().flatten().all(|b| *b == seed as u8));
                });
            }
        });
    }
}
