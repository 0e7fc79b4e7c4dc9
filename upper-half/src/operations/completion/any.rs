//! `MPI_Waitany` and `MPI_Testany`.

use core::ffi::{CStr, c_int};
use core::ptr;

use stillpoint_wrappers::extra::INTERRUPTED;
use stillpoint_wrappers::neutral::Status;
use stillpoint_wrappers::neutral::constants::UNDEFINED;

use super::list::{List, RequestArrays};
use super::{EMPTY, direct, fail, give};
use crate::ground::abi::{self, PlaceOf, RequestHandle};
use crate::ground::crossing::{self, cross_near, pending};
#[cfg(not(application = "openmpi"))]
use crate::operations::buffered;
use crate::operations::messages::points;
use crate::operations::request::State;

/// The end of a call that completes one of several: `index` is the lower half's answer.
///
/// # Safety
/// Inside a stub; `index` must be writable, `status` ignored or writable; `chosen` is below the list's count or undefined.
unsafe fn tell_one(
    list: &mut List<'_>,
    chosen: c_int,
    from_lower: Status,
    code: i32,
    index: *mut c_int,
    status: *mut abi::Status,
    name: &'static CStr,
) -> c_int {
    // SAFETY: `index` and `status` are the application's places, as the caller promises; `chosen` names a request of the list, if it names one.
    unsafe {
        *index = chosen;
        let Ok(place) = usize::try_from(chosen) else {
            give(status, &EMPTY);
            return if code == 0 {
                0
            } else {
                fail(ptr::null_mut(), code, name)
            };
        };
        if list.state(place) == State::Active {
            list.keep(place);
        }
        if code != 0 {
            list.keep_failed(place, code);
        }
        let communicator = list.communicator(place);
        let (found, error) = list.tell(place, from_lower);
        give(status, &found);
        let code = if code == 0 { error } else { code };
        if code == 0 {
            0
        } else {
            fail(communicator, code, name)
        }
    }
}

/// `MPI_Waitany`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn waitany(
    count: c_int,
    array_of_requests: PlaceOf<RequestHandle>,
    index: *mut c_int,
    status: *mut abi::Status,
) -> c_int {
    let mut flag = 0;
    // SAFETY: MPI demands `count` handles, a writable index and a status that is ignored or writable; `flag` is a local variable.
    unsafe {
        #[cfg(not(application = "openmpi"))]
        if buffered::has_flush(array_of_requests, count) {
            return buffered::asked_again(|| {
                let code = testany(count, array_of_requests, index, &mut flag, status);
                (flag != 0 || code != 0).then_some(code)
            });
        }
        if direct::any::<true>(count, array_of_requests, index, &mut flag, status) {
            return 0;
        }
        waitany_long(count, array_of_requests, index, status)
    }
}

/// # Safety
/// As [`waitany`].
#[cold]
#[inline(never)]
unsafe fn waitany_long(
    count: c_int,
    array_of_requests: PlaceOf<RequestHandle>,
    index: *mut c_int,
    status: *mut abi::Status,
) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: `List::new` has looked at all `count` handles; the lower half gets words and places that live in this frame.
    unsafe {
        let mut room = RequestArrays::new();
        let mut list = match List::new(&mut room, array_of_requests, count) {
            Ok(list) => list,
            Err(code) => return fail(ptr::null_mut(), code, c"MPI_Waitany"),
        };
        let mut interrupted = false;
        let (mut chosen, mut found) = (UNDEFINED, EMPTY);
        let code = loop {
            let has_synchronous = list.ask_synchronous();
            if let Some(done) = list.first_done() {
                chosen = done as c_int;
                break (*list.get(done).unwrap_or(ptr::null_mut())).status.error;
            }
            list.look_up();
            let code = if has_synchronous || list.has_persistent() {
                until_one(&mut list, &mut chosen, &mut found)
            } else {
                let words = list.words.as_mut_ptr();
                cross_near(|dispatch| {
                    (dispatch.extra.waitany)(count, words, &mut chosen, &mut found)
                })
            };
            if code != INTERRUPTED {
                break code;
            }
            interrupted = true;
            points::blocked();
        };
        if interrupted {
            points::unblocked();
        }
        tell_one(
            &mut list,
            chosen,
            found,
            code,
            index,
            status,
            c"MPI_Waitany",
        )
    }
}

/// Asks for requests one by one until one is over, as Open MPI's `MPI_Testany` does not say that a persistent one has failed; its `MPI_Test` does.
///
/// # Safety
/// Inside a stub; the list's words have been looked up.
unsafe fn until_one(list: &mut List<'_>, chosen: &mut c_int, found: &mut Status) -> c_int {
    loop {
        // SAFETY: the caller is inside a stub, and the list's words have been looked up.
        if let Some(code) = unsafe { one_of(list, chosen, found) } {
            return code;
        }
        if pending() {
            return INTERRUPTED;
        }
    }
}

/// Asks for each request once, until one is over; synchronous sends have been asked for. Returns `None` if none is, and some are under way.
///
/// # Safety
/// As [`until_one`].
unsafe fn one_of(list: &mut List<'_>, chosen: &mut c_int, found: &mut Status) -> Option<i32> {
    let mut is_one = list.ask_synchronous();
    if let Some(done) = list.first_done() {
        *chosen = done as c_int;
        // SAFETY: the request is done and alive: only the application's call, which is this one, ends it.
        return list.get(done).map(|it| unsafe { (*it).status.error });
    }
    for index in 0..list.count {
        if list.state(index) != State::Active || list.is_synchronous(index) {
            continue;
        }
        is_one = true;
        let word = &raw mut list.words[index];
        let (mut over, place) = (0, &raw mut *found);
        // SAFETY: `word` is an active request's, as looked up by the caller; the flag and the status are local to the caller's frames.
        let code = unsafe { cross_near(|dispatch| (dispatch.test)(word, &mut over, place)) };
        if over != 0 || code != 0 {
            *chosen = index as c_int;
            return Some(code);
        }
    }
    if is_one {
        return None;
    }
    *chosen = UNDEFINED;
    Some(0)
}

/// `MPI_Testany`.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn testany(
    count: c_int,
    array_of_requests: PlaceOf<RequestHandle>,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut abi::Status,
) -> c_int {
    // SAFETY: MPI demands `count` handles, writable places for index and flag, and a status that is ignored or writable.
    unsafe {
        if direct::any::<false>(count, array_of_requests, index, flag, status) {
            return 0;
        }
        testany_long(count, array_of_requests, index, flag, status)
    }
}

/// `MPI_Testany` of one light receive has failed.
///
/// # Safety
/// As the stub that has asked it, whose arguments these are.
pub unsafe extern "C" fn testany_failed(
    count: c_int,
    array_of_requests: PlaceOf<RequestHandle>,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut abi::Status,
    code: c_int,
) -> c_int {
    // SAFETY: the arguments are those of the application's `MPI_Testany`; the real MPI has filled the status if it had both places.
    unsafe {
        let looked = !index.is_null() && !flag.is_null();
        direct::failed_when_asked(array_of_requests, looked, status, code);
        testany_long(count, array_of_requests, index, flag, status)
    }
}

/// # Safety
/// As [`testany`].
#[cold]
#[inline(never)]
unsafe fn testany_long(
    count: c_int,
    array_of_requests: PlaceOf<RequestHandle>,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut abi::Status,
) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: `List::new` has looked at all `count` handles; `flag` and `index` are writable, as MPI demands.
    unsafe {
        let mut room = RequestArrays::new();
        let mut list = match List::new(&mut room, array_of_requests, count) {
            Ok(list) => list,
            Err(code) => return fail(ptr::null_mut(), code, c"MPI_Testany"),
        };
        *flag = 1;
        let (mut chosen, mut found) = (UNDEFINED, EMPTY);
        let has_synchronous = list.ask_synchronous();
        let code = if let Some(done) = list.first_done() {
            chosen = done as c_int;
            (*list.get(done).unwrap_or(ptr::null_mut())).status.error
        } else if has_synchronous {
            list.look_up();
            let Some(code) = one_of(&mut list, &mut chosen, &mut found) else {
                *flag = 0;
                *index = UNDEFINED;
                return 0;
            };
            code
        } else {
            list.look_up();
            let words = list.words.as_mut_ptr();
            let mut any = 0;
            let code = cross_near(|dispatch| {
                (dispatch.testany)(count, words, &mut chosen, &mut any, &mut found)
            });
            if any == 0 && code == 0 {
                *flag = 0;
                *index = UNDEFINED;
                return 0;
            }
            code
        };
        tell_one(
            &mut list,
            chosen,
            found,
            code,
            index,
            status,
            c"MPI_Testany",
        )
    }
}
