//! The upper half's own part in a restart.

use std::sync::atomic::Ordering;

use stillpoint_refusals::{Code, Refusal};
use stillpoint_wrappers::gate::UpperHooks;

use crate::arch::registers;

/// Lets the upper half make its MPI objects again.
///
/// # Safety
/// On the main thread, after its adoption, with the upper half's memory in place and MPI running.
pub unsafe fn rebuild(hooks: u64, fs_upper: u64) -> Result<(), Refusal> {
    // SAFETY: the pointer is null, or leads to hooks in memory that the caller says is in place.
    let Some(hooks) = (unsafe { (hooks as *const UpperHooks).as_ref() }) else {
        return Ok(());
    };
    let Some(function) = hooks.rebuild else {
        return Ok(());
    };
    let lower = registers::fs();
    // SAFETY: the hook demands the main thread with the upper FS, and between the switches nothing uses the lower half's thread-local storage. This stack lies
    // outside of everything that was restored.
    let result = unsafe {
        registers::set_fs(fs_upper);
        let result = function();
        registers::set_fs(lower);
        result
    };
    if result == 0 {
        return Ok(());
    }
    let bytes = (hooks.refusal_bytes.load(Ordering::Acquire) as usize).min(4096);
    let text = match hooks.refusal {
        0 => String::new(),
        // SAFETY: the upper half keeps 4096 bytes of text there, and `bytes` is at most as many.
        address => unsafe {
            String::from_utf8_lossy(std::slice::from_raw_parts(address as *const u8, bytes))
                .into_owned()
        },
    };
    let reason = Refusal::read(&text, Code::OtherLibrary);
    Err(reason.reworded(|text| format!("cannot restore its MPI objects (error {result}): {text}")))
}
