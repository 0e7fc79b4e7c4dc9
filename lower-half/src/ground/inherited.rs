//! The process's state at its start, before the lower half changed it: ignored signals, the signal mask, open descriptors. The application gets these.
//!
//! Read before the constructors of any library run (`.preinit_array`) and before Rust's runtime, which ignores SIGPIPE and is kept from handling faults.
//! Direct system calls only: libc may not be ready.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch::syscall::{failed, syscall3, syscall4};

/// The limit for descriptors that are tested one by one; inherited ones are small.
const MOST: usize = 4096;

static IGNORED: AtomicU64 = AtomicU64::new(0);
static MASK: AtomicU64 = AtomicU64::new(0);
/// Signals that were blocked only for the time of an `execve`.
static HELD: AtomicU64 = AtomicU64::new(0);
static DESCRIPTORS: [AtomicU64; MOST / 64] = [const { AtomicU64::new(0) }; MOST / 64];

/// Makes the C library's start-up code call [`look`] first.
#[used]
#[unsafe(link_section = ".preinit_array")]
static FIRST: unsafe extern "C" fn() = look;

unsafe extern "C" fn look() {
    let mut ignored = 0;
    for signal in 1..=64usize {
        let mut action = [0usize; 4];
        // SAFETY: the kernel writes a `struct sigaction`, which is four words; the array has four.
        let result = unsafe {
            syscall4(
                libc::SYS_rt_sigaction,
                signal,
                0,
                action.as_mut_ptr() as usize,
                8,
            )
        };
        if !failed(result) && action[0] == libc::SIG_IGN {
            ignored |= 1 << (signal - 1);
        }
    }
    IGNORED.store(ignored, Ordering::Relaxed);
    act(libc::SIG_IGN);
    let mut mask = 0u64;
    // SAFETY: the kernel writes the mask to 8 bytes, which live on this stack.
    unsafe {
        syscall4(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK as usize,
            0,
            &raw mut mask as usize,
            8,
        )
    };
    MASK.store(mask, Ordering::Relaxed);
    look_at_descriptors();
}

/// Gives signals of faults an action that is not the default one, or the default one again. Rust's runtime handles those that have the default action, on an
/// alternate stack for every thread, and ends the process if there is no memory for such a stack.
fn act(action: usize) {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        if IGNORED.load(Ordering::Relaxed) & 1 << (signal - 1) != 0 {
            continue;
        }
        let action = [action, 0, 0, 0];
        // SAFETY: four words are the kernel's `struct sigaction`, without a handler.
        unsafe {
            syscall4(
                libc::SYS_rt_sigaction,
                signal as usize,
                action.as_ptr() as usize,
                0,
                8,
            )
        };
    }
}

/// The runtime has begun: faults end this process again.
pub fn runtime_has_begun() {
    act(libc::SIG_DFL);
}

/// Reads `/proc/self/fd`, or tests every number if that cannot be read.
fn look_at_descriptors() {
    let flags = (libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC) as usize;
    let path = c"/proc/self/fd".as_ptr() as usize;
    // SAFETY: the path is a constant that ends in NUL; the call makes a descriptor.
    let directory = unsafe { syscall4(libc::SYS_openat, libc::AT_FDCWD as usize, path, flags, 0) };
    if failed(directory) {
        for fd in 0..MOST {
            // SAFETY: F_GETFD only reads a flag; the call takes numbers and touches no memory.
            if !failed(unsafe { syscall3(libc::SYS_fcntl, fd, libc::F_GETFD as usize, 0) }) {
                note(fd);
            }
        }
        return;
    }
    let mut entries = [0u8; 2048];
    loop {
        // SAFETY: the kernel fills at most as many bytes as the buffer has.
        let bytes = unsafe {
            syscall3(
                libc::SYS_getdents64,
                directory as usize,
                entries.as_mut_ptr() as usize,
                entries.len(),
            )
        };
        if bytes <= 0 {
            break;
        }
        // struct linux_dirent64: inode (8), offset (8), record length (2), type (1), name.
        let mut rest = entries.get(..bytes as usize).unwrap_or(&[]);
        while let (Some(&[low, high]), Some(name)) = (rest.get(16..18), rest.get(19..)) {
            let digits = name.iter().take_while(|byte| byte.is_ascii_digit());
            let fd = digits.fold(None, |sum: Option<usize>, digit| {
                Some(
                    sum.unwrap_or(0)
                        .wrapping_mul(10)
                        .wrapping_add(usize::from(digit - b'0')),
                )
            });
            if let Some(fd) = fd.filter(|fd| *fd != directory as usize) {
                note(fd);
            }
            match rest.get(usize::from(u16::from_ne_bytes([low, high])).max(19)..) {
                Some(next) => rest = next,
                None => break,
            }
        }
    }
    // SAFETY: the directory was opened above, and nothing uses it any more.
    unsafe { syscall3(libc::SYS_close, directory as usize, 0, 0) };
}

fn note(fd: usize) {
    if let Some(word) = DESCRIPTORS.get(fd / 64) {
        word.fetch_or(1 << (fd % 64), Ordering::Relaxed);
    }
}

/// Undoes what Rust's runtime has changed for a program that this process executes: SIGPIPE is ignored, and closed standard streams are open.
pub fn give_back() {
    if ignored_signals() & 1 << (libc::SIGPIPE - 1) == 0 {
        let action = [libc::SIG_DFL, 0, 0, 0];
        // SAFETY: four words are the kernel's `struct sigaction`, without a handler.
        unsafe {
            syscall4(
                libc::SYS_rt_sigaction,
                libc::SIGPIPE as usize,
                action.as_ptr() as usize,
                0,
                8,
            )
        };
    }
    for fd in (0..3).filter(|fd| !descriptors().any(|open| open == *fd)) {
        // SAFETY: the runtime has opened this number, and nothing is read or written on it any more.
        unsafe { syscall3(libc::SYS_close, fd, 0, 0) };
    }
}

/// Notes that a descriptor is Stillpoint's: the application does not inherit it.
pub fn let_go(fd: usize) {
    if let Some(word) = DESCRIPTORS.get(fd / 64) {
        word.fetch_and(!(1 << (fd % 64)), Ordering::Relaxed);
    }
}

/// Returns the signals that were ignored; bit 0 is signal 1.
pub fn ignored_signals() -> u64 {
    IGNORED.load(Ordering::Relaxed)
}

/// Returns the signal mask.
pub fn mask() -> u64 {
    MASK.load(Ordering::Relaxed) & !HELD.load(Ordering::Relaxed)
}

/// The variable that tells the application's next program which signals are blocked until it can handle them, in hexadecimal digits.
pub const HELD_VARIABLE: &str = "STILLPOINT_HELD";
const DIGITS: usize = 16;

/// Returns that variable, NUL-terminated. No allocation.
pub fn held_variable(signals: u64) -> [u8; HELD_VARIABLE.len() + 1 + DIGITS + 1] {
    let mut text = [0; HELD_VARIABLE.len() + 1 + DIGITS + 1];
    let letters = HELD_VARIABLE.bytes().chain([b'=']);
    let digits = (0..DIGITS).rev().map(|digit| {
        let value = (signals >> (4 * digit) & 15) as usize;
        b"0123456789abcdef"[value]
    });
    for (place, letter) in text.iter_mut().zip(letters.chain(digits)) {
        *place = letter;
    }
    text
}

/// Takes over the held signals from the program before this one.
pub fn take_held() {
    let told = std::env::var(HELD_VARIABLE).unwrap_or_default();
    HELD.store(
        u64::from_str_radix(&told, 16).unwrap_or(0),
        Ordering::Relaxed,
    );
}

/// Returns the open descriptors.
pub fn descriptors() -> impl Iterator<Item = usize> {
    (0..MOST).filter(|fd| DESCRIPTORS[fd / 64].load(Ordering::Relaxed) & 1 << (fd % 64) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_signals_are_told_in_digits() {
        let variable = held_variable(0x8000_0000_0000_0200);
        let text = core::ffi::CStr::from_bytes_with_nul(&variable).unwrap();
        assert_eq!(text.to_str().unwrap(), "STILLPOINT_HELD=8000000000000200");
    }
}
