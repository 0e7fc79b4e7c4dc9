//! The heap of Stillpoint's Rust code: the C library's, and a reserve for when that is exhausted.
//!
//! A program may limit its address space to what it has (`RLIMIT_AS`). Then the kernel refuses more to Stillpoint's threads in its process too, and an
//! allocation that fails ends the process. In that case blocks come from the reserve: addresses that exist from the start, and take no memory until they are
//! used. Large buffers do not come from here: they are mapped, and a mapping that fails is an error.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static HEAP: Heap = Heap;

pub struct Heap;

const BYTES: usize = 16 << 20;
/// Lengths and addresses of blocks are multiples of this.
const UNIT: usize = 64;

#[repr(align(4096))]
struct HeapMemory(UnsafeCell<[u8; BYTES]>);

// SAFETY: each block of the room is handed out to one owner at a time, and the memory between blocks is touched only with the lock held.
unsafe impl Sync for HeapMemory {}

static ROOM: HeapMemory = HeapMemory(UnsafeCell::new([0; BYTES]));

/// A free block begins with its length and the next one's offset, in order of address.
struct Free {
    bytes: usize,
    next: usize,
}

/// Offsets of blocks in the room; [`BYTES`] means none.
struct Reserve {
    first: usize,
    /// The first offset that has never been used.
    fresh: usize,
}

static RESERVE: Mutex<Reserve> = Mutex::new(Reserve {
    first: BYTES,
    fresh: 0,
});

fn reserve() -> MutexGuard<'static, Reserve> {
    RESERVE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start() -> *mut u8 {
    ROOM.0.get().cast()
}

fn holds(block: *mut u8) -> bool {
    (start().addr()..start().addr() + BYTES).contains(&block.addr())
}

fn whole(layout: Layout) -> usize {
    layout.size().next_multiple_of(UNIT)
}

impl Reserve {
    /// # Safety
    /// The offset must be that of a free block, or of one that becomes free.
    unsafe fn free(&mut self, offset: usize) -> *mut Free {
        // SAFETY: the caller gives the offset of a block in the room, so the address lies within it and is a multiple of UNIT.
        unsafe { start().add(offset).cast() }
    }

    fn take(&mut self, layout: Layout) -> *mut u8 {
        let bytes = whole(layout);
        if layout.align() > UNIT || bytes > BYTES {
            return ptr::null_mut();
        }
        let (mut before, mut at) = (BYTES, self.first);
        while at != BYTES {
            // SAFETY: `at` and `before` are offsets of free blocks or none (BYTES); what is left of a block becomes a free one.
            unsafe {
                let Free { bytes: there, next } = self.free(at).read();
                if there >= bytes {
                    let rest = match there > bytes {
                        true => {
                            let rest = Free {
                                bytes: there - bytes,
                                next,
                            };
                            self.free(at + bytes).write(rest);
                            at + bytes
                        }
                        false => next,
                    };
                    self.follow(before, rest);
                    return start().add(at);
                }
                (before, at) = (at, next);
            }
        }
        if BYTES - self.fresh < bytes {
            return ptr::null_mut();
        }
        let at = self.fresh;
        self.fresh += bytes;
        // SAFETY: at least `bytes` bytes of the room were fresh, so the block lies within it.
        unsafe { start().add(at) }
    }

    /// # Safety
    /// `before` must be a free block's offset, or none.
    unsafe fn follow(&mut self, before: usize, next: usize) {
        match before {
            BYTES => self.first = next,
            // SAFETY: the caller gives the offset of a free block, which begins with a `Free`.
            _ => unsafe { (*self.free(before)).next = next },
        }
    }

    /// # Safety
    /// The block must be one that was taken for this layout, and given up.
    unsafe fn give_back(&mut self, block: *mut u8, layout: Layout) {
        let (at, mut bytes) = (block.addr() - start().addr(), whole(layout));
        let (mut before, mut next) = (BYTES, self.first);
        // SAFETY: every offset here is that of a free block; the caller gives `block` up, which becomes one.
        unsafe {
            while next != BYTES && next < at {
                (before, next) = (next, (*self.free(next)).next);
            }
            if next != BYTES && at + bytes == next {
                let Free {
                    bytes: there,
                    next: behind,
                } = self.free(next).read();
                (bytes, next) = (bytes + there, behind);
            }
            if before != BYTES && before + (*self.free(before)).bytes == at {
                (*self.free(before)).bytes += bytes;
                (*self.free(before)).next = next;
                return;
            }
            self.free(at).write(Free { bytes, next });
            self.follow(before, at);
        }
    }
}

// SAFETY: a block is the C library's or the reserve's, as large and as aligned as asked for, handed out once, and given back to where it came from.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller gives a layout whose size is not 0, as `GlobalAlloc` demands.
        let block = unsafe { System.alloc(layout) };
        match block.is_null() {
            true => reserve().take(layout),
            false => block,
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller gives a layout whose size is not 0, as `GlobalAlloc` demands.
        let block = unsafe { System.alloc_zeroed(layout) };
        if !block.is_null() {
            return block;
        }
        let block = reserve().take(layout);
        if !block.is_null() {
            // SAFETY: the block has at least `layout.size()` bytes, and is handed out to this caller alone.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match holds(block) {
            // SAFETY: the block lies in the reserve, so it was taken there, and the caller gives it up with the layout that it was taken for.
            true => unsafe { reserve().give_back(block, layout) },
            // SAFETY: the block does not lie in the reserve, so it is the C library's, and the caller gives it up with its layout.
            false => unsafe { System.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !holds(block) {
            // SAFETY: the block does not lie in the reserve, so it is the C library's; the caller gives its layout, and a new size that is not 0.
            let moved = unsafe { System.realloc(block, layout, bytes) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller says that `bytes` is not 0 and can be rounded up; both blocks have at least the bytes that are copied, and are different blocks.
        unsafe {
            let new = Layout::from_size_align_unchecked(bytes, layout.align());
            let moved = self.alloc(new);
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(block, layout.size().min(bytes));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_the_reserve_are_distinct_and_come_together_again() {
        let layout = |bytes| Layout::from_size_align(bytes, 16).unwrap();
        let mut seed = 7u64;
        let mut random = |most: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % most
        };
        let mut blocks: Vec<(*mut u8, usize, u8)> = Vec::new();
        for step in 0..20_000 {
            if blocks.len() > 200 || random(3) == 0 && !blocks.is_empty() {
                let (block, bytes, with) = blocks.swap_remove(random(blocks.len()));
                // SAFETY: the block has that many bytes, all written, and leaves the list, so it is given back once.
                unsafe {
                    let there = std::slice::from_raw_parts(block, bytes);
                    assert!(there.iter().all(|byte| *byte == with));
                    reserve().give_back(block, layout(bytes));
                }
                continue;
            }
            let bytes = 1 + random(if step % 50 == 0 { 200_000 } else { 600 });
            let block = reserve().take(layout(bytes));
            assert!(holds(block) && block.addr().is_multiple_of(UNIT));
            // SAFETY: the block has at least that many bytes, and is not in the list yet.
            unsafe { block.write_bytes(step as u8, bytes) };
            blocks.push((block, bytes, step as u8));
        }
        for (block, bytes, _) in blocks {
            // SAFETY: the block was taken for this layout, and is given back once.
            unsafe { reserve().give_back(block, layout(bytes)) };
        }
        let mut reserve = reserve();
        let first = reserve.first;
        // SAFETY: `first` is the offset of a free block, since all blocks have been given back.
        let all = unsafe { reserve.free(first).read() };
        assert_eq!((first, all.bytes, all.next), (0, reserve.fresh, BYTES));
        assert!(reserve.take(layout(BYTES + 1)).is_null());
    }
}
