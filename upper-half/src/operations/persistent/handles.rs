//! What is done to a request besides starting it and waiting for it.

use core::ffi::c_int;
use core::ptr;

use crate::ground::abi::{PlaceOf, RequestHandle};
use crate::ground::crossing::{self, cross};
use crate::ground::object::Object;
use crate::objects::errhandler::raise;
use crate::operations::clock::persistent as clocks;
use crate::operations::devices;
use crate::operations::request::{self, CANCELLED, GONE, Kind, PERSISTENT, State};

/// `MPI_Request_free`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn request_free(request: PlaceOf<RequestHandle>) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: the application's request.
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
        let stays = matches!((*it).kind, Kind::Receive | Kind::Partitioned)
            || staged.is_some()
            || is_a_flush(it.cast());
        if (*it).state == State::Active && stays {
            // Its message is counted and, after a restart, still received; or it is sent from memory of ours, or no image may have it: so it stays ours.
            request::abandon(it);
            request.set(request::null());
            return 0;
        }
        let mut code = 0;
        // A persistent one that has failed Open MPI has given up by itself.
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

/// Whether a request is one that we complete when buffered sends are over: then it has to be there.
#[cfg(not(application = "openmpi"))]
unsafe fn is_a_flush(request: *mut Object) -> bool {
    // SAFETY: the caller's stub.
    unsafe { crate::operations::buffered::is_flush(request) }
}

#[cfg(application = "openmpi")]
unsafe fn is_a_flush(_: *mut Object) -> bool {
    false
}

/// `MPI_Cancel`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn cancel(request: PlaceOf<RequestHandle>) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: the application's request.
    unsafe {
        let it = match request::of(request.get()) {
            Ok(Some(it)) => it,
            _ => return raise(ptr::null_mut(), request::ERR_REQUEST, c"MPI_Cancel"),
        };
        if (*it).state == State::Done {
            // It is over: too late, as MPI allows.
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
