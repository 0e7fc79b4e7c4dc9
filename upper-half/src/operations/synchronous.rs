//! Synchronous sends: over when their receives have begun, and not when their messages were drained.
//!
//! The real MPI's word that such a send is over is not enough: its message may lie among the receiver's drained ones (`messages::taken`). So the real MPI's
//! completion functions get none of these requests ([`ASKED`]): each is asked for here, and done above when its receive has begun. Until then it is active,
//! also after a restart, when the lower half has nothing of it.
//!
//! Messages with one envelope are taken in their order. So the newest ones that were sent are those that wait.

use core::ffi::{CStr, c_int, c_void};

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::constants::PROC_NULL;
use stillpoint_wrappers::neutral::{Status, Word};

use crate::ground::abi::{self, PlaceOf, RequestHandle};
use crate::ground::arch;
use crate::ground::crossing::{self, cross, cross_near, pending};
use crate::ground::object::{Comm, Datatype};
use crate::objects::communicator;
use crate::objects::errhandler::raise;
use crate::operations::devices::{self, BufferUse};
use crate::operations::direct;
use crate::operations::messages::points;
use crate::operations::messages::taken::{self, Envelope};
use crate::operations::request::{
    self, ASKED, Arguments, CANCELLED, Kind, NO_MESSAGE, Request, State,
};

/// Flags of the request of a synchronous send to a rank.
pub fn flags(peer: i32) -> u8 {
    match peer {
        PROC_NULL => NO_MESSAGE,
        _ => ASKED,
    }
}

/// Whether a request is under way that is asked for here.
///
/// # Safety
/// `request` must be alive.
#[inline(always)]
pub unsafe fn is(request: *const Request) -> bool {
    // SAFETY: `request` is alive, by the caller's promise, so its flags and state are set.
    unsafe { (*request).flags & ASKED != 0 && (*request).state == State::Active }
}

/// Asks the real MPI whether such a send is over below. Returns whether it is by now.
///
/// # Safety
/// Inside a stub or parked; [`is`] holds.
pub unsafe fn sent(request: *mut Request) -> bool {
    // SAFETY: `is` has found an active synchronous send, whose word is the real MPI's; nothing else refers to the request while it is asked for.
    unsafe {
        let it = &mut *request;
        if it.is_sent() {
            return true;
        }
        let (mut over, mut status) = (0, Status::default());
        let word = &raw mut it.head.lower;
        let code = cross(|dispatch| (dispatch.test)(word, &mut over, &mut status));
        if code == 0 && over == 0 {
            return false;
        }
        status.error = code;
        if code != 0 || (it.flags & CANCELLED != 0 && status.cancelled()) {
            // No message, and no receive to wait for.
            request::finish(request, &status);
            return true;
        }
        it.set_sent(true);
        it.status = status;
        true
    }
}

/// Asks for such a send: it is done if its receive has begun.
///
/// # Safety
/// Inside a stub, nothing locked; [`is`] holds.
pub unsafe fn ask(request: *mut Request) {
    // SAFETY: `is` has found the request active, and `sent` and `has_begun` change nothing of it unless they end it. It holds its communicator.
    unsafe {
        if sent(request) && is(request) && has_begun(&*request) {
            let status = (*request).status;
            request::finish(request, &status);
        }
    }
}

/// Whether the receive of a send has begun that is over below.
///
/// # Safety
/// Inside a stub, nothing locked; `it` must be an active request for which [`is`] holds.
unsafe fn has_begun(it: &Request) -> bool {
    // SAFETY: `it` holds its communicator; `live` gives requests whose slots stay mapped, and each is asked for only while `is` holds for it.
    unsafe {
        let Some(body) = communicator::body(it.communicator) else {
            return true;
        };
        let waiting = taken::waiting(Envelope {
            communicator: body.identity,
            receiver: it.peer,
            tag: it.tag,
        });
        if waiting == 0 {
            return true;
        }
        // The end of later ones below may not have been asked for yet.
        let later = request::live().into_iter().filter(|other| {
            let (request, other) = (*other, &**other);
            let same =
                (other.communicator, other.peer, other.tag) == (it.communicator, it.peer, it.tag);
            same && other.begun > it.begun && is(request) && sent(request) && is(request)
        });
        waiting as usize <= later.count()
    }
}

/// Waits until such a send is done.
///
/// # Safety
/// Inside a stub, nothing locked; a live request.
pub unsafe fn until_over(request: *mut Request) {
    // SAFETY: the request is alive, by the caller's promise, and stays so, since only the caller ends it; `is` tells each time whether it is still to be asked
    // for.
    unsafe {
        until(|| {
            if is(request) {
                ask(request);
            }
            !is(request)
        });
    }
}

/// Asks until the answer is yes, and stands still meanwhile if a checkpoint asks for it.
///
/// # Safety
/// Inside a stub, nothing locked.
pub unsafe fn until(mut ask: impl FnMut() -> bool) {
    let mut interrupted = false;
    while !ask() {
        if pending() {
            interrupted = true;
            // SAFETY: the caller is inside a stub with nothing locked, so the thread may stand still here.
            unsafe { points::blocked() };
        } else {
            arch::yield_processor();
        }
    }
    if interrupted {
        points::unblocked();
    }
}

/// The arguments of a send.
fn arguments(
    buf: *const c_void,
    count: c_int,
    datatype: Datatype,
    dest: c_int,
    tag: c_int,
    comm: Comm,
) -> Arguments {
    Arguments {
        kind: Kind::SynchronousSend,
        buffer: abi::buffer(buf).cast_mut(),
        count,
        datatype,
        peer: abi::rank_to_neutral(dest),
        tag: abi::tag_to_neutral(tag),
        communicator: comm,
    }
}

/// A blocking send has returned: its message may have been drained.
///
/// # Safety
/// Inside a stub, nothing locked; the arguments are the send's.
#[inline(always)]
unsafe fn returned(arguments: &Arguments) {
    // SAFETY: MPI demands that the communicator of the send stays alive until the call returns; that call is not over yet.
    unsafe {
        let Some(body) = communicator::body(arguments.communicator) else {
            return;
        };
        let envelope = Envelope {
            communicator: body.identity,
            receiver: arguments.peer,
            tag: arguments.tag,
        };
        if taken::waiting(envelope) != 0 {
            until_begun(arguments);
        }
    }
}

/// # Safety
/// As [`returned`].
#[cold]
#[inline(never)]
unsafe fn until_begun(arguments: &Arguments) {
    // SAFETY: the send's objects are alive until its call returns; the request is made and ended here, and no other code knows it meanwhile.
    unsafe {
        let request = request::create(arguments, ASKED);
        (*request).head.lower = request::null_word();
        (*request).set_sent(true);
        (*request).status = request::EMPTY;
        until_over(request);
        request::end(request);
    }
}

/// Hands a send down by `call`, which is given the words of its datatype and communicator, and counts its message. Returns what the stub returns.
///
/// # Safety
/// Inside a stub; the arguments are the application's.
#[inline(always)]
unsafe fn handed_down(
    it: &Arguments,
    name: &'static CStr,
    call: impl FnOnce(&Dispatch, Word, Word) -> c_int,
) -> c_int {
    let is_message = it.peer != PROC_NULL;
    // SAFETY: the caller is inside a stub, and MPI lets an application pass only live handles.
    unsafe {
        let datatype = abi::word(HandleKind::Datatype, it.datatype);
        let on = abi::word(HandleKind::Communicator, it.communicator);
        if is_message {
            arch::count_sent();
        }
        let code = cross_near(|dispatch| call(dispatch, datatype, on));
        if code != 0 {
            if is_message {
                arch::uncount_sent();
            }
            return raise(it.communicator, code, name);
        }
    }
    0
}

/// `MPI_Ssend`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn ssend(
    buf: *const c_void,
    count: c_int,
    datatype: Datatype,
    dest: c_int,
    tag: c_int,
    comm: Comm,
) -> c_int {
    const NAME: &CStr = c"MPI_Ssend";
    // SAFETY: MPI demands live handles, and a buffer that stays readable until the send returns; `direct::objects` or the real MPI checks the handles.
    unsafe {
        if direct::open() && direct::objects([datatype, comm]) && dest != abi::PROC_NULL {
            let stay = direct::enter();
            arch::count_sent();
            let (lower, on) = ((*datatype).lower, (*comm).lower);
            let code = (direct::table().ssend)(buf, count, lower, dest, tag, on);
            if !arch::is_success(code) {
                arch::uncount_sent();
                return stay.end(comm, code, NAME);
            }
            returned(&arguments(buf, count, datatype, dest, tag, comm));
            return stay.end(comm, code, NAME);
        }
        if devices::present()
            && let Some(code) = devices::sends(c"MPI_Ssend", (buf, count, datatype, comm), |buf| {
                ssend(buf, count, datatype, dest, tag, comm)
            })
        {
            return code;
        }
        let _inside = crossing::enter();
        let it = arguments(buf, count, datatype, dest, tag, comm);
        let code = handed_down(&it, NAME, |d, datatype, on| {
            (d.ssend)(it.buffer, it.count, datatype, it.peer, it.tag, on)
        });
        if code == 0 && it.peer != PROC_NULL {
            returned(&it);
        }
        code
    }
}

/// `MPI_Issend`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn issend(
    buf: *const c_void,
    count: c_int,
    datatype: Datatype,
    dest: c_int,
    tag: c_int,
    comm: Comm,
    place: PlaceOf<RequestHandle>,
) -> c_int {
    const NAME: &CStr = c"MPI_Issend";
    // SAFETY: MPI demands live handles, a buffer that stays as it is until the request is over, and a writable place for the request.
    unsafe {
        let given = (buf, count, datatype, comm);
        if devices::present()
            && let Some(code) = devices::starts(c"MPI_Issend", BufferUse::In, given, place, |buf| {
                issend(buf, count, datatype, dest, tag, comm, place)
            })
        {
            return code;
        }
        let _inside = crossing::enter();
        let it = arguments(buf, count, datatype, dest, tag, comm);
        let mut word = 0;
        let code = handed_down(&it, NAME, |d, datatype, on| {
            (d.issend)(
                it.buffer, it.count, datatype, it.peer, it.tag, on, &mut word,
            )
        });
        if code != 0 {
            return code;
        }
        let request = request::create(&it, flags(it.peer));
        (*request).head.lower = word;
        (*request).set_sent(false);
        place.set(request.cast());
    }
    0
}
