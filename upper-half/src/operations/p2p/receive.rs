//! Blocking receives: drained messages first, then the real MPI, interruptibly.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;

use stillpoint_wrappers::extra::INTERRUPTED;
use stillpoint_wrappers::gate::{AGAIN, HandleKind};
use stillpoint_wrappers::neutral::constants::PROC_NULL;
use stillpoint_wrappers::neutral::{Status, Word};

use super::posted::post;
use crate::ground::abi;
use crate::ground::arch;
use crate::ground::crossing::{self, cross_near};
use crate::ground::object::{Comm, Datatype};
use crate::ground::shared::concurrent;
use crate::objects::errhandler::raise;
use crate::operations::completion::{self, give, real_wait};
use crate::operations::devices;
use crate::operations::direct::{self, Stay};
use crate::operations::messages::drain;
use crate::operations::request::{self, Arguments, FROM_NOBODY, Kind, NO_MESSAGE};

/// `MPI_ERR_TRUNCATE`: the one error of a receive that has taken a message.
pub(super) const ERR_TRUNCATE: i32 = 15;

/// The arguments of a receive.
#[inline(always)]
pub fn receive(
    buf: *mut c_void,
    count: c_int,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
) -> Arguments {
    Arguments {
        kind: Kind::Receive,
        buffer: abi::buffer(buf),
        count,
        datatype,
        peer: abi::rank_to_neutral(source),
        tag: abi::tag_to_neutral(tag),
        communicator: comm,
    }
}

/// `MPI_Recv`.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn recv(
    buf: *mut c_void,
    count: c_int,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
    status: *mut abi::Status,
) -> c_int {
    // SAFETY: `objects` has checked the handles before `receive` reads them; MPI demands a buffer with room and a status that is ignored or writable.
    unsafe {
        if arch::outside_and_receives()
            && direct::objects([datatype, comm])
            && source != abi::PROC_NULL
        {
            return arch::receive(buf, count, datatype, source, tag, comm, status);
        }
        recv_otherwise(buf, count, datatype, source, tag, comm, status)
    }
}

/// `MPI_Recv` if the real MPI's own cannot be called.
///
/// # Safety
/// As the MPI function.
#[cold]
#[inline(never)]
pub(super) unsafe extern "C" fn recv_otherwise(
    buf: *mut c_void,
    count: c_int,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
    status: *mut abi::Status,
) -> c_int {
    // SAFETY: `objects` has checked the handles when the short way is gone; the real MPI checks them otherwise. Buffer and status are as MPI demands.
    unsafe {
        if direct::open() && direct::objects([datatype, comm]) && source != abi::PROC_NULL {
            let stay = direct::enter();
            if drain::nothing_waits() {
                return recv_directly(stay, buf, count, datatype, source, tag, comm, status);
            }
            stay.go_back();
        }
        recv_converted(buf, count, datatype, source, tag, comm, status)
    }
}

/// `MPI_Recv` from a rank or any, the short way, if the real MPI does not call back while it waits. The real MPI's own function takes a message that is there
/// already. It does not wait then: the sender of a long message sends the rest in a checkpoint too, until all ranks are parked. A message that is not there is
/// waited for as on the long way: by a nonblocking receive that is asked for its end, until a checkpoint is pending.
///
/// # Safety
/// In the stay; arguments as for `MPI_Recv`, handles checked.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the MPI function has them")]
unsafe fn recv_directly(
    stay: Stay,
    buf: *mut c_void,
    count: c_int,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
    status: *mut abi::Status,
) -> c_int {
    // SAFETY: both handles were checked in this stay's call; buffer and status are as for `MPI_Recv`, by the caller's promise.
    unsafe {
        let table = direct::table();
        let mut word = 0;
        let (lower, comm_word) = ((*datatype).lower, (*comm).lower);
        if let Some(receive) = table.recv {
            let (mut there, ignored) = (0, ptr::without_provenance_mut(abi::IGNORED));
            let code = (table.iprobe)(source, tag, comm_word, &mut there, ignored);
            if code == 0 && there != 0 {
                let code = receive(buf, count, lower, source, tag, comm_word, status.cast());
                if code == 0 || direct::error(code) == ERR_TRUNCATE {
                    arch::count_received();
                }
                return stay.end(comm, code, c"MPI_Recv");
            }
        }
        let code = (table.irecv)(buf, count, lower, source, tag, comm_word, &mut word);
        if code != 0 {
            return stay.end(comm, code, c"MPI_Recv");
        }
        until_over(stay, word, status, comm, c"MPI_Recv", move || {
            receive(buf, count, datatype, source, tag, comm)
        })
    }
}

/// The end of the stub of a receive that found its message, and has failed with one of the real MPI's codes.
///
/// # Safety
/// In the application, on that communicator.
#[cfg(application = "mpich")]
pub unsafe extern "C" fn receive_of_one_has_failed(comm: Comm, code: c_int) -> c_int {
    // SAFETY: the thread was in the application when it called the stub.
    unsafe {
        let stay = direct::enter();
        if direct::error(code) == ERR_TRUNCATE {
            arch::count_received();
        }
        stay.end(comm, code, c"MPI_Recv")
    }
}

/// Waits for a receive that was posted the short way; `arguments` are its own.
///
/// # Safety
/// In that stay; `word` must be the lower half's for the receive, the rest the application's.
#[inline(always)]
pub(super) unsafe fn until_over(
    stay: Stay,
    mut word: Word,
    status: *mut abi::Status,
    comm: Comm,
    name: &'static CStr,
    arguments: impl FnOnce() -> Arguments,
) -> c_int {
    let table = direct::table();
    // SAFETY: `word` is the lower half's for this receive, and the status is ignored or writable, by the caller's promise; the stay keeps checkpoints away
    // between two questions.
    unsafe {
        if real_wait::possible() {
            return wait_for(stay, &arguments(), word, status, name);
        }
        loop {
            let mut over = 0;
            let code = (table.test)(&mut word, &mut over, status.cast());
            if code != 0 {
                if direct::error(code) == ERR_TRUNCATE {
                    arch::count_received();
                }
                return stay.end(comm, code, name);
            }
            if over != 0 {
                arch::count_received();
                return stay.end(comm, 0, name);
            }
            if arch::gate_pending() {
                return interrupted(&arguments(), word, status, name);
            }
        }
    }
}

/// [`until_over`] by the real MPI's own wait. A checkpoint may come meanwhile, which has to know of the receive: so the receive is a request from the
/// beginning.
///
/// # Safety
/// As [`until_over`]; `arguments` must be the receive's own.
unsafe fn wait_for(
    stay: Stay,
    arguments: &Arguments,
    word: Word,
    status: *mut abi::Status,
    name: &'static CStr,
) -> c_int {
    // SAFETY: the request is made for this receive, and no other code ends it; its slot stays mapped when a restart returns here.
    unsafe {
        let request = request::create(arguments, 0);
        (*request).head.lower = word;
        let code = real_wait::wait(&raw mut (*request).head.lower, status);
        if code == AGAIN {
            let mut found = Status::default();
            let code = completion::wait_for(request, &mut found);
            return finish_receive(code, arguments, &found, status, name);
        }
        if code == 0 || direct::error(code) == ERR_TRUNCATE {
            arch::count_received();
        }
        request::end(request);
        if code == 0 {
            real_wait::leave(stay);
            return 0;
        }
        stay.end(arguments.communicator, code, name)
    }
}

/// A checkpoint is pending: the receive becomes a request.
#[cold]
#[inline(never)]
unsafe fn interrupted(
    arguments: &Arguments,
    word: Word,
    status: *mut abi::Status,
    name: &'static CStr,
) -> c_int {
    let mut found = Status::default();
    // SAFETY: inside a stub; the word is the lower half's for this receive.
    unsafe {
        let code = resume(arguments, word, &mut found);
        finish_receive(code, arguments, &found, status, name)
    }
}

/// # Safety
/// As [`recv`].
#[cold]
#[inline(never)]
unsafe fn recv_converted(
    buf: *mut c_void,
    count: c_int,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
    status: *mut abi::Status,
) -> c_int {
    if devices::present() {
        let given = (buf, count, datatype, comm);
        // SAFETY: MPI demands a buffer with room for `count` elements; `again` is this very call with a buffer of the host's.
        let staged = unsafe {
            devices::receives(c"MPI_Recv", given, |buf| {
                recv_converted(buf, count, datatype, source, tag, comm, status)
            })
        };
        if let Some(code) = staged {
            return code;
        }
    }
    let _inside = crossing::enter();
    let arguments = receive(buf, count, datatype, source, tag, comm);
    // SAFETY: the real MPI checks the handles' words; `found` and `word` are local and outlive the call, the status is the application's.
    unsafe {
        let mut found = Status::default();
        let code = if concurrent() || !drain::nothing_waits() {
            match post(&arguments) {
                Ok(request) => completion::wait_for(request, &mut found),
                Err(code) => code,
            }
        } else {
            let it = &arguments;
            let (lower, comm_word) = (
                abi::word(HandleKind::Datatype, datatype),
                abi::word(HandleKind::Communicator, comm),
            );
            let wanted = if abi::is_ignored(status) {
                ptr::null_mut()
            } else {
                &raw mut found
            };
            let mut word = 0;
            let place = &raw mut word;
            let (buffer, count, peer, tag) = (it.buffer, it.count, it.peer, it.tag);
            let code = cross_near(move |dispatch| {
                (dispatch.extra.recv)(buffer, count, lower, peer, tag, comm_word, wanted, place)
            });
            received(code, it, word, &mut found)
        };
        finish_receive(code, &arguments, &found, status, c"MPI_Recv")
    }
}

/// Ends an interruptible receive: counts its message; if the receive was interrupted, makes it a
/// request that a restart can post again, and waits for that.
#[inline(always)]
pub(super) unsafe fn received(
    code: i32,
    arguments: &Arguments,
    word: Word,
    found: &mut Status,
) -> i32 {
    // SAFETY: inside a stub; the word is the lower half's for this receive.
    unsafe {
        if code == 0 || code == ERR_TRUNCATE {
            if arguments.peer != PROC_NULL {
                arch::count_received();
            }
            code
        } else if code == INTERRUPTED {
            resume(arguments, word, found)
        } else {
            code
        }
    }
}

/// # Safety
/// Inside a stub; `word` must be the lower half's for a receive of those arguments.
#[cold]
unsafe fn resume(arguments: &Arguments, word: Word, found: &mut Status) -> i32 {
    let flags = if arguments.peer == PROC_NULL {
        NO_MESSAGE
    } else {
        0
    };
    // SAFETY: the request is made for a receive that the lower half has begun, and no other code knows it until it ends here.
    unsafe {
        let request = request::create(arguments, flags);
        (*request).head.lower = word;
        completion::wait_for(request, found)
    }
}

/// Gives status and error of a blocking receive to the application.
///
/// # Safety
/// Inside a stub; `status` must be ignored or writable, and the communicator of `arguments` lead to an object.
#[inline(always)]
pub(super) unsafe fn finish_receive(
    code: i32,
    arguments: &Arguments,
    found: &Status,
    status: *mut abi::Status,
    name: &'static CStr,
) -> c_int {
    // SAFETY: the status is ignored or writable, by the caller's promise; the error is raised on the communicator that the application has given.
    unsafe {
        if code == 0 {
            let nobody = arguments.peer == PROC_NULL;
            give(status, if nobody { &FROM_NOBODY } else { found });
            return 0;
        }
        if code == ERR_TRUNCATE {
            give(status, found);
        }
        raise(arguments.communicator, code, name)
    }
}
