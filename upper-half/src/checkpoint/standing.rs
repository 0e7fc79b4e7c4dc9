//! The stand of a thread below the real MPI's frames, while the real MPI waits: in a collective operation, or in a wait for requests.
//!
//! The rules of both cases hold: the hook runs on the application's stack, in the middle of the real MPI, with any FS.

use stillpoint_wrappers::gate::Caller;

use crate::operations::clock::inside;
use crate::operations::completion::real_wait;

/// `UpperHooks::stand`.
///
/// # Safety
/// As [`inside::stands`], which said so; `caller` must be where the real MPI was called from.
pub unsafe extern "C" fn hook(caller: *const Caller) {
    // SAFETY: `caller` is where the real MPI was called from, by the caller's promise. It is copied, since the stack that it lies on goes after a restart.
    unsafe {
        let caller = *caller;
        if !inside::stand(&caller) {
            real_wait::stand(&caller);
        }
    }
}
