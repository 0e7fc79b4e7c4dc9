//! `MPI_Waitall` and `MPI_Testall`.

use core::ffi::c_int;
use core::ptr;

use stillpoint_wrappers::extra::INTERRUPTED;

use super::list::{List, RequestArrays};
use super::{direct, fail, give_whole};
use crate::ground::abi::{self, PlaceOf, RequestHandle};
use crate::ground::crossing::{self, cross_near};
use crate::ground::object::Object;
use crate::objects::outcome::class;
use crate::operations::messages::points;
use crate::operations::synchronous;

/// `MPI_Waitall`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn waitall(
    count: c_int,
    array_of_requests: PlaceOf<RequestHandle>,
    array_of_statuses: *mut abi::Status,
) -> c_int {
    let all = usize::try_from(count).unwrap_or(0);
    // SAFETY: MPI demands `count` handles and as many statuses unless they are ignored; `done` is at most `count`.
    unsafe {
        let done = direct::waitall(all, array_of_requests, array_of_statuses);
        if done == all && done != 0 {
            return 0;
        }
        let statuses = if abi::is_ignored(array_of_statuses) {
            array_of_statuses
        } else {
            array_of_statuses.add(done)
        };
        // At most `count`.
        waitall_long(count - done as c_int, array_of_requests.add(done), statuses)
    }
}

/// # Safety
/// As [`waitall`].
#[cold]
#[inline(never)]
unsafe fn waitall_long(
    count: c_int,
    array_of_requests: PlaceOf<RequestHandle>,
    array_of_statuses: *mut abi::Status,
) -> c_int {
    // SAFETY: MPI demands that the array has `count` handles.
    #[cfg(not(application = "openmpi"))]
    unsafe {
        crate::operations::buffered::until_flushed(array_of_requests, count);
    }
    let _inside = crossing::enter();
    // SAFETY: `List::new` has looked at all `count` handles; the lower half writes to the list's own room; `done` is at most `count`.
    unsafe {
        let mut room = RequestArrays::new();
        let mut list = match List::new(&mut room, array_of_requests, count) {
            Ok(list) => list,
            Err(code) => return fail(ptr::null_mut(), code, c"MPI_Waitall"),
        };
        synchronous::until(|| !list.ask_synchronous());
        let (mut done, mut failed_below) = (0, 0);
        let mut failed: Option<*mut Object> = None;
        let mut interrupted = false;
        loop {
            let told = done as usize;
            list.look_up();
            let words = list.words.as_mut_ptr();
            let statuses = list.statuses.as_mut_ptr();
            let code = cross_near(|dispatch| {
                (dispatch.extra.waitall)(count, words, statuses, &mut done, &mut failed_below)
            });
            for index in told..done as usize {
                let from_lower = list.statuses[index];
                list.settle(index, &from_lower);
            }
            for index in told..done as usize {
                let from_lower = list.statuses[index];
                let communicator = list.communicator(index);
                let (status, error) = list.tell(index, from_lower);
                give_whole(array_of_statuses, index, &status);
                if error != 0 {
                    failed.get_or_insert(communicator);
                }
            }
            if code != INTERRUPTED {
                break;
            }
            interrupted = true;
            points::blocked();
        }
        if interrupted {
            points::unblocked();
        }
        match failed {
            None => 0,
            Some(communicator) => fail(communicator, class::IN_STATUS, c"MPI_Waitall"),
        }
    }
}

/// `MPI_Testall`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn testall(
    count: c_int,
    array_of_requests: PlaceOf<RequestHandle>,
    flag: *mut c_int,
    array_of_statuses: *mut abi::Status,
) -> c_int {
    // SAFETY: MPI demands `count` handles, a writable flag, and as many statuses unless they are ignored.
    unsafe {
        if direct::all(count, array_of_requests, flag, array_of_statuses) {
            return 0;
        }
        testall_long(count, array_of_requests, flag, array_of_statuses)
    }
}

/// # Safety
/// As [`testall`].
#[cold]
#[inline(never)]
unsafe fn testall_long(
    count: c_int,
    array_of_requests: PlaceOf<RequestHandle>,
    flag: *mut c_int,
    array_of_statuses: *mut abi::Status,
) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: `List::new` has looked at all `count` handles; the lower half writes to the list's own room, and the flag is writable, as MPI demands.
    unsafe {
        let mut room = RequestArrays::new();
        let mut list = match List::new(&mut room, array_of_requests, count) {
            Ok(list) => list,
            Err(code) => return fail(ptr::null_mut(), code, c"MPI_Testall"),
        };
        if list.ask_synchronous() {
            *flag = 0;
            return 0;
        }
        list.look_up();
        let words = list.words.as_mut_ptr();
        let statuses = list.statuses.as_mut_ptr();
        let mut all = 0;
        let code = cross_near(|dispatch| (dispatch.testall)(count, words, &mut all, statuses));
        *flag = all;
        if code != 0 && code != class::IN_STATUS {
            return fail(list.communicator(0), code, c"MPI_Testall");
        }
        if all == 0 && code == 0 {
            return 0;
        }
        // If some have failed, a library may leave others that are not over as they are, and says so in their statuses.
        let left: Vec<bool> = (0..list.count)
            .map(|index| code != 0 && list.is_left(index))
            .collect();
        *flag = c_int::from(!left.contains(&true));
        let mut failed: Option<*mut Object> = None;
        for index in (0..list.count).filter(|index| !left[*index]) {
            if code == 0 {
                list.statuses[index].error = 0;
            }
            let from_lower = list.statuses[index];
            list.settle(index, &from_lower);
        }
        for (index, is_left) in left.iter().enumerate().take(list.count) {
            let from_lower = list.statuses[index];
            if *is_left {
                give_whole(array_of_statuses, index, &from_lower);
                continue;
            }
            let communicator = list.communicator(index);
            let (status, error) = list.tell(index, from_lower);
            give_whole(array_of_statuses, index, &status);
            if error != 0 {
                failed.get_or_insert(communicator);
            }
        }
        match failed {
            None => 0,
            Some(communicator) => fail(communicator, class::IN_STATUS, c"MPI_Testall"),
        }
    }
}
