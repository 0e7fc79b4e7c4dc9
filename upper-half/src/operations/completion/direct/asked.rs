//! The list for the real MPI when it is asked about several requests at once: their words, side by side on the stack.

use core::ffi::c_int;
use core::mem::MaybeUninit;

use stillpoint_wrappers::neutral::Word;

use super::{end, failed};
use crate::ground::abi::{self, Handle, PlaceOf, RequestHandle};
use crate::ground::arch;
use crate::ground::narrow::NARROW;
use crate::ground::object::Object;
use crate::objects::outcome::class;
use crate::operations::direct::{self, Own, Stay};
use crate::operations::request::light::{self, Form};
use crate::operations::request::{self, PERSISTENT, Request, State, over};

/// The most requests that a call may have to go this way.
pub const FEW: usize = 64;

/// The requests that the real MPI is asked about.
pub struct PolledRequests {
    handles: PlaceOf<RequestHandle>,
    words: [MaybeUninit<Own>; FEW],
    objects: [MaybeUninit<*mut Object>; KEPT],
}

/// The number of requests that are written down for their end: if handles are numbers, a request is not looked for twice.
const KEPT: usize = if NARROW { FEW } else { 0 };

/// The facts about the requests from the look at them. They are no part of [`PolledRequests`], which lies on the stack: few calls need all of it.
#[derive(Clone, Copy)]
pub struct Looked {
    /// The least that is true of all of them.
    sort: Sort,
    /// The number of light receives, and the index of the last of them.
    receives: usize,
    last_receive: usize,
    /// The number of light requests that had been unfolded.
    unfolded: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    /// The real MPI may be asked.
    Askable,
    Plain,
    Light,
}

impl Looked {
    /// Whether all of them are begun, and none is persistent.
    #[inline(always)]
    pub fn are_plain(&self) -> bool {
        self.sort >= Sort::Plain
    }

    /// The last of `count` requests that is a light receive; if there is none, the last one.
    #[inline(always)]
    pub fn last_receive(&self, count: usize) -> usize {
        self.last_receive.min(count - 1)
    }
}

impl PolledRequests {
    #[inline(always)]
    pub fn new(handles: PlaceOf<RequestHandle>) -> Self {
        Self {
            handles,
            words: [const { MaybeUninit::uninit() }; FEW],
            objects: [const { MaybeUninit::uninit() }; KEPT],
        }
    }

    /// Begins a stay and writes the words down within it, because a restart may change them from one stay to the next. Returns `None` if the call has to go the
    /// long way.
    ///
    /// # Safety
    /// The handles must be the application's array of `count` requests.
    #[inline(always)]
    pub unsafe fn begin(&mut self, count: c_int) -> Option<(Stay, Looked)> {
        // A negative count is a large one.
        let count = count as usize;
        // SAFETY: the handles are `count` requests, by the caller's promise, and `count` is at most `FEW`, for which there is room; each is looked at within
        // the stay.
        unsafe {
            if count > FEW || !direct::open() {
                return None;
            }
            let stay = direct::enter();
            let words = self.own();
            let mut index = receives_first(self.handles, count, words, self.objects.as_mut_ptr());
            let mut looked = Looked {
                sort: Sort::Light,
                receives: index,
                last_receive: index.wrapping_sub(1).min(FEW),
                unfolded: light::unfolded(),
            };
            while index < count {
                let handle = self.handles.add(index).get();
                if let Some(object) = self.objects.get_mut(index) {
                    object.write(handle);
                }
                if let Some(word) = word_of_receive(handle) {
                    words.add(index).write(word as Own);
                    looked.receives += 1;
                    looked.last_receive = index;
                } else {
                    let Some((sort, word)) = word_of(handle) else {
                        stay.go_back();
                        return None;
                    };
                    looked.sort = looked.sort.min(sort);
                    words.add(index).write(word as Own);
                }
                index += 1;
            }
            Some((stay, looked))
        }
    }

    #[inline(always)]
    fn own(&mut self) -> *mut Own {
        self.words.as_mut_ptr().cast()
    }

    /// The words, side by side as the real MPI has them: only for its own functions.
    #[inline(always)]
    pub fn words(&mut self) -> *mut Word {
        self.own().cast()
    }

    /// One of the words.
    #[inline(always)]
    pub fn word(&mut self, index: usize) -> *mut Word {
        self.own().wrapping_add(index).cast()
    }

    /// Whether the real MPI has given a request up, or had none.
    ///
    /// # Safety
    /// As [`tell`](Self::tell).
    pub unsafe fn is_given_up(&self, index: usize) -> bool {
        // SAFETY: the word was written when the stay began.
        unsafe { self.words[index].assume_init() == request::null_word() as Own }
    }

    /// Whether the real MPI has this request under way.
    ///
    /// # Safety
    /// In the stay; `index` must be one of the requests.
    pub unsafe fn is_under_way(&self, index: usize) -> bool {
        // SAFETY: checked when the stay began.
        unsafe {
            let handle = self.handles.add(index).get();
            handle != request::null()
                && (over::is(handle)
                    || Form::of(handle).is_light()
                    || (*handle.cast::<Request>()).state == State::Active)
        }
    }

    /// Ends all requests, which are over below, or makes them inactive.
    ///
    /// # Safety
    /// In the stay; all `count` requests.
    #[inline(always)]
    pub unsafe fn tell_all(&self, count: usize, looked: &Looked) {
        if looked.sort != Sort::Light || looked.unfolded != light::unfolded() {
            // SAFETY: all `count` requests are over below, by the caller's promise, and `begin` has looked at each in this stay.
            (0..count).for_each(|index| unsafe { self.tell(index, looked) });
            return;
        }
        // SAFETY: checked when the stay began. The first send's slot shall be the first to be used again.
        unsafe {
            let object = |index: usize| match KEPT {
                0 => self.handles.add(index).get(),
                _ => self.objects.as_ptr().add(index).read().assume_init(),
            };
            if looked.receives == count {
                return light::end_receives(self.handles, count, object);
            }
            let null = RequestHandle::of(request::null());
            for index in (0..count).rev() {
                light::end(object(index).cast());
                self.handles.add(index).write(null);
            }
        }
    }

    /// Ends a request that is over below, or makes it inactive.
    ///
    /// # Safety
    /// In the stay; `index` must be one of the requests.
    #[inline(always)]
    pub unsafe fn tell(&self, index: usize, looked: &Looked) {
        // SAFETY: checked when the stay began.
        unsafe {
            let handle = self.handles.add(index);
            if looked.sort >= Sort::Plain {
                if !over::is(handle.get()) {
                    end(handle.get().cast());
                }
                handle.set(request::null());
            } else {
                tell_any(handle, self.is_given_up(index));
            }
        }
    }

    /// Makes a request that is over below done above, with the status and the error that the real MPI gave. If one request has failed, a library may leave
    /// others that are not over as they are, and says so by its error.
    ///
    /// # Safety
    /// As [`tell`](Self::tell); `status` must be readable or ignored.
    #[cold]
    #[inline(never)]
    pub unsafe fn keep(&self, index: usize, code: c_int, status: *const abi::Status) {
        if direct::error(code) == class::PENDING {
            return;
        }
        // SAFETY: the word was written when the stay began; null and inactive requests have no end to keep.
        unsafe {
            let handle = self.handles.add(index).get();
            let request: *mut Request = handle.cast();
            if handle == request::null() {
                return;
            }
            light::unfold(request);
            if (*request).state == State::Active {
                (*request).head.lower = self.words[index].assume_init() as Word;
                failed(request, code, status);
            }
        }
    }

    /// When the real MPI tells of the first failed request, it gives up all that have failed: they get the same error.
    ///
    /// # Safety
    /// As [`tell`](Self::tell), of all `count` requests.
    #[cold]
    #[inline(never)]
    pub unsafe fn keep_others(&self, count: usize, code: c_int) {
        for index in 0..count {
            // SAFETY: the index is below `count`, and the stay is that in which the words were written; a request that was kept before is not active and stays
            // as it is.
            unsafe {
                if self.is_given_up(index) {
                    self.keep(index, code, core::ptr::null());
                }
            }
        }
    }
}

/// The word of a light receive.
///
/// # Safety
/// `handle` must be a handle of the application's.
#[inline(always)]
unsafe fn word_of_receive(handle: *mut Object) -> Option<Word> {
    // SAFETY: a handle that is an address leads to an object, which stays mapped, so its form may be read.
    unsafe {
        let receives = arch::is_address(handle) && Form::of(handle) == Form::RECEIVE;
        receives.then(|| (*handle).lower)
    }
}

/// Writes down the words of the light receives at the call's beginning, and returns how many these are. Four at a time, as there are mostly many or none.
///
/// # Safety
/// The application's array of `count` requests, and room for as many words, and for the requests if they are [`KEPT`].
#[inline(always)]
unsafe fn receives_first(
    handles: PlaceOf<RequestHandle>,
    count: usize,
    words: *mut Own,
    objects: *mut MaybeUninit<*mut Object>,
) -> usize {
    // SAFETY: every index is below `count`, and both arrays have room for so many, by the caller's promise; `at_hand` gives an object or no address.
    unsafe {
        let write = |index: usize| {
            let object = handles.add(index).at_hand();
            // `at_hand` gives an object for every number.
            if !(NARROW || arch::is_address(object)) || Form::of(object) != Form::RECEIVE {
                return false;
            }
            words.add(index).write((*object).lower as Own);
            if KEPT != 0 {
                objects.add(index).write(MaybeUninit::new(object));
            }
            true
        };
        let mut index = 0;
        while index < count & !3 && (0..4).all(|within| write(index + within)) {
            index += 4;
        }
        while index < count && write(index) {
            index += 1;
        }
        index
    }
}

/// The word of a request, if the real MPI may be asked about it.
///
/// # Safety
/// In a stay of the short way; `handle` must be a handle of the application's.
#[inline(never)]
unsafe fn word_of(handle: *mut Object) -> Option<(Sort, Word)> {
    if handle == request::null() {
        return Some((Sort::Askable, request::null_word()));
    }
    if over::is(handle) {
        // The word is not known in a launch in which nothing was sent yet.
        let word = over::word();
        return (word != 0).then_some((Sort::Plain, word));
    }
    // SAFETY: a handle that is an address leads to an object, which stays mapped; `plain` and `askable` look at what it is.
    unsafe {
        if arch::is_address(handle) && Form::of(handle).is_light() {
            return Some((Sort::Light, (*handle).lower));
        }
        if let Some(request) = request::plain(handle) {
            return Some((Sort::Plain, (*request).head.lower));
        }
        // If one request has failed, Open MPI gives up every request with the mark of a failure. A request that has not begun may have that mark from an
        // earlier user of its memory.
        request::askable(handle).map(|request| match (*request).state {
            State::Active => (Sort::Askable, (*request).head.lower),
            _ => (Sort::Askable, request::null_word()),
        })
    }
}

/// [`Asked::tell`] for any request. Open MPI gives up a persistent one that has failed, and tells of it as of one that is over.
///
/// # Safety
/// In a stay; `handle` must hold `MPI_REQUEST_NULL` or a request that was askable and is over below.
#[cold]
#[inline(never)]
unsafe fn tell_any(handle: PlaceOf<RequestHandle>, is_given_up: bool) {
    // SAFETY: the handle is null or a request's that was askable, by the caller's promise, so it is alive until `complete` ends it.
    unsafe {
        if handle.get() == request::null() {
            return;
        }
        if over::is(handle.get()) {
            return handle.set(request::null());
        }
        let request: *mut Request = handle.get().cast();
        light::unfold(request);
        if (*request).state != State::Active {
            return;
        }
        if is_given_up && (*request).flags & PERSISTENT != 0 {
            (*request).head.lower = request::null_word();
        }
        if request::complete(request, None).ended {
            handle.set(request::null());
        }
    }
}
