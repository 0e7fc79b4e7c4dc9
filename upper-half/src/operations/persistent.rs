//! Persistent requests: making and starting them, and making all pending ones anew after a restart.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;
use stillpoint_wrappers::neutral::constants::PROC_NULL;

use crate::ground::abi::{self, PlaceOf, RequestHandle};
use crate::ground::arch;
use crate::ground::crossing::{self, cross};
use crate::ground::object::{Comm, Datatype, Object};
use crate::objects::errhandler::raise;
#[cfg(not(application = "openmpi"))]
use crate::operations::buffered::{self, Message};
use crate::operations::completion::EMPTY;
use crate::operations::devices::{self, BufferUse};
use crate::operations::messages::drain;
use crate::operations::request::{
    self, Arguments, CANCELLED, FROM_NOBODY, GONE, Kind, NO_MESSAGE, PERSISTENT, Request, State,
};
use crate::operations::synchronous;

mod again;
mod handles;
mod kept;

pub use again::rebuild;
pub use handles::{cancel, request_free};
pub use kept::{Members, agree};

/// Makes a persistent point-to-point request in the lower half.
unsafe fn make(kind: Kind, it: &Arguments, word: &mut Word) -> i32 {
    // SAFETY: inside a stub or in a restart; arguments that the application gave.
    unsafe {
        let datatype = abi::word(HandleKind::Datatype, it.datatype);
        let comm = abi::word(HandleKind::Communicator, it.communicator);
        let (buffer, count, peer, tag) = (it.buffer, it.count, it.peer, it.tag);
        cross(|dispatch| match kind {
            Kind::Receive => (dispatch.recv_init)(buffer, count, datatype, peer, tag, comm, word),
            Kind::SynchronousSend => {
                (dispatch.ssend_init)(buffer, count, datatype, peer, tag, comm, word)
            }
            // In other ABIs it is never started below, and the real MPI does not use its buffer.
            #[cfg(application = "openmpi")]
            Kind::BufferedSend => {
                (dispatch.bsend_init)(buffer, count, datatype, peer, tag, comm, word)
            }
            Kind::ReadySend => {
                (dispatch.rsend_init)(buffer, count, datatype, peer, tag, comm, word)
            }
            _ => (dispatch.send_init)(buffer, count, datatype, peer, tag, comm, word),
        })
    }
}

/// # Safety
/// Inside a stub; `arguments` must be as the MPI function of that name has them, neutral, and `handle` writable.
unsafe fn init(
    name: &'static CStr,
    arguments: &Arguments,
    handle: PlaceOf<RequestHandle>,
) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: `make` has the real MPI check the objects, so they are alive when the request is made; `handle` is writable, by the caller's promise.
    unsafe {
        let mut word = 0;
        let code = make(arguments.kind, arguments, &mut word);
        if code != 0 {
            return raise(arguments.communicator, code, name);
        }
        let more = match arguments.kind {
            Kind::SynchronousSend => synchronous::flags(arguments.peer),
            _ if arguments.peer == PROC_NULL => NO_MESSAGE,
            _ => 0,
        };
        let request = request::create(arguments, PERSISTENT | more);
        (*request).head.lower = word;
        (*request).state = State::Inactive;
        handle.set(request.cast());
        0
    }
}

macro_rules! persistent_sends {
    ($($function:ident $name:literal $kind:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As the MPI function.
        pub unsafe fn $function(
            buf: *const c_void, count: c_int, datatype: Datatype, dest: c_int, tag: c_int, comm: Comm,
            request: PlaceOf<RequestHandle>,
        ) -> c_int {
            // SAFETY: MPI demands a buffer that lasts as long as the request; `again` is this very call with a buffer of the host's.
            unsafe {
                if devices::present()
                    && let Some(code) = devices::initialised(
                        $name, BufferUse::In, (buf, count, datatype, comm), request,
                        |buf| $function(buf, count, datatype, dest, tag, comm, request),
                    )
                {
                    return code;
                }
            }
            let arguments = Arguments {
                kind: Kind::$kind, buffer: abi::buffer(buf).cast_mut(), count, datatype,
                peer: abi::rank_to_neutral(dest), tag: abi::tag_to_neutral(tag), communicator: comm,
            };
            // SAFETY: the arguments are this call's, turned into neutral values; `request` is a writable place, as MPI demands.
            unsafe { init($name, &arguments, request) }
        }
    )*};
}

persistent_sends! {
    send_init c"MPI_Send_init" Send
    ssend_init c"MPI_Ssend_init" SynchronousSend
    bsend_init c"MPI_Bsend_init" BufferedSend
    rsend_init c"MPI_Rsend_init" ReadySend
}

/// `MPI_Recv_init`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn recv_init(
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
        // SAFETY: MPI demands a buffer that lasts as long as the request; `again` is this very call with a buffer of the host's.
        let staged = unsafe {
            devices::initialised(c"MPI_Recv_init", BufferUse::Out, given, request, |buf| {
                recv_init(buf, count, datatype, source, tag, comm, request)
            })
        };
        if let Some(code) = staged {
            return code;
        }
    }
    let arguments = crate::operations::p2p::receive(buf, count, datatype, source, tag, comm);
    // SAFETY: the arguments are this call's, turned into neutral values; `request` is a writable place, as MPI demands.
    unsafe { init(c"MPI_Recv_init", &arguments, request) }
}

/// Starts an inactive persistent request.
unsafe fn begin(request: *mut Request) -> i32 {
    // SAFETY: inside a stub or in a restart; a live request.
    unsafe {
        let it = &mut *request;
        it.begun = request::next_begun();
        it.flags &= !CANCELLED;
        let word = &raw mut it.head.lower;
        match it.kind {
            Kind::Receive if it.peer == PROC_NULL => {
                it.status = FROM_NOBODY;
                it.state = State::Done;
                0
            }
            Kind::Receive => {
                let mut queue = drain::turn();
                let message = if queue.is_empty() {
                    None
                } else {
                    drain::take(&mut queue, it.communicator, it.peer, it.tag)
                };
                if let Some(message) = message {
                    drop(queue);
                    it.status = drain::deliver(message, it.buffer, it.count, it.datatype);
                    it.state = State::Done;
                    return 0;
                }
                let code = cross(|dispatch| (dispatch.start)(word));
                if code == 0 {
                    it.state = State::Active;
                }
                code
            }
            Kind::Collective => {
                request::start_again(it);
                start_below(it)
            }
            Kind::BufferedSend => send_buffered(it),
            _ => {
                let code = cross(|dispatch| (dispatch.start)(word));
                if code == 0 {
                    it.set_sent(false);
                    it.state = State::Active;
                    if it.flags & NO_MESSAGE == 0 {
                        arch::count_sent();
                    }
                }
                code
            }
        }
    }
}

/// A started buffered send is one of its own, and over at once: the application's bytes are in the buffer. Open MPI's persistent one sends what
/// the last start has left in the buffer, whose message has gone meanwhile; and at a checkpoint all have gone.
unsafe fn send_buffered(it: &mut Request) -> i32 {
    // SAFETY: inside a stub; arguments that the application gave, of objects that the request holds.
    unsafe {
        let code = send_now(it);
        if code == 0 {
            it.status = EMPTY;
            it.state = State::Done;
        }
        code
    }
}

/// Sends, by the real MPI's buffer.
///
/// # Safety
/// Inside a stub; `it` must be an inactive persistent buffered send, which holds its objects.
#[cfg(application = "openmpi")]
unsafe fn send_now(it: &Request) -> i32 {
    // SAFETY: the request holds its datatype and communicator; the application keeps the buffer as long as the request.
    unsafe {
        let datatype = abi::word(HandleKind::Datatype, it.datatype);
        let comm = abi::word(HandleKind::Communicator, it.communicator);
        let (buffer, count, peer, tag) = (it.buffer, it.count, it.peer, it.tag);
        let code = cross(|dispatch| (dispatch.bsend)(buffer, count, datatype, peer, tag, comm));
        if code == 0 && it.flags & NO_MESSAGE == 0 {
            arch::count_sent();
        }
        code
    }
}

/// Sends, by the buffer that the communicator has now.
///
/// # Safety
/// Inside a stub, nothing locked; `it` must be an inactive persistent buffered send, which holds its objects.
#[cfg(not(application = "openmpi"))]
unsafe fn send_now(it: &Request) -> i32 {
    let message = Message {
        buffer: it.buffer,
        count: it.count,
        datatype: it.datatype,
        peer: it.peer,
        tag: it.tag,
        communicator: it.communicator,
    };
    // SAFETY: the request holds its datatype and communicator; the application keeps the buffer as long as the request.
    unsafe { buffered::send(&message) }.err().unwrap_or(0)
}

/// Has the lower half start a request.
unsafe fn start_below(it: &mut Request) -> i32 {
    let word = &raw mut it.head.lower;
    // SAFETY: inside a stub or in a restart; an inactive persistent request.
    let code = unsafe { cross(|dispatch| (dispatch.start)(word)) };
    if code == 0 {
        it.state = State::Active;
    }
    code
}

/// Starts the request that a handle leads to.
///
/// # Safety
/// Inside a stub; `handle` must be null or a handle that MPI gave.
unsafe fn start_handle(handle: *mut Object, name: &'static CStr) -> c_int {
    // SAFETY: `request::of` looks at the handle; a persistent request is alive until it is freed, and MPI lets one thread at a time work on it.
    unsafe {
        match request::of(handle) {
            Ok(Some(it))
                if (*it).flags & (PERSISTENT | GONE) == PERSISTENT
                    && (*it).state == State::Inactive =>
            {
                if devices::present()
                    && let Err(code) = devices::starting(it)
                {
                    return code;
                }
                let code = begin(it);
                if code == 0 {
                    0
                } else {
                    raise((*it).communicator, code, name)
                }
            }
            Ok(Some(it)) => raise((*it).communicator, request::ERR_REQUEST, name),
            _ => raise(ptr::null_mut(), request::ERR_REQUEST, name),
        }
    }
}

/// `MPI_Start`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn start(request: PlaceOf<RequestHandle>) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: MPI demands a place that holds a handle; `start_handle` looks at the handle.
    unsafe { start_handle(request.get(), c"MPI_Start") }
}

/// `MPI_Startall`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn startall(count: c_int, array_of_requests: PlaceOf<RequestHandle>) -> c_int {
    let _inside = crossing::enter();
    for index in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the index is below `count`, and MPI demands that the array has so many handles.
        let code = unsafe { start_handle(array_of_requests.add(index).get(), c"MPI_Startall") };
        if code != 0 {
            return code;
        }
    }
    0
}
