//! The buffer of buffered sends, which is the real MPI's: for programs that have no other than the process's.

use core::ffi::{c_int, c_void};
use core::ptr;

use crate::ground::crossing::{self, cross};
use crate::ground::object::Object;
use crate::ground::shared::Shared;
use crate::objects::errhandler::raise;
use crate::operations::devices;

/// The buffer of buffered sends: address and size; null while there is none.
static BUFFER: Shared<(usize, c_int)> = Shared::new((0, 0));

/// `MPI_Buffer_attach`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn buffer_attach(buffer: *mut c_void, size: c_int) -> c_int {
    // SAFETY: MPI demands that `buffer` has `size` bytes and stays the library's until it is detached.
    unsafe {
        if devices::present()
            && let Some(code) = devices::refuses(ptr::null_mut(), c"MPI_Buffer_attach", &[buffer])
        {
            return code;
        }
        let _inside = crossing::enter();
        let code = cross(|dispatch| (dispatch.buffer_attach)(buffer, size));
        if code != 0 {
            return raise(ptr::null_mut::<Object>(), code, c"MPI_Buffer_attach");
        }
        *BUFFER.take() = (buffer as usize, size);
        0
    }
}

/// `MPI_Buffer_detach`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn buffer_detach(buffer_addr: *mut c_void, size: *mut c_int) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: MPI demands that `buffer_addr` is a pointer's address, and `size` writable.
    unsafe {
        let code = cross(|dispatch| (dispatch.buffer_detach)(buffer_addr.cast(), size));
        if code != 0 {
            return raise(ptr::null_mut::<Object>(), code, c"MPI_Buffer_detach");
        }
        *BUFFER.take() = (0, 0);
        0
    }
}

/// Attaches the application's buffer again, after a restart. All messages in it had been delivered.
///
/// # Safety
/// On the main thread of a restart.
pub unsafe fn rebuild_buffer() -> i32 {
    let (address, size) = *BUFFER.take();
    if address == 0 {
        return 0;
    }
    // SAFETY: a restart maps the application's memory where it was, so the buffer that was attached is in place again.
    unsafe { cross(|dispatch| (dispatch.buffer_attach)(address as *mut c_void, size)) }
}
