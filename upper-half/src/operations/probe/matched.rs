//! Messages that a probe takes for good (`MPI_Mprobe`, `MPI_Improbe`), and their receives.

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
use crate::operations::devices::{self, BufferUse};
use crate::operations::direct;
use crate::operations::messages::message::{self, Held, Matched};
use crate::operations::messages::{drain, points};
use crate::operations::request::{self, Arguments, Kind, NO_MESSAGE, State};
use stillpoint_wrappers::standard;

/// Takes a message for good, once. Returns `None` if there is none.
///
/// # Safety
/// Inside a stub; `comm` must be null or a handle that MPI gave.
unsafe fn claim(
    comm: Comm,
    source: i32,
    tag: i32,
    blocking: bool,
) -> Result<Option<(*mut Object, Status)>, i32> {
    // SAFETY: the real MPI checks the communicator's word; a communicator on which a message was drained or found is alive.
    unsafe {
        // Threads that take a message from the real MPI do so in turn with those that post receives.
        let mut queue = drain::turn();
        if let Some(drained) = drain::take(&mut queue, comm, source, tag) {
            drop(queue);
            let status = drain::status_of(drained.source, drained.tag, drained.bytes.len() as u64);
            let matched = Matched {
                status,
                communicator: Held::new(comm),
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
        Ok(Some((handle_of(comm, source, word, status), status)))
    }
}

/// The handle of a message that the real MPI has given.
///
/// # Safety
/// Inside a stub; a live communicator.
unsafe fn handle_of(comm: Comm, source: i32, word: Word, status: Status) -> *mut Object {
    if source == PROC_NULL {
        return abi::predefined(HandleKind::Message, standard::MESSAGE_NO_PROC);
    }
    let matched = Matched {
        status,
        // SAFETY: the communicator is alive, by the caller's promise; `Held` keeps it so as long as the message exists.
        communicator: unsafe { Held::new(comm) },
        drained: None,
    };
    message::create(word, matched)
}

/// The end of the stub of an `MPI_Improbe` that has found a message.
///
/// # Safety
/// The application's places, filled by the real MPI: the handle's place holds its word.
#[cfg(not(application = "mpich"))]
pub unsafe extern "C" fn found(
    comm: Comm,
    message: PlaceOf<MessageHandle>,
    status: *const abi::Status,
) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: the real MPI has put its word into the handle's place and filled the status; both belong to the application's call, which is not over yet.
    unsafe {
        let word = message.given().cast::<Word>().read();
        let found = (*status).to_neutral();
        message.set(handle_of(comm, found.source, word, found));
    }
    0
}

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
    // SAFETY: MPI demands a live communicator, a writable flag, a writable handle's place and a status that is ignored or writable. `alive` checks the
    // communicator.
    unsafe {
        if direct::open() && direct::alive([comm]) {
            let stay = direct::enter();
            if drain::nothing_waits() {
                let (peer, number) = (abi::rank_to_neutral(source), abi::tag_to_neutral(tag));
                let (mut there, mut word, mut found) = (0, 0, Status::default());
                let lower = (*comm).lower;
                let code = (crossing::dispatch().improbe)(
                    peer, number, lower, &mut there, &mut word, &mut found,
                );
                if code == 0 && there == 0 {
                    *flag = 0;
                    drop(stay);
                    return 0;
                }
                let code = claimed(code, comm, peer, word, &found, message, status);
                if code == 0 {
                    *flag = 1;
                }
                drop(stay);
                return code;
            }
            stay.go_back();
        }
        improbe_converted(source, tag, comm, flag, message, status)
    }
}

/// Ends an `MPI_Improbe` that has found a message, or failed.
///
/// # Safety
/// In its stay; the real MPI's answer, the application's places.
#[cold]
#[inline(never)]
unsafe fn claimed(
    code: i32,
    comm: Comm,
    source: i32,
    word: Word,
    found: &Status,
    message: PlaceOf<MessageHandle>,
    status: *mut abi::Status,
) -> c_int {
    // SAFETY: the word is the real MPI's answer if the code is 0; the places are the application's, the status may be ignored.
    unsafe {
        if code != 0 {
            return raise(comm, code, c"MPI_Improbe");
        }
        message.set(handle_of(comm, source, word, *found));
        give(status, found);
    }
    0
}

/// # Safety
/// As [`improbe`].
#[cold]
#[inline(never)]
unsafe fn improbe_converted(
    source: c_int,
    tag: c_int,
    comm: Comm,
    flag: *mut c_int,
    message: PlaceOf<MessageHandle>,
    status: *mut abi::Status,
) -> c_int {
    let _inside = crossing::enter();
    let (source, tag) = (abi::rank_to_neutral(source), abi::tag_to_neutral(tag));
    // SAFETY: `claim` has the real MPI check the communicator; the places are writable, and written only if a message was found.
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
    // SAFETY: the real MPI checks the communicator at each `claim`, also after a restart; the places are written once, at the end.
    unsafe {
        let found = loop {
            match claim(comm, source, tag, true) {
                Ok(Some(found)) => break Ok(found),
                Err(code) if code != INTERRUPTED => break Err(code),
                // With several threads the probe is repeated, in turn with the others.
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
///
/// # Safety
/// Inside a stub; arguments as for `MPI_Mrecv`.
unsafe fn receive(
    buf: *mut c_void,
    count: c_int,
    datatype: Datatype,
    message: PlaceOf<MessageHandle>,
) -> Result<*mut request::Request, (*mut Object, i32)> {
    // SAFETY: `is_matched` looks at the handle before its body is read; MPI forbids that another thread receives the same message.
    unsafe {
        let handle = message.get();
        let matched = message::is_matched(handle);
        let communicator = if matched {
            (*(*handle).body.cast::<Matched>()).communicator.object()
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
            // The held handle keeps the communicator until the request does.
            let _held = message::end(handle);
            message.set(abi::predefined(HandleKind::Message, standard::MESSAGE_NULL));
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
        let mut _held = None;
        if matched {
            // Posted again after a restart, the receive matches this very message, in case it is still to come.
            let status = (*(*handle).body.cast::<Matched>()).status;
            arguments.peer = status.source;
            arguments.tag = status.tag;
            flags = 0;
            _held = message::end(handle);
        } else if handle::valid(handle, HandleKind::Message) {
            arguments.communicator = ptr::null_mut();
        }
        message.set(abi::predefined(HandleKind::Message, standard::MESSAGE_NULL));
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
        // SAFETY: MPI demands a buffer with room for `count` elements, and a message's handle in its place; `again` is this very call with a buffer of the
        // host's.
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
    // SAFETY: `receive` looks at the message's handle, and returns a request that no other code knows until it is waited for here.
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
        // SAFETY: MPI demands that the buffer stays the library's until the request is over; `again` is this very call with a buffer of the host's.
        let staged = unsafe {
            devices::starts(c"MPI_Imrecv", BufferUse::Out, given, request, |buf| {
                imrecv(buf, count, datatype, message, request)
            })
        };
        if let Some(code) = staged {
            return code;
        }
    }
    let _inside = crossing::enter();
    // SAFETY: `receive` looks at the message's handle; `request` is a writable place, as MPI demands.
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
