//! The short way of a system call that is trapped often: without a signal. The calling code has been changed to come here (`gate::short`), through an *island*:
//! a few nearby instructions that say which call this is and what lies behind it.
//!
//! ```text
//!   rcx   address behind the call's `syscall`, which is still there; the five bytes before that lead to the island
//!   rax   the call's number; its arguments are where they belong
//! ```
//!
//! The C library's `syscall` makes any call: it enters at [`ANY_NUMBER`], and [`Slot::ShortNumbers`] says which calls go this way.
//!
//! * `close` of a descriptor that is noted as the application's, and the most frequent calls with an ordinary path, go straight to the springboard's pieces, as
//!   the trap would send them.
//! * A question about a signal's action (`rt_sigaction` without a new one) is the kernel's to answer, as long as no handler is installed: for the default and for
//!   an ignored signal the kernel has the application's own action (`gate::signals`). A handler of ours is not the application's, and goes the general way.
//!   A child process that shares its parent's memory sets such actions here too, as `posix_spawn` does for every signal.
//! * `mmap` of as much new memory as was mapped last, if that was large ([`Large`]), is made here at the same place, if that is free again.
//! * For every other call, all signals are blocked, and [`Slot::ShortAnswer`] answers on the thread's stack for handlers; vector registers that it may change
//!   are saved.
//! * Every other call of a child process that shares its parent's memory is also answered that way: the notes on descriptors and mappings are its parent's.
//! * If [`Slot::ShortOff`] is set, the original `syscall` is made, and is trapped.
//!
//! No thread stops here, and no handler of the application runs on top of this code: [`settle`] moves an interrupted thread to before the call, or behind it.
//! So an image may lead only to the address of this code, to [`ANY_NUMBER`], and to the two registers, and these never change.
//!
//! The code stays below the 128-byte red zone of the calling code, and leaves every register as a system call would.

mod settle;
mod site;

use core::arch::global_asm;
use core::arch::x86_64::__cpuid_count;
use core::sync::atomic::{AtomicU64, AtomicUsize};

use stillpoint_wrappers::record;

use super::registers;
use crate::arch::PAGE;
use crate::arch::layout::{
    DESCRIPTOR_LIMIT, DESCRIPTORS, HANDLER_STACK_AT, HANDLER_STACK_BYTES, SHARES_MEMORY, Slot, slot,
};

pub use settle::settle;
pub use site::{BEFORE, JUMP, Makes, SITE, STONE, jump, makes, stone};

/// The entry for calls of any number, as an offset from [`SHORT_WAY`](crate::arch::layout::SHORT_WAY): images lead to it.
pub const ANY_NUMBER: usize = 0xf80;
/// The number of calls in the table of numbers.
pub const NUMBERS: usize = 512;

/// Data about a call on its thread's stack, below the red zone.
#[repr(C)]
pub struct Kept {
    pub behind: usize,
    /// The first four arguments, in their order.
    pub first: [usize; 4],
    /// The call's number, then its result.
    pub result: usize,
    /// The word for a piece of the springboard.
    pub word: usize,
    /// The address at which the thread continues.
    pub target: usize,
    /// The thread's signal mask.
    pub mask: u64,
    all: u64,
    pub last: [usize; 2],
    rbx: usize,
}

/// Data about large mappings for the code; [`Slot::ShortLarge`] points to it.
#[repr(C)]
pub struct Large {
    /// The last large mapping of new private memory: its size, and its address.
    pub bytes: AtomicUsize,
    pub address: AtomicUsize,
    /// The number of times that mappings have been made or changed.
    pub changes: AtomicU64,
}

/// The flags of such a mapping.
pub const LARGE_FLAGS: usize = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;

/// The distance from there to the calling code's stack pointer.
const DEPTH: usize = 128 + size_of::<Kept>();
const TARGET_AT: usize = core::mem::offset_of!(Kept, target);

const _: () = {
    // Offsets that the assembly spells out.
    assert!(size_of::<Kept>() == 104 && TARGET_AT == 56);
    assert!(core::mem::offset_of!(Kept, mask) == 64 && core::mem::offset_of!(Kept, rbx) == 96);
    assert!(HANDLER_STACK_BYTES.is_multiple_of(PAGE));
    assert!(
        core::mem::offset_of!(Large, address) == 8 && core::mem::offset_of!(Large, changes) == 16
    );
};

/// Vector registers that compiled code, and the C library's copying, may change: SSE, AVX, and the three parts of AVX-512. Without the x87's and newer ones,
/// they take less than a page.
const VECTORS: u64 = 0b1110_0110;

global_asm!(
    ".pushsection .text.stillpoint_short, \"ax\", @progbits",
    ".irp name, start, keeps, kept, placed, noted, leaves, opened, general, blocked, answered, returns, returned, any, end",
    ".globl stillpoint_short_\\name",
    ".hidden stillpoint_short_\\name",
    ".endr",
    ".balign 64",
    // Nothing is saved: rcx and the arguments are unchanged.
    "stillpoint_short_start:",
    "movabs r11, {off}",
    "cmp qword ptr [r11], 0",
    "jne 9f",
    "rdgsbase r11",
    "test r11, r11",
    "jz 9f",
    "cmp eax, 3",
    "je 8f",
    // newfstatat and statx of a descriptor alone (AT_EMPTY_PATH) are not trapped.
    "cmp eax, 262",
    "jne 2f",
    "test r10d, 0x1000",
    "jnz 9f",
    "2:",
    "cmp eax, 332",
    "jne 6f",
    "test edx, 0x1000",
    "jnz 9f",
    "6:",
    "lea rsp, [rsp - {depth}]",
    // The arguments are unchanged.
    "stillpoint_short_keeps:",
    "mov [rsp], rcx",
    "mov [rsp + 8], rdi",
    "mov [rsp + 16], rsi",
    "mov [rsp + 24], rdx",
    "mov [rsp + 32], r10",
    "mov [rsp + 40], rax",
    // Every register that changes is saved.
    "stillpoint_short_kept:",
    // rt_sigaction(a signal, nothing, a place, 8): the kernel's answer, unless a handler is installed.
    "cmp eax, 13",
    "jne 5f",
    "test rsi, rsi",
    "jnz 7f",
    "test rdx, rdx",
    "jz stillpoint_short_general",
    "syscall",
    "test eax, eax",
    "jnz stillpoint_short_general",
    "cmp qword ptr [rdx], 1",
    "ja stillpoint_short_general",
    "jmp stillpoint_short_noted",
    // rt_sigaction(a signal, the default or to ignore it, nothing, 8) of such a child: only the kernel has its actions.
    "7:",
    concat!("test qword ptr ", record!(private), ", {shares_memory}"),
    "jz stillpoint_short_general",
    "test rdx, rdx",
    "jnz stillpoint_short_general",
    "lea r11, [rdi - 1]",
    "cmp r11, 63",
    "ja stillpoint_short_general",
    "movabs r10, {other_actions}",
    "bt qword ptr [r10], r11",
    "jc stillpoint_short_general",
    // Whether the action can be read, as for a path.
    "mov r10, rsi",
    "mov r11d, esi",
    "and r11d, 4095",
    "cmp r11d, 4084",
    "ja stillpoint_short_general",
    "mov edi, -1",
    "mov esi, 1",
    "mov edx, -1",
    "mov eax, 233",
    "syscall",
    "cmp rax, -9",
    "jne stillpoint_short_general",
    "mov rsi, [rsp + 16]",
    "cmp qword ptr [rsi], 1",
    "ja stillpoint_short_general",
    "mov rdi, [rsp + 8]",
    "xor edx, edx",
    "mov r10, [rsp + 32]",
    "mov eax, 13",
    "syscall",
    "test eax, eax",
    "jnz stillpoint_short_general",
    "jmp stillpoint_short_noted",
    "5:",
    concat!("test qword ptr ", record!(private), ", {shares_memory}"),
    "jnz stillpoint_short_general",
    "cmp eax, 9",
    "jne 5f",
    // mmap(nothing, as much as last, any protection, LARGE_FLAGS, ...)
    "test rdi, rdi",
    "jnz stillpoint_short_general",
    "cmp r10, {large_flags}",
    "jne stillpoint_short_general",
    "movabs r11, {large}",
    "mov r11, [r11]",
    "cmp rsi, [r11]",
    "jne stillpoint_short_general",
    "mov rdi, [r11 + 8]",
    "mov r10d, {large_flags} | {at_free_place}",
    "syscall",
    // The mapping is made if the result is the requested place; changed registers are still saved.
    "stillpoint_short_placed:",
    "cmp rax, rdi",
    "jne stillpoint_short_general",
    "movabs r11, {large}",
    "mov r11, [r11]",
    "lock inc qword ptr [r11 + 16]",
    // The call is made, and a mapping counted.
    "stillpoint_short_noted:",
    "mov rcx, [rsp]",
    "mov rdi, [rsp + 8]",
    "mov r10, [rsp + 32]",
    "lea rsp, [rsp + {depth}]",
    // All registers are as they must be behind the call.
    "stillpoint_short_leaves:",
    "jmp rcx",
    // Every register that changes is saved.
    "5:",
    // openat, newfstatat and statx have a path behind a directory, access and readlink begin with one.
    "mov r11, rsi",
    "cmp eax, 257",
    "je 7f",
    "cmp eax, 262",
    "je 7f",
    "cmp eax, 332",
    "je 7f",
    "mov r11, rdi",
    "cmp eax, 21",
    "je 7f",
    "cmp eax, 89",
    "jne stillpoint_short_general",
    "7:",
    "mov [rsp + 56], r11",
    // Whether twelve bytes of the path can be read: the kernel answers through an epoll_ctl that fails (EBADF).
    "mov r10, r11",
    "and r11d, 4095",
    "cmp r11d, 4084",
    "ja stillpoint_short_general",
    "mov edi, -1",
    "mov esi, 1",
    "mov edx, -1",
    "mov eax, 233",
    "syscall",
    "cmp rax, -9",
    "jne stillpoint_short_general",
    "mov rdi, [rsp + 56]",
    // "/pro"
    "cmp dword ptr [rdi], 0x6f72702f",
    "je stillpoint_short_general",
    // The NUL, on the same page.
    "mov rdx, rdi",
    "or rdx, 4095",
    "2:",
    "cmp byte ptr [rdi], 0",
    "je 3f",
    "cmp rdi, rdx",
    "je stillpoint_short_general",
    "inc rdi",
    "jmp 2b",
    "3:",
    "mov rdx, rdi",
    "sub rdx, [rsp + 56]",
    "cmp rdx, 3",
    "jb 4f",
    // "exe" at its end
    "cmp word ptr [rdi - 3], 0x7865",
    "jne 4f",
    "cmp byte ptr [rdi - 1], 0x65",
    "je stillpoint_short_general",
    "4:",
    "mov rcx, [rsp]",
    "mov rdi, [rsp + 8]",
    "mov rsi, [rsp + 16]",
    "mov rdx, [rsp + 24]",
    "mov r10, [rsp + 32]",
    "mov rax, [rsp + 40]",
    "movabs r11, {noting}",
    "cmp eax, 257",
    "je 2f",
    "movabs r11, {plain}",
    "2:",
    "lea rsp, [rsp + {depth}]",
    // Registers are as at the beginning.
    "stillpoint_short_opened:",
    "jmp [r11]",
    // Every register that changes is saved. rt_sigprocmask(SIG_SETMASK, all signals, the old mask, 8).
    "stillpoint_short_general:",
    "mov [rsp + 80], r8",
    "mov [rsp + 88], r9",
    "mov [rsp + 96], rbx",
    "mov qword ptr [rsp + 72], -1",
    "mov edi, 2",
    "lea rsi, [rsp + 72]",
    "lea rdx, [rsp + 64]",
    "mov r10d, 8",
    "mov eax, 14",
    "syscall",
    // All signals are blocked.
    "stillpoint_short_blocked:",
    "mov rbx, rsp",
    "mov qword ptr [rsp + 48], 0",
    "mov r11, gs:[{handler_stack}]",
    "mov rax, [rsp]",
    "sub rax, 2",
    "mov [rsp + 56], rax", // without such a stack: the `syscall` where it was
    "test r11, r11",
    "jz 5f",
    "lea rsp, [r11 + {top} - 4096]",
    "xor eax, eax",
    "mov [rsp + 512], rax",
    "mov [rsp + 520], rax",
    "mov [rsp + 528], rax",
    "mov [rsp + 536], rax",
    "mov [rsp + 544], rax",
    "mov [rsp + 552], rax",
    "mov [rsp + 560], rax",
    "mov [rsp + 568], rax",
    "xor edx, edx",
    "mov eax, {vectors}",
    "xsavec [rsp]",
    "mov rdi, rbx",
    "movabs r11, {answer}",
    "cld",
    "call [r11]",
    "xor edx, edx",
    "mov eax, {vectors}",
    "xrstor [rsp]",
    "5:",
    "mov rsp, rbx",
    "mov rbx, [rsp + 96]",
    "mov r8, [rsp + 80]",
    "mov r9, [rsp + 88]",
    "mov edi, 2",
    "lea rsi, [rsp + 64]",
    "xor edx, edx",
    "mov r10d, 8",
    "mov eax, 14",
    "syscall",
    // The values for the registers lie on the stack.
    "stillpoint_short_answered:",
    "mov rcx, [rsp]",
    "mov rdi, [rsp + 8]",
    "mov rsi, [rsp + 16]",
    "mov rdx, [rsp + 24]",
    "mov r10, [rsp + 32]",
    "mov rax, [rsp + 40]",
    "mov r11, [rsp + 48]",
    "lea rsp, [rsp + 56]",
    "stillpoint_short_returns:",
    "ret {depth} - 64",
    // Registers are as at the beginning.
    "stillpoint_short_returned:",
    // close, whose number is not in a register then.
    "8:",
    concat!("test qword ptr ", record!(private), ", {shares_memory}"),
    "jnz 6b",
    "mov r11d, edi",
    "cmp r11d, {descriptor_limit}",
    "jae 6b",
    "movabs rax, {descriptors}",
    "bt qword ptr [rax], r11",
    "mov eax, 3",
    "jnc 6b",
    "movabs r11, {closing}",
    "jmp [r11]",
    "9:",
    "lea r11, [rcx - 2]",
    "jmp r11",
    // Nothing is saved, as at the start.
    ".org stillpoint_short_start + {any_number}, 0xcc",
    "stillpoint_short_any:",
    "cmp rax, {numbers}",
    "jae 9b",
    "movabs r11, {short_numbers}",
    "mov r11, [r11]",
    "bt [r11], rax",
    "jc stillpoint_short_start",
    "jmp 9b",
    "stillpoint_short_end:",
    ".popsection",
    any_number = const ANY_NUMBER,
    numbers = const NUMBERS,
    short_numbers = const slot(Slot::ShortNumbers),
    off = const slot(Slot::ShortOff),
    shares_memory = const SHARES_MEMORY,
    depth = const DEPTH,
    other_actions = const slot(Slot::ShortOtherActions),
    noting = const slot(Slot::ShortNoting),
    plain = const slot(Slot::ShortPlain),
    large = const slot(Slot::ShortLarge),
    large_flags = const LARGE_FLAGS,
    at_free_place = const libc::MAP_FIXED_NOREPLACE,
    closing = const slot(Slot::ShortClose),
    answer = const slot(Slot::ShortAnswer),
    handler_stack = const HANDLER_STACK_AT,
    top = const HANDLER_STACK_BYTES,
    vectors = const VECTORS,
    descriptor_limit = const DESCRIPTOR_LIMIT,
    descriptors = const DESCRIPTORS,
);

unsafe extern "C" {
    static stillpoint_short_start: u8;
    static stillpoint_short_keeps: u8;
    static stillpoint_short_kept: u8;
    static stillpoint_short_placed: u8;
    static stillpoint_short_noted: u8;
    static stillpoint_short_leaves: u8;
    static stillpoint_short_opened: u8;
    static stillpoint_short_general: u8;
    static stillpoint_short_blocked: u8;
    static stillpoint_short_answered: u8;
    static stillpoint_short_returns: u8;
    static stillpoint_short_returned: u8;
    #[cfg(test)]
    static stillpoint_short_any: u8;
    static stillpoint_short_end: u8;
}

/// The code to copy to [`layout::SHORT_WAY`](crate::arch::layout::SHORT_WAY).
pub fn code() -> &'static [u8] {
    let start = &raw const stillpoint_short_start;
    let bytes = &raw const stillpoint_short_end as usize - start as usize;
    debug_assert!(bytes <= PAGE);
    // SAFETY: both labels bound the code above, which is part of this executable and never changes.
    unsafe { core::slice::from_raw_parts(start, bytes.min(PAGE)) }
}

/// Calls that are trapped only with some arguments: in other cases the code returns to the original `syscall`.
pub const DECIDED: &[i64] = &[libc::SYS_newfstatat, libc::SYS_statx];

/// Whether this processor and kernel support the code's instructions: `rdgsbase` and `xsavec`.
pub fn possible() -> bool {
    const XSAVE_LEAF: u32 = 0xd;
    const XSAVEC: u32 = 1 << 1;
    // The kernel enables GS instructions only if it also saves vector registers by XSAVE.
    registers::fsgsbase() && __cpuid_count(XSAVE_LEAF, 1).eax & XSAVEC != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_fits_its_page() {
        assert!(code().len() <= PAGE);
    }

    #[test]
    fn images_lead_to_places_that_do_not_move() {
        let start = &raw const stillpoint_short_start as usize;
        assert_eq!(&raw const stillpoint_short_any as usize - start, ANY_NUMBER);
    }

    /// Checks that every instruction of the code is one that a thread may be moved away from, or runs with signals blocked.
    #[test]
    fn parts_lie_in_their_order() {
        let parts = [
            &raw const stillpoint_short_start,
            &raw const stillpoint_short_keeps,
            &raw const stillpoint_short_kept,
            &raw const stillpoint_short_placed,
            &raw const stillpoint_short_noted,
            &raw const stillpoint_short_leaves,
            &raw const stillpoint_short_opened,
            &raw const stillpoint_short_general,
            &raw const stillpoint_short_blocked,
            &raw const stillpoint_short_answered,
            &raw const stillpoint_short_returns,
            &raw const stillpoint_short_returned,
            &raw const stillpoint_short_any,
            &raw const stillpoint_short_end,
        ];
        assert!(parts.is_sorted_by(|one, two| one < two));
    }
}
