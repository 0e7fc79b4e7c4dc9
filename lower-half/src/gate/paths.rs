//! Paths that lead elsewhere than the application means: to its executable, which is not the loader, and to its processes
//! and threads, which the kernel may call by other ids.
//!
//! Rules of this place: runs in the trap's handler.

use core::ffi::CStr;

use super::layout::{EXE_PATH, EXE_PATH_BYTES};
use super::trap::{Call, errno};
use super::{descriptors, identity, layout, proc_paths, user};
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
    middle == b"self"
        || middle == b"thread-self"
        || proc_paths::number(middle) == Some(identity::virtual_pid())
}

/// `readlink`, `readlinkat`.
pub fn on_readlink(call: &mut Call) -> isize {
    let [a, b, c, d, ..] = call.arguments();
    let (argument, path, buffer, bytes) = if call.number() == libc::SYS_readlink {
        (0, a, b, c)
    } else {
        (1, b, c, d)
    };
    if !names_executable(path) {
        return match proc_paths::real(path) {
            Some(real) => call.make_with(with(call, argument, &real)),
            None => call.redirect_plain(),
        };
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
    match proc_paths::real(call.argument(argument)) {
        // Opening does not block there.
        Some(real) => descriptors::noted(call.make_with(with(call, argument, &real))),
        None => call.redirect(Piece::CallNoting, 0),
    }
}

/// The call's arguments, with another path.
fn with(call: &Call, argument: usize, path: &proc_paths::Path) -> [usize; 6] {
    let mut arguments = call.arguments();
    if let Some(place) = arguments.get_mut(argument) {
        *place = path.address();
    }
    arguments
}
