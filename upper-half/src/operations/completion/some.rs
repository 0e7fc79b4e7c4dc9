//! `MPI_Waitsome` and `MPI_Testsome`.

use core::ffi::{CStr, c_int};
use core::ptr;

use stillpoint_wrappers::extra::INTERRUPTED;
use stillpoint_wrappers::neutral::Status;
use stillpoint_wrappers::neutral::constants::UNDEFINED;

use super::list::{List, RequestArrays};
use super::{EMPTY, direct, fail, give_whole};
use crate::ground::abi::{self, PlaceOf, RequestHandle};
use crate::ground::crossing::{self, cross_near, pending};
use crate::ground::object::Object;
use crate::objects::outcome::class;
#[cfg(not(application = "openmpi"))]
use crate::operations::buffered;
use crate::operations::messages::points;
use crate::operations::request::State;

/// `MPI_Waitsome` and `MPI_Testsome`, the long way.
///
/// # Safety
/// Inside a stub; as `MPI_Waitsome`.
#[cold]
#[inline(never)]
unsafe fn some(
    blocking: bool,
    incount: c_int,
    array_of_requests: PlaceOf<RequestHandle>,
    outcount: *mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut abi::Status,
    name: &'static CStr,
) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: `List::new` has looked at all handles; the lower half writes to the list's room and to `chosen`, which have a place for each.
    unsafe {
        let mut room = RequestArrays::new();
        let mut list = match List::new(&mut room, array_of_requests, incount) {
            Ok(list) => list,
            Err(code) => return fail(ptr::null_mut(), code, name),
        };
        let mut chosen = vec![0 as c_int; list.count];
        let mut interrupted = false;
        let (code, below, above) = loop {
            let has_synchronous = list.ask_synchronous();
            let above: Vec<usize> = (0..list.count)
                .filter(|index| list.state(*index) == State::Done)
                .collect();
            list.look_up();
            let words = list.words.as_mut_ptr();
            let statuses = list.statuses.as_mut_ptr();
            let places = chosen.as_mut_ptr();
            let mut below = 0;
            let wait = blocking && above.is_empty() && !has_synchronous;
            let code = cross_near(|dispatch| {
                let function = if wait {
                    dispatch.extra.waitsome
                } else {
                    dispatch.testsome
                };
                function(incount, words, &mut below, places, statuses)
            });
            if has_synchronous && below == UNDEFINED {
                // The lower half speaks only of the requests that it was given.
                below = 0;
            }
            let none = code == 0 && below == 0 && above.is_empty();
            let again = blocking && has_synchronous && none;
            if code != INTERRUPTED && !again {
                break (code, below, above);
            }
            if again && !pending() {
                continue;
            }
            interrupted = true;
            points::blocked();
        };
        if interrupted {
            points::unblocked();
        }
        if code != 0 && code != class::IN_STATUS {
            return fail(list.communicator(0), code, name);
        }
        if below == UNDEFINED && above.is_empty() {
            *outcount = UNDEFINED;
            return 0;
        }
        let below = usize::try_from(below).unwrap_or(0);
        let lower = (0..below).map(|place| (chosen[place] as usize, Some(place)));
        let above = above.into_iter().map(|index| (index, None));
        let (told, failed) = tell(
            &mut list,
            lower.chain(above),
            code,
            |told, index, status| {
                *array_of_indices.add(told) = index as c_int;
                give_whole(array_of_statuses, told, status);
            },
        );
        *outcount = told as c_int;
        match failed {
            None => 0,
            Some(communicator) => fail(communicator, class::IN_STATUS, name),
        }
    }
}

/// Tells the application of operations that are over. Returns how many, and the communicator of the first that has failed. Each has its place in
/// the list, and one among the statuses if the lower half had it.
///
/// # Safety
/// Inside a stub; the requests are over.
unsafe fn tell(
    list: &mut List<'_>,
    over: impl Iterator<Item = (usize, Option<usize>)> + Clone,
    code: c_int,
    mut give: impl FnMut(usize, usize, &Status),
) -> (usize, Option<*mut Object>) {
    let (mut told, mut failed) = (0, None);
    let from_lower = |list: &List<'_>, place: usize| {
        let status = list.statuses[place];
        let error = if code == 0 { 0 } else { status.error };
        Status { error, ..status }
    };
    for (index, place) in over.clone() {
        if let Some(place) = place {
            list.settle(index, &from_lower(list, place));
        }
    }
    for (index, place) in over {
        let from_lower = place.map_or(EMPTY, |place| from_lower(list, place));
        let communicator = list.communicator(index);
        // SAFETY: the caller is inside a stub, and this request is over, by its promise.
        let (status, error) = unsafe { list.tell(index, from_lower) };
        give(told, index, &status);
        told += 1;
        if error != 0 {
            failed.get_or_insert(communicator);
        }
    }
    (told, failed)
}

/// `MPI_Waitsome`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn waitsome(
    incount: c_int,
    array_of_requests: PlaceOf<RequestHandle>,
    outcount: *mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut abi::Status,
) -> c_int {
    // SAFETY: MPI demands `incount` handles, as many places for indices and statuses, and a writable `outcount`.
    unsafe {
        #[cfg(not(application = "openmpi"))]
        if buffered::has_flush(array_of_requests, incount) {
            return buffered::asked_again(|| {
                let code = testsome(
                    incount,
                    array_of_requests,
                    outcount,
                    array_of_indices,
                    array_of_statuses,
                );
                (*outcount != 0 || code != 0).then_some(code)
            });
        }
        if direct::some::<true>(
            incount,
            array_of_requests,
            outcount,
            array_of_indices,
            array_of_statuses,
        ) {
            return 0;
        }
        some(
            true,
            incount,
            array_of_requests,
            outcount,
            array_of_indices,
            array_of_statuses,
            c"MPI_Waitsome",
        )
    }
}

/// `MPI_Testsome`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn testsome(
    incount: c_int,
    array_of_requests: PlaceOf<RequestHandle>,
    outcount: *mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut abi::Status,
) -> c_int {
    // SAFETY: MPI demands `incount` handles, as many places for indices and statuses (or ignored ones), and a writable `outcount`.
    unsafe {
        if direct::some::<false>(
            incount,
            array_of_requests,
            outcount,
            array_of_indices,
            array_of_statuses,
        ) {
            return 0;
        }
        some(
            false,
            incount,
            array_of_requests,
            outcount,
            array_of_indices,
            array_of_statuses,
            c"MPI_Testsome",
        )
    }
}
