//! Posted receives: `MPI_Irecv`, and the parts of it that other modules need.

use core::ffi::{c_int, c_void};
use core::ptr;

use stillpoint_wrappers::direct::Direct;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::constants::PROC_NULL;
use stillpoint_wrappers::neutral::{Status, Word};

use super::receive::receive;
use crate::ground::abi::{self, PlaceOf, RequestHandle};
use crate::ground::arch;
use crate::ground::crossing::{self, cross_near};
use crate::ground::object::{Comm, Datatype};
use crate::objects::errhandler::raise;
use crate::operations::devices::{self, BufferUse};
use crate::operations::direct::{self, Stay};
use crate::operations::messages::drain;
use crate::operations::request::{self, Arguments, FROM_NOBODY, NO_MESSAGE, Request, State, light};

/// Posts a receive: takes a drained message if one matches, else asks the lower half.
///
/// # Safety
/// Inside a stub; arguments as for `MPI_Irecv`, neutral.
pub unsafe fn post(arguments: &Arguments) -> Result<*mut Request, i32> {
    // SAFETY: the arguments are as for `MPI_Irecv`, by the caller's promise, so the buffer stays until the receive is over; `word` is local.
    unsafe {
        let mut queue = drain::turn();
        if !queue.is_empty() {
            let (comm, peer, tag) = (arguments.communicator, arguments.peer, arguments.tag);
            if let Some(message) = drain::take(&mut queue, comm, peer, tag) {
                drop(queue);
                let it = arguments;
                let status = drain::deliver(message, it.buffer, it.count, it.datatype);
                return Ok(over(arguments, status));
            }
        }
        let (datatype, comm) = (
            abi::word(HandleKind::Datatype, arguments.datatype),
            abi::word(HandleKind::Communicator, arguments.communicator),
        );
        let it = arguments;
        let mut word = 0;
        let code = cross_near(|dispatch| {
            (dispatch.irecv)(
                it.buffer, it.count, datatype, it.peer, it.tag, comm, &mut word,
            )
        });
        drop(queue);
        if code != 0 {
            return Err(code);
        }
        if it.peer == PROC_NULL {
            // It is over as soon as it has begun, and its status is known.
            let code = cross_near(|dispatch| (dispatch.wait)(&mut word, ptr::null_mut()));
            return match code {
                0 => Ok(over(arguments, FROM_NOBODY)),
                code => Err(code),
            };
        }
        let request = request::create(arguments, 0);
        (*request).head.lower = word;
        Ok(request)
    }
}

/// The request of a receive that is over: the lower half has no trace of it.
///
/// # Safety
/// Inside a stub; the objects of `arguments` must be alive.
unsafe fn over(arguments: &Arguments, status: Status) -> *mut Request {
    // SAFETY: the objects are alive, by the caller's promise; the request is fresh, so no other code knows it.
    unsafe {
        let request = request::create(arguments, NO_MESSAGE);
        (*request).head.lower = request::null_word();
        (*request).status = status;
        (*request).state = State::Done;
        request
    }
}

/// `MPI_Irecv`.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn irecv(
    buf: *mut c_void,
    count: c_int,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
    request: PlaceOf<RequestHandle>,
) -> c_int {
    // SAFETY: `objects` has checked the handles before they are read; MPI demands a buffer that lasts until the request is over, and a writable place.
    unsafe {
        if direct::open()
            && direct::objects([datatype, comm])
            && (*datatype).predefined()
            && source != abi::PROC_NULL
        {
            let stay = direct::enter();
            // Messages are drained at checkpoints, and no checkpoint comes within the stay.
            if drain::nothing_waits()
                && let Some(begun) = light::receive(buf, count, datatype, source, tag, comm)
            {
                return start_directly(stay, begun, request, move |direct, word| {
                    let lower = (*datatype).lower;
                    (direct.irecv)(buf, count, lower, source, tag, (*comm).lower, word)
                });
            }
            stay.go_back();
        }
        irecv_otherwise(buf, count, datatype, source, tag, comm, request)
    }
}

/// Posts a receive the short way. Its request already holds everything that a restart needs.
#[inline(always)]
unsafe fn start_directly(
    stay: Stay,
    request: *mut Request,
    handle: PlaceOf<RequestHandle>,
    call: impl FnOnce(&'static Direct, *mut Word) -> i32,
) -> c_int {
    // SAFETY: in the stay; the request is the caller's; the call only crosses.
    unsafe {
        let word = &raw mut (*request).head.lower;
        direct::clear(word);
        let code = call(direct::table(), word);
        if !arch::is_success(code) {
            return stay.abandon(request, code, c"MPI_Irecv");
        }
        handle.set(request.cast());
        code
    }
}

/// `MPI_Irecv` with a whole request: for example, with a datatype of the application's.
///
/// # Safety
/// As [`irecv`].
#[inline(never)]
unsafe fn irecv_otherwise(
    buf: *mut c_void,
    count: c_int,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
    request: PlaceOf<RequestHandle>,
) -> c_int {
    // SAFETY: `alive` has checked the handles before the request holds them; buffer and place are as MPI demands.
    unsafe {
        if direct::open() && direct::alive([datatype, comm]) && source != abi::PROC_NULL {
            let stay = direct::enter();
            let arguments = receive(buf, count, datatype, source, tag, comm);
            if drain::nothing_waits()
                && let Some(begun) = request::create_alone(&arguments)
            {
                return start_directly(stay, begun, request, move |direct, word| {
                    let lower = (*datatype).lower;
                    (direct.irecv)(buf, count, lower, source, tag, (*comm).lower, word)
                });
            }
            stay.go_back();
        }
        irecv_converted(buf, count, datatype, source, tag, comm, request)
    }
}

/// # Safety
/// As [`irecv`].
#[cold]
#[inline(never)]
unsafe fn irecv_converted(
    buf: *mut c_void,
    count: c_int,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
    request: PlaceOf<RequestHandle>,
) -> c_int {
    if devices::present() {
        let given = (buf.cast_const(), count, datatype, comm);
        // SAFETY: MPI demands a buffer that lasts until the request is over; `again` is this very call with a buffer of the host's.
        let staged = unsafe {
            devices::starts(c"MPI_Irecv", BufferUse::Out, given, request, |buf| {
                irecv_converted(buf, count, datatype, source, tag, comm, request)
            })
        };
        if let Some(code) = staged {
            return code;
        }
    }
    let _inside = crossing::enter();
    let arguments = receive(buf, count, datatype, source, tag, comm);
    // SAFETY: `arguments` are this call's, in neutral values; `request` is a writable place, as MPI demands.
    unsafe {
        match post(&arguments) {
            Ok(posted) => {
                request.set(posted.cast());
                0
            }
            Err(code) => raise(comm, code, c"MPI_Irecv"),
        }
    }
}
