//! FS and GS: read and set by instructions if the kernel permits them (AT_HWCAP2 bit 1), otherwise by `arch_prctl`.

use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering};

use stillpoint_wrappers::gate::ThreadRecord;

use super::syscall::{failed, syscall3};

const ARCH_SET_GS: usize = 0x1001;
const ARCH_SET_FS: usize = 0x1002;
const ARCH_GET_FS: usize = 0x1003;
const ARCH_GET_GS: usize = 0x1004;

/// Whether user code may use the FSGSBASE instructions; set once by [`probe`].
static FSGSBASE: AtomicBool = AtomicBool::new(false);

/// Determines how FS and GS are switched here. Called first in a launch, with the lower FS.
pub fn probe() {
    // SAFETY: getauxval reads the auxiliary vector, which the process has from its start.
    let usable = unsafe { libc::getauxval(libc::AT_HWCAP2) } & 2 != 0;
    FSGSBASE.store(usable, Ordering::Relaxed);
}

/// Whether `rdfsbase` and the related instructions may be used.
pub fn fsgsbase() -> bool {
    FSGSBASE.load(Ordering::Relaxed)
}

fn get(code: usize) -> u64 {
    let mut value = 0u64;
    // SAFETY: arch_prctl writes the base into the word given.
    unsafe { syscall3(libc::SYS_arch_prctl, code, &raw mut value as usize, 0) };
    value
}

/// The FS base.
#[inline(always)]
pub fn fs() -> u64 {
    if fsgsbase() {
        let value;
        // SAFETY: the kernel allows the instruction, which only reads a base.
        unsafe { asm!("rdfsbase {}", out(reg) value, options(nostack, nomem, preserves_flags)) };
        value
    } else {
        get(ARCH_GET_FS)
    }
}

/// The GS base.
#[inline(always)]
pub fn gs() -> u64 {
    if fsgsbase() {
        let value;
        // SAFETY: the kernel allows the instruction, which only reads a base.
        unsafe { asm!("rdgsbase {}", out(reg) value, options(nostack, nomem, preserves_flags)) };
        value
    } else {
        get(ARCH_GET_GS)
    }
}

/// Returns the address in GS: the thread's record, on a thread that has one.
///
/// # Safety
/// The thread must have a record.
#[inline(always)]
pub unsafe fn record() -> *const ThreadRecord {
    let record;
    // SAFETY: the caller says that the thread has a record; GS leads to it, and its first word is its own address.
    unsafe { asm!("mov {}, gs:[0]", out(reg) record, options(nostack, preserves_flags, readonly)) };
    record
}

/// Returns the FS base from the thread area itself (x86-64 psABI: the word at FS:0), which is faster to read.
#[inline(always)]
pub fn area() -> u64 {
    let area;
    // SAFETY: every thread has an area in place, whose first word is its own address.
    unsafe { asm!("mov {}, fs:[0]", out(reg) area, options(nostack, preserves_flags, readonly)) };
    area
}

/// Sets the FS base.
///
/// # Safety
/// The code that runs next on this thread must belong to that thread area.
#[inline(always)]
pub unsafe fn set_fs(value: u64) {
    if fsgsbase() {
        // SAFETY: the caller says that the code that runs next belongs to this thread area; the kernel allows the instruction (`fsgsbase`).
        unsafe { asm!("wrfsbase {}", in(reg) value, options(nostack, preserves_flags)) };
    } else {
        // SAFETY: the caller says that the code that runs next belongs to this thread area; the call only sets the FS base.
        unsafe { syscall3(libc::SYS_arch_prctl, ARCH_SET_FS, value as usize, 0) };
    }
}

/// Sets the GS base.
///
/// # Safety
/// The value must be the address of this thread's record, or 0 on a thread that has none.
#[inline(always)]
pub unsafe fn set_gs(value: u64) {
    if fsgsbase() {
        // SAFETY: the caller gives the address of this thread's record or 0; the kernel allows the instruction (`fsgsbase`).
        unsafe { asm!("wrgsbase {}", in(reg) value, options(nostack, preserves_flags)) };
    } else {
        // SAFETY: the caller gives the address of this thread's record or 0; the call only sets the GS base.
        unsafe { syscall3(libc::SYS_arch_prctl, ARCH_SET_GS, value as usize, 0) };
    }
}

/// Returns the wide registers that the process may use, one bit each.
pub fn wide() -> u64 {
    const GET_PERMISSIONS: usize = 0x1022;
    let mut bits = 0u64;
    let place = &raw mut bits as usize;
    // SAFETY: the kernel writes one word.
    let result = unsafe { syscall3(libc::SYS_arch_prctl, GET_PERMISSIONS, place, 0) };
    if failed(result) { 0 } else { bits }
}

/// Asks the kernel for the use of one of them; returns whether it is granted.
pub fn ask_for_wide(feature: usize) -> bool {
    const ASK_PERMISSION: usize = 0x1023;
    // SAFETY: the call takes numbers and touches no memory.
    !failed(unsafe { syscall3(libc::SYS_arch_prctl, ASK_PERMISSION, feature, 0) })
}
