//! Access through the application's pointers: memory is read and written only if the kernel could do so for the application, so that a bad pointer is EFAULT
//! under the gate too.
//!
//! Rules of this place: runs in the trap's handler, all signals blocked. To learn whether a page can be read or written, this makes a system call that reads or
//! writes there and has no other effect. A page that another thread unmaps between the check and its use is the application's own race.

use core::ffi::{CStr, c_char};

use super::call::errno;
use crate::arch::PAGE;
use crate::arch::syscall::{failed, syscall3, syscall4};

const WORD: usize = size_of::<u64>();

/// Types for which every bit pattern is a valid value.
///
/// # Safety
/// Only for such types, without padding.
pub unsafe trait Plain: Copy {}

// SAFETY: any 32 bits are an integer, without padding.
unsafe impl Plain for u32 {}
// SAFETY: any 32 bits are an integer, without padding.
unsafe impl Plain for i32 {}
// SAFETY: any 64 bits are an integer, without padding.
unsafe impl Plain for u64 {}
// SAFETY: an array of integers has no padding, and any bits are a value.
unsafe impl<const COUNT: usize> Plain for [usize; COUNT] {}

/// `rt_sigprocmask(SIG_BLOCK, new, old)`: as every signal is blocked already, it only reads `new` and writes `old`, unless they are 0.
fn touch_words(new: usize, old: usize) -> bool {
    let block = libc::SIG_BLOCK as usize;
    // SAFETY: the kernel checks both addresses; a caller that asks for a write is about to write there itself.
    !failed(unsafe { syscall4(libc::SYS_rt_sigprocmask, block, new, old, WORD) })
}

/// Whether the kernel can read a word that lies within one page.
fn readable_word(address: usize) -> bool {
    // 0 would mean "no mask"; any other word of that page will do.
    touch_words(address.max(1), 0)
}

/// `GRND_INSECURE`: never waits for the kernel's first random numbers.
const NEVER_WAITS: usize = 4;

/// Whether the kernel can write a byte: it writes a random one.
fn writable_byte(address: usize) -> bool {
    // SAFETY: the kernel checks the address; the caller is about to write there itself.
    !failed(unsafe { syscall3(libc::SYS_getrandom, address, 1, NEVER_WAITS) })
}

/// Whether the application can read all of these bytes.
fn readable(address: usize, bytes: usize) -> bool {
    let Some(end) = address.checked_add(bytes) else {
        return false;
    };
    // An aligned word lies within a page.
    let mut at = address & !(WORD - 1);
    while at < end {
        if !readable_word(at) {
            return false;
        }
        at = (at & !(PAGE - 1)) + PAGE;
    }
    true
}

/// Whether the application can write all of these bytes. The check overwrites some of them.
fn writable(address: usize, bytes: usize) -> bool {
    let Some(end) = address.checked_add(bytes) else {
        return false;
    };
    let mut at = address;
    while at < end {
        if !writable_byte(at) {
            return false;
        }
        at = (at & !(PAGE - 1)) + PAGE;
    }
    true
}

/// Reads a value; returns EFAULT if the application could not.
pub fn read<T: Plain>(address: usize) -> Result<T, isize> {
    if !readable(address, size_of::<T>()) {
        return Err(errno(libc::EFAULT));
    }
    // SAFETY: the kernel has just read there, and every bit pattern is a value.
    Ok(unsafe { (address as *const T).read_unaligned() })
}

/// Writes a word; returns EFAULT if the application could not.
pub fn write_word(address: usize, value: u64) -> Result<(), isize> {
    if address == 0 || !touch_words(0, address) {
        return write(address, value);
    }
    // SAFETY: the kernel has just written a word there, so it can be written, and the application gave this room for the value.
    unsafe { (address as *mut u64).write_unaligned(value) };
    Ok(())
}

/// Writes a value; returns EFAULT if the application could not.
pub fn write<T: Plain>(address: usize, value: T) -> Result<(), isize> {
    // SAFETY: the value lives on this stack and has no padding.
    write_bytes(address, unsafe {
        core::slice::from_raw_parts((&raw const value).cast(), size_of::<T>())
    })
}

/// Writes bytes; returns EFAULT if the application could not.
pub fn write_bytes(address: usize, bytes: &[u8]) -> Result<(), isize> {
    if !writable(address, bytes.len()) {
        return Err(errno(libc::EFAULT));
    }
    // SAFETY: the kernel has just written to every page of the range, and the application gave this room for these bytes.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
    Ok(())
}

/// Returns the bytes of a NUL-terminated string, without the NUL, or `None` if the application could not read all of it.
pub fn text(address: usize) -> Option<&'static [u8]> {
    text_of_many(address, &mut { NO_PAGE })
}

/// The initial value of `known` in [`text_of_many`].
pub const NO_PAGE: usize = usize::MAX;

/// The same for one of many strings, which mostly lie side by side: the page that was checked last is not checked again.
pub fn text_of_many(address: usize, known: &mut usize) -> Option<&'static [u8]> {
    let mut at = address;
    loop {
        if at / PAGE != *known {
            if !readable(at, 1) {
                return None;
            }
            *known = at / PAGE;
        }
        let rest = PAGE - at % PAGE;
        // SAFETY: a byte of the page has been read, so the rest of the page can be read too.
        let bytes = unsafe { core::slice::from_raw_parts(at as *const u8, rest) };
        if bytes.contains(&0) {
            // SAFETY: every page from `address` to the NUL that was just found can be read.
            return Some(unsafe { CStr::from_ptr(address as *const c_char) }.to_bytes());
        }
        at = at.checked_add(rest)?;
    }
}

/// Whether one of many strings begins with these bytes, or `None` if the application could not read them; `known` is as in [`text_of_many`].
pub fn begins(address: usize, with: &[u8], known: &mut usize) -> Option<bool> {
    for (offset, wanted) in with.iter().enumerate() {
        let at = address.checked_add(offset)?;
        if at / PAGE != *known {
            if !readable(at, 1) {
                return None;
            }
            *known = at / PAGE;
        }
        // SAFETY: a byte of the page has been read.
        if unsafe { (at as *const u8).read() } != *wanted {
            return Some(false);
        }
    }
    Some(true)
}

/// Returns the number of entries of a list of pointers before its NULL (0 for an absent list), or `None` if the application could not read all of it.
pub fn list_length(address: usize) -> Option<usize> {
    if address == 0 {
        return Some(0);
    }
    let (mut entries, mut known) = (0, usize::MAX);
    loop {
        let at = address.checked_add(entries * WORD)?;
        let last = at.checked_add(WORD - 1)?;
        if last / PAGE != known {
            if !readable(at, WORD) {
                return None;
            }
            known = last / PAGE;
        }
        // SAFETY: every page that the entry lies in has been read.
        if unsafe { (at as *const usize).read_unaligned() } == 0 {
            return Some(entries);
        }
        entries += 1;
    }
}
