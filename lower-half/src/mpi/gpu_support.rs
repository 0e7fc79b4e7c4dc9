//! Whether the real MPI says that it takes a GPU's memory: a program that asks gets the answer that it gets natively.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

use stillpoint_wrappers::gpu_queries::GPU_QUERIES;
use stillpoint_wrappers::neutral::Word;

use super::library;

/// The answers: a bit for each of [`GPU_QUERIES`].
static SAYS: AtomicU32 = AtomicU32::new(0);

/// Asks the library, which has been loaded, and started unless it is Open MPI.
pub fn ask() {
    let says = |name: &'static CStr| {
        library::symbol(name).is_some_and(|place| {
            // SAFETY: libraries that have a function of this name declare it without parameters, with this result; the caller says that it may be called.
            let query = unsafe {
                core::mem::transmute::<*const c_void, unsafe extern "C" fn() -> c_int>(place)
            };
            // SAFETY: the same.
            unsafe { query() == 1 }
        })
    };
    let bits = GPU_QUERIES.into_iter().zip(0..);
    let all = bits.fold(0, |all, (name, place)| all | u32::from(says(name)) << place);
    SAYS.store(all, Ordering::Relaxed);
}

/// Returns 1 if the library takes memory of the GPUs with that place in [`GPU_QUERIES`].
pub fn says(place: i32) -> Word {
    let says = SAYS.load(Ordering::Relaxed);
    u32::try_from(place)
        .map_or(0, |place| says.checked_shr(place).unwrap_or(0) & 1)
        .into()
}
