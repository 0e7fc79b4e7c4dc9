//! The short way of calls that complete any, all or some of several requests.
//!
//! The real MPI gets the requests' words side by side, on the stack, and the application's own places for its answer. It is
//! only ever asked (`MPI_Testany`, `MPI_Testall`, `MPI_Testsome`): a call that waits asks again until a checkpoint is pending.
//! Null requests and inactive ones are the real MPI's to judge. What ends with an error is made done above, and the long way
//! tells it.

use core::ffi::c_int;
use core::mem::MaybeUninit;

use stillpoint_wrappers::neutral::Word;

use super::{end, failed};
use crate::ground::abi::{PlaceOf, RequestHandle};
use crate::ground::object::Object;
use crate::ground::{abi, arch};
use crate::objects::outcome::class;
use crate::operations::direct::{self, Stay};
use crate::operations::request::{self, Request, State};

/// Requests of a call that goes this way, at most.
const FEW: usize = 64;

/// What the real MPI is asked about.
struct Asked {
    handles: PlaceOf<RequestHandle>,
    words: [MaybeUninit<Word>; FEW],
    /// Whether all of them are plain.
    plain: bool,
}

impl Asked {
    #[inline(always)]
    fn new(handles: PlaceOf<RequestHandle>) -> Self {
        Self {
            handles,
            words: [const { MaybeUninit::uninit() }; FEW],
            plain: true,
        }
    }

    /// Begins a stay and writes the words down within it: from one stay to the next a restart may change them. `None`: to be
    /// done the long way.
    ///
    /// # Safety
    /// The handles must be the application's array of `count` requests.
    #[inline(always)]
    unsafe fn begin(&mut self, count: c_int) -> Option<Stay> {
        // A negative count is a large one.
        let count = count as usize;
        // SAFETY: the application's array.
        unsafe {
            if count > FEW || !direct::open() {
                return None;
            }
            let stay = direct::enter();
            for (index, word) in self.words[..count].iter_mut().enumerate() {
                let handle = self.handles.add(index).get();
                if let Some(request) = request::plain(handle) {
                    word.write((*request).head.lower);
                    continue;
                }
                self.plain = false;
                let Some(other) = word_of(handle) else {
                    stay.go_back();
                    return None;
                };
                word.write(other);
            }
            Some(stay)
        }
    }

    #[inline(always)]
    fn words(&mut self) -> *mut Word {
        self.words.as_mut_ptr().cast()
    }

    /// Ends a request that is over below, or makes it inactive.
    ///
    /// # Safety
    /// In the stay; `index` must be one of the requests.
    #[inline(always)]
    unsafe fn tell(&self, index: usize) {
        // SAFETY: checked when the stay began.
        unsafe {
            let handle = self.handles.add(index);
            if self.plain {
                end(handle.get().cast());
                handle.set(request::null());
            } else {
                tell_any(handle);
            }
        }
    }

    /// Makes a request done above that is over below, with the status and the error that the real MPI gave.
    ///
    /// # Safety
    /// As [`tell`](Self::tell); `status` must be readable or ignored.
    #[cold]
    #[inline(never)]
    unsafe fn keep(&self, index: usize, code: c_int, status: *const abi::Status) {
        // SAFETY: the word was written when the stay began; null and inactive requests have no end to keep.
        unsafe {
            let handle = self.handles.add(index).get();
            let request: *mut Request = handle.cast();
            if handle != request::null() && (*request).state == State::Active {
                (*request).head.lower = self.words[index].assume_init();
                failed(request, code, status);
            }
        }
    }

    /// With the first failed request that it tells of, the real MPI gives up all that have failed: the same error is theirs.
    ///
    /// # Safety
    /// As [`tell`](Self::tell), of all `count` requests.
    #[cold]
    #[inline(never)]
    unsafe fn keep_others(&self, count: usize, code: c_int) {
        for index in 0..count {
            // SAFETY: the caller's; a request that was kept is not active.
            unsafe {
                if self.words[index].assume_init() == request::null_word() {
                    self.keep(index, code, core::ptr::null());
                }
            }
        }
    }
}

/// The word of a request that is not a plain one, if the real MPI may be asked about it.
#[cold]
#[inline(never)]
unsafe fn word_of(handle: *mut Object) -> Option<Word> {
    if handle == request::null() {
        return Some(request::null_word());
    }
    // SAFETY: the application's handle.
    unsafe { request::askable(handle).map(|request| (*request).head.lower) }
}

/// [`Asked::tell`] of any request.
#[cold]
#[inline(never)]
unsafe fn tell_any(handle: PlaceOf<RequestHandle>) {
    // SAFETY: the caller's request, null or askable.
    unsafe {
        if handle.get() == request::null() {
            return;
        }
        let request: *mut Request = handle.get().cast();
        if (*request).state == State::Active && request::complete(request, None) {
            handle.set(request::null());
        }
    }
}

/// Room for the statuses that the application ignores: the real MPI says there which operation has failed.
type Statuses = [MaybeUninit<abi::Status>; FEW];

#[inline(always)]
fn place(statuses: *mut abi::Status, room: &mut Statuses) -> *mut abi::Status {
    if abi::is_ignored(statuses) {
        room.as_mut_ptr().cast()
    } else {
        statuses
    }
}

/// `MPI_Testany` of one request, as a program calls it that looks after a single receive; false: [`any`] is to be tried. The
/// real MPI gets the request's word where it lies.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn one(
    handle: PlaceOf<RequestHandle>,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut abi::Status,
) -> bool {
    // SAFETY: the application's request and places.
    unsafe {
        if !direct::open() {
            return false;
        }
        let Some(request) = request::plain(handle.get()) else {
            return false;
        };
        let stay = direct::enter();
        let word = &raw mut (*request).head.lower;
        let code = (direct::table().testany)(1, word, index, flag, status.cast());
        if code != 0 {
            if !index.is_null() && !flag.is_null() {
                failed(request, code, status);
            }
            stay.go_back();
            return false;
        }
        if *flag != 0 {
            end(request);
            handle.set(request::null());
        }
    }
    true
}

/// `MPI_Testany`, or with `WAITS` `MPI_Waitany`; false: to be done the long way.
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
    let mut asked = Asked::new(handles);
    // SAFETY: the application's array and places.
    unsafe {
        let Some(stay) = asked.begin(count) else {
            return false;
        };
        let table = direct::table();
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
                    asked.tell(*index as usize);
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

/// `MPI_Testall`; false: to be done the long way.
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
    let mut asked = Asked::new(handles);
    let mut room: Statuses = [const { MaybeUninit::uninit() }; FEW];
    let statuses = place(statuses, &mut room);
    // SAFETY: the application's arrays and flag.
    unsafe {
        let Some(stay) = asked.begin(count) else {
            return false;
        };
        let code = (direct::table().testall)(count, asked.words(), flag, statuses.cast());
        if code != 0 {
            if abi::error_to_neutral(code) == class::IN_STATUS {
                for index in 0..count as usize {
                    let status = statuses.add(index);
                    asked.keep(index, (*status).error, status);
                }
            }
            stay.go_back();
            return false;
        }
        if *flag != 0 {
            for index in 0..count as usize {
                asked.tell(index);
            }
        }
    }
    true
}

/// `MPI_Testsome`, or with `WAITS` `MPI_Waitsome`; false: to be done the long way.
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
    let mut asked = Asked::new(handles);
    let mut room: Statuses = [const { MaybeUninit::uninit() }; FEW];
    let statuses = place(statuses, &mut room);
    // SAFETY: the application's arrays and place.
    unsafe {
        let Some(stay) = asked.begin(count) else {
            return false;
        };
        let table = direct::table();
        loop {
            let code = (table.testsome)(count, asked.words(), outcount, indices, statuses.cast());
            if code != 0 {
                if abi::error_to_neutral(code) == class::IN_STATUS {
                    for place in 0..usize::try_from(*outcount).unwrap_or(0) {
                        let status = statuses.add(place);
                        asked.keep(*indices.add(place) as usize, (*status).error, status);
                    }
                }
                break;
            }
            // Where none is active, it is `MPI_UNDEFINED`.
            if *outcount != 0 {
                for place in 0..usize::try_from(*outcount).unwrap_or(0) {
                    asked.tell(*indices.add(place) as usize);
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
