//! A send and a receive in one call.

use core::ffi::{c_int, c_void};

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Status;
use stillpoint_wrappers::neutral::constants::PROC_NULL;

use super::posted::post;
use super::receive::{finish_receive, receive, until_over};
use crate::ground::abi;
use crate::ground::arch;
use crate::ground::crossing::{self, cross_near};
use crate::ground::object::{Comm, Datatype};
use crate::objects::errhandler::raise;
use crate::operations::completion;
use crate::operations::devices;
use crate::operations::direct::{self, Stay};
use crate::operations::messages::drain;
use crate::operations::request::{self, CANCELLED, Request, State};
use stillpoint_wrappers::standard;

/// `MPI_Sendrecv`.
///
/// # Safety
/// As the MPI function.
#[expect(clippy::too_many_arguments, reason = "the MPI function has them")]
pub unsafe fn sendrecv(
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
    status: *mut abi::Status,
) -> c_int {
    // SAFETY: MPI demands live handles, two buffers that do not overlap and a status that is ignored or writable; `objects` has checked the handles before they
    // are read.
    unsafe {
        if direct::open()
            && direct::objects([sendtype, recvtype, comm])
            && dest != abi::PROC_NULL
            && source != abi::PROC_NULL
            && let Some(stay) = with_nothing_drained()
        {
            let table = direct::table();
            let comm_word = (*comm).lower;
            let mut word = 0;
            let lower = (*recvtype).lower;
            let code = (table.irecv)(
                recvbuf, recvcount, lower, source, recvtag, comm_word, &mut word,
            );
            if code != 0 {
                return stay.end(comm, code, c"MPI_Sendrecv");
            }
            let lower = (*sendtype).lower;
            arch::count_sent();
            let code = (table.send)(sendbuf, sendcount, lower, dest, sendtag, comm_word);
            let arguments = move || receive(recvbuf, recvcount, recvtype, source, recvtag, comm);
            if code != 0 {
                arch::uncount_sent();
                let request = request::create(&arguments(), 0);
                (*request).head.lower = word;
                withdraw(request);
                return stay.end(comm, code, c"MPI_Sendrecv");
            }
            return until_over(stay, word, status, comm, c"MPI_Sendrecv", arguments);
        }
        sendrecv_converted(
            sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source,
            recvtag, comm, status,
        )
    }
}

/// A stay of the short way, unless drained messages wait.
///
/// # Safety
/// The way must be open.
#[inline(always)]
unsafe fn with_nothing_drained() -> Option<Stay> {
    // SAFETY: the way is open, by the caller's promise.
    let stay = unsafe { direct::enter() };
    if drain::nothing_waits() {
        return Some(stay);
    }
    stay.go_back();
    None
}

/// # Safety
/// As [`sendrecv`].
#[cold]
#[inline(never)]
#[expect(clippy::too_many_arguments, reason = "the MPI function has them")]
unsafe fn sendrecv_converted(
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
    status: *mut abi::Status,
) -> c_int {
    if devices::present() {
        let (sent, received) = (
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcount, recvtype),
        );
        // SAFETY: the arguments are those of the application's `MPI_Sendrecv`; `again` is this very call with buffers of the host's.
        let staged = unsafe {
            devices::both(c"MPI_Sendrecv", sent, received, comm, |sendbuf, recvbuf| {
                sendrecv_converted(
                    sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
                    source, recvtag, comm, status,
                )
            })
        };
        if let Some(code) = staged {
            return code;
        }
    }
    let _inside = crossing::enter();
    let arguments = receive(recvbuf, recvcount, recvtype, source, recvtag, comm);
    let dest = abi::rank_to_neutral(dest);
    let sendtag = abi::tag_to_neutral(sendtag);
    // SAFETY: the real MPI checks the handles' words; the receive's request is known to this call only, which waits for it or withdraws it.
    unsafe {
        let mut found = Status::default();
        let comm_word = abi::word(HandleKind::Communicator, comm);
        let sendtype = abi::word(HandleKind::Datatype, sendtype);
        let sendbuf = abi::buffer(sendbuf);
        let code = match post(&arguments) {
            Ok(request) => {
                let sent = send(dest, |dispatch| {
                    (dispatch.send)(sendbuf, sendcount, sendtype, dest, sendtag, comm_word)
                });
                if sent == 0 {
                    completion::wait_for(request, &mut found)
                } else {
                    withdraw(request);
                    sent
                }
            }
            Err(code) => code,
        };
        finish_receive(code, &arguments, &found, status, c"MPI_Sendrecv")
    }
}

/// The half that sends. The receive has no influence on its message: the message counts if it is out.
///
/// # Safety
/// Inside a stub; `call` sends to that rank.
unsafe fn send(dest: i32, call: impl FnOnce(&'static Dispatch) -> i32) -> i32 {
    // SAFETY: the caller is inside a stub, so the thread has a record.
    unsafe {
        if dest != PROC_NULL {
            arch::count_sent();
        }
        let code = cross_near(call);
        if dest != PROC_NULL && code != 0 {
            arch::uncount_sent();
        }
        code
    }
}

/// Takes a posted receive back: the send of the same call has failed.
///
/// # Safety
/// Inside a stub; `request` must be a posted receive that no other code knows.
#[cold]
unsafe fn withdraw(request: *mut Request) {
    // SAFETY: the request is known to this call only, by the caller's promise, and ends here.
    unsafe {
        if (*request).state == State::Active {
            (*request).flags |= CANCELLED;
            let word = &raw mut (*request).head.lower;
            cross_near(|dispatch| (dispatch.cancel)(word));
        }
        let mut status = Status::default();
        completion::wait_for(request, &mut status);
    }
}

/// `MPI_Sendrecv_replace`: the message to send is packed away first, then the buffer is received into.
///
/// # Safety
/// As the MPI function.
#[expect(clippy::too_many_arguments, reason = "the MPI function has them")]
pub unsafe fn sendrecv_replace(
    buf: *mut c_void,
    count: c_int,
    datatype: Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: Comm,
    status: *mut abi::Status,
) -> c_int {
    if devices::present() {
        let given = (buf, count, datatype, comm);
        // SAFETY: the arguments are those of the application's `MPI_Sendrecv_replace`; `again` is this very call with a buffer of the host's.
        let staged = unsafe {
            devices::receives(c"MPI_Sendrecv_replace", given, |buf| {
                sendrecv_replace(
                    buf, count, datatype, dest, sendtag, source, recvtag, comm, status,
                )
            })
        };
        if let Some(code) = staged {
            return code;
        }
    }
    let inside = crossing::enter();
    // SAFETY: MPI demands that the buffer holds `count` elements; they are only read here.
    let packed = unsafe { pack(buf, count, datatype, comm) };
    let (packed, bytes) = match packed {
        Ok(packed) => packed,
        // SAFETY: the stub is still inside; `comm` is the handle that the application gave.
        Err(code) => return unsafe { raise(comm, code, c"MPI_Sendrecv_replace") },
    };
    let packed_type = abi::predefined(HandleKind::Datatype, standard::PACKED);
    // SAFETY: the packed bytes are a copy that lives until `sendrecv` has returned, so they do not overlap the buffer that is received into.
    let code = unsafe {
        let start = packed.as_ptr().cast();
        sendrecv(
            start,
            bytes,
            packed_type,
            dest,
            sendtag,
            buf,
            count,
            datatype,
            source,
            recvtag,
            comm,
            status,
        )
    };
    drop(packed);
    drop(inside);
    code
}

/// The packed form of a buffer's contents.
unsafe fn pack(
    buf: *mut c_void,
    count: c_int,
    datatype: Datatype,
    comm: Comm,
) -> Result<(Vec<u8>, c_int), i32> {
    let (mut room, mut bytes) = (0, 0);
    // SAFETY: inside a stub; `room` bytes are enough for the packed form.
    unsafe {
        let datatype = abi::word(HandleKind::Datatype, datatype);
        let comm = abi::word(HandleKind::Communicator, comm);
        let code = cross_near(|dispatch| (dispatch.pack_size)(count, datatype, comm, &mut room));
        if code != 0 {
            return Err(code);
        }
        let mut packed = vec![0u8; usize::try_from(room).unwrap_or(0)];
        let to = packed.as_mut_ptr().cast();
        let code = cross_near(|dispatch| {
            (dispatch.pack)(
                abi::buffer(buf),
                count,
                datatype,
                to,
                room,
                &mut bytes,
                comm,
            )
        });
        if code == 0 {
            Ok((packed, bytes))
        } else {
            Err(code)
        }
    }
}
