//! System calls by hand.
//!
//! Rules: as everywhere in `arch`: no libc, no `errno`, either half's FS.

use core::arch::asm;
use core::sync::atomic::AtomicU32;

const SYS_MMAP: usize = 9;
const SYS_MUNMAP: usize = 11;
const SYS_SCHED_YIELD: usize = 24;
const SYS_MREMAP: usize = 25;
const SYS_MINCORE: usize = 27;
const SYS_MADVISE: usize = 28;
const SYS_GETCWD: usize = 79;
const SYS_ARCH_PRCTL: usize = 158;
const SYS_FUTEX: usize = 202;
const SYS_PRLIMIT64: usize = 302;
const ARCH_SET_FS: usize = 0x1002;

/// A raw system call.
///
/// # Safety
/// As the call itself.
#[inline]
unsafe fn syscall(number: usize, arguments: [usize; 6]) -> isize {
    let result;
    // SAFETY: the kernel keeps all registers but rax, rcx and r11.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    result
}

/// Switches the thread pointer by system call, where `wrfsbase` is not allowed.
///
/// # Safety
/// As [`write_fs`](super::write_fs).
#[cold]
pub unsafe fn set_fs(value: u64) {
    // SAFETY: the value is a thread pointer that belongs to the code that runs next, by the caller's promise.
    unsafe {
        syscall(SYS_ARCH_PRCTL, [ARCH_SET_FS, value as usize, 0, 0, 0, 0]);
    }
}

/// Maps `bytes` bytes of fresh private zeroed memory that is given pages only as they are touched.
/// Returns null if there is none.
pub fn map(bytes: usize) -> *mut u8 {
    const PROT_READ_WRITE: usize = 3;
    const MAP_PRIVATE_ANONYMOUS_NORESERVE: usize = 0x2 | 0x20 | 0x4000;
    // SAFETY: asks for new memory; touches none that exists.
    let result = unsafe {
        syscall(
            SYS_MMAP,
            [
                0,
                bytes,
                PROT_READ_WRITE,
                MAP_PRIVATE_ANONYMOUS_NORESERVE,
                usize::MAX,
                0,
            ],
        )
    };
    if (-4095..0).contains(&result) {
        core::ptr::null_mut()
    } else {
        result as *mut u8
    }
}

/// Bytes of addresses that the process may have (`RLIMIT_AS`).
pub fn address_space() -> usize {
    const RLIMIT_AS: usize = 9;
    let mut limit = [u64::MAX; 2];
    // SAFETY: the kernel writes two words.
    unsafe {
        let at = limit.as_mut_ptr() as usize;
        syscall(SYS_PRLIMIT64, [0, RLIMIT_AS, 0, at, 0, 0]);
    }
    limit[0] as usize
}

/// Gives memory of [`map`] back.
///
/// # Safety
/// No code may use `address .. address + bytes` any more.
pub unsafe fn unmap(address: *mut u8, bytes: usize) {
    // SAFETY: no code uses the memory any more, by the caller's promise.
    unsafe {
        syscall(SYS_MUNMAP, [address as usize, bytes, 0, 0, 0, 0]);
    }
}

/// Whether the page at `address` is mapped; the page is not touched.
pub fn is_mapped(address: usize) -> bool {
    let mut resident = [0u8; 1];
    // SAFETY: `mincore` writes one byte for one page.
    let result = unsafe {
        syscall(
            SYS_MINCORE,
            [address, 4096, resident.as_mut_ptr() as usize, 0, 0, 0],
        )
    };
    result == 0
}

/// The working directory's path, with the zero at its end, or `None` if there is none, or if it does not fit into `room`.
pub fn working_directory(room: &mut [u8]) -> Option<&[u8]> {
    // SAFETY: the kernel writes into the room, at most as many bytes as it is told.
    let bytes = unsafe {
        let at = room.as_mut_ptr() as usize;
        syscall(SYS_GETCWD, [at, room.len(), 0, 0, 0, 0])
    };
    room.get(..usize::try_from(bytes).ok()?)
}

/// Sleeps while `word`, which only this process uses, holds `expected`, at most that many nanoseconds.
pub fn futex_wait(word: &AtomicU32, expected: u32, nanoseconds: u64) {
    /// The lower half wakes in the same way: a private futex and a shared one of the same word do not meet.
    const FUTEX_WAIT_PRIVATE: usize = 128;
    let timeout = [nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000];
    let (word, timeout) = (word.as_ptr() as usize, timeout.as_ptr() as usize);
    // SAFETY: the kernel reads the word and the time.
    unsafe {
        syscall(
            SYS_FUTEX,
            [word, FUTEX_WAIT_PRIVATE, expected as usize, timeout, 0, 0],
        );
    }
}

/// Lets another thread have the processor.
pub fn yield_processor() {
    // SAFETY: the system call takes no arguments and touches no memory.
    unsafe {
        syscall(SYS_SCHED_YIELD, [0; 6]);
    }
}

/// Maps shared memory a second time, over the mapping at `to`; the memory stays mapped at `from`. Not possible for private memory (mremap(2)).
///
/// # Safety
/// The memory at `to` must be the caller's alone; `from` must be a page's beginning.
pub unsafe fn map_again(from: usize, bytes: usize, to: usize) -> bool {
    const MAYMOVE_FIXED: usize = 1 | 2;
    // SAFETY: the memory at `to` is the caller's alone, by its promise, so it may be replaced; a length of 0 leaves the mapping at `from` as it is.
    let result = unsafe { syscall(SYS_MREMAP, [from, 0, bytes, MAYMOVE_FIXED, to, 0]) };
    result == to as isize
}

/// Marks memory that another process's image holds (`MADV_DONTDUMP`).
///
/// # Safety
/// It must be a mapping of the caller's.
pub unsafe fn leave_out(at: usize, bytes: usize) {
    const MADV_DONTDUMP: usize = 16;
    // SAFETY: the memory is a mapping of the caller's, by its promise, and its contents stay as they are.
    unsafe { syscall(SYS_MADVISE, [at, bytes, MADV_DONTDUMP, 0, 0, 0]) };
}
