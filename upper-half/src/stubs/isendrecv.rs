//! `MPI_Isendrecv` and `MPI_Isendrecv_replace`: a receive, whose request the application has, and a send of a copy, which only this library waits for.
//!
//! The copy is packed, and goes as `MPI_PACKED`, which matches any type that the receiver names. It is let go of when its send is found to be over, by a later
//! call of these functions or by `MPI_Finalize`. An image holds it like any other memory, and the send like any other request.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;

use stillpoint_wrappers::gate::HandleKind;

use crate::ground::abi::{self, Handle, PlaceOf, RequestHandle};
use crate::ground::crossing::{self, cross};
use crate::ground::lock::SpinLock;
use crate::ground::object::{Comm, Datatype};
use crate::objects::errhandler::raise;
use crate::operations::{completion, p2p};
use stillpoint_wrappers::standard;

/// A send that is not known to be over, and its data.
struct Under {
    request: RequestHandle,
    _copy: Vec<u8>,
}

// SAFETY: a handle is a number or an address, and only the code that has taken it out of the list has it.
unsafe impl Send for Under {}

/// The sends.
static SENDS: SpinLock<Vec<Under>> = SpinLock::new(Vec::new());

/// Lets go of sends that are over, or, with `waits`, of all after waiting for them.
///
/// # Safety
/// In a stub, not inside; MPI must be running.
pub unsafe fn finish(waits: bool) {
    let mut sends = core::mem::take(&mut *SENDS.lock());
    let ignore = ptr::without_provenance_mut(abi::IGNORED);
    // SAFETY: each request is one that `send_copy` has begun; this thread has taken the list, so no other one completes it.
    sends.retain_mut(|send| unsafe {
        let (place, mut over) = (PlaceOf::at(&mut send.request), 1);
        match waits {
            true => completion::wait(place, ignore),
            false => completion::test(place, &mut over, ignore),
        };
        over == 0
    });
    SENDS.lock().append(&mut sends);
}

/// Begins to send a copy.
///
/// # Safety
/// In a stub, not inside; arguments as MPI asks for them.
unsafe fn send_copy(
    buffer: *const c_void,
    count: c_int,
    datatype: Datatype,
    (dest, tag): (c_int, c_int),
    comm: Comm,
    name: &'static CStr,
) -> c_int {
    let (mut copy, mut room, mut used) = (vec![], 0, 0);
    // SAFETY: arguments are as MPI asks for them, by the caller's promise; the packed copy has as much room as the real MPI says, and is kept until the send is
    // over.
    unsafe {
        {
            let _inside = crossing::enter();
            let word = abi::word(HandleKind::Datatype, datatype);
            let on = abi::word(HandleKind::Communicator, comm);
            let mut code = cross(|lower| (lower.pack_size)(count, word, on, &mut room));
            if code == 0 {
                copy.resize(usize::try_from(room).unwrap_or(0), 0);
                let (from, to): (_, *mut u8) = (abi::buffer(buffer), copy.as_mut_ptr());
                code =
                    cross(|lower| (lower.pack)(from, count, word, to.cast(), room, &mut used, on));
            }
            if code != 0 {
                return raise(comm, code, name);
            }
        }
        let null = abi::predefined::null_handle(HandleKind::Request);
        let mut request = RequestHandle::of(null);
        let packed = abi::predefined(HandleKind::Datatype, standard::PACKED);
        let (from, place) = (copy.as_ptr().cast(), PlaceOf::at(&mut request));
        let code = p2p::isend(from, used, packed, dest, tag, comm, place);
        if code == 0 {
            SENDS.lock().push(Under {
                request,
                _copy: copy,
            });
        }
        code
    }
}

/// `MPI_Isendrecv`.
///
/// # Safety
/// As the MPI function.
#[allow(clippy::too_many_arguments)] // MPI's.
pub unsafe fn isendrecv(
    sendbuf: *const c_void,
    sendcount: c_int,
    sendtype: Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: c_int,
    recvtype: Datatype,
    source: c_int,
    recvtag: c_int,
    comm: Comm,
    request: PlaceOf<RequestHandle>,
) -> c_int {
    let name = c"MPI_Isendrecv";
    // SAFETY: MPI demands live handles, and a receive buffer and a place for the request that last; the message to send is copied before the call returns.
    unsafe {
        finish(false);
        match send_copy(sendbuf, sendcount, sendtype, (dest, sendtag), comm, name) {
            0 => p2p::irecv(recvbuf, recvcount, recvtype, source, recvtag, comm, request),
            code => code,
        }
    }
}

/// `MPI_Isendrecv_replace`.
///
/// # Safety
/// As the MPI function.
#[allow(clippy::too_many_arguments)] // MPI's.
pub unsafe fn isendrecv_replace(
    buf: *mut c_void,
    count: c_int,
    datatype: Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: Comm,
    request: PlaceOf<RequestHandle>,
) -> c_int {
    let name = c"MPI_Isendrecv_replace";
    // SAFETY: MPI demands live handles, a buffer that lasts and a place for the request; the old contents are copied before anything is received.
    unsafe {
        finish(false);
        match send_copy(buf, count, datatype, (dest, sendtag), comm, name) {
            0 => p2p::irecv(buf, count, datatype, source, recvtag, comm, request),
            code => code,
        }
    }
}
