//! Paths that would not lead where the application means: to its executable, which is the loader for the kernel, and to its processes and threads, whose ids
//! may differ in the kernel.
//!
//! Rules of this place: runs in the trap's handler.

use core::ffi::CStr;
use std::ffi::CString;

use super::call::{Call, errno};
use super::{SavedStateError, descriptors, identity, proc_paths, stand_in, user};
use crate::arch::layout::{self, EXE_PATH, EXE_PATH_BYTES};
use crate::arch::springboard::Piece;
use crate::arch::syscall::syscall4;

/// Returns the path of the application's executable.
pub fn executable() -> &'static CStr {
    // SAFETY: the gate region is mapped, and `set_executable` leaves a NUL at the end of this part.
    unsafe { CStr::from_ptr(layout::EXE_PATH as *const libc::c_char) }
}

/// Returns the executable's path, for an image.
pub fn save() -> Vec<u8> {
    executable().to_bytes().to_vec()
}

/// Takes over the path in another launch.
pub fn restore(saved: &[u8]) -> Result<(), SavedStateError> {
    let path = CString::new(saved).map_err(|_| SavedStateError::Value { part: "executable" })?;
    set_executable(&path);
    Ok(())
}

/// Notes the application's executable, by a path without links; a path that is too long is cut.
pub fn set_executable(path: &CStr) {
    let bytes = path.to_bytes();
    let bytes = &bytes[..bytes.len().min(EXE_PATH_BYTES - 1)];
    // SAFETY: this part of the gate region is mapped, writable and large enough.
    unsafe {
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), EXE_PATH as *mut u8, bytes.len());
        (EXE_PATH as *mut u8).add(bytes.len()).write(0);
    }
}

/// Whether a path is `/proc/self/exe` or an equivalent. `directory`: what it is relative to.
pub fn names_executable(directory: i32, path: usize) -> bool {
    let Some(path) = user::text(path).filter(|path| path.ends_with(b"exe")) else {
        return false;
    };
    if path.starts_with(b"/") {
        return proc_paths::leads_to_executable(&[path], |id| {
            id == identity::virtual_pid() || identity::is_known_thread(id)
        });
    }
    // Few paths end like this, so the cost of resolving the directory is acceptable.
    let mut place = proc_paths::Path::of_directory(directory);
    let Some(place) = place.as_mut() else {
        return false;
    };
    let mut above = [0; 256];
    // SAFETY: the path ends in NUL, the place for the answer is on this stack.
    let bytes = unsafe {
        syscall4(
            libc::SYS_readlinkat,
            libc::AT_FDCWD as usize,
            place.address(),
            above.as_mut_ptr() as usize,
            above.len(),
        )
    };
    let above = above.get(..bytes.max(0) as usize).unwrap_or_default();
    proc_paths::leads_to_executable(&[above, path], |id| {
        id == identity::real_pid() || identity::is_real_thread(id)
    })
}

/// Returns the directory that the path with this number is relative to.
fn directory(call: &Call, argument: usize) -> i32 {
    match argument {
        0 => libc::AT_FDCWD,
        behind => call.argument(behind - 1) as i32,
    }
}

/// Answers a call that follows the path in the argument with this number.
pub fn on_path(call: &mut Call, argument: usize) -> isize {
    if names_executable(directory(call, argument), call.argument(argument)) {
        return call.make_with(with(call, argument, EXE_PATH));
    }
    on_link(call, argument)
}

/// The same for calls that do not follow a link at the path's end.
pub fn on_link(call: &mut Call, argument: usize) -> isize {
    match proc_paths::real(call.argument(argument)) {
        Some(real) => call.make_with(with(call, argument, real.address())),
        None => call.redirect_plain(),
    }
}

/// Answers a call whose second argument is a path; the flags argument says whether it follows a link at the end.
pub fn on_path_or_link(call: &mut Call, flags: usize) -> isize {
    if call.argument(flags) as i32 & libc::AT_SYMLINK_NOFOLLOW == 0 {
        on_path(call, 1)
    } else {
        on_link(call, 1)
    }
}

/// Answers `readlink` and its variants: the path is the argument with this number, followed by the buffer and its length.
pub fn on_readlink(call: &mut Call, argument: usize) -> isize {
    let path = call.argument(argument);
    let (buffer, bytes) = (call.argument(argument + 1), call.argument(argument + 2));
    if !names_executable(directory(call, argument), path) {
        return on_link(call, argument);
    }
    if bytes as i32 <= 0 {
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

/// Answers `open` and its variants: the path is the argument with this number.
pub fn on_open(call: &mut Call, argument: usize) -> isize {
    if let Some(answer) = stand_in::on_open(call, argument) {
        return answer;
    }
    if names_executable(directory(call, argument), call.argument(argument)) {
        let piece = if argument == 0 {
            Piece::CallArgument0Noting
        } else {
            Piece::CallArgument1Noting
        };
        return call.redirect(piece, EXE_PATH);
    }
    match proc_paths::real(call.argument(argument)) {
        // Opening does not block there.
        Some(real) => descriptors::noted(call.make_with(with(call, argument, real.address()))),
        None => descriptors::on_new(call),
    }
}

/// Returns the call's arguments with another path.
fn with(call: &Call, argument: usize, path: usize) -> [usize; 6] {
    let mut arguments = call.arguments();
    if let Some(place) = arguments.get_mut(argument) {
        *place = path;
    }
    arguments
}
