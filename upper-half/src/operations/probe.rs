//! Probes, and receives of messages that were probed for.

use core::ffi::{c_int, c_void};
use core::ptr;

use stillpoint_wrappers::extra::INTERRUPTED;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::constants::PROC_NULL;
use stillpoint_wrappers::neutral::{Status, Word};

use crate::ground::abi::{self, MessageHandle, PlaceOf, RequestHandle};
use crate::ground::crossing::{self, cross_near};
use crate::ground::handle;
use crate::ground::object::{Comm, Datatype, Object};
use crate::objects::errhandler::raise;
use crate::operations::completion::give;
use crate::operations::devices::{self, Way};
use crate::operations::direct;
use crate::operations::messages::message::{self, Matched};
use crate::operations::messages::{drain, points};
use crate::operations::request::{self, Arguments, Kind, NO_MESSAGE, State};

/// What a probe found.
enum Found {
    /// Nothing yet.
    Nothing,
    /// A message, or an answer that needs none (`MPI_PROC_NULL`).
    Status(Status),
}

/// Looks for a message once: among the drained ones, then below.
unsafe fn look(comm: Comm, source: i32, tag: i32) -> Result<Found, i32> {
    // SAFETY: inside a stub.
    unsafe {
        if !drain::nothing_waits()
            && let Some(status) = drain::probe(&mut drain::turn(), comm, source, tag)
        {
            return Ok(Found::Status(status));
        }
        let word = abi::word(HandleKind::Communicator, comm);
        let (mut flag, mut status) = (0, Status::default());
        let code =
            cross_near(|dispatch| (dispatch.iprobe)(source, tag, word, &mut flag, &mut status));
        match (code, flag) {
            (0, 0) => Ok(Found::Nothing),
            (0, _) => Ok(Found::Status(status)),
            (code, _) => Err(code),
        }
    }
}

/// `MPI_Iprobe`.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn iprobe(
    source: c_int,
    tag: c_int,
    comm: Comm,
    flag: *mut c_int,
    status: *mut abi::Status,
) -> c_int {
    // SAFETY: the application's arguments.
    unsafe {
        if direct::open() && direct::objects([comm]) {
            let stay = direct::enter();
            if drain::nothing_waits() {
                let place = status.cast();
                let code = (direct::table().iprobe)(source, tag, (*comm).lower, flag, place);
                return stay.end(comm, code, c"MPI_Iprobe");
            }
            stay.go_back();
        }
        iprobe_converted(source, tag, comm, flag, status)
    }
}

#[cold]
#[inline(never)]
unsafe fn iprobe_converted(
    source: c_int,
    tag: c_int,
    comm: Comm,
    flag: *mut c_int,
    status: *mut abi::Status,
) -> c_int {
    let _inside = crossing::enter();
    let (source, tag) = (abi::rank_to_neutral(source), abi::tag_to_neutral(tag));
    // SAFETY: the application's arguments.
    unsafe {
        match look(comm, source, tag) {
            Ok(Found::Nothing) => *flag = 0,
            Ok(Found::Status(found)) => {
                *flag = 1;
                give(status, &found);
            }
            Err(code) => return raise(comm, code, c"MPI_Iprobe"),
        }
        0
    }
}

/// `MPI_Probe`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn probe(source: c_int, tag: c_int, comm: Comm, status: *mut abi::Status) -> c_int {
    let _inside = crossing::enter();
    let (source, tag) = (abi::rank_to_neutral(source), abi::tag_to_neutral(tag));
    let mut interrupted = false;
    // SAFETY: the application's arguments.
    unsafe {
        let found = loop {
            match look(comm, source, tag) {
                Ok(Found::Nothing) => {}
                Ok(Found::Status(found)) => break Ok(found),
                Err(code) => break Err(code),
            }
            let word = abi::word(HandleKind::Communicator, comm);
            let mut found = Status::default();
            match cross_near(|dispatch| (dispatch.extra.probe)(source, tag, word, &mut found)) {
                0 => break Ok(found),
                INTERRUPTED => {
                    interrupted = true;
                    points::blocked();
                }
                code => break Err(code),
            }
        };
        if interrupted {
            points::unblocked();
        }
        match found {
            Ok(found) => {
                give(status, &found);
                0
            }
            Err(code) => raise(comm, code, c"MPI_Probe"),
        }
    }
}

/// Takes a message for good, once: `None` if there is none.
unsafe fn claim(
    comm: Comm,
    source: i32,
    tag: i32,
    blocking: bool,
) -> Result<Option<(*mut Object, Status)>, i32> {
    // SAFETY: inside a stub.
    unsafe {
        // Whoever takes a message from MPI's hands does it in turn with whoever posts receives.
        let mut queue = drain::turn();
        if let Some(drained) = drain::take(&mut queue, comm, source, tag) {
            drop(queue);
            let status = drain::status_of(drained.source, drained.tag, drained.bytes.len() as u64);
            let matched = Matched {
                status,
                communicator: comm,
                drained: Some(drained),
            };
            return Ok(Some((message::create(0, matched), status)));
        }
        let lower = abi::word(HandleKind::Communicator, comm);
        let (mut flag, mut word, mut status): (c_int, Word, Status) = (1, 0, Status::default());
        let blocking = blocking && !crate::ground::shared::concurrent();
        let code = cross_near(|dispatch| {
            if blocking {
                (dispatch.extra.mprobe)(source, tag, lower, &mut word, &mut status)
            } else {
                (dispatch.improbe)(source, tag, lower, &mut flag, &mut word, &mut status)
            }
        });
        drop(queue);
        if code != 0 {
            return Err(code);
        }
        if flag == 0 {
            return Ok(None);
        }
        if source == PROC_NULL {
            return Ok(Some((
                abi::predefined(HandleKind::Message, MESSAGE_NO_PROC),
                status,
            )));
        }
        let matched = Matched {
            status,
            communicator: comm,
            drained: None,
        };
        Ok(Some((message::create(word, matched), status)))
    }
}

/// Standard-ABI value of `MPI_MESSAGE_NO_PROC`.
const MESSAGE_NO_PROC: i32 = 297;
/// Standard-ABI value of `MPI_MESSAGE_NULL`.
const MESSAGE_NULL: i32 = 296;

/// `MPI_Improbe`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn improbe(
    source: c_int,
    tag: c_int,
    comm: Comm,
    flag: *mut c_int,
    message: PlaceOf<MessageHandle>,
    status: *mut abi::Status,
) -> c_int {
    let _inside = crossing::enter();
    let (source, tag) = (abi::rank_to_neutral(source), abi::tag_to_neutral(tag));
    // SAFETY: the application's arguments.
    unsafe {
        match claim(comm, source, tag, false) {
            Ok(None) => *flag = 0,
            Ok(Some((handle, found))) => {
                *flag = 1;
                message.set(handle);
                give(status, &found);
            }
            Err(code) => return raise(comm, code, c"MPI_Improbe"),
        }
        0
    }
}

/// `MPI_Mprobe`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn mprobe(
    source: c_int,
    tag: c_int,
    comm: Comm,
    message: PlaceOf<MessageHandle>,
    status: *mut abi::Status,
) -> c_int {
    let _inside = crossing::enter();
    let (source, tag) = (abi::rank_to_neutral(source), abi::tag_to_neutral(tag));
    let mut interrupted = false;
    // SAFETY: the application's arguments.
    unsafe {
        let found = loop {
            match claim(comm, source, tag, true) {
                Ok(Some(found)) => break Ok(found),
                Err(code) if code != INTERRUPTED => break Err(code),
                // With several threads it is asked for again and again, in turn with the others.
                Ok(None) if !crossing::pending() => crate::ground::arch::yield_processor(),
                _ => {
                    interrupted = true;
                    points::blocked();
                }
            }
        };
        if interrupted {
            points::unblocked();
        }
        match found {
            Ok((handle, found)) => {
                message.set(handle);
                give(status, &found);
                0
            }
            Err(code) => raise(comm, code, c"MPI_Mprobe"),
        }
    }
}

/// Begins to receive a matched message; the handle ends.
unsafe fn receive(
    buf: *mut c_void,
    count: c_int,
    datatype: Datatype,
    message: PlaceOf<MessageHandle>,
) -> Result<*mut request::Request, (*mut Object, i32)> {
    // SAFETY: inside a stub; the application's arguments.
    unsafe {
        let handle = message.get();
        let matched = message::is_matched(handle);
        let communicator = if matched {
            (*(*handle).body.cast::<Matched>()).communicator
        } else {
            ptr::null_mut()
        };
        let mut arguments = Arguments {
            kind: Kind::Receive,
            buffer: abi::buffer(buf),
            count,
            datatype,
            peer: PROC_NULL,
            tag: 0,
            communicator,
        };
        if matched
            && let Some(matched) = (*handle).body.cast::<Matched>().as_mut()
            && let Some(drained) = matched.drained.take()
        {
            message::end(handle);
            message.set(abi::predefined(HandleKind::Message, MESSAGE_NULL));
            let status = drain::deliver(drained, arguments.buffer, count, datatype);
            let request = request::create(&arguments, NO_MESSAGE);
            (*request).head.lower = request::null_word();
            (*request).status = status;
            (*request).state = State::Done;
            return Ok(request);
        }
        let mut word = abi::word(HandleKind::Message, handle);
        let datatype = abi::word(HandleKind::Datatype, datatype);
        let mut receive = 0;
        let buffer = arguments.buffer;
        let code = cross_near(|dispatch| {
            (dispatch.imrecv)(buffer, count, datatype, &mut word, &mut receive)
        });
        if code != 0 {
            return Err((communicator, code));
        }
        let mut flags = NO_MESSAGE;
        if matched {
            // Posted again after a restart it would match this very message, were it still to come.
            let status = (*(*handle).body.cast::<Matched>()).status;
            arguments.peer = status.source;
            arguments.tag = status.tag;
            flags = 0;
            message::end(handle);
        } else if handle::valid(handle, HandleKind::Message) {
            arguments.communicator = ptr::null_mut();
        }
        message.set(abi::predefined(HandleKind::Message, MESSAGE_NULL));
        let request = request::create(&arguments, flags);
        (*request).head.lower = receive;
        Ok(request)
    }
}

/// `MPI_Mrecv`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn mrecv(
    buf: *mut c_void,
    count: c_int,
    datatype: Datatype,
    message: PlaceOf<MessageHandle>,
    status: *mut abi::Status,
) -> c_int {
    if devices::present() {
        let given = (buf, count, datatype, ptr::null_mut());
        // SAFETY: the application's arguments.
        let staged = unsafe {
            devices::receives(c"MPI_Mrecv", given, |buf| {
                mrecv(buf, count, datatype, message, status)
            })
        };
        if let Some(code) = staged {
            return code;
        }
    }
    let _inside = crossing::enter();
    // SAFETY: the application's arguments.
    unsafe {
        match receive(buf, count, datatype, message) {
            Ok(request) => {
                let communicator = (*request).communicator;
                let mut found = Status::default();
                let code = crate::operations::completion::wait_for(request, &mut found);
                give(status, &found);
                if code == 0 {
                    0
                } else {
                    raise(communicator, code, c"MPI_Mrecv")
                }
            }
            Err((communicator, code)) => raise(communicator, code, c"MPI_Mrecv"),
        }
    }
}

/// `MPI_Imrecv`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn imrecv(
    buf: *mut c_void,
    count: c_int,
    datatype: Datatype,
    message: PlaceOf<MessageHandle>,
    request: PlaceOf<RequestHandle>,
) -> c_int {
    if devices::present() {
        let given = (buf.cast_const(), count, datatype, ptr::null_mut());
        // SAFETY: the application's arguments.
        let staged = unsafe {
            devices::starts(c"MPI_Imrecv", Way::Out, given, request, |buf| {
                imrecv(buf, count, datatype, message, request)
            })
        };
        if let Some(code) = staged {
            return code;
        }
    }
    let _inside = crossing::enter();
    // SAFETY: the application's arguments.
    unsafe {
        match receive(buf, count, datatype, message) {
            Ok(begun) => {
                request.set(begun.cast());
                0
            }
            Err((communicator, code)) => raise(communicator, code, c"MPI_Imrecv"),
        }
    }
}
