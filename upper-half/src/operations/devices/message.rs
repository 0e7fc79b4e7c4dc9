//! Messages from and to a device's memory: the beginning of the long ways of point-to-point calls.
//!
//! Each calls the same way again with host memory if needed, and otherwise leaves the call alone.

use core::ffi::{CStr, c_int, c_void};

use super::{Buffer, BufferUse, ElementRun, Staged};
use crate::ground::abi::{PlaceOf, RequestHandle};
use crate::ground::crossing;
use crate::ground::object::{Comm, Datatype};

/// Stages buffers inside a stay of their own.
///
/// # Safety
/// On a thread of the application; `comm` must lead to an object or be null, the buffers be the application's.
unsafe fn staged<const N: usize>(
    comm: Comm,
    name: &'static CStr,
    later: bool,
    buffers: [Buffer; N],
) -> Option<Result<Staged, c_int>> {
    let _inside = crossing::enter();
    // SAFETY: the thread is inside from here on; communicator and buffers are as the caller promises.
    unsafe { Staged::new(comm, name, later, buffers) }
}

fn one(pointer: *const c_void, way: BufferUse, count: c_int, datatype: Datatype) -> Buffer {
    let parts: Vec<ElementRun> = super::once(count, datatype);
    Buffer::new(pointer, way, parts)
}

/// A blocking send.
///
/// # Safety
/// On a thread of the application; the application's arguments; `again` is the call itself, with another buffer.
#[cold]
#[inline(never)]
pub unsafe fn sends(
    name: &'static CStr,
    (buf, count, datatype, comm): (*const c_void, c_int, Datatype, Comm),
    again: impl FnOnce(*const c_void) -> c_int,
) -> Option<c_int> {
    // SAFETY: buffer and handles are the application's, by the caller's promise; the copy lives until the call is over.
    unsafe {
        Some(
            match staged(
                comm,
                name,
                false,
                [one(buf, BufferUse::In, count, datatype)],
            )? {
                Ok(staged) => {
                    let code = again(staged.at(0));
                    staged.end(code)
                }
                Err(code) => code,
            },
        )
    }
}

/// A blocking receive, which may be a send too: the receive buffer's old contents come from the device first.
///
/// # Safety
/// As [`sends`].
#[cold]
#[inline(never)]
pub unsafe fn receives(
    name: &'static CStr,
    (buf, count, datatype, comm): (*mut c_void, c_int, Datatype, Comm),
    again: impl FnOnce(*mut c_void) -> c_int,
) -> Option<c_int> {
    // SAFETY: buffer and handles are the application's, by the caller's promise; the copy is as long as the buffer, and lives until the call is over.
    unsafe {
        Some(
            match staged(
                comm,
                name,
                false,
                [one(buf, BufferUse::Out, count, datatype)],
            )? {
                Ok(staged) => {
                    let code = again(staged.at(0));
                    staged.end(code)
                }
                Err(code) => code,
            },
        )
    }
}

/// A send and a receive in one.
///
/// # Safety
/// As [`sends`].
#[cold]
#[inline(never)]
pub unsafe fn both(
    name: &'static CStr,
    (sendbuf, sendcount, sendtype): (*const c_void, c_int, Datatype),
    (recvbuf, recvcount, recvtype): (*mut c_void, c_int, Datatype),
    comm: Comm,
    again: impl FnOnce(*const c_void, *mut c_void) -> c_int,
) -> Option<c_int> {
    let buffers = [
        one(sendbuf, BufferUse::In, sendcount, sendtype),
        one(recvbuf, BufferUse::Out, recvcount, recvtype),
    ];
    // SAFETY: both buffers and all handles are the application's, by the caller's promise; the copies are apart, and live until the call is over.
    unsafe {
        Some(match staged(comm, name, false, buffers)? {
            Ok(staged) => {
                let code = again(staged.at(0), staged.at(1));
                staged.end(code)
            }
            Err(code) => code,
        })
    }
}

/// A nonblocking send or receive; `way` is the use of the buffer.
///
/// # Safety
/// As [`sends`]; `request` is where the call puts its request.
#[cold]
#[inline(never)]
pub unsafe fn starts(
    name: &'static CStr,
    way: BufferUse,
    (buf, count, datatype, comm): (*const c_void, c_int, Datatype, Comm),
    request: PlaceOf<RequestHandle>,
    again: impl FnOnce(*mut c_void) -> c_int,
) -> Option<c_int> {
    // SAFETY: buffer and handles are the application's, by the caller's promise; the copy is the request's from `of_request` on.
    unsafe {
        Some(
            match staged(comm, name, false, [one(buf, way, count, datatype)])? {
                Ok(staged) => {
                    let code = again(staged.at(0));
                    staged.of_request(code, request)
                }
                Err(code) => code,
            },
        )
    }
}

/// A persistent send or receive, which is not begun yet.
///
/// # Safety
/// As [`starts`].
#[cold]
#[inline(never)]
pub unsafe fn initialised(
    name: &'static CStr,
    way: BufferUse,
    (buf, count, datatype, comm): (*const c_void, c_int, Datatype, Comm),
    request: PlaceOf<RequestHandle>,
    again: impl FnOnce(*mut c_void) -> c_int,
) -> Option<c_int> {
    // SAFETY: buffer and handles are the application's, by the caller's promise; the copy is filled at each start, and lives as long as the request.
    unsafe {
        Some(
            match staged(comm, name, true, [one(buf, way, count, datatype)])? {
                Ok(staged) => {
                    let code = again(staged.at(0));
                    staged.of_request(code, request)
                }
                Err(code) => code,
            },
        )
    }
}
