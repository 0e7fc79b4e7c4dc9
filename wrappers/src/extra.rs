//! Functions of the lower half beside MPI's own: the interruptible forms of functions that may block, and the drain's functions.
//!
//! They take and return neutral values like the rest of the dispatch table (`Dispatch::extra`), and are called with the lower half's FS. An interruptible
//! function behaves like the MPI function of the same name, except that it returns [`INTERRUPTED`] if `GatePage::pending` is set while it would have to wait.
//! The operation that it has begun by then is handed back, and nothing is lost.

use core::ffi::{c_char, c_void};

use crate::neutral::{Status, Word};

/// The result of an interruptible function when a checkpoint is pending; no MPI error is negative.
pub const INTERRUPTED: i32 = -1;

/// The functions; a null status means that no status is wanted.
#[repr(C)]
pub struct Extra {
    /// `(buf, count, datatype, source, tag, comm, status, request)`: `MPI_Recv`. Interrupted:
    /// `*request` is the receive, still active.
    pub recv:
        unsafe extern "C" fn(*mut c_void, i32, Word, i32, i32, Word, *mut Status, *mut Word) -> i32,
    /// `(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status, request)`: `MPI_Sendrecv`. Interrupted: the
    /// send is complete, `*request` is the receive.
    pub sendrecv: unsafe extern "C" fn(
        *const c_void,
        i32,
        Word,
        i32,
        i32,
        *mut c_void,
        i32,
        Word,
        i32,
        i32,
        Word,
        *mut Status,
        *mut Word,
    ) -> i32,
    /// `(request, status)`: `MPI_Wait`. Interrupted: the request is unchanged.
    pub wait: unsafe extern "C" fn(*mut Word, *mut Status) -> i32,
    /// `(count, requests, statuses, done, failed)`: `MPI_Waitall` from request `*done` on, one after the other. `*done` counts every completed request
    /// (interrupted: where to continue), `*failed` every request with an error. Each status's `error` is set. Returns 0 even if some failed.
    pub waitall: unsafe extern "C" fn(i32, *mut Word, *mut Status, *mut i32, *mut i32) -> i32,
    /// `(count, requests, index, status)`: `MPI_Waitany`.
    pub waitany: unsafe extern "C" fn(i32, *mut Word, *mut i32, *mut Status) -> i32,
    /// `(count, requests, outcount, indices, statuses)`: `MPI_Waitsome`.
    pub waitsome: unsafe extern "C" fn(i32, *mut Word, *mut i32, *mut i32, *mut Status) -> i32,
    /// `(source, tag, comm, status)`: `MPI_Probe`.
    pub probe: unsafe extern "C" fn(i32, i32, Word, *mut Status) -> i32,
    /// `(source, tag, comm, message, status)`: `MPI_Mprobe`.
    pub mprobe: unsafe extern "C" fn(i32, i32, Word, *mut Word, *mut Status) -> i32,
    /// `(comm, found, message, status)`: finds any message that has arrived on the communicator, for `receive_bytes`, which comes next.
    /// `found` is 0, 1, or [`ALONE`](crate::found::ALONE).
    pub pull: unsafe extern "C" fn(Word, *mut i32, *mut Word, *mut Status) -> i32,
    /// `(message, buffer, bytes, request)`: begins to receive a pulled message as the plain bytes of its packed form, of any length.
    pub receive_bytes: unsafe extern "C" fn(*mut Word, *mut c_void, u64, *mut Word) -> i32,
    /// `(packed, bytes, buf, count, datatype, status)`: receives bytes of `receive_bytes` as a message into the application's buffer. Errors, truncation
    /// included, and the status (except source and tag) are those of a real receive.
    pub deliver:
        unsafe extern "C" fn(*const c_void, u64, *mut c_void, i32, Word, *mut Status) -> i32,
    /// `(kind, object, error, function)`: acts as `MPI_ERRORS_ARE_FATAL` on an object of that `HandleKind`: reports which function failed and why, and ends the
    /// job. Kind 0: the function was called before MPI had started or after it had ended.
    pub fatal: unsafe extern "C" fn(u32, Word, i32, *const c_char),
}
