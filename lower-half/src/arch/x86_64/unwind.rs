//! Finds the address in the upper half to which a function of the lower half returns, from many calls below it, by the compilers' tables for every function
//! (`.eh_frame`, read by libgcc, which the lower half is linked with anyway).
//!
//! Rules: it is called on the application's thread, in the middle of the real MPI, with the lower half's thread pointer. libgcc takes the dynamic
//! linker's lock for a moment and allocates nothing.

use std::ffi::{c_int, c_void};

use stillpoint_wrappers::gate::{Caller, is_upper};

/// `struct _Unwind_Context`.
#[repr(C)]
struct Context([u8; 0]);

/// `_URC_NO_REASON`: go on to the next frame.
const GO_ON: c_int = 0;
/// `_URC_NORMAL_STOP`.
const STOP: c_int = 4;
/// DWARF's numbers of the registers that a function keeps: RBX, RBP, R12 to R15 (System V ABI, AMD64 supplement, figure 3.36), in the order of
/// `Caller::kept`.
const KEPT: [c_int; 6] = [3, 6, 12, 13, 14, 15];

#[link(name = "gcc_s")]
unsafe extern "C" {
    fn _Unwind_Backtrace(
        each: unsafe extern "C" fn(*mut Context, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
    fn _Unwind_GetCFA(context: *mut Context) -> usize;
    fn _Unwind_GetGR(context: *mut Context, register: c_int) -> usize;
}

/// Returns the innermost frame of the upper half on the calling thread's stack.
pub fn caller() -> Option<Caller> {
    let mut found: Option<Caller> = None;
    // SAFETY: `look` is called for each frame with the place that is given here, which lives on this stack.
    unsafe { _Unwind_Backtrace(look, (&raw mut found).cast()) };
    found
}

/// Called for each frame: the context has the registers after the return of the function that the frame has called.
unsafe extern "C" fn look(context: *mut Context, found: *mut c_void) -> c_int {
    // SAFETY: libgcc passes a context that is valid during this call; `found` is the place that `caller` gave, which waits.
    unsafe {
        let pc = _Unwind_GetIP(context);
        // At the outermost frame, libgcc returns 0, which is not code of the upper half.
        if pc == 0 || !is_upper(pc) {
            return GO_ON;
        }
        let mut caller = Caller {
            pc: pc as u64,
            sp: _Unwind_GetCFA(context) as u64,
            ..Caller::default()
        };
        for (place, register) in caller.kept.iter_mut().zip(KEPT) {
            *place = _Unwind_GetGR(context, register) as u64;
        }
        *found.cast::<Option<Caller>>() = Some(caller);
    }
    STOP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_without_the_upper_half_has_no_caller() {
        assert_eq!(caller(), None);
    }
}
