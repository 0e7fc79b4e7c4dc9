//! Requests of nonblocking and persistent collective operations: they keep a function that makes them anew.

use core::sync::atomic::{AtomicU32, Ordering};

use stillpoint_wrappers::neutral::Word;

use super::{
    Arguments, Kind, NO_MESSAGE, PERSISTENT, Recipe, Request, State, UNREPEATABLE, adopt, brief,
    create, hold,
};
use crate::ground::object::Object;
use crate::objects::communicator;
use crate::operations::clock::persistent::Named;
use crate::operations::clock::{collective, two_phase};

/// Makes an inactive persistent request whose recipe is a function, in the lower half already as `word`.
///
/// # Safety
/// As [`create`]; `objects` are what the recipe refers to, each alive or null.
pub unsafe fn from_recipe(
    arguments: &Arguments,
    word: Word,
    recipe: Recipe,
    objects: &[*mut Object],
    repeatable: bool,
    named: Named,
) -> *mut Object {
    let repeats = if repeatable { 0 } else { UNREPEATABLE };
    // SAFETY: the objects are alive or null, by the caller's promise, and held from here on; the request is new, so no other code knows it.
    unsafe {
        let request = create(arguments, PERSISTENT | NO_MESSAGE | repeats);
        let it = &mut *request;
        it.state = State::Inactive;
        it.head.lower = word;
        (it.initialised, it.own, it.starts, it.told) = (named.number, named.cell, 0, 0);
        it.recipe = Some(recipe);
        it.keep(objects);
        request.cast()
    }
}

impl Request {
    /// Holds what the recipe refers to; predefined objects never end.
    ///
    /// # Safety
    /// Each of `objects` must be alive or null.
    unsafe fn keep(&mut self, objects: &[*mut Object]) {
        for object in objects {
            // SAFETY: the object is null or alive, by the caller's promise.
            unsafe {
                if !object.is_null() && !(**object).predefined() {
                    hold(*object);
                    self.held.push(*object);
                }
            }
        }
    }
}

/// Numbers of a nonblocking collective operation, see [`Request::number`].
pub type Numbers = (u32, u64);

/// Counts a nonblocking collective operation that is about to begin on a communicator.
///
/// # Safety
/// Inside a stub, nothing locked; `communicator` must be a live communicator.
#[inline]
pub unsafe fn initiate(communicator: *mut Object, repeatable: bool) -> Numbers {
    // SAFETY: the communicator is alive, by the caller's promise; `begun` is an aligned `u32` that threads count in by atomic operations.
    unsafe {
        if repeatable && communicator::members_agree(communicator) {
            return collective::initiated(communicator);
        }
        // It binds at once, as a blocking one; the others' numbers go on.
        collective::begin((*communicator).clock);
        let number = AtomicU32::from_ptr(&raw mut (*communicator).begun);
        let begun = number.fetch_add(1, Ordering::Relaxed) + 1;
        collective::tell(communicator, begun);
        (0, 0)
    }
}

/// Counts a start of a persistent collective operation, on its own clock.
///
/// # Safety
/// Inside a stub, nothing locked; a live request, made by [`from_recipe`].
pub unsafe fn start_again(it: &mut Request) {
    // SAFETY: the request holds its communicator, so that is alive; its clock `own` was made with the request.
    unsafe {
        it.starts += 1;
        let repeatable = it.flags & UNREPEATABLE == 0;
        if repeatable && communicator::members_agree(it.communicator) {
            it.clock = collective::initiated_in(it.own);
            it.number = it.starts;
        } else {
            // It binds at once, as a blocking one.
            collective::begin(it.own);
            (it.number, it.clock) = (0, 0);
        }
        if two_phase::chosen() {
            AtomicU32::from_ptr(&raw mut (*it.communicator).begun).fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Makes the request of a nonblocking collective operation that the lower half has begun as `word`; the next one may be
/// [brief](super::brief).
///
/// # Safety
/// As [`create`]; `objects` are what the recipe refers to, each alive or null.
pub unsafe fn begun_collective(
    communicator: *mut Object,
    word: Word,
    recipe: Recipe,
    objects: &[*mut Object],
    numbers: Numbers,
) -> *mut Object {
    // SAFETY: the communicator and the objects are alive or null, by the caller's promise; the request is new, so no other code knows it.
    unsafe {
        brief::stock();
        let request = adopt(Kind::Collective, communicator, word).cast::<Request>();
        let it = &mut *request;
        (it.number, it.clock) = numbers;
        it.recipe = Some(recipe);
        it.keep(objects);
        request.cast()
    }
}
