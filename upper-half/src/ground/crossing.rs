//! The way into a stub, down to the real MPI, and back.
//!
//! A stub holds an [`Inside`] from its first line to its last. While one exists the stop handler
//! leaves the thread alone; when the outermost one ends, and a checkpoint is pending, the thread
//! parks. [`cross`] lends the thread the lower half's thread pointer for one call. [`cross_near`] leaves the
//! thread its own if that has room for the lower half's thread-local storage.
//!
//! Rules: the application's `errno`, signal mask and stack are not touched; nothing here allocates.

use core::sync::atomic::Ordering;

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::{self, GatePage, Reach, Room, Services};

use crate::ground::upward_calls::above;
use crate::ground::{arch, shared};

pub use stillpoint_wrappers::gate::Inside as StayKind;

/// The gate page.
#[inline(always)]
pub fn gate() -> &'static GatePage {
    // SAFETY: stubs run only where a lower half started the application, which maps the page first.
    unsafe { gate::page() }
}

/// Whether a checkpoint is pending.
#[inline(always)]
pub fn pending() -> bool {
    gate().pending.load(Ordering::Relaxed) != 0
}

/// The current lower half's table of functions.
#[inline(always)]
pub fn dispatch() -> &'static Dispatch {
    // SAFETY: the lower half fills the page before any stub runs; its table lives as long as it does.
    unsafe { &*(gate().dispatch as *const Dispatch) }
}

unsafe extern "C" {
    /// Tells the start and the size of the calling thread's room for the lower half (`upper-half/preload`).
    #[cfg(not(test))]
    safe fn stillpoint_room(start: &mut u64, bytes: &mut u64);
}

/// Tests run without that library, and no thread of theirs comes near.
#[cfg(test)]
fn stillpoint_room(_start: &mut u64, _bytes: &mut u64) {}

/// The calling thread's stay inside MPI.
#[must_use]
pub struct Inside {
    before: u32,
}

/// Begins a stay inside MPI.
#[inline(always)]
pub fn enter() -> Inside {
    enter_as(StayKind::Stub)
}

/// Begins a stay in, or just before, a blocking collective operation.
#[inline(always)]
pub fn enter_as(place: StayKind) -> Inside {
    // SAFETY: stubs run on threads that the lower half has given a record.
    unsafe {
        let before = arch::inside();
        arch::set_inside(place as u32);
        Inside { before }
    }
}

impl Drop for Inside {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the value was made by `enter_as` on this very thread, so the thread has a record.
        unsafe { arch::set_inside(self.before) };
        if pending() && self.before == StayKind::No as u32 {
            (above().park_point)();
        }
    }
}

/// Runs `call` inside, even if the stub has not said so: functions of other libraries are code in which a thread could be stopped. Afterwards the thread says
/// again what it said before; there is no park point.
///
/// # Safety
/// On a thread that has a record.
#[inline(always)]
pub unsafe fn marked<R>(call: impl FnOnce() -> R) -> R {
    // SAFETY: the thread has a record, by the caller's promise.
    unsafe {
        let before = arch::inside();
        arch::set_inside(StayKind::Stub as u32);
        let result = call();
        arch::set_inside(before);
        result
    }
}

/// Runs `call` with the lower half's thread pointer in place.
///
/// # Safety
/// The thread must be inside (see [`enter`]), with the upper half's FS; `call` must do nothing but call
/// the lower half: no panic, no library call, no access to the application's thread-local storage.
#[inline(always)]
pub unsafe fn cross<R>(call: impl FnOnce(&'static Dispatch) -> R) -> R {
    // SAFETY: the caller is a thread of the upper half; both values are thread pointers of this very
    // thread, and the lower one is in place exactly while the lower half runs.
    unsafe {
        let upper = arch::upper_thread_pointer();
        let mut lower = arch::lower_thread_pointer();
        if lower == 0 {
            lower = borrow_thread_area();
        }
        if gate().fsgsbase != 0 {
            arch::write_fs(lower);
            let result = call(dispatch());
            arch::write_fs(upper);
            result
        } else {
            arch::set_fs(lower);
            let result = call(dispatch());
            arch::set_fs(upper);
            result
        }
    }
}

/// [`cross`] for frequent calls: if the thread is near ([`Reach`]), the thread pointer stays as it is.
///
/// # Safety
/// As [`cross`].
#[inline(always)]
pub unsafe fn cross_near<R>(call: impl FnOnce(&'static Dispatch) -> R) -> R {
    // SAFETY: the thread is inside with the upper FS, as `cross` demands; if it is near, the lower half runs with that FS too.
    unsafe {
        if arch::reach() <= Reach::Near as u32 {
            return call(dispatch());
        }
        cross_unless_near(call)
    }
}

/// The first time, finds out whether the thread is near.
///
/// # Safety
/// As [`cross`].
#[cold]
#[inline(never)]
unsafe fn cross_unless_near<R>(call: impl FnOnce(&'static Dispatch) -> R) -> R {
    // SAFETY: the thread is inside with the upper FS, by the caller's promise; `room` outlives the service, and `came_near` is called on a thread that is near.
    unsafe {
        if arch::reach() == Reach::Unknown as u32 {
            let mut room = Room {
                start: 0,
                bytes: 0,
                libc: gnu_get_libc_version() as u64,
            };
            stillpoint_room(&mut room.start, &mut room.bytes);
            cross_service(|services| {
                if let Some(come_near) = services.come_near {
                    come_near(&room);
                }
            });
            if arch::reach() == Reach::Near as u32 {
                (above().came_near)();
            }
        }
        cross(call)
    }
}

unsafe extern "C" {
    safe fn gnu_get_libc_version() -> *const core::ffi::c_char;
}

/// Runs `call` with the upper half's thread pointer in place, whatever was in place before.
///
/// # Safety
/// On a thread of the upper half that is inside; `call` may do what a stub does outside of the lower half.
pub unsafe fn with_upper_fs<R>(call: impl FnOnce() -> R) -> R {
    // SAFETY: the thread has a record. Its thread pointer is the lower half's area only if it was given that, and it has noted its own when it crossed.
    unsafe {
        let lower = arch::lower_thread_pointer();
        if lower == 0 || arch::thread_pointer() != lower {
            return call();
        }
        let upper = arch::noted_upper_thread_pointer();
        set_thread_pointer(upper);
        let result = call();
        set_thread_pointer(lower);
        result
    }
}

/// Switches the thread pointer in the way that the kernel allows.
///
/// # Safety
/// As [`arch::write_fs`], if the kernel allows that instruction; otherwise as [`arch::set_fs`].
unsafe fn set_thread_pointer(value: u64) {
    // SAFETY: the value is a thread pointer of this thread, by the caller's promise; `fsgsbase` says whether the kernel allows the instruction.
    unsafe {
        if gate().fsgsbase != 0 {
            arch::write_fs(value);
        } else {
            arch::set_fs(value);
        }
    }
}

/// Runs `call` on the lower half's services with the lower half's thread pointer in place.
///
/// # Safety
/// As [`cross`].
#[inline]
pub unsafe fn cross_service<R>(call: impl FnOnce(&'static Services) -> R) -> R {
    // SAFETY: the caller promises what `cross` demands, and the services belong to the gate page, which is always mapped.
    unsafe { cross(|_| call(&gate().services)) }
}

/// A thread's first crossing: asks for a thread area.
#[cold]
unsafe fn borrow_thread_area() -> u64 {
    // The thread that the program began with has one from the beginning.
    shared::another_calls();
    // SAFETY: the service works with any FS; the record is this thread's own.
    unsafe {
        if let Some(borrow) = gate().services.borrow_thread_area {
            borrow(arch::record());
        }
        arch::lower_thread_pointer()
    }
}
