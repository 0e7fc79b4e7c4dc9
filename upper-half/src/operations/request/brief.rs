//! Nonblocking collective operations in their most frequent form: begun by the short way, completed by it, with nothing in between.
//!
//! Their request is *brief*: only its communicator is held for it, its recipe owns nothing, no function waits for its end,
//! and Fortran does not know it. One byte says so, beside those for its kind, state and flags. So one
//! comparison of the four ([`is`]) stands for all of this, and each change of any of it changes one of the four. Slots that
//! were brief are kept apart: they already hold the values that are the same in all brief requests.
//!
//! Rules: as for every short way, no other thread calls MPI.

use super::slots::{REQUESTS, fill, hold_alone, let_go_alone, slot};
use super::standing::Standing;
use super::{Arguments, Kind, NO_MESSAGE, Recipe, Request};
use crate::ground::object::{ALIVE, FREED, Object};
use crate::ground::shared::concurrent;
use crate::operations::clock::collective;

/// Whether a request is brief.
///
/// # Safety
/// `request` must be a slot of ours, alive.
#[inline(always)]
pub unsafe fn is(request: *const Request) -> bool {
    // SAFETY: `request` is a slot of ours and alive, by the caller's promise.
    unsafe { Standing::of(request) == Standing::BRIEF }
}

/// Makes the request of a nonblocking collective operation, and counts the operation; the lower half has nothing yet. Returns `None` if no slot
/// is free.
///
/// # Safety
/// Inside a stub; `communicator` must be alive and have a cell; `recipe` owns nothing, and all that it refers to must never end.
#[inline(always)]
pub unsafe fn create(communicator: *mut Object, recipe: Recipe) -> Option<*mut Request> {
    // SAFETY: the communicator is alive and has a cell, by the caller's promise; no other thread uses the list of resting slots, which `context` links.
    unsafe {
        let requests = REQUESTS.alone();
        let request = requests.brief;
        if request.is_null() {
            return None;
        }
        requests.brief = (*request).context.cast();
        requests.begun += 1;
        hold_alone(communicator);
        let it = &mut *request;
        it.head.magic = ALIVE;
        it.communicator = communicator;
        it.begun = requests.begun;
        it.made = requests.begun;
        (it.number, it.clock) = collective::initiated_alone(communicator);
        // The old contents of the field own nothing.
        (&raw mut it.recipe).write(Some(recipe));
        Some(request)
    }
}

/// Makes sure that there is a slot for a brief request, if brief requests may exist.
pub fn stock() {
    if concurrent() {
        return;
    }
    let mut requests = REQUESTS.take();
    if !requests.brief.is_null() {
        return;
    }
    let request = slot(&mut requests);
    let arguments = Arguments::without_message(Kind::Collective, core::ptr::null_mut());
    fill(&mut requests, request, &arguments, NO_MESSAGE);
    // SAFETY: no other code has the slot.
    unsafe {
        (*request).brief = true;
        (*request).context = core::ptr::null_mut();
        (*request).head.magic = FREED;
    }
    requests.brief = request;
}

/// Tells the application that a brief request is over, and ends it.
///
/// # Safety
/// Inside a stub; the lower half must have nothing left of it; it is used no more.
#[inline(always)]
pub unsafe fn end(request: *mut Request) {
    // SAFETY: the caller gives the request up.
    unsafe {
        let it = &mut *request;
        let communicator = it.communicator;
        if (*communicator).cell.is_null() {
            // The application has freed the communicator.
            // It has no completion.
            let _ = super::complete(request, None);
            return;
        }
        collective::tell_alone(communicator, it.number);
        let_go_alone(communicator);
        it.head.magic = FREED;
        let requests = REQUESTS.alone();
        it.context = requests.brief.cast();
        requests.brief = request;
    }
}

/// Makes a request an ordinary one, because Fortran is about to know it.
///
/// # Safety
/// `request` must be a live request.
pub unsafe fn no_longer(request: *mut Object) {
    // SAFETY: the request is alive, by the caller's promise.
    unsafe {
        super::light::unfold(request.cast());
        (*request.cast::<Request>()).brief = false;
    }
}
