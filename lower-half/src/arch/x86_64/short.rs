//! The short way of a system call that is trapped often: without a signal. The code that made it has been changed to come here
//! (`gate::short`), by way of an *island*, a few instructions near it that say which call this is and what lies behind it.
//!
//! ```text
//!   rcx   address behind the call's `syscall`, which is still there; the five bytes before that lead to the island
//!   rax   the call's number; its arguments are where they belong
//! ```
//!
//! The C library's `syscall` makes any call whatever: it comes in at [`ANY_NUMBER`], where [`Slot::ShortNumbers`] says which of them go this way.
//!
//! * `close` of a descriptor that is noted as the application's, and the most frequent calls with a path where that is nothing special, go straight on to the
//!   springboard's pieces, as the trap would have them go.
//! * `mmap` of as much new memory as was mapped last, when that was much ([`Large`]), is made here, at the same place, if that is free again.
//! * Everything else: all signals are blocked, and [`Slot::ShortAnswer`] answers on the thread's stack for handlers, what it may change of vector
//!   registers being kept.
//! * So is every call of a child process that shares its parent's memory: what is noted of descriptors and mappings is its parent's.
//! * Where [`Slot::ShortOff`] is set the `syscall` is made where it was, and is trapped.
//!
//! Nobody stops here, and no handler of the application finds itself on top of this code: [`settle`] moves whoever a signal has interrupted here to before the call,
//! or behind it. So what an image may lead to is the address of this code, that of [`ANY_NUMBER`], and the two registers, and none ever changes.
//!
//! Keeps below the 128-byte red zone of the code that made the call, and leaves every register as a system call would.

mod settle;
mod site;

use core::arch::global_asm;
use core::arch::x86_64::__cpuid_count;
use core::sync::atomic::{AtomicU64, AtomicUsize};

use super::registers;
use crate::arch::PAGE;
use crate::arch::layout::{
    DESCRIPTOR_LIMIT, DESCRIPTORS, HANDLER_STACK_AT, HANDLER_STACK_BYTES, SHARES_MEMORY, Slot, slot,
};

pub use settle::settle;
pub use site::{BEFORE, JUMP, Makes, SITE, STONE, jump, makes, stone};

/// Where calls of any number come in, behind [`SHORT_WAY`](crate::arch::layout::SHORT_WAY): images lead to it.
pub const ANY_NUMBER: usize = 0xf80;
/// Calls that the table of numbers has room for.
pub const NUMBERS: usize = 512;

/// What is kept of a call on the stack of who made it, below the red zone.
#[repr(C)]
pub struct Kept {
    pub behind: usize,
    /// The first four arguments, in their order.
    pub first: [usize; 4],
    /// The call's number, then its result.
    pub result: usize,
    /// What a piece of the springboard is told.
    pub word: usize,
    /// Where it goes on.
    pub target: usize,
    /// The thread's signal mask.
    pub mask: u64,
    all: u64,
    pub last: [usize; 2],
    rbx: usize,
}

/// What is known of large mappings, for the code to use: [`Slot::ShortLarge`] leads to it.
#[repr(C)]
pub struct Large {
    /// The last one that was new memory of the process's own: bytes, and address.
    pub bytes: AtomicUsize,
    pub address: AtomicUsize,
    /// How often mappings have been made or changed.
    pub changes: AtomicU64,
}

/// The flags of such a mapping.
pub const LARGE_FLAGS: usize = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;

/// Bytes from there to the stack pointer of who made the call.
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

/// Vector registers that compiled code, and the C library's copying, may change: SSE, AVX, and the three parts of AVX-512. Without the x87's and what is
/// newer, they take less than a page.
const VECTORS: u64 = 0b1110_0110;

global_asm!(
    ".pushsection .text.stillpoint_short, \"ax\", @progbits",
    ".irp name, start, keeps, kept, placed, noted, leaves, opened, general, blocked, answered, returns, returned, any, end",
    ".globl stillpoint_short_\\name",
    ".hidden stillpoint_short_\\name",
    ".endr",
    ".balign 64",
    // Nothing is kept: rcx is as it was, and arguments too.
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
    // Arguments are as they were.
    "stillpoint_short_keeps:",
    "mov [rsp], rcx",
    "mov [rsp + 8], rdi",
    "mov [rsp + 16], rsi",
    "mov [rsp + 24], rdx",
    "mov [rsp + 32], r10",
    "mov [rsp + 40], rax",
    // All that changes is kept.
    "stillpoint_short_kept:",
    "test qword ptr gs:[0x40], {shares_memory}",
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
    // Made, if the result is the place; what changes is kept still.
    "stillpoint_short_placed:",
    "cmp rax, rdi",
    "jne stillpoint_short_general",
    "movabs r11, {large}",
    "mov r11, [r11]",
    "lock inc qword ptr [r11 + 16]",
    // ... and counted.
    "stillpoint_short_noted:",
    "mov rcx, [rsp]",
    "mov rdi, [rsp + 8]",
    "mov r10, [rsp + 32]",
    "lea rsp, [rsp + {depth}]",
    // Everything is as it is to be behind the call.
    "stillpoint_short_leaves:",
    "jmp rcx",
    // All that changes is kept.
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
    // Whether twelve bytes of the path can be read the kernel is asked by an epoll_ctl that fails (EBADF).
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
    // As at the beginning.
    "stillpoint_short_opened:",
    "jmp [r11]",
    // All that changes is kept. rt_sigprocmask(SIG_SETMASK, everything, the mask that was, 8).
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
    // No signal comes.
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
    // What the registers are to be lies on the stack.
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
    // As at the beginning.
    "stillpoint_short_returned:",
    // close, whose number is nowhere then.
    "8:",
    "test qword ptr gs:[0x40], {shares_memory}",
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
    // Nothing is kept, as at the start.
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
    // SAFETY: both labels bound the code above, which never changes.
    unsafe { core::slice::from_raw_parts(start, bytes.min(PAGE)) }
}

/// Calls of which only some are trapped: the code lets the others be made where they are.
pub const DECIDED: &[i64] = &[libc::SYS_newfstatat, libc::SYS_statx];

/// Whether this processor and kernel have what the code needs: `rdgsbase` and `xsavec`.
pub fn possible() -> bool {
    const XSAVE_LEAF: u32 = 0xd;
    const XSAVEC: u32 = 1 << 1;
    // The kernel lets user code use GS only where it keeps vector registers by XSAVE too.
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

    /// Every instruction of the code is either one that a thread may be moved away from, or blocked from signals.
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
