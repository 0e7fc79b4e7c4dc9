//! The slots of light receives, used one after the other in a ring.
//!
//! [`NEXT`] leads to the slot that is used next. A slot whose receive has ended rests where it is: one store gives it back. So from [`NEXT`] on the receives
//! of the ring stand in the order in which they were begun, and no code has to write that order down. Code that asks for it, because a whole receive
//! is begun or a light one looked at, has the receives [numbered](number).
//!
//! If the next slot is still in use, there is none for the short way, and the long one [makes room](make_room). If most of the ring is in use, the ring grows.
//! Otherwise the receive that is in the way leaves it.
//!
//! The ring is closed while a drained message waits ([`close`]): then code that takes a slot need not ask for that.
//!
//! Rules: no other thread calls MPI; in a stay or parked.

use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use super::super::Request;
use super::super::slots::{REQUESTS, slot};
use super::{Form, unfold};
use crate::ground::narrow;
use crate::ground::narrow::NARROW;
use crate::ground::object::{ALIVE, Object};

/// The slot that is used next, if it rests and the ring is open.
pub static NEXT: AtomicPtr<Request> = AtomicPtr::new(NOWHERE);
/// The slot that is used next once the ring is open again.
static LATER: AtomicPtr<Request> = AtomicPtr::new(NOWHERE);
static IS_OPEN: AtomicBool = AtomicBool::new(true);

#[repr(C, align(64))]
struct Nowhere([AtomicU64; size_of::<Object>() / 8]);

/// The stand-in for a missing slot: it has the form of one that does not rest.
static NONE: Nowhere = Nowhere([const { AtomicU64::new(0) }; size_of::<Object>() / 8]);
const NOWHERE: *mut Request = (&raw const NONE).cast_mut().cast();

/// The offset of a slot's link to the following one.
pub const LINK: usize = offset_of!(Request, made);

/// Slots of a ring, at first and at most.
const FEW: usize = 8;
const MOST: usize = 1024;

/// A slot's note about its receive's number. It lies where other objects have their body, and ends with the receive.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
enum Note {
    /// It has none yet.
    Nothing = 0,
    /// It has none yet, and every receive of the ring that was begun before has one.
    First = 1,
    Numbered = 2,
}

/// The place of the next slot.
fn place() -> &'static AtomicPtr<Request> {
    match IS_OPEN.load(Ordering::Relaxed) {
        true => &NEXT,
        false => &LATER,
    }
}

fn next() -> *mut Request {
    place().load(Ordering::Relaxed)
}

/// Closes the ring, or opens it again: while messages wait that were drained, a receive that begins has to look among them.
pub fn close(closed: bool) {
    if closed == IS_OPEN.load(Ordering::Relaxed) {
        let next = place().swap(NOWHERE, Ordering::Relaxed);
        IS_OPEN.store(!closed, Ordering::Relaxed);
        place().store(next, Ordering::Relaxed);
    }
}

/// A slot's link to the one that follows. A receive has no recipe that would need the place.
///
/// # Safety
/// `request` must be a slot of the ring.
#[inline(always)]
unsafe fn link(request: *mut Request) -> *mut *mut Request {
    // SAFETY: `request` is a slot of ours, by the caller's promise; `made` has a pointer's size and alignment.
    unsafe { (&raw mut (*request).made).cast() }
}

/// A slot's link to the one before. A receive is not a persistent collective operation, which would need the place.
///
/// # Safety
/// `request` must be a slot of the ring.
unsafe fn back(request: *mut Request) -> *mut *mut Request {
    // SAFETY: `request` is a slot of ours, by the caller's promise; `initialised` has a pointer's size and alignment.
    unsafe { (&raw mut (*request).initialised).cast() }
}

/// # Safety
/// `request` must be a slot of ours.
unsafe fn is_used(request: *mut Request) -> bool {
    // SAFETY: the form of a slot is always set, also while the slot rests.
    unsafe { Form::of(request.cast()) == Form::RECEIVE }
}

/// # Safety
/// `request` must be a slot of the ring.
unsafe fn is_noted(request: *mut Request, note: Note) -> bool {
    // SAFETY: the slot is one of the ring's, by the caller's promise, so `body` holds a note; only its number is compared.
    unsafe { (*request).head.body.addr() == note as usize }
}

/// # Safety
/// `request` must be a slot of the ring.
unsafe fn set_note(request: *mut Request, note: Note) {
    // SAFETY: the slot is one of the ring's, by the caller's promise, so nothing else uses `body`.
    unsafe { (*request).head.body = ptr::without_provenance_mut(note as usize) };
}

/// Whether the next slot rests.
pub fn has_room() -> bool {
    // SAFETY: a slot of the ring, or none, which shows that it does not rest.
    unsafe { Form::of(next().cast()).is_resting() }
}

/// Takes the next slot, if it rests and the ring is open.
///
/// # Safety
/// In a stay of the short way.
#[inline(always)]
pub(super) unsafe fn take() -> Option<*mut Request> {
    let request = NEXT.load(Ordering::Relaxed);
    // SAFETY: a slot of the ring, or none, which shows that it does not rest.
    unsafe {
        if !Form::of(request.cast()).is_resting() {
            return None;
        }
        Form::RECEIVE.give(request);
        NEXT.store(*link(request), Ordering::Relaxed);
    }
    Some(request)
}

/// Ends a receive of the ring: its slot rests, and its note is empty.
///
/// # Safety
/// In a stay; a slot of the ring, used no more.
#[inline(always)]
pub(super) unsafe fn rest(request: *mut Request) {
    const { assert!(offset_of!(Object, body) == offset_of!(Object, clock) + 4) };
    // SAFETY: the slot's receive is over. The eight bytes are the form and the lower half of `body` behind it; the upper half of a note is never set.
    unsafe {
        (&raw mut (*request).head.clock)
            .cast::<u64>()
            .write_unaligned(Form::RESTING.number() as u64);
    }
}

/// Makes sure that the next slot rests.
#[cold]
#[inline(never)]
pub(super) fn make_room() {
    let first = next();
    // SAFETY: slots of the ring, which lead from one to the next and back.
    unsafe {
        if has_room() {
            return;
        }
        if first == NOWHERE {
            return (0..FEW).for_each(|_| grow());
        }
        let (mut all, mut used, mut it) = (0, 0, first);
        loop {
            all += 1;
            used += usize::from(is_used(it));
            it = *link(it);
            if it == first {
                break;
            }
        }
        if 2 * used >= all && 2 * all <= MOST {
            (0..all).for_each(|_| grow());
        } else {
            unfold(first);
            grow();
        }
    }
}

/// Adds a slot before the next one.
unsafe fn grow() {
    let request = slot(&mut REQUESTS.take());
    let first = next();
    // SAFETY: no other code has the slot, which is not in the ring; those of the ring lead to each other.
    unsafe {
        (*request).head.magic = ALIVE;
        Form::RESTING.give(request);
        set_note(request, Note::Nothing);
        // A beginning receive trusts the datatype and communicator of the slot's last one: these are not handles, or they are handles of no objects.
        let nothing = match NARROW {
            true => narrow::nothing(),
            false => NOWHERE.cast(),
        };
        ((*request).datatype, (*request).communicator) = (nothing, nothing);
        if first == NOWHERE {
            (*link(request), *back(request)) = (request, request);
        } else {
            let last = *back(first);
            (*link(request), *back(request)) = (first, last);
            *link(last) = request;
            *back(first) = request;
        }
    }
    place().store(request, Ordering::Relaxed);
}

/// Takes a slot out of the ring; its receive has its number.
///
/// # Safety
/// A slot of the ring that is in use.
pub(super) unsafe fn leave(request: *mut Request) {
    number();
    // SAFETY: the slot is in the ring, by the caller's promise, so both links lead to slots of the ring, or to itself.
    unsafe {
        let (after, before) = (*link(request), *back(request));
        *link(before) = after;
        *back(after) = before;
        if next() == request {
            let next = if after == request { NOWHERE } else { after };
            place().store(next, Ordering::Relaxed);
        }
        ((*request).made, (*request).initialised) = ((*request).begun, 0);
    }
}

/// Gives every receive of the ring its number. Receives with a number were begun before those without.
pub fn number() {
    let end = next();
    if end == NOWHERE {
        return;
    }
    // SAFETY: all slots of the ring are linked with each other, and slots are never unmapped; no other thread calls MPI where the ring is used.
    unsafe {
        let rests = has_room();
        if rests && is_noted(end, Note::First) {
            return;
        }
        let (mut first, mut it) = (end, end);
        loop {
            it = *back(it);
            if is_used(it) {
                if is_noted(it, Note::Numbered) {
                    break;
                }
                first = it;
                if is_noted(it, Note::First) {
                    break;
                }
            }
            if it == end {
                break;
            }
        }
        let mut requests = REQUESTS.take();
        it = first;
        loop {
            if is_used(it) && !is_noted(it, Note::Numbered) {
                requests.begun += 1;
                (*it).begun = requests.begun;
                set_note(it, Note::Numbered);
            }
            it = *link(it);
            if it == end {
                break;
            }
        }
        if rests {
            set_note(end, Note::First);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::operations::request;

    unsafe fn begin() -> *mut Request {
        // SAFETY: the test's own stay; a receive of no communicator and no datatype.
        unsafe {
            let request = take().unwrap_or_else(|| {
                make_room();
                take().unwrap()
            });
            (*request).communicator = ptr::null_mut();
            (*request).datatype = ptr::null_mut();
            request
        }
    }

    /// # Safety
    /// `request` must be a live request of the test's, used no more.
    unsafe fn end(request: *mut Request) {
        // SAFETY: the test made the request and uses it no more.
        unsafe {
            match is_used(request) {
                true => super::super::rest(request),
                false => request::end(request),
            }
        }
    }

    /// Called by the one test that has requests.
    pub fn the_ring_keeps_the_order_in_which_receives_were_begun() {
        let mut open: Vec<*mut Request> = Vec::new();
        let mut state = 7u32;
        let mut most = 0;
        // SAFETY: no other test has requests meanwhile.
        unsafe {
            for round in 0..20_000 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let any = (state >> 8) as usize % open.len().max(1);
                // Now more are begun, now more end.
                let begins = if round / 400 % 2 == 0 { 9 } else { 3 };
                match state >> 28 {
                    chosen if chosen < begins => open.push(begin()),
                    14 => {
                        number();
                        // Something else is begun between them.
                        let between = request::next_begun();
                        let number = |it: &*mut Request| (**it).begun;
                        assert!(open.iter().all(|it| number(it) < between), "{round}");
                        assert!(open.iter().map(number).is_sorted_by(|a, b| a < b));
                    }
                    // A receive that is looked at leaves the ring, wherever it is.
                    15 if !open.is_empty() => unfold(open[any]),
                    _ if !open.is_empty() => end(open.remove(any)),
                    _ => {}
                }
                most = most.max(open.len());
            }
            assert!(most > 8 * FEW, "{most}");
            // Each has a slot of its own, and they stand in their order.
            assert_eq!(request::live(), open);
            open.drain(..).for_each(|it| end(it));

            // A closed ring gives nothing, and is unchanged when it opens again.
            let first = begin();
            close(true);
            assert!(take().is_none());
            unfold(first);
            make_room();
            assert!(take().is_none());
            close(false);
            end(first);
            end(take().unwrap());

            // A receive that stays begun leaves the ring as soon as it is in the way of slots that rest.
            let stays = begin();
            for _ in 0..2 * MOST {
                end(begin());
            }
            assert!(!is_used(stays));
            end(stays);
            assert!(request::live().is_empty());
        }
    }
}
