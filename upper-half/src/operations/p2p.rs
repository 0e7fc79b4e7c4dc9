//! Point-to-point calls: sends, receives, both at once, and the buffer of buffered sends in programs that have only one (others: `buffered`).
//!
//! Synchronous sends are `synchronous`'s. A send is counted when it is begun, a receive when a message has come to its end. Sends are the real
//! ones: while a checkpoint is pending their receivers pull, so they return. Receives look at the
//! drained messages first, and a blocking call is interruptible.

use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;

use stillpoint_wrappers::direct::Direct;
use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;
use stillpoint_wrappers::neutral::constants::PROC_NULL;

use crate::ground::abi::{self, PlaceOf, RequestHandle};
use crate::ground::arch;
use crate::ground::crossing::{self, cross_near};
use crate::ground::object::{Comm, Datatype, Object};
use crate::objects::errhandler::raise;
use crate::objects::outcome::name;
use crate::operations::devices::{self, BufferUse};
use crate::operations::direct;
use crate::operations::request::{self, Arguments, Kind, NO_MESSAGE, light, over};

#[cfg(application = "openmpi")]
mod buffer;
mod posted;
mod receive;
mod sendrecv;
mod waiting;

#[cfg(application = "openmpi")]
pub use buffer::{buffer_attach, buffer_detach, rebuild_buffer};
pub use posted::{irecv, post};
#[cfg(application = "mpich")]
pub use receive::receive_of_one_has_failed;
pub use receive::{receive, recv};
pub use sendrecv::{sendrecv, sendrecv_replace};
pub use waiting::{
    hook as waiting_hook, parked as parked_in_receive, prepare as prepare_receive,
    receive_begins_anew, receive_has_failed, received_at_checkpoint,
};

/// A blocking send of any mode to a rank, the short way.
#[inline(always)]
unsafe fn send_directly(
    name: &'static CStr,
    comm: Comm,
    call: impl FnOnce(&'static Direct) -> i32,
) -> c_int {
    // SAFETY: the way is open; the call only crosses.
    unsafe {
        let stay = direct::enter();
        arch::count_sent();
        let code = call(direct::table());
        if arch::is_success(code) {
            return code;
        }
        arch::uncount_sent();
        stay.end(comm, code, name)
    }
}

/// A blocking send of any mode.
#[inline(always)]
unsafe fn blocking_send(
    name: &'static CStr,
    dest: i32,
    comm: Comm,
    call: impl FnOnce(&'static Dispatch, i32, Word) -> i32,
) -> c_int {
    let _inside = crossing::enter();
    let dest = abi::rank_to_neutral(dest);
    // SAFETY: the stub's arguments are the application's; the call only crosses.
    unsafe {
        if dest != PROC_NULL {
            arch::count_sent();
        }
        let lower = abi::word(HandleKind::Communicator, comm);
        let code = cross_near(move |dispatch| call(dispatch, dest, lower));
        if code == 0 {
            return 0;
        }
        if dest != PROC_NULL {
            arch::uncount_sent();
        }
        raise(comm, code, name)
    }
}

macro_rules! blocking_sends {
    ($($function:ident $long:ident $name:literal)*) => {$(
        #[doc = concat!("`", $name, "`.")]
        ///
        /// # Safety
        /// As the MPI function.
        #[inline(always)]
        pub unsafe fn $function(
            buf: *const c_void, count: c_int, datatype: Datatype, dest: c_int, tag: c_int, comm: Comm,
        ) -> c_int {
            // SAFETY: `objects` has checked the handles before their words are read; MPI demands a buffer that stays readable until the send returns.
            unsafe {
                if direct::open() && direct::objects([datatype, comm]) && dest != abi::PROC_NULL {
                    return send_directly(const { name(concat!($name, "\0")) }, comm, move |direct| {
                        (direct.$function)(buf, count, (*datatype).lower, dest, tag, (*comm).lower)
                    });
                }
                $long(buf, count, datatype, dest, tag, comm)
            }
        }

        /// # Safety
        /// As the MPI function.
        #[cold]
        #[inline(never)]
        unsafe fn $long(
            buf: *const c_void, count: c_int, datatype: Datatype, dest: c_int, tag: c_int, comm: Comm,
        ) -> c_int {
            // SAFETY: the real MPI checks the handles' words; the buffer is as MPI demands, and `again` is this very call with a buffer of the host's.
            unsafe {
                if devices::present()
                    && let Some(code) = devices::sends(const { name(concat!($name, "\0")) }, (buf, count, datatype, comm), |buf| {
                        $long(buf, count, datatype, dest, tag, comm)
                    })
                {
                    return code;
                }
                let lower = abi::word(HandleKind::Datatype, datatype);
                let tag = abi::tag_to_neutral(tag);
                blocking_send(const { name(concat!($name, "\0")) }, dest, comm, move |dispatch, dest, comm| {
                    (dispatch.$function)(abi::buffer(buf), count, lower, dest, tag, comm)
                })
            }
        }
    )*};
}

blocking_sends! {
    send send_converted "MPI_Send"
    rsend rsend_converted "MPI_Rsend"
}

#[cfg(application = "openmpi")]
blocking_sends! {
    bsend bsend_converted "MPI_Bsend"
}

/// A nonblocking send of any mode, the short way. It is never begun again, so nothing has to be written down before it.
#[inline(always)]
unsafe fn start_send_directly(
    name: &'static CStr,
    kind: Kind,
    comm: Comm,
    handle: PlaceOf<RequestHandle>,
    call: impl FnOnce(&'static Direct, *mut Word) -> i32,
) -> c_int {
    // SAFETY: the way is open; the call only crosses.
    unsafe {
        let stay = direct::enter();
        let mut word = MaybeUninit::uninit();
        direct::clear(word.as_mut_ptr());
        let code = call(direct::table(), word.as_mut_ptr());
        if !arch::is_success(code) {
            return stay.end(comm, code, name);
        }
        arch::count_sent();
        // The real MPI has written it.
        let word = word.assume_init();
        if word == over::word() {
            handle.set(over::request());
            return code;
        }
        handle.set(under_way(kind, word, comm));
        0
    }
}

/// The request of a send that was not over at once, as far as is known.
///
/// # Safety
/// In the call in which it was begun, on that communicator; `word` is the real MPI's.
#[inline(never)]
pub unsafe extern "C" fn under_way(kind: Kind, word: Word, communicator: Comm) -> *mut Object {
    // SAFETY: in the call in which it was begun, on that communicator.
    unsafe {
        crossing::marked(|| {
            over::look(direct::table(), communicator);
            let request = light::send(kind, communicator).unwrap_or_else(|| {
                let arguments = Arguments::without_message(kind, communicator);
                request::create(&arguments, 0)
            });
            (*request).head.lower = word;
            request.cast()
        })
    }
}

/// A nonblocking send of any mode.
#[inline(always)]
unsafe fn start_send(
    name: &'static CStr,
    arguments: Arguments,
    handle: PlaceOf<RequestHandle>,
    call: impl FnOnce(&'static Dispatch, &Arguments, Word, Word, *mut Word) -> i32,
) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: the stub's arguments are the application's; the call only crosses.
    unsafe {
        let (datatype, comm) = (
            abi::word(HandleKind::Datatype, arguments.datatype),
            abi::word(HandleKind::Communicator, arguments.communicator),
        );
        let flags = if arguments.peer == PROC_NULL {
            NO_MESSAGE
        } else {
            0
        };
        let mut word = 0;
        let code = cross_near(|dispatch| call(dispatch, &arguments, datatype, comm, &mut word));
        if code != 0 {
            return raise(arguments.communicator, code, name);
        }
        if flags == 0 {
            arch::count_sent();
        }
        let request = request::create(&arguments, flags);
        (*request).head.lower = word;
        handle.set(request.cast());
        0
    }
}

macro_rules! nonblocking_sends {
    ($($function:ident $long:ident $name:literal $kind:ident)*) => {$(
        #[doc = concat!("`", $name, "`.")]
        ///
        /// # Safety
        /// As the MPI function.
        #[inline(always)]
        pub unsafe fn $function(
            buf: *const c_void, count: c_int, datatype: Datatype, dest: c_int, tag: c_int, comm: Comm,
            request: PlaceOf<RequestHandle>,
        ) -> c_int {
            // SAFETY: `objects` has checked the handles before their words are read; MPI demands a buffer that stays until the send is over, and a writable
            // place.
            unsafe {
                if direct::open() && direct::objects([datatype, comm]) && dest != abi::PROC_NULL {
                    let name = const { name(concat!($name, "\0")) };
                    return start_send_directly(name, Kind::$kind, comm, request, move |direct, word| {
                        (direct.$function)(buf, count, (*datatype).lower, dest, tag, (*comm).lower, word)
                    });
                }
                $long(buf, count, datatype, dest, tag, comm, request)
            }
        }

        /// # Safety
        /// As the MPI function.
        #[cold]
        #[inline(never)]
        unsafe fn $long(
            buf: *const c_void, count: c_int, datatype: Datatype, dest: c_int, tag: c_int, comm: Comm,
            request: PlaceOf<RequestHandle>,
        ) -> c_int {
            // SAFETY: MPI demands a buffer that stays until the send is over; `again` is this very call with a buffer of the host's.
            unsafe {
                if devices::present()
                    && let Some(code) = devices::starts(
                        const { name(concat!($name, "\0")) }, BufferUse::In, (buf, count, datatype, comm), request,
                        |buf| $long(buf, count, datatype, dest, tag, comm, request),
                    )
                {
                    return code;
                }
            }
            let arguments = Arguments {
                kind: Kind::$kind, buffer: abi::buffer(buf).cast_mut(), count, datatype,
                peer: abi::rank_to_neutral(dest), tag: abi::tag_to_neutral(tag), communicator: comm,
            };
            // SAFETY: `arguments` are this call's, in neutral values; `request` is a writable place, as MPI demands.
            unsafe {
                start_send(const { name(concat!($name, "\0")) }, arguments, request, |dispatch, it, datatype, comm, word| {
                    (dispatch.$function)(it.buffer, it.count, datatype, it.peer, it.tag, comm, word)
                })
            }
        }
    )*};
}

nonblocking_sends! {
    isend isend_converted "MPI_Isend" Send
    irsend irsend_converted "MPI_Irsend" ReadySend
}

#[cfg(application = "openmpi")]
nonblocking_sends! {
    ibsend ibsend_converted "MPI_Ibsend" BufferedSend
}
