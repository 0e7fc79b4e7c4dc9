//! Takes small blocks of the lower half's heap from the thread's cache, for all callers and functions.
//!
//! `malloc` and `free` of the GNU C library keep small blocks in a cache of the thread, a few instructions away. Its `calloc` does not take blocks from there
//! before release 2.41, and its `realloc` never does. Their blocks come from the heap's lists and go into the cache, so a program that allocates with them and
//! frees walks through its heap. Open MPI builds the schedule of every nonblocking collective operation like this (`calloc`, then `realloc` for each step),
//! which is 5 to 18 % of such an operation's time.
//!
//! For every library of the lower half, this executable's `calloc` and `realloc` come before libc's, as `pthread_create` does. They get small blocks from
//! `malloc` and leave larger ones to libc. They use no thread-local storage, so they may be called near ([`crate::threads::near`]), and allocate nothing for
//! themselves.

use core::ffi::c_void;
use core::hint::black_box;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use crate::ground::put_by;
use crate::threads::own_area::{in_own_area, next};

unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut c_void;
    fn free(block: *mut c_void);
    fn malloc_usable_size(block: *mut c_void) -> usize;
}

/// The largest block that glibc's cache holds, unless it is tuned otherwise.
const SMALL: usize = 1032;

/// `calloc`.
///
/// # Safety
/// As calloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    match count.checked_mul(bytes) {
        // SAFETY: the block has at least `all` bytes and belongs to this caller alone.
        Some(all) if all <= SMALL => unsafe {
            // The compiler must not see both calls: it would replace them by a call of this function.
            let mut block = black_box(malloc(all));
            if block.is_null() {
                block = put_by::take(all);
            }
            if !block.is_null() {
                core::ptr::write_bytes(block.cast::<u8>(), 0, all);
            }
            block
        },
        // SAFETY: libc's own `calloc` takes any two numbers.
        _ => unsafe { calloc_of_libc(count, bytes) },
    }
}

/// `realloc`.
///
/// # Safety
/// As realloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the caller gives null, or a block that `malloc`, `calloc` or `realloc` returned and that is not freed; it is moved as realloc(3) says.
    unsafe {
        if block.is_null() {
            return malloc(bytes);
        }
        if bytes == 0 || bytes > SMALL || !sizes_are_known() {
            return realloc_of_libc(block, bytes);
        }
        let has = malloc_usable_size(block);
        if has > SMALL {
            return realloc_of_libc(block, bytes);
        }
        if bytes <= has {
            return block;
        }
        let larger = malloc(bytes);
        if !larger.is_null() {
            core::ptr::copy_nonoverlapping(block.cast::<u8>(), larger.cast::<u8>(), has);
            free(block);
        }
        larger
    }
}

const UNKNOWN: u8 = 0;
const YES: u8 = 1;
const NO: u8 = 2;

/// Whether `malloc_usable_size` returns the size of blocks of `malloc`: the system may preload an allocator that lacks it (ld.so(8): `/etc/ld.so.preload`).
#[inline(always)]
fn sizes_are_known() -> bool {
    static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
    match KNOWN.load(Ordering::Relaxed) {
        UNKNOWN => look(&KNOWN),
        known => known == YES,
    }
}

#[cold]
#[inline(never)]
fn look(known: &AtomicU8) -> bool {
    let base = |function: usize| {
        let mut found = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: dladdr fills the structure, for which zeros are valid too, and which lives on this stack.
        unsafe {
            let told = libc::dladdr(function as *const c_void, found.as_mut_ptr());
            (told != 0).then(|| found.assume_init().dli_fbase as usize)
        }
    };
    let same = in_own_area(|| {
        let of_malloc = base(malloc as *const () as usize);
        of_malloc.is_some() && of_malloc == base(malloc_usable_size as *const () as usize)
    });
    known.store(if same { YES } else { NO }, Ordering::Relaxed);
    same
}

/// # Safety
/// As calloc(3).
#[cold]
unsafe fn calloc_of_libc(count: usize, bytes: usize) -> *mut c_void {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    match in_own_area(|| next(&NEXT, c"calloc")) {
        0 => core::ptr::null_mut(),
        // SAFETY: libc's function has this type, and takes any two numbers.
        found => unsafe {
            core::mem::transmute::<usize, unsafe extern "C" fn(usize, usize) -> *mut c_void>(found)(
                count, bytes,
            )
        },
    }
}

/// # Safety
/// As realloc(3).
#[cold]
unsafe fn realloc_of_libc(block: *mut c_void, bytes: usize) -> *mut c_void {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    match in_own_area(|| next(&NEXT, c"realloc")) {
        0 => core::ptr::null_mut(),
        // SAFETY: libc's function has this type, and the caller gives what it takes.
        found => unsafe {
            core::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>(
                found,
            )(block, bytes)
        },
    }
}

#[cfg(test)]
mod tests {
    use core::hint::black_box;

    use super::{SMALL, calloc, free, malloc, malloc_usable_size, realloc};

    /// Returns a block that the thread's cache takes back. The blocks of its size that `malloc` finds in the heap's lists fill the cache; when the cache is
    /// full (7 blocks, 16 since release 2.42), the next freed block goes to the lists.
    unsafe fn block_of_the_cache(bytes: usize) -> *mut core::ffi::c_void {
        // SAFETY: each block is freed once; the last comes out of a cache that those before it have filled.
        unsafe {
            let filling: [_; 32] = core::array::from_fn(|_| black_box(malloc(bytes)));
            filling.into_iter().for_each(|block| free(block));
            malloc(bytes)
        }
    }

    #[test]
    fn a_small_block_comes_from_the_cache_and_is_zeroed() {
        for bytes in [1, 24, 25, 44, 200, SMALL] {
            // SAFETY: each block is this test's own, is used within its size, and is freed once.
            unsafe {
                let first = block_of_the_cache(bytes).cast::<u8>();
                first.write_bytes(0xff, malloc_usable_size(first.cast()));
                free(first.cast());
                let again = calloc(1, bytes).cast::<u8>();
                assert_eq!(again, first, "{bytes} bytes");
                let read = core::slice::from_raw_parts(again, bytes);
                assert!(read.iter().all(|byte| *byte == 0), "{bytes} bytes");
                free(again.cast());
            }
        }
    }

    #[test]
    fn a_small_block_grows_into_one_of_the_cache() {
        // SAFETY: each block is this test's own, is used within its size, and is freed once or moved.
        unsafe {
            let larger = block_of_the_cache(200);
            free(larger);
            let block = block_of_the_cache(20).cast::<u8>();
            for at in 0..20 {
                block.add(at).write(at as u8);
            }
            let has = malloc_usable_size(block.cast());
            assert_eq!(realloc(block.cast(), has), block.cast());
            let grown = realloc(block.cast(), 200).cast::<u8>();
            assert_eq!(grown, larger.cast());
            assert!((0..20).all(|at| grown.add(at).read() == at as u8));
            // The old block is free again.
            assert_eq!(malloc(20), block.cast());
            free(block.cast());
            free(grown.cast());
        }
    }

    #[test]
    fn larger_blocks_and_odd_requests_are_libcs() {
        // SAFETY: each block is this test's own, is used within its size, and is freed once or moved.
        unsafe {
            let large = calloc(1 << 10, 1 << 10).cast::<u8>();
            assert!((0..1 << 20).all(|at| large.add(at).read() == 0));
            large.write(7);
            let larger = realloc(large.cast(), 4 << 20).cast::<u8>();
            assert_eq!(larger.read(), 7);
            let small = realloc(larger.cast(), 8).cast::<u8>();
            assert_eq!(small.read(), 7);
            assert!(realloc(small.cast(), 0).is_null());
            assert!(black_box(calloc(black_box(usize::MAX), 2)).is_null());
            assert!(black_box(calloc(1, black_box(usize::MAX / 2))).is_null());
            let nothing = realloc(core::ptr::null_mut(), 16);
            assert!(!nothing.is_null());
            free(nothing);
        }
    }
}
