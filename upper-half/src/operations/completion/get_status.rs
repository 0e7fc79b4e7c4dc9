//! Whether requests are over, without ending them: `MPI_Request_get_status`, and its `all`, `any` and `some` forms where an ABI has them.
//!
//! A flag tells the application of an end: from then on the operation's buffers are its own (MPI 5.0, section 3.7.6). So the status of a finished request
//! comes only from [`Over::tell`], before which a nonblocking collective operation binds.

use core::ffi::c_int;
use core::ptr;

use stillpoint_wrappers::neutral::Status;

use super::{EMPTY, give};
#[cfg(not(application = "openmpi"))]
use super::{fail, give_whole};
use crate::ground::abi;
#[cfg(not(application = "openmpi"))]
use crate::ground::abi::{ListOf, RequestHandle};
use crate::ground::crossing::{self, cross};
use crate::ground::object::{Comm, Object};
use crate::objects::errhandler::raise;
#[cfg(not(application = "openmpi"))]
use crate::objects::outcome::class;
use crate::operations::devices;
use crate::operations::request::{self, Request, State};
use crate::operations::synchronous;

/// The state of a request.
enum Seen {
    /// Null or inactive: its status is empty.
    Idle,
    NotYet,
    Over(Over),
}

/// A request that is over, although the application has yet to be told.
struct Over {
    request: *mut Request,
    status: Status,
    error: i32,
}

impl Over {
    /// The status and error, for an application that is told now.
    ///
    /// # Safety
    /// Inside a stub, nothing locked; the request is alive still.
    unsafe fn tell(self) -> (Status, i32) {
        // SAFETY: the request is alive still, by the caller's promise, and `look` has made it a whole one.
        unsafe { request::tell(self.request) };
        (self.status, self.error)
    }

    /// The communicator that its error is raised on.
    ///
    /// # Safety
    /// As [`Over::tell`].
    unsafe fn communicator(&self) -> Comm {
        // SAFETY: the request is alive still, by the caller's promise.
        unsafe { (*self.request).communicator }
    }
}

/// Looks at a request. An error is one of the question itself, with the communicator that it is raised on.
///
/// # Safety
/// Inside a stub; null, or a handle that MPI gave.
unsafe fn look(handle: *mut Object) -> Result<Seen, (Comm, i32)> {
    // SAFETY: `request::of` looks at the handle, which is null or MPI's; after each question the request is looked at anew.
    unsafe {
        #[cfg(not(application = "openmpi"))]
        crate::operations::buffered::notice();
        let it = match request::of(handle) {
            Ok(Some(it)) => it,
            Ok(None) => return Ok(Seen::Idle),
            Err(code) => return Err((ptr::null_mut(), code)),
        };
        if synchronous::is(it) {
            synchronous::ask(it);
            if synchronous::is(it) {
                return Ok(Seen::NotYet);
            }
        }
        match (*it).state {
            State::Inactive => Ok(Seen::Idle),
            State::Done => Ok(over(it, (*it).status)),
            State::Active => {
                let word = (*it).head.lower;
                let (mut done, mut found) = (0, Status::default());
                let code =
                    cross(|dispatch| (dispatch.request_get_status)(word, &mut done, &mut found));
                if done != 0 {
                    // The library tells the error of the operation here.
                    found.error = code;
                    return Ok(over(it, found));
                }
                match code {
                    0 => Ok(Seen::NotYet),
                    _ => Err(((*it).communicator, code)),
                }
            }
        }
    }
}

/// A request that is over: its data may be looked at. MPICH tells here, too, that it has failed; Open MPI tells only the call that ends it.
///
/// # Safety
/// Inside a stub; `request` must be a live one whose operation is over.
unsafe fn over(request: *mut Request, status: Status) -> Seen {
    // SAFETY: the request is alive and its operation over, as `look` has found.
    let landed = unsafe { devices::landed(request) };
    let tells = cfg!(not(application = "openmpi")) && status.error != 0;
    let error = if tells { status.error } else { landed };
    Seen::Over(Over {
        request,
        status,
        error,
    })
}

/// `MPI_Request_get_status`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn request_get_status(
    request: *mut Object,
    flag: *mut c_int,
    status: *mut abi::Status,
) -> c_int {
    const NAME: &core::ffi::CStr = c"MPI_Request_get_status";
    let _inside = crossing::enter();
    // SAFETY: MPI demands a handle, a writable flag and a status that is ignored or writable; `over` is used before anything can end the request.
    unsafe {
        match look(request) {
            Err((communicator, code)) => return raise(communicator, code, NAME),
            Ok(Seen::NotYet) => *flag = 0,
            Ok(Seen::Idle) => {
                *flag = 1;
                // An empty status has no error (MPI 5.0, section 3.7.3); Open MPI leaves that field as it is.
                #[cfg(application = "openmpi")]
                give(status, &EMPTY);
                #[cfg(not(application = "openmpi"))]
                give_whole(status, 0, &EMPTY);
            }
            Ok(Seen::Over(over)) => {
                let communicator = over.communicator();
                let (found, error) = over.tell();
                *flag = 1;
                give(status, &found);
                if error != 0 {
                    return raise(communicator, error, NAME);
                }
            }
        }
        0
    }
}

/// The number of requests in a call.
#[cfg(not(application = "openmpi"))]
fn number(count: c_int, requests: ListOf<RequestHandle>) -> Result<usize, i32> {
    match usize::try_from(count) {
        Ok(count) if count > 0 && requests.is_null() => Err(class::ARG),
        Ok(count) => Ok(count),
        Err(_) => Err(class::COUNT),
    }
}

/// `MPI_Request_get_status_all`.
///
/// # Safety
/// As the MPI function.
#[cfg(not(application = "openmpi"))]
pub unsafe fn request_get_status_all(
    count: c_int,
    array_of_requests: ListOf<RequestHandle>,
    flag: *mut c_int,
    array_of_statuses: *mut abi::Status,
) -> c_int {
    const NAME: &core::ffi::CStr = c"MPI_Request_get_status_all";
    let _inside = crossing::enter();
    // SAFETY: MPI demands `count` handles, and as many statuses unless they are ignored; a request that is over stays alive until the application ends it.
    unsafe {
        let count = match number(count, array_of_requests) {
            Ok(count) => count,
            Err(code) => return fail(ptr::null_mut(), code, NAME),
        };
        *flag = 0;
        // A request that is over stays so, and its status too. Statuses are given when all are over.
        for request in array_of_requests.objects(count) {
            match look(request) {
                Ok(Seen::NotYet) => return 0,
                Ok(_) => {}
                Err((communicator, code)) => return fail(communicator, code, NAME),
            }
        }
        let mut failed = None;
        for (index, request) in array_of_requests.objects(count).enumerate() {
            match look(request) {
                Ok(Seen::Over(over)) => {
                    let communicator = over.communicator();
                    let (mut found, error) = over.tell();
                    if error != 0 {
                        found.error = error;
                        failed.get_or_insert(communicator);
                    }
                    give_whole(array_of_statuses, index, &found);
                }
                Ok(_) => give_whole(array_of_statuses, index, &EMPTY),
                Err((communicator, code)) => return fail(communicator, code, NAME),
            }
        }
        *flag = 1;
        match failed {
            None => 0,
            Some(communicator) => fail(communicator, class::IN_STATUS, NAME),
        }
    }
}

/// `MPI_Request_get_status_any`.
///
/// # Safety
/// As the MPI function.
#[cfg(not(application = "openmpi"))]
pub unsafe fn request_get_status_any(
    count: c_int,
    array_of_requests: ListOf<RequestHandle>,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut abi::Status,
) -> c_int {
    const NAME: &core::ffi::CStr = c"MPI_Request_get_status_any";
    let _inside = crossing::enter();
    // SAFETY: MPI demands `count` handles, writable places for index and flag, and a status that is ignored or writable.
    unsafe {
        let count = match number(count, array_of_requests) {
            Ok(count) => count,
            Err(code) => return fail(ptr::null_mut(), code, NAME),
        };
        let mut idle = true;
        for (at, request) in array_of_requests.objects(count).enumerate() {
            match look(request) {
                Ok(Seen::Idle) => {}
                Ok(Seen::NotYet) => idle = false,
                Ok(Seen::Over(over)) => {
                    let communicator = over.communicator();
                    let (found, error) = over.tell();
                    *flag = 1;
                    *index = at as c_int;
                    give(status, &found);
                    return match error {
                        0 => 0,
                        error => fail(communicator, error, NAME),
                    };
                }
                Err((communicator, code)) => return fail(communicator, code, NAME),
            }
        }
        *index = abi::UNDEFINED;
        *flag = c_int::from(idle);
        if idle {
            give_whole(status, 0, &EMPTY);
        }
        0
    }
}

/// `MPI_Request_get_status_some`.
///
/// # Safety
/// As the MPI function.
#[cfg(not(application = "openmpi"))]
pub unsafe fn request_get_status_some(
    incount: c_int,
    array_of_requests: ListOf<RequestHandle>,
    outcount: *mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut abi::Status,
) -> c_int {
    const NAME: &core::ffi::CStr = c"MPI_Request_get_status_some";
    let _inside = crossing::enter();
    // SAFETY: MPI demands `incount` handles and as many places for indices and statuses; `told` never passes `incount`.
    unsafe {
        let count = match number(incount, array_of_requests) {
            Ok(count) => count,
            Err(code) => return fail(ptr::null_mut(), code, NAME),
        };
        let (mut idle, mut told) = (true, 0);
        let mut failed = None;
        for (at, request) in array_of_requests.objects(count).enumerate() {
            match look(request) {
                Ok(Seen::Idle) => {}
                Ok(Seen::NotYet) => idle = false,
                Ok(Seen::Over(over)) => {
                    idle = false;
                    let communicator = over.communicator();
                    let (mut found, error) = over.tell();
                    if error != 0 {
                        found.error = error;
                        failed.get_or_insert(communicator);
                    }
                    *array_of_indices.add(told) = at as c_int;
                    give_whole(array_of_statuses, told, &found);
                    told += 1;
                }
                Err((communicator, code)) => return fail(communicator, code, NAME),
            }
        }
        // As many as there were places.
        *outcount = match idle {
            true => abi::UNDEFINED,
            false => told as c_int,
        };
        match failed {
            None => 0,
            Some(communicator) => fail(communicator, class::IN_STATUS, NAME),
        }
    }
}
