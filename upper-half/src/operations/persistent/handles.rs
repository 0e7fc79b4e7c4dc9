//! Calls on a request besides starting it and waiting for it.

use core::ffi::c_int;
use core::ptr;

use crate::ground::abi::{PlaceOf, RequestHandle};
use crate::ground::crossing::{self, cross};
use crate::objects::errhandler::raise;
use crate::operations::clock::persistent as clocks;
use crate::operations::devices;
use crate::operations::grequest;
use crate::operations::request::{self, CANCELLED, GONE, Kind, NO_MESSAGE, PERSISTENT, State};
use crate::operations::synchronous;

/// `MPI_Request_free`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn request_free(request: PlaceOf<RequestHandle>) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: `request::of` looks at the handle; MPI forbids that another thread completes or frees the request meanwhile.
    unsafe {
        let it = match request::of(request.get()) {
            Ok(Some(it)) => it,
            _ => return raise(ptr::null_mut(), request::ERR_REQUEST, c"MPI_Request_free"),
        };
        let communicator = (*it).communicator;
        let staged = match (*it).state == State::Active && devices::present() {
            true => devices::freed(it),
            false => None,
        };
        if let Some(Err(code)) = staged {
            return raise(communicator, code, c"MPI_Request_free");
        }
        // The real MPI has yet to say whether the message of a cancelled request counts.
        let is_cancelled = (*it).flags & (CANCELLED | NO_MESSAGE) == CANCELLED;
        let stays = matches!((*it).kind, Kind::Receive | Kind::Partitioned)
            || staged.is_some()
            || is_cancelled
            || grequest::is_open(it);
        if (*it).state == State::Active && stays {
            // The request stays ours for one of three reasons: its message is counted and, after a restart, still received; it is sent from memory of ours; or
            // no image may have it.
            request::abandon(it);
            request.set(request::null());
            return 0;
        }
        let mut code = 0;
        // Open MPI has given up a persistent request that has failed by itself.
        let below = ((*it).state != State::Done || (*it).flags & PERSISTENT != 0)
            && (*it).head.lower != request::null_word();
        if below && (*it).flags & GONE == 0 {
            let word = &raw mut (*it).head.lower;
            code += cross(|dispatch| (dispatch.request_free)(word));
        }
        if code != 0 {
            return raise(communicator, code, c"MPI_Request_free");
        }
        if (*it).kind == Kind::Collective && (*it).flags & PERSISTENT != 0 {
            clocks::freed(communicator, (*it).initialised);
        }
        request::end(it);
        request.set(request::null());
        0
    }
}

/// `MPI_Cancel`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn cancel(request: PlaceOf<RequestHandle>) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: `request::of` looks at the handle; the request is alive until the application is told of its end.
    unsafe {
        let it = match request::of(request.get()) {
            Ok(Some(it)) => it,
            _ => return raise(ptr::null_mut(), request::ERR_REQUEST, c"MPI_Cancel"),
        };
        if (*it).state == State::Done || synchronous::is(it) && (*it).is_sent() {
            // It is over: the call comes too late, as MPI allows.
            return 0;
        }
        (*it).flags |= CANCELLED;
        let word = &raw mut (*it).head.lower;
        let code = cross(|dispatch| (dispatch.cancel)(word));
        if code == 0 {
            0
        } else {
            raise((*it).communicator, code, c"MPI_Cancel")
        }
    }
}
