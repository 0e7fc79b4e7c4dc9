//! Small blocks of the C library's heap that are put by. The C library takes one for each thread whose thread-local values have destructors, and ends the
//! process if it gets none.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Bytes of each.
const BYTES: usize = 32;

static BLOCKS: [AtomicPtr<c_void>; 64] = [const { AtomicPtr::new(ptr::null_mut()) }; 64];

/// Fills the places of taken blocks, as far as there is memory.
pub fn stock() {
    for place in &BLOCKS {
        if !place.load(Ordering::Relaxed).is_null() {
            continue;
        }
        // SAFETY: the block is new, and belongs to the taker that finds it in its place.
        let block = unsafe { libc::malloc(BYTES) };
        let none = ptr::null_mut();
        let put = place.compare_exchange(none, block, Ordering::AcqRel, Ordering::Relaxed);
        if put.is_err() {
            // SAFETY: the block is in no place, so nothing else knows it.
            unsafe { libc::free(block) };
        }
    }
}

/// Takes a block of so many bytes when the heap is empty; null: there is none. This allocates nothing and uses no thread-local storage.
pub fn take(bytes: usize) -> *mut c_void {
    if bytes > BYTES {
        return ptr::null_mut();
    }
    let taken = BLOCKS.iter();
    let mut taken = taken.map(|it| it.swap(ptr::null_mut(), Ordering::AcqRel));
    taken.find(|it| !it.is_null()).unwrap_or(ptr::null_mut())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_handed_out_once_and_put_by_again() {
        stock();
        assert!(take(BYTES + 1).is_null());
        let all = || -> Vec<_> {
            let blocks = core::iter::from_fn(|| Some(take(BYTES)).filter(|it| !it.is_null()));
            blocks.collect()
        };
        let taken = all();
        assert_eq!(taken.len(), BLOCKS.len());
        assert!(take(1).is_null());
        for block in taken {
            // SAFETY: the block is one of the heap, and only this test has it.
            unsafe { libc::free(block) };
        }
        stock();
        assert_eq!(all().len(), BLOCKS.len());
    }
}
