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
use crate::operations::request::light::{self, Ending, Form};
use crate::operations::request::{self, Request, State, over};

/// Requests of a call that goes this way, at most.
pub const FEW: usize = 64;

/// What the real MPI is asked about.
pub struct Asked {
    handles: PlaceOf<RequestHandle>,
    words: [MaybeUninit<Word>; FEW],
    /// What all of them are at least.
    sort: Sort,
    /// How many are light receives, and where the last of them is.
    receives: usize,
    last_receive: usize,
    /// How many light requests had been unfolded when they were looked at.
    unfolded: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    /// The real MPI may be asked.
    Askable,
    Plain,
    Light,
}

impl Asked {
    #[inline(always)]
    pub fn new(handles: PlaceOf<RequestHandle>) -> Self {
        Self {
            handles,
            words: [const { MaybeUninit::uninit() }; FEW],
            sort: Sort::Light,
            receives: 0,
            last_receive: FEW,
            unfolded: light::unfolded(),
        }
    }

    /// Begins a stay and writes the words down within it: from one stay to the next a restart may change them. `None`: to be
    /// done the long way.
    ///
    /// # Safety
    /// The handles must be the application's array of `count` requests.
    #[inline(always)]
    pub unsafe fn begin(&mut self, count: c_int) -> Option<Stay> {
        // A negative count is a large one.
        let count = count as usize;
        // SAFETY: the application's array.
        unsafe {
            if count > FEW || !direct::open() {
                return None;
            }
            let stay = direct::enter();
            let words = self.words();
            let (mut index, mut receives, mut last_receive) = (0, 0, FEW);
            while index < count {
                let handle = self.handles.add(index).get();
                if arch::is_address(handle) && Form::of(handle) == Form::RECEIVE {
                    words.add(index).write((*handle).lower);
                    receives += 1;
                    last_receive = index;
                } else {
                    let Some((sort, word)) = word_of(handle) else {
                        stay.go_back();
                        return None;
                    };
                    self.sort = self.sort.min(sort);
                    words.add(index).write(word);
                }
                index += 1;
            }
            self.receives = receives;
            self.last_receive = last_receive;
            Some(stay)
        }
    }

    #[inline(always)]
    pub fn words(&mut self) -> *mut Word {
        self.words.as_mut_ptr().cast()
    }

    /// One of the words.
    #[inline(always)]
    pub fn word(&mut self, index: usize) -> *mut Word {
        self.words().wrapping_add(index)
    }

    /// The last of `count` requests that is a light receive; if there is none, the last one.
    #[inline(always)]
    pub fn last_receive(&self, count: usize) -> usize {
        self.last_receive.min(count - 1)
    }

    /// Ends all requests, which are over below, or makes them inactive.
    ///
    /// # Safety
    /// In the stay; all `count` requests.
    #[inline(always)]
    pub unsafe fn tell_all(&self, count: usize) {
        if self.sort != Sort::Light || self.unfolded != light::unfolded() {
            // SAFETY: the caller's.
            (0..count).for_each(|index| unsafe { self.tell(index) });
            return;
        }
        let null = request::null();
        // SAFETY: checked when the stay began. The first one's slot is to be the first that is used again.
        unsafe {
            let mut ending = Ending::begin();
            for index in (0..count).rev() {
                let handle = self.handles.add(index);
                ending.add(handle.get().cast());
                handle.set(null);
            }
            ending.end(self.receives as u64);
        }
    }

    /// Ends a request that is over below, or makes it inactive.
    ///
    /// # Safety
    /// In the stay; `index` must be one of the requests.
    #[inline(always)]
    pub unsafe fn tell(&self, index: usize) {
        // SAFETY: checked when the stay began.
        unsafe {
            let handle = self.handles.add(index);
            if self.sort >= Sort::Plain {
                if !over::is(handle.get()) {
                    end(handle.get().cast());
                }
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
    pub unsafe fn keep(&self, index: usize, code: c_int, status: *const abi::Status) {
        // SAFETY: the word was written when the stay began; null and inactive requests have no end to keep.
        unsafe {
            let handle = self.handles.add(index).get();
            let request: *mut Request = handle.cast();
            if handle == request::null() {
                return;
            }
            light::unfold(request);
            if (*request).state == State::Active {
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

/// The word of a request, if the real MPI may be asked about it.
#[inline(never)]
unsafe fn word_of(handle: *mut Object) -> Option<(Sort, Word)> {
    if handle == request::null() {
        return Some((Sort::Askable, request::null_word()));
    }
    if over::is(handle) {
        // In a launch in which nothing was sent yet it is not known.
        let word = over::word();
        return (word != 0).then_some((Sort::Plain, word));
    }
    // SAFETY: the application's handle.
    unsafe {
        if arch::is_address(handle) && Form::of(handle).is_light() {
            return Some((Sort::Light, (*handle).lower));
        }
        if let Some(request) = request::plain(handle) {
            return Some((Sort::Plain, (*request).head.lower));
        }
        request::askable(handle).map(|request| (Sort::Askable, (*request).head.lower))
    }
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
        if over::is(handle.get()) {
            return handle.set(request::null());
        }
        let request: *mut Request = handle.get().cast();
        light::unfold(request);
        if (*request).state == State::Active && request::complete(request, None).ended {
            handle.set(request::null());
        }
    }
}

/// Room for the statuses that the application ignores: the real MPI says there which operation has failed.
pub struct Statuses([MaybeUninit<abi::Status>; FEW]);

impl Statuses {
    #[inline(always)]
    pub fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; FEW])
    }

    /// The application's places, or this room.
    #[inline(always)]
    pub fn unless(&mut self, statuses: *mut abi::Status) -> *mut abi::Status {
        if abi::is_ignored(statuses) {
            self.0.as_mut_ptr().cast()
        } else {
            statuses
        }
    }
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
    let mut room = Statuses::new();
    let statuses = room.unless(statuses);
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
            asked.tell_all(count as usize);
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
    let mut room = Statuses::new();
    let statuses = room.unless(statuses);
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
