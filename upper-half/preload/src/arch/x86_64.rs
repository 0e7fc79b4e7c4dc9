//! x86-64: static thread-local storage lies below FS, that of the executable first, then that of this library.

use core::arch::{asm, global_asm};

use crate::room::BYTES;

global_asm!(
    ".pushsection .tbss.stillpoint_room_of_thread, \"awT\", @nobits",
    ".balign 16",
    ".globl stillpoint_room_of_thread",
    ".hidden stillpoint_room_of_thread",
    ".type stillpoint_room_of_thread, @tls_object",
    "stillpoint_room_of_thread: .zero {bytes}",
    ".popsection",
    bytes = const BYTES,
);

/// Returns the start of the calling thread's room.
pub fn start_of_room() -> usize {
    let start;
    // SAFETY: the caller runs with the upper FS; this library is loaded at the program's start, so its thread-local storage is static.
    unsafe {
        asm!(
            "mov {0}, fs:[0]",
            "add {0}, [rip + stillpoint_room_of_thread@gottpoff]",
            out(reg) start,
            options(nostack, readonly)
        );
    }
    start
}
