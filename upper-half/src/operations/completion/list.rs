//! The requests of one call, as the lower half sees them.

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr;

use stillpoint_wrappers::neutral::{Status, Word};

use super::EMPTY;
use crate::ground::abi::{PlaceOf, RequestHandle};
use crate::ground::object::Object;
use crate::objects::outcome::class;
use crate::operations::devices;
use crate::operations::request::{self, Request, State};
use crate::operations::synchronous;

/// Room for the words and statuses of that many requests without the allocator.
const FEW: usize = 32;

/// The memory for the words and statuses of a call: on its stack, if they are few.
pub struct RequestArrays {
    few: MaybeUninit<([Word; FEW], [Status; FEW])>,
    many: (Vec<Word>, Vec<Status>),
}

impl RequestArrays {
    #[inline(always)]
    pub fn new() -> Self {
        Self {
            few: MaybeUninit::uninit(),
            many: (Vec::new(), Vec::new()),
        }
    }

    /// Room for `count` of each.
    #[inline]
    fn take(&mut self, count: usize) -> (&mut [Word], &mut [Status]) {
        if count > FEW {
            self.many = (vec![0; count], vec![Status::default(); count]);
            return (&mut self.many.0, &mut self.many.1);
        }
        let few = self.few.as_mut_ptr();
        // SAFETY: as many elements are written as the slices get.
        unsafe {
            let words: *mut Word = (&raw mut (*few).0).cast();
            let statuses: *mut Status = (&raw mut (*few).1).cast();
            for index in 0..count {
                words.add(index).write(0);
                statuses.add(index).write(Status::default());
            }
            (
                core::slice::from_raw_parts_mut(words, count),
                core::slice::from_raw_parts_mut(statuses, count),
            )
        }
    }
}

/// The requests of one call.
pub struct List<'a> {
    handles: PlaceOf<RequestHandle>,
    pub count: usize,
    pub words: &'a mut [Word],
    pub statuses: &'a mut [Status],
}

impl<'a> List<'a> {
    /// Checks the handles and takes room for them.
    ///
    /// # Safety
    /// Inside a stub; `handles` must be the application's array of `count` requests.
    pub unsafe fn new(
        room: &'a mut RequestArrays,
        handles: PlaceOf<RequestHandle>,
        count: c_int,
    ) -> Result<Self, i32> {
        let count = usize::try_from(count).map_err(|_| class::COUNT)?;
        // SAFETY: inside a stub, as the caller is.
        #[cfg(not(application = "openmpi"))]
        unsafe {
            crate::operations::buffered::notice();
        }
        for index in 0..count {
            // SAFETY: the index is below `count`, and the array has so many handles, by the caller's promise; `of` looks at each.
            unsafe { request::of(handles.add(index).get())? };
        }
        let (words, statuses) = room.take(count);
        Ok(Self {
            handles,
            count,
            words,
            statuses,
        })
    }

    /// The request at `index`, if the handle is not null.
    pub fn get(&self, index: usize) -> Option<*mut Request> {
        // SAFETY: checked by `new`; a handle changes only to null.
        unsafe {
            let handle = self.handles.add(index).get();
            (handle != request::null()).then_some(handle.cast())
        }
    }

    pub fn state(&self, index: usize) -> State {
        // SAFETY: `new` has found a live request there, or none, and only this call completes it.
        self.get(index)
            .map_or(State::Inactive, |it| unsafe { (*it).state })
    }

    pub fn communicator(&self, index: usize) -> *mut Object {
        // SAFETY: `new` has found a live request there, or none, which holds its communicator.
        self.get(index)
            .map_or(ptr::null_mut(), |it| unsafe { (*it).communicator })
    }

    /// Asks for the synchronous sends, which the lower half's functions do not get. Returns whether some are under way still.
    pub fn ask_synchronous(&mut self) -> bool {
        let mut is_one = false;
        for it in (0..self.count).filter_map(|index| self.get(index)) {
            // SAFETY: a live request; inside a stub.
            unsafe {
                if synchronous::is(it) {
                    synchronous::ask(it);
                    is_one |= synchronous::is(it);
                }
            }
        }
        is_one
    }

    /// Whether the request at `index` is a synchronous send that is under way.
    pub fn is_synchronous(&self, index: usize) -> bool {
        // SAFETY: `new` has found a live request there, or none, and only this call completes it.
        self.get(index)
            .is_some_and(|it| unsafe { synchronous::is(it) })
    }

    /// Writes down the lower half's words as they are now: those of the requests under way there, except synchronous sends. A persistent request that is done
    /// above may still be under way there, if a library (MPICH 4.0) does not end a failed one; it would be told of twice.
    pub fn look_up(&mut self) {
        for index in 0..self.count {
            self.words[index] = match self.get(index) {
                // SAFETY: `new` has found a live request there, which is under way.
                Some(it) if self.state(index) == State::Active && !self.is_synchronous(index) => unsafe {
                    (*it).head.lower
                },
                _ => request::null_word(),
            };
        }
    }

    /// Keeps the lower half's new words, for the requests that go on.
    pub fn keep(&mut self, index: usize) {
        let word = self.words[index];
        if self.state(index) == State::Active
            && !self.is_synchronous(index)
            && let Some(it) = self.get(index)
        {
            // SAFETY: `new` has found a live request there, and only this call changes it.
            unsafe { (*it).head.lower = word };
        }
    }

    /// Takes all requests that are over away from the lower half, before the application is told of the first one. To tell of one with a GPU's memory
    /// may take until a checkpoint is over, and a restart must not begin the others again.
    pub fn settle(&mut self, index: usize, from_lower: &Status) {
        self.keep(index);
        if devices::present()
            && self.state(index) == State::Active
            && let Some(it) = self.get(index)
        {
            // SAFETY: a live request, over in the lower half.
            unsafe { request::finish(it, from_lower) };
        }
    }

    /// Whether the lower half has left the request at `index` as it was, after another one has failed.
    pub fn is_left(&self, index: usize) -> bool {
        self.state(index) == State::Active && self.statuses[index].error == class::PENDING
    }

    /// When the real MPI tells of the first failed request, at `chosen`, it gives up all that have failed: they get the same
    /// error.
    pub fn keep_failed(&mut self, chosen: usize, error: i32) {
        for index in (0..self.count).filter(|index| *index != chosen) {
            if self.state(index) != State::Active
                || self.is_synchronous(index)
                || self.words[index] != request::null_word()
            {
                continue;
            }
            self.keep(index);
            if let Some(it) = self.get(index) {
                // SAFETY: a live request, over in the lower half.
                unsafe { request::finish(it, &Status { error, ..EMPTY }) };
            }
        }
    }

    /// Whether any of them is persistent.
    pub fn has_persistent(&self) -> bool {
        // SAFETY: `new` has found live requests in the array, or none.
        let is = |it: *mut Request| unsafe { (*it).flags & request::PERSISTENT != 0 };
        (0..self.count).any(|index| self.get(index).is_some_and(is))
    }

    /// The first request that is done above.
    pub fn first_done(&self) -> Option<usize> {
        (0..self.count).find(|index| self.state(*index) == State::Done)
    }

    /// Tells the application that the request at `index` is over, with the status that the lower half
    /// gave, or with its own status if it was done above. Returns the operation's error.
    ///
    /// # Safety
    /// Inside a stub, nothing locked; the request at `index`, if any, must be over or done.
    pub unsafe fn tell(&mut self, index: usize, from_lower: Status) -> (Status, i32) {
        let Some(it) = self.get(index) else {
            return (EMPTY, 0);
        };
        // SAFETY: `new` has found a live request there; the handle's place is below the array's count, and MPI lets only one thread complete the request.
        unsafe {
            let status = match (*it).state {
                State::Inactive => return (EMPTY, 0),
                State::Done => (*it).status,
                State::Active => from_lower,
            };
            let told = request::complete(it, Some(&status));
            if told.ended {
                self.handles.add(index).set(request::null());
            }
            let error = match status.error {
                0 => told.error,
                error => error,
            };
            (Status { error, ..status }, error)
        }
    }
}
