//! The functions beside MPI's own (`wrappers::extra`), most of them blocking ones made interruptible.
//!
//! A blocking call becomes MPI's nonblocking twin, which is tested again and again. `MPI_Test` and `MPI_Iprobe` make progress and give up the processor as the
//! blocking function would (`mpi_yield_when_idle`). The pending flag is checked between two tests.

use core::ffi::c_void;
use core::sync::atomic::Ordering;

use stillpoint_wrappers::extra::{Extra, INTERRUPTED};
use stillpoint_wrappers::gate;
use stillpoint_wrappers::neutral::{Status, Word};

use super::convert;
use super::fatal::fatal;
use super::library::abi::{rank_from_neutral, tag_from_neutral};
use super::library::{error_to_neutral, ffi};
use super::packed::{deliver, pull, receive_bytes};

/// Returns the part of the table that is not MPI's.
pub fn extra() -> Extra {
    Extra {
        recv,
        sendrecv,
        wait,
        waitall,
        waitany,
        waitsome,
        probe,
        mprobe,
        pull,
        receive_bytes,
        deliver,
        fatal,
    }
}

/// Whether a checkpoint is pending.
#[inline(always)]
fn pending() -> bool {
    // SAFETY: the gate page is mapped before the application's first instruction, and as long as the process lives.
    unsafe { gate::page() }.pending.load(Ordering::Relaxed) != 0
}

/// Tests until the request is complete or a checkpoint is pending.
///
/// # Safety
/// `request` must be a request of MPI's; `status` must be null, or a status that can be read and written to.
#[inline(always)]
unsafe fn poll(request: *mut ffi::MPI_Request, status: *mut Status) -> i32 {
    // SAFETY: the caller gives null or a status that can be read.
    let mut own = unsafe { convert::status(status) };
    loop {
        let mut flag = 0;
        // SAFETY: the caller gives a request of MPI's; `place` is our own status, or the library's value for no status.
        let code = unsafe { ffi::MPI_Test(request, &mut flag, own.place()) };
        if flag != 0 || code != 0 {
            // SAFETY: the caller gives null or a status that can be written to, and `own` was made from it.
            unsafe { own.give(status) };
            return error_to_neutral(code);
        }
        if pending() {
            return INTERRUPTED;
        }
    }
}

unsafe extern "C" fn recv(
    buf: *mut c_void,
    count: i32,
    datatype: Word,
    source: i32,
    tag: i32,
    comm: Word,
    status: *mut Status,
    request: *mut Word,
) -> i32 {
    // SAFETY: the stub passes what `MPI_Irecv` takes, and a status that is null or can be written to.
    unsafe {
        let code = ffi::MPI_Irecv(
            buf,
            count,
            convert::handle(datatype),
            rank_from_neutral(source),
            tag_from_neutral(tag),
            convert::handle(comm),
            request.cast(),
        );
        if code != 0 {
            return error_to_neutral(code);
        }
        poll(request.cast(), status)
    }
}

unsafe extern "C" fn sendrecv(
    sendbuf: *const c_void,
    sendcount: i32,
    sendtype: Word,
    dest: i32,
    sendtag: i32,
    recvbuf: *mut c_void,
    recvcount: i32,
    recvtype: Word,
    source: i32,
    recvtag: i32,
    comm: Word,
    status: *mut Status,
    request: *mut Word,
) -> i32 {
    // SAFETY: the stub passes what `MPI_Irecv` and `MPI_Send` take, and a status that is null or can be written to.
    unsafe {
        let code = ffi::MPI_Irecv(
            recvbuf,
            recvcount,
            convert::handle(recvtype),
            rank_from_neutral(source),
            tag_from_neutral(recvtag),
            convert::handle(comm),
            request.cast(),
        );
        if code != 0 {
            return error_to_neutral(code);
        }
        let code = ffi::MPI_Send(
            sendbuf,
            sendcount,
            convert::handle(sendtype),
            rank_from_neutral(dest),
            tag_from_neutral(sendtag),
            convert::handle(comm),
        );
        if code != 0 {
            ffi::MPI_Cancel(request.cast());
            ffi::MPI_Request_free(request.cast());
            return error_to_neutral(code);
        }
        poll(request.cast(), status)
    }
}

unsafe extern "C" fn wait(request: *mut Word, status: *mut Status) -> i32 {
    // SAFETY: the stub passes an active request, and a status that is null or can be written to.
    unsafe { poll(request.cast(), status) }
}

unsafe extern "C" fn waitall(
    count: i32,
    requests: *mut Word,
    statuses: *mut Status,
    done: *mut i32,
    failed: *mut i32,
) -> i32 {
    // SAFETY: the stub passes arrays of `count` requests and statuses, neither of them null, and places that it has filled.
    unsafe {
        while *done < count {
            let index = *done as usize;
            let status = statuses.add(index);
            let code = poll(requests.add(index).cast(), status);
            if code == INTERRUPTED {
                return INTERRUPTED;
            }
            (*status).error = code;
            *failed += i32::from(code != 0);
            *done += 1;
        }
    }
    0
}

unsafe extern "C" fn waitany(
    count: i32,
    requests: *mut Word,
    index: *mut i32,
    status: *mut Status,
) -> i32 {
    loop {
        let mut flag = 0;
        // SAFETY: the stub passes an array of `count` requests, a place for the index, and a status that is null or can be written to.
        unsafe {
            let mut own = convert::status(status);
            let code = ffi::MPI_Testany(count, requests.cast(), index, &mut flag, own.place());
            if flag != 0 || code != 0 {
                own.give(status);
                return error_to_neutral(code);
            }
        }
        if pending() {
            return INTERRUPTED;
        }
    }
}

unsafe extern "C" fn waitsome(
    count: i32,
    requests: *mut Word,
    outcount: *mut i32,
    indices: *mut i32,
    statuses: *mut Status,
) -> i32 {
    // SAFETY: the stub passes arrays of `count` elements and a place for their number; `statuses` may be null.
    unsafe {
        let mut own = convert::statuses(statuses, count);
        loop {
            let code = ffi::MPI_Testsome(count, requests.cast(), outcount, indices, own.place());
            // `MPI_UNDEFINED` means that no request is active, 0 that none is complete yet.
            if code != 0 || *outcount != 0 {
                own.give(statuses);
                return error_to_neutral(code);
            }
            if pending() {
                return INTERRUPTED;
            }
        }
    }
}

unsafe extern "C" fn probe(source: i32, tag: i32, comm: Word, status: *mut Status) -> i32 {
    loop {
        let mut flag = 0;
        // SAFETY: the stub passes what `MPI_Iprobe` takes, and a status that is null or can be written to.
        unsafe {
            let mut own = convert::status(status);
            let code = ffi::MPI_Iprobe(
                rank_from_neutral(source),
                tag_from_neutral(tag),
                convert::handle(comm),
                &mut flag,
                own.place(),
            );
            if flag != 0 || code != 0 {
                own.give(status);
                return error_to_neutral(code);
            }
        }
        if pending() {
            return INTERRUPTED;
        }
    }
}

unsafe extern "C" fn mprobe(
    source: i32,
    tag: i32,
    comm: Word,
    message: *mut Word,
    status: *mut Status,
) -> i32 {
    loop {
        let mut flag = 0;
        // SAFETY: the stub passes what `MPI_Improbe` takes, a place for the message, and a status that is null or can be written to.
        unsafe {
            let mut own = convert::status(status);
            let code = ffi::MPI_Improbe(
                rank_from_neutral(source),
                tag_from_neutral(tag),
                convert::handle(comm),
                &mut flag,
                message.cast(),
                own.place(),
            );
            if flag != 0 || code != 0 {
                own.give(status);
                return error_to_neutral(code);
            }
        }
        if pending() {
            return INTERRUPTED;
        }
    }
}
