//! x86-64: FS is the thread pointer of a libc, GS leads to our own record of the thread.

pub mod calls;
pub mod enter;
pub mod frame;
pub mod lazy;
pub mod registers;
pub mod short;
pub mod springboard;
pub mod syscall;
pub mod trampoline;
pub mod unwind;

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// seccomp's number of the processor (`linux/audit.h`).
pub const AUDIT_ARCH: u32 = 0xc000_003e;
/// The processor's number in ELF files (`elf.h`).
pub const MACHINE: u16 = 62;
/// Relocations of the words through which a function of another library is called: `R_X86_64_GLOB_DAT` and `R_X86_64_JUMP_SLOT` (`elf.h`).
#[cfg_attr(
    library = "openmpi",
    expect(dead_code, reason = "what other libraries import is theirs")
)]
pub const IMPORTS: [u32; 2] = [6, 7];
/// The processor's name in the auxiliary vector.
pub const PLATFORM: &[u8] = b"x86_64\0";

/// The body of a naked function of two arguments: jumps to the function that `$way` returns, as if that had been called.
macro_rules! go_where {
    ($way:path) => {
        core::arch::naked_asm!(
            "push rdi",
            "push rsi",
            "sub rsp, 8",
            "call {way}",
            "add rsp, 8",
            "pop rsi",
            "pop rdi",
            "jmp rax",
            way = sym $way,
        )
    };
}
pub(crate) use go_where;
