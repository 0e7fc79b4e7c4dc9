//! The short way of calls that complete any, all or some of several requests.
//!
//! The real MPI gets the requests' words side by side, on the stack, and the application's own places for its answer. It is
//! asked (`MPI_Testany`, `MPI_Testall`, `MPI_Testsome`). A call that waits asks again until a checkpoint is pending, or is the real MPI's own if that calls
//! back ([`real_wait`]).
//! The real MPI judges null and inactive requests. A request that ends with an error is made done above, and the long way
//! tells of it.

use core::ffi::c_int;
use core::mem::MaybeUninit;

use stillpoint_wrappers::gate::AGAIN;

use super::Answer;
use super::asked::{FEW, PolledRequests};
use crate::ground::abi::{PlaceOf, RequestHandle};
use crate::ground::{abi, arch};
use crate::objects::outcome::class;
use crate::operations::completion::real_wait;
use crate::operations::direct;

/// Room for the statuses that the application ignores: the real MPI tells there which operation has failed.
pub struct Statuses([MaybeUninit<abi::Status>; FEW]);

impl Statuses {
    #[inline(always)]
    pub fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; FEW])
    }

    /// The application's places, or this room if the application ignores statuses.
    #[inline(always)]
    pub fn unless(&mut self, statuses: *mut abi::Status) -> *mut abi::Status {
        if abi::is_ignored(statuses) {
            self.0.as_mut_ptr().cast()
        } else {
            statuses
        }
    }
}

/// `MPI_Testany`, or with `WAITS` `MPI_Waitany`. Returns false if the call has to go the long way.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn any<const WAITS: bool>(
    count: c_int,
    handles: PlaceOf<RequestHandle>,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut abi::Status,
) -> bool {
    let mut asked = PolledRequests::new(handles);
    // SAFETY: MPI demands `count` handles and writable places; `begin` writes the requests' words down within the stay, and an index that the real MPI gives is
    // below `count`.
    unsafe {
        let Some((stay, looked)) = asked.begin(count) else {
            return false;
        };
        if WAITS && real_wait::possible() {
            let words = asked.words();
            let code = real_wait::call(|table| {
                real_wait::there(table.waitany)(count, words, index, status.cast())
            });
            if arch::is_success(code) {
                if *index != abi::UNDEFINED {
                    asked.tell(*index as usize, &looked);
                }
                real_wait::leave(stay);
                return true;
            }
            if code != AGAIN && !index.is_null() && (0..count).contains(&*index) {
                asked.keep(*index as usize, code, status);
                asked.keep_others(count as usize, code);
            }
            stay.go_back();
            return false;
        }
        let table = direct::table();
        if WAITS && ONE_BY_ONE && !looked.are_plain() {
            match until_one(&mut asked, count as usize, index, status) {
                Answer::Over => {
                    asked.tell(*index as usize, &looked);
                    return true;
                }
                Answer::Failed => {
                    stay.go_back();
                    return false;
                }
                // No request is under way, or a checkpoint is pending: the library says which.
                Answer::NotYet => {}
            }
        }
        loop {
            let code = (table.testany)(count, asked.words(), index, flag, status.cast());
            if code != 0 {
                if !index.is_null() && !flag.is_null() {
                    asked.keep(*index as usize, code, status);
                    asked.keep_others(count as usize, code);
                }
                break;
            }
            if *flag != 0 {
                if *index != abi::UNDEFINED {
                    asked.tell(*index as usize, &looked);
                }
                return true;
            }
            if !WAITS {
                return true;
            }
            if arch::gate_pending() {
                break;
            }
        }
        stay.go_back();
    }
    false
}

/// Whether persistent requests are asked for their ends one by one: Open MPI's `MPI_Testany` does not say that one of them has failed. Its `MPI_Test` does, and
/// so does its own `MPI_Waitany`.
const ONE_BY_ONE: bool = cfg!(application = "openmpi");

/// Asks requests one by one until one of them is over, or has failed and is done above. Returns [`Answer::NotYet`] if none is under way or a checkpoint is
/// pending.
///
/// # Safety
/// As [`any`], in the stay.
#[inline(never)]
unsafe fn until_one(
    asked: &mut PolledRequests,
    count: usize,
    index: *mut c_int,
    status: *mut abi::Status,
) -> Answer {
    loop {
        let mut is_one = false;
        for at in 0..count {
            // SAFETY: `at` is below `count`, and its word was written down in this stay; index and status are the application's.
            unsafe {
                if !asked.is_under_way(at) {
                    continue;
                }
                is_one = true;
                let mut over = 0;
                let code = (direct::table().test)(asked.word(at), &mut over, status.cast());
                if code != 0 {
                    asked.keep(at, code, status);
                    return Answer::Failed;
                }
                if over != 0 {
                    *index = at as c_int;
                    return Answer::Over;
                }
            }
        }
        if !is_one || arch::gate_pending() {
            return Answer::NotYet;
        }
    }
}

/// `MPI_Testall`. Returns false if the call has to go the long way.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn all(
    count: c_int,
    handles: PlaceOf<RequestHandle>,
    flag: *mut c_int,
    statuses: *mut abi::Status,
) -> bool {
    let mut asked = PolledRequests::new(handles);
    let mut room = Statuses::new();
    let statuses = room.unless(statuses);
    // SAFETY: MPI demands `count` handles and a writable flag; when the real MPI says `IN_STATUS`, it has filled `count` statuses.
    unsafe {
        let Some((stay, looked)) = asked.begin(count) else {
            return false;
        };
        let code = (direct::table().testall)(count, asked.words(), flag, statuses.cast());
        if code != 0 {
            if direct::error(code) == class::IN_STATUS {
                for index in 0..count as usize {
                    let status = statuses.add(index);
                    asked.keep(index, (*status).error, status);
                }
            }
            stay.go_back();
            return false;
        }
        if *flag != 0 {
            asked.tell_all(count as usize, &looked);
        }
    }
    true
}

/// `MPI_Testsome`, or with `WAITS` `MPI_Waitsome`. Returns false if the call has to go the long way.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn some<const WAITS: bool>(
    count: c_int,
    handles: PlaceOf<RequestHandle>,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut abi::Status,
) -> bool {
    let mut asked = PolledRequests::new(handles);
    let mut room = Statuses::new();
    let statuses = room.unless(statuses);
    // SAFETY: MPI demands `count` handles and as many places for indices and statuses; the real MPI gives indices below `count`, and `outcount` of them.
    unsafe {
        let Some((stay, looked)) = asked.begin(count) else {
            return false;
        };
        if WAITS && real_wait::possible() {
            let words = asked.words();
            let code = real_wait::call(|table| {
                real_wait::there(table.waitsome)(count, words, outcount, indices, statuses.cast())
            });
            if arch::is_success(code) {
                for place in 0..usize::try_from(*outcount).unwrap_or(0) {
                    asked.tell(*indices.add(place) as usize, &looked);
                }
                real_wait::leave(stay);
                return true;
            }
            if code != AGAIN {
                some_failed(&asked, code, outcount, indices, statuses);
            }
            stay.go_back();
            return false;
        }
        let table = direct::table();
        loop {
            let code = (table.testsome)(count, asked.words(), outcount, indices, statuses.cast());
            if code != 0 {
                some_failed(&asked, code, outcount, indices, statuses);
                break;
            }
            // It is `MPI_UNDEFINED` if none is active.
            if *outcount != 0 {
                for place in 0..usize::try_from(*outcount).unwrap_or(0) {
                    asked.tell(*indices.add(place) as usize, &looked);
                }
                return true;
            }
            if !WAITS {
                return true;
            }
            if arch::gate_pending() {
                break;
            }
        }
        stay.go_back();
    }
    false
}

/// Handles failed requests that the real MPI has told of.
///
/// # Safety
/// As [`some`], in the stay; the real MPI has returned `code`.
#[cold]
#[inline(never)]
unsafe fn some_failed(
    asked: &PolledRequests,
    code: c_int,
    outcount: *const c_int,
    indices: *const c_int,
    statuses: *const abi::Status,
) {
    if direct::error(code) != class::IN_STATUS {
        return;
    }
    // SAFETY: the real MPI has filled `outcount` indices and statuses when it says `IN_STATUS`, and the indices are below the call's count.
    unsafe {
        for place in 0..usize::try_from(*outcount).unwrap_or(0) {
            let status = statuses.add(place);
            asked.keep(*indices.add(place) as usize, (*status).error, status);
        }
    }
}
