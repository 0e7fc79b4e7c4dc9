//! Questions that are answered on the spot, without the lower half: the clock on the wall, addresses, profiling levels.
//!
//! `MPI_Wtime` counts seconds since its first use, like Open MPI's, and reads the same clock. After a restart it goes on from its value
//! when the image was sealed: it never jumps, whatever the clocks of two machines say.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI64, Ordering, compiler_fence};

use crate::ground::abi::{self, Aint};
use crate::ground::crossing;
use crate::objects::errhandler;
use crate::objects::outcome::class;

/// `struct timespec`.
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

const CLOCK_MONOTONIC: c_int = 1;

unsafe extern "C" {
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    fn clock_getres(clock: c_int, time: *mut Timespec) -> c_int;
}

/// The monotonic clock's time at second 0, in nanoseconds; 0 until then.
static ORIGIN: AtomicI64 = AtomicI64::new(0);
/// Nanoseconds since second 0 when all threads stood still.
static STOOD: AtomicI64 = AtomicI64::new(0);

/// The monotonic clock in nanoseconds.
fn now() -> i64 {
    let mut time = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the clock exists and the place is ours. Reads the shared page of the kernel, through the application's
    // libc, which has no state for it; cannot fail, so leaves `errno` alone.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &raw mut time) };
    time.seconds * 1_000_000_000 + time.nanoseconds
}

/// Makes now second 0 if this is the first use. Returns whether it was.
#[cold]
#[inline(never)]
fn begins() -> bool {
    ORIGIN
        .compare_exchange(0, now(), Ordering::Relaxed, Ordering::Relaxed)
        .is_ok()
}

/// Nanoseconds since the first use. If a restart comes between the looks at the clock and at its origin, the two belong to different machines. So the origin
/// must be the same before and after. (Only signals come between: only the compiler must keep to that order.)
#[inline(always)]
fn elapsed() -> i64 {
    loop {
        let origin = ORIGIN.load(Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let now = now();
        compiler_fence(Ordering::SeqCst);
        if origin == ORIGIN.load(Ordering::Relaxed) && origin != 0 {
            return now - origin;
        }
        if origin == 0 && begins() {
            return 0;
        }
    }
}

/// `MPI_Wtime`.
///
/// # Safety
/// None to keep.
#[inline(always)]
pub unsafe fn wtime() -> f64 {
    elapsed() as f64 * 1e-9
}

/// Notes the time. To be called when all threads of the application stand still: no thread has been given a later one.
pub fn note_wtime() {
    if ORIGIN.load(Ordering::Relaxed) != 0 {
        STOOD.store(elapsed(), Ordering::Relaxed);
    }
}

/// `MPI_Wtick`.
///
/// # Safety
/// None to keep.
pub unsafe fn wtick() -> f64 {
    let mut tick = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the clock exists, and the place is a local variable.
    unsafe { clock_getres(CLOCK_MONOTONIC, &raw mut tick) };
    tick.seconds as f64 + tick.nanoseconds as f64 * 1e-9
}

/// Lets `MPI_Wtime` go on from its noted value. To be called in a restart, before the application's
/// threads run.
pub fn resume_wtime() {
    if ORIGIN.load(Ordering::Relaxed) != 0 {
        ORIGIN.store(now() - STOOD.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// `MPI_Get_version`: that of the program's ABI, whose functions this library has, whatever library is below.
///
/// # Safety
/// As the MPI function.
pub unsafe fn get_version(version: *mut c_int, subversion: *mut c_int) -> c_int {
    if version.is_null() || subversion.is_null() {
        let _inside = crossing::enter();
        // SAFETY: inside a stub; no object is named.
        return unsafe { errhandler::raise(core::ptr::null_mut(), class::ARG, c"MPI_Get_version") };
    }
    // SAFETY: MPI demands two writable places.
    unsafe {
        *version = abi::VERSION;
        *subversion = abi::SUBVERSION;
    }
    0
}

/// `MPI_Get_address`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn get_address(location: *const c_void, address: *mut Aint) -> c_int {
    // SAFETY: `address_of` refuses a null place; the location is not read.
    unsafe { address_of(location, address, c"MPI_Get_address") }
}

/// `MPI_Address`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn address(location: *const c_void, address: *mut Aint) -> c_int {
    // SAFETY: `address_of` refuses a null place, and never reads the location.
    unsafe { address_of(location, address, c"MPI_Address") }
}

/// # Safety
/// `place` must be null or writable.
unsafe fn address_of(
    location: *const c_void,
    place: *mut Aint,
    name: &'static core::ffi::CStr,
) -> c_int {
    if place.is_null() {
        let _inside = crossing::enter();
        // SAFETY: inside a stub; no object is named.
        return unsafe { errhandler::raise(core::ptr::null_mut(), class::ARG, name) };
    }
    // A value that stands for no address stays as the application has it.
    // SAFETY: the place is not null here, so it is writable, by the caller's promise.
    unsafe { *place = location.addr() as Aint };
    0
}

/// `MPI_Pcontrol`: no profiler below uses the level. (C passes more
/// arguments, which the callee need not look at.)
///
/// # Safety
/// None to keep.
pub unsafe fn pcontrol(_level: c_int) -> c_int {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_after_a_restart_from_where_it_stood() {
        // SAFETY: these functions demand nothing.
        unsafe {
            let first = wtime();
            // Another machine, which was switched on long before or after.
            ORIGIN.fetch_sub(1_000_000_000_000, Ordering::Relaxed);
            assert!(wtime() > first + 900.0);
            let last = wtime();
            note_wtime();
            ORIGIN.fetch_add(5_000_000_000_000, Ordering::Relaxed);
            assert!(wtime() < last);
            resume_wtime();
            let after = wtime();
            assert!(after >= last && after < last + 10.0, "{last} {after}");
            assert!(wtick() > 0.0 && wtick() < 1e-3);
        }
    }
}
