//! Calls a function as if the code that a signal has interrupted had called it. Code that walks the stack from there finds the
//! interrupted code, as after the kernel's own way out of a handler.
//!
//! The unwinder is told, in the terms of DWARF's call frame information, that every register of the caller lies in the signal's
//! `ucontext_t`, to which rbx leads. (A `DW_CFA_expression` for each: `DW_OP_breg3` with its place there.)

use core::arch::global_asm;
use core::ffi::c_void;

global_asm!(
    ".pushsection .text.stillpoint_on_behalf, \"ax\", @progbits",
    ".globl stillpoint_on_behalf",
    ".hidden stillpoint_on_behalf",
    ".globl stillpoint_on_behalf_end",
    ".hidden stillpoint_on_behalf_end",
    ".type stillpoint_on_behalf, @function",
    "stillpoint_on_behalf:",
    ".cfi_startproc",
    "push rbx",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset rbx, 0",
    "mov rbx, rdi",
    ".cfi_remember_state",
    ".cfi_signal_frame",
    ".cfi_escape 0x0f, 0x04, 0x73, 0xa0, 0x01, 0x06", // the frame's address: rsp, read
    ".cfi_escape 0x10, 0x08, 0x02, 0x73, 0x28",       // r8
    ".cfi_escape 0x10, 0x09, 0x02, 0x73, 0x30",       // r9
    ".cfi_escape 0x10, 0x0a, 0x02, 0x73, 0x38",       // r10
    ".cfi_escape 0x10, 0x0b, 0x03, 0x73, 0xc0, 0x00", // r11
    ".cfi_escape 0x10, 0x0c, 0x03, 0x73, 0xc8, 0x00", // r12
    ".cfi_escape 0x10, 0x0d, 0x03, 0x73, 0xd0, 0x00", // r13
    ".cfi_escape 0x10, 0x0e, 0x03, 0x73, 0xd8, 0x00", // r14
    ".cfi_escape 0x10, 0x0f, 0x03, 0x73, 0xe0, 0x00", // r15
    ".cfi_escape 0x10, 0x05, 0x03, 0x73, 0xe8, 0x00", // rdi
    ".cfi_escape 0x10, 0x04, 0x03, 0x73, 0xf0, 0x00", // rsi
    ".cfi_escape 0x10, 0x06, 0x03, 0x73, 0xf8, 0x00", // rbp
    ".cfi_escape 0x10, 0x03, 0x03, 0x73, 0x80, 0x01", // rbx
    ".cfi_escape 0x10, 0x01, 0x03, 0x73, 0x88, 0x01", // rdx
    ".cfi_escape 0x10, 0x00, 0x03, 0x73, 0x90, 0x01", // rax
    ".cfi_escape 0x10, 0x02, 0x03, 0x73, 0x98, 0x01", // rcx
    ".cfi_escape 0x10, 0x10, 0x03, 0x73, 0xa8, 0x01", // rip
    "call rsi",
    ".cfi_restore_state",
    "pop rbx",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore rbx",
    "ret",
    ".cfi_endproc",
    "stillpoint_on_behalf_end:",
    ".size stillpoint_on_behalf, . - stillpoint_on_behalf",
    ".popsection",
);

unsafe extern "C" {
    fn stillpoint_on_behalf(context: *const c_void, function: unsafe extern "C" fn());
    static stillpoint_on_behalf_end: u8;
}

/// Calls `function` on behalf of the code that a signal has interrupted.
///
/// # Safety
/// `context` is what the kernel gave the handler; the function does not unwind.
pub unsafe fn on_behalf(context: *const c_void, function: unsafe extern "C" fn()) {
    // SAFETY: `context` is what the kernel gave the handler, and `function` does not unwind, by the caller's promise.
    unsafe { stillpoint_on_behalf(context, function) }
}

/// Whether an address in a list of callers is [`on_behalf`]'s: the next one is the interrupted code.
pub fn is_on_behalf(address: usize) -> bool {
    let start = stillpoint_on_behalf as *const () as usize;
    let end = &raw const stillpoint_on_behalf_end as usize;
    (start..end).contains(&address)
}
