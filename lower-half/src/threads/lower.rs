//! Threads of the lower half, MPI's progress threads included: they block every signal, so that the application's signals reach the application's threads, and
//! they have no record behind GS.
//!
//! They do not block the signal of a fault that the application handles: if a thread blocks its own fault, the kernel ends the process without a message. If
//! the application has no handler, such a signal to the process waits for the application's threads.
//!
//! For every library of the lower half, this executable's `pthread_create` comes before libc's. (The upper half has a libc of its own and never comes here.)

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::own_area::in_own_area;
use crate::arch::{registers, syscall};

/// Signals that an instruction may cause, as a mask.
pub const FAULTS: u64 = 1 << (libc::SIGSEGV - 1)
    | 1 << (libc::SIGBUS - 1)
    | 1 << (libc::SIGFPE - 1)
    | 1 << (libc::SIGILL - 1);

/// Those of [`FAULTS`] that the application handles.
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Notes whether the application handles a signal, after the kernel has been told.
pub fn handles(signal: i32, whether: bool) {
    let fault = FAULTS & 1u64.wrapping_shl(signal.wrapping_sub(1) as u32);
    if whether {
        HANDLED.fetch_or(fault, Ordering::Relaxed);
    } else {
        HANDLED.fetch_and(!fault, Ordering::Relaxed);
    }
}

/// Unblocks these signals in the calling thread of the lower half, which is older than the application's handlers.
pub fn open_to_faults() {
    let blocked = syscall::set_mask(u64::MAX);
    syscall::set_mask(blocked & !HANDLED.load(Ordering::Relaxed));
}

type Start = unsafe extern "C" fn(*mut libc::c_void) -> *mut libc::c_void;
type Create = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    Start,
    *mut libc::c_void,
) -> libc::c_int;

struct Beginning {
    start: Start,
    argument: *mut libc::c_void,
}

/// libc's own `pthread_create`.
fn create() -> Option<Create> {
    static CREATE: OnceLock<usize> = OnceLock::new();
    // SAFETY: the name is a constant that ends in NUL.
    let address =
        *CREATE.get_or_init(
            || unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr()) } as usize,
        );
    // SAFETY: libc's function has this type.
    (address != 0).then(|| unsafe { std::mem::transmute::<usize, Create>(address) })
}

unsafe extern "C" fn begin(beginning: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: GS was inherited from the thread that made this one, which may be the upper half's; this thread has no record.
    unsafe { registers::set_gs(0) };
    // SAFETY: `pthread_create` below made the box for this thread alone.
    let beginning = unsafe { Box::from_raw(beginning.cast::<Beginning>()) };
    let Beginning { start, argument } = *beginning;
    // SAFETY: the caller of `pthread_create` gave the function and its argument.
    unsafe { start(argument) }
}

/// Makes a thread of the lower half.
///
/// # Safety
/// As pthread_create(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut libc::c_void,
) -> libc::c_int {
    let Some(create) = create() else {
        return libc::EAGAIN;
    };
    let beginning = Box::into_raw(Box::new(Beginning { start, argument }));
    // The new thread inherits the mask; libc does not know of it.
    let mask = syscall::set_mask(!HANDLED.load(Ordering::Relaxed));
    // SAFETY: the caller gives what pthread_create(3) takes; `begin` takes the box that is passed here instead of the caller's argument.
    let result = in_own_area(|| unsafe { create(thread, attributes, begin, beginning.cast()) });
    syscall::set_mask(mask);
    if result != 0 {
        // SAFETY: no thread has been made that would take the box, so it is still this function's own.
        drop(unsafe { Box::from_raw(beginning) });
    }
    result
}
