//! Paths that name the process's own executable: they lead to the application, not to the loader.
//!
//! Rules of this place: runs in the trap's handler.

use core::ffi::CStr;

use super::layout::{EXE_PATH, EXE_PATH_BYTES};
use super::trap::{Call, errno};
use super::{identity, layout, user};
use crate::arch::springboard::Piece;

/// The application's executable.
pub fn executable() -> &'static CStr {
    // SAFETY: the gate region is mapped, and `set_executable` leaves a NUL at the end of this part.
    unsafe { CStr::from_ptr(layout::EXE_PATH as *const libc::c_char) }
}

/// Notes the application's executable, a path without links; cut where it is too long.
pub fn set_executable(path: &CStr) {
    let bytes = path.to_bytes();
    let bytes = &bytes[..bytes.len().min(EXE_PATH_BYTES - 1)];
    // SAFETY: this part of the gate region is mapped, writable and large enough.
    unsafe {
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), EXE_PATH as *mut u8, bytes.len());
        (EXE_PATH as *mut u8).add(bytes.len()).write(0);
    }
}

/// Whether a path is `/proc/self/exe`, or says the same in another way.
pub fn names_executable(path: usize) -> bool {
    let middle = user::text(path)
        .and_then(|path| path.strip_prefix(b"/proc/"))
        .and_then(|rest| rest.strip_suffix(b"/exe"));
    let Some(middle) = middle else {
        return false;
    };
    middle == b"self" || middle == b"thread-self" || number(middle) == Some(identity::virtual_pid())
}

fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || digits.len() > 9 {
        return None;
    }
    digits.iter().try_fold(0u32, |sum, digit| {
        digit
            .is_ascii_digit()
            .then(|| sum.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')))
    })
}

/// `readlink`, `readlinkat`.
pub fn on_readlink(call: &mut Call) -> isize {
    let [a, b, c, d, ..] = call.arguments();
    let (path, buffer, bytes) = if call.number() == libc::SYS_readlink {
        (a, b, c)
    } else {
        (b, c, d)
    };
    if !names_executable(path) {
        return call.redirect_plain();
    }
    if bytes as isize <= 0 {
        return errno(libc::EINVAL);
    }
    let executable = executable().to_bytes();
    let bytes = bytes.min(executable.len());
    let result = executable
        .get(..bytes)
        .map_or(Ok(()), |path| user::write_bytes(buffer, path));
    match result {
        Ok(()) => bytes as isize,
        Err(error) => error,
    }
}

/// `open` and its kin: the path is the argument with this number, which the piece can replace.
pub fn on_open(call: &mut Call, argument: usize, piece: Piece) -> isize {
    if names_executable(call.argument(argument)) {
        return call.redirect(piece, EXE_PATH);
    }
    call.redirect(Piece::CallNoting, 0)
}
