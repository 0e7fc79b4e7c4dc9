//! `MPI_Alloc_mem` and `MPI_Free_mem`: memory of this library's, never the lower half's, so that it stays where it is
//! in every launch.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};

use crate::ground::abi::Aint;
use crate::ground::lock::SpinLock;
use crate::ground::object::Info;
use crate::objects::errhandler::run;
use crate::objects::outcome::class;

/// Blocks lie on cache lines, as MPI's own would.
const ALIGNMENT: usize = 64;

/// Blocks that were given out, with their sizes.
static BLOCKS: SpinLock<BTreeMap<usize, usize>> = SpinLock::new(BTreeMap::new());

/// A block of at least one byte.
fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()
}

/// `MPI_Alloc_mem`.
///
/// # Safety
/// As the MPI function: `place` is the address of a pointer.
pub unsafe fn alloc_mem(bytes: Aint, _info: Info, place: *mut c_void) -> c_int {
    // SAFETY: MPI demands that `place` is the address of a pointer, and null is refused; the layout is not empty.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Alloc_mem", || {
            if bytes < 0 || place.is_null() {
                return Err(class::ARG);
            }
            let place = place.cast::<*mut u8>();
            if bytes == 0 {
                place.write(std::ptr::null_mut());
                return Ok(());
            }
            let layout = layout(bytes as usize).ok_or(class::NO_MEM)?;
            let block = alloc(layout);
            if block.is_null() {
                return Err(class::NO_MEM);
            }
            BLOCKS.lock().insert(block as usize, layout.size());
            place.write(block);
            Ok(())
        })
    }
}

/// Memory that does not count as an application's block: a window's own. Null if there is none.
pub fn take(bytes: usize) -> *mut u8 {
    // SAFETY: `layout` gives layouts that are not empty.
    layout(bytes).map_or(std::ptr::null_mut(), |layout| unsafe { alloc(layout) })
}

/// Gives such memory back.
///
/// # Safety
/// `block` must be null or have come from [`take`] with that size, and be used no more.
pub unsafe fn give_back(block: *mut u8, bytes: usize) {
    if let Some(layout) = layout(bytes).filter(|_| !block.is_null()) {
        // SAFETY: the block is not null here, so it came from `take` with this size, and is used no more, by the caller's promise.
        unsafe { dealloc(block, layout) };
    }
}

/// `MPI_Free_mem`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn free_mem(block: *mut c_void) -> c_int {
    // SAFETY: the block was given out with that size, and is given back once.
    unsafe {
        run(std::ptr::null_mut(), c"MPI_Free_mem", || {
            if block.is_null() {
                return Ok(());
            }
            let known = BLOCKS.lock().remove(&(block as usize));
            let layout = known.and_then(layout).ok_or(class::ARG)?;
            dealloc(block.cast(), layout);
            Ok(())
        })
    }
}

/// Blocks that are in use, and their bytes.
pub fn in_use() -> (usize, usize) {
    let blocks = BLOCKS.lock();
    (blocks.len(), blocks.values().sum())
}
