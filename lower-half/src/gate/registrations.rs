//! Registrations that the process makes with the kernel once: for wide registers (`arch_prctl(ARCH_REQ_XCOMP_PERM)`) and for `membarrier`. A restart makes them
//! again.
//!
//! Rules of this place: runs in the trap's handler, except for [`save`] and [`restore`].

use core::sync::atomic::{AtomicU32, Ordering};

use super::SavedStateError;
use super::call::Call;
use crate::arch::registers;
use crate::arch::syscall::{failed, syscall3};

/// Commands of `membarrier` that register the process; each is a separate bit.
pub const REGISTERS: &[u32] = &[1 << 2, 1 << 4, 1 << 6, 1 << 8];

static REGISTERED: AtomicU32 = AtomicU32::new(0);

/// Answers a `membarrier` that registers the process.
pub fn on_membarrier(call: &mut Call) -> isize {
    let result = call.make();
    if !failed(result) {
        REGISTERED.fetch_or(call.argument(0) as u32, Ordering::Relaxed);
    }
    result
}

/// Returns what an image must hold.
pub fn save() -> Vec<u8> {
    [
        u64::from(REGISTERED.load(Ordering::Relaxed)),
        registers::wide(),
    ]
    .iter()
    .flat_map(|word| word.to_le_bytes())
    .collect()
}

/// Takes over the state from [`save`] in another launch, before the threads are made again: they inherit it.
pub fn restore(saved: &[u8]) -> Result<(), SavedStateError> {
    let words = super::words(saved, "registrations", 2)?;
    let impossible = SavedStateError::Value {
        part: "registrations",
    };
    let registered = words[0] as u32;
    for command in REGISTERS
        .iter()
        .filter(|command| registered & **command != 0)
    {
        // SAFETY: membarrier takes numbers and touches no memory.
        if failed(unsafe { syscall3(libc::SYS_membarrier, *command as usize, 0, 0) }) {
            return Err(impossible);
        }
    }
    REGISTERED.store(registered, Ordering::Relaxed);
    let missing = words[1] & !registers::wide();
    for feature in (0..u64::BITS as usize).filter(|bit| missing >> bit & 1 != 0) {
        if !registers::ask_for_wide(feature) {
            return Err(impossible);
        }
    }
    Ok(())
}
