//! The slots of requests: taken and given back at the cost of a few stores.
//!
//! Without concurrency (see `shared`) nothing here is locked or atomic.

use core::mem::offset_of;
use core::sync::atomic::Ordering;

use stillpoint_wrappers::gate::HandleKind;

use super::life::COMPLETIONS;
use super::light::{self, Form};
use super::standing::Standing;
use super::{ASKED, Arguments, CANCELLED, Kind, Request, State};
use crate::ground::object::{ALIVE, FREED, Object};
use crate::ground::shared::{Shared, concurrent};
use crate::ground::{arch, fortran, handle};

pub(super) struct Requests {
    /// Every slot that was ever a request.
    all: Vec<*mut Request>,
    /// Unused slots, each linked to the next by its head's `body`.
    free: *mut Request,
    /// Unused slots that were last a [brief](super::brief) request, each linked to the next by its `context`.
    pub(super) brief: *mut Request,
    /// Unused slots that were last a [light](super::light) send, each linked to the next by its head's `body`.
    pub(super) light: *mut Request,
    /// Operations begun so far, except light sends, and light receives whose numbers were never asked for.
    pub(super) begun: u64,
}

pub(super) static REQUESTS: Shared<Requests> = Shared::new(Requests {
    all: Vec::new(),
    free: core::ptr::null_mut(),
    brief: core::ptr::null_mut(),
    light: core::ptr::null_mut(),
    begun: 0,
});

/// Adds a holder to an object that a pending operation needs.
///
/// # Safety
/// `object` must be a live object or null.
#[inline(always)]
pub unsafe fn hold(object: *mut Object) {
    // SAFETY: the object is alive or null, by the caller's promise; while no other thread calls MPI, its holders may be counted without atomic operations.
    unsafe {
        if object.is_null() {
        } else if concurrent() {
            if (*object).standard == 0 {
                handle::retain(object);
            }
        } else {
            hold_alone(object);
        }
    }
}

/// [`hold`] if no other thread calls MPI.
///
/// # Safety
/// As [`hold`]; not null.
#[inline(always)]
pub(super) unsafe fn hold_alone(object: *mut Object) {
    // SAFETY: the object is alive and not null, by the caller's promise, and no other thread counts its holders.
    unsafe {
        if (*object).standard == 0 {
            (*object).references += 1;
        }
    }
}

/// Ends [`hold`].
///
/// # Safety
/// `object` must have been held.
#[inline(always)]
pub unsafe fn let_go(object: *mut Object) {
    // SAFETY: `hold` has kept the object alive until now; holders are counted as there.
    unsafe {
        if object.is_null() {
        } else if concurrent() {
            if (*object).standard == 0 {
                handle::release(object);
            }
        } else {
            let_go_alone(object);
        }
    }
}

/// [`let_go`] if no other thread calls MPI.
///
/// # Safety
/// As [`let_go`]; not null.
#[inline(always)]
pub(super) unsafe fn let_go_alone(object: *mut Object) {
    // SAFETY: the object was held, by the caller's promise, so it is alive, and no other thread counts its holders.
    unsafe {
        if (*object).standard != 0 {
        } else if (*object).references > 1 {
            (*object).references -= 1;
        } else {
            handle::release(object);
        }
    }
}

#[cold]
fn new_slot(requests: &mut Requests) -> *mut Request {
    let request: *mut Request =
        handle::create(HandleKind::Request, 0, core::ptr::null_mut()).cast();
    // SAFETY: a fresh slot of `ROOM` bytes; these fields are dropped only by assignment from here on.
    unsafe {
        (&raw mut (*request).recipe).write(None);
        (&raw mut (*request).completion).write(None);
        (&raw mut (*request).held).write(Vec::new());
        (*request).number = 0;
    }
    requests.all.push(request);
    request
}

/// Makes a request in state [`State::Active`] with nothing in the lower half yet, holding its
/// datatype and communicator.
///
/// # Safety
/// Inside a stub; the objects must be alive.
#[inline(always)]
pub unsafe fn create(arguments: &Arguments, flags: u8) -> *mut Request {
    // SAFETY: the objects are alive, by the caller's promise, and held from here on; `slot` gives a slot that no other code uses.
    unsafe {
        hold(arguments.datatype);
        hold(arguments.communicator);
        if REQUESTS.take().light.is_null() || !light::ring::has_room() {
            light::stock();
        }
        light::ring::number();
        let mut requests = REQUESTS.take();
        let request = slot(&mut requests);
        fill(&mut requests, request, arguments, flags);
        (*request).made = requests.begun;
        request
    }
}

/// [`create`] where no other thread calls MPI: of a request without a recipe, if a slot is free.
///
/// # Safety
/// As [`create`]; neither object may be null.
#[inline(always)]
pub unsafe fn create_alone(arguments: &Arguments) -> Option<*mut Request> {
    // SAFETY: the objects are alive and not null, by the caller's promise, and no other thread calls MPI; `take_free` gives a slot that no other code uses.
    unsafe {
        light::ring::number();
        let requests = REQUESTS.alone();
        let request = take_free(requests)?;
        hold_alone(arguments.datatype);
        hold_alone(arguments.communicator);
        fill(requests, request, arguments, 0);
        Some(request)
    }
}

/// An unused slot.
#[inline(always)]
pub(super) fn slot(requests: &mut Requests) -> *mut Request {
    take_free(requests).unwrap_or_else(|| new_slot(requests))
}

/// Takes a slot off the list of free ones.
#[inline(always)]
fn take_free(requests: &mut Requests) -> Option<*mut Request> {
    let request = requests.free;
    if request.is_null() {
        return None;
    }
    // SAFETY: a slot in the list is ours and holds the link.
    requests.free = unsafe { (*request).head.body.cast() };
    Some(request)
}

#[inline(always)]
pub(super) fn fill(
    requests: &mut Requests,
    request: *mut Request,
    arguments: &Arguments,
    flags: u8,
) {
    requests.begun += 1;
    // SAFETY: no other code has the slot now.
    let it = unsafe { &mut *request };
    it.head.magic = ALIVE;
    it.head.body = core::ptr::null_mut();
    it.kind = arguments.kind;
    it.state = State::Active;
    it.flags = flags;
    it.brief = false;
    it.count = arguments.count;
    it.buffer = arguments.buffer;
    it.datatype = arguments.datatype;
    it.communicator = arguments.communicator;
    it.peer = arguments.peer;
    it.tag = arguments.tag;
    it.begun = requests.begun;
}

/// The request that a handle leads to, if it is a plain one: a message or a collective operation, begun and not persistent, that
/// the lower half has. A [light](super::light) one is.
///
/// # Safety
/// In a stay: from one to the next a checkpoint may change the kind of a request. `handle` must be null, a small number, or a handle of the application.
#[inline(always)]
pub unsafe fn plain(handle: *mut Object) -> Option<*mut Request> {
    const HEAD: u64 = ALIVE as u64 | (HandleKind::Request as u64) << 32;
    const _: () = {
        assert!(offset_of!(Object, magic) == 8 && offset_of!(Object, kind) == 12);
        assert!(offset_of!(Object, standard) == 14);
    };
    if !arch::is_address(handle) {
        return None;
    }
    let request: *mut Request = handle.cast();
    // SAFETY: an object; it is a request if its form or its head says so. The head is read in fields that lie side by side.
    unsafe {
        let form = Form::of(handle);
        if form.is_light() {
            return Some(request);
        }
        if form != Form::WHOLE {
            return None;
        }
        let head = (&raw const (*request).head.magic).cast::<u64>().read();
        if head != HEAD {
            return None;
        }
        let standing = Standing::of(request);
        if standing == Standing::BRIEF {
            return Some(request);
        }
        let known = standing.is_message() || standing.is_other_collective();
        (known && (*request).head.fortran == -1).then_some(request)
    }
}

/// The request that a handle leads to, if it is a whole one and the real MPI may be asked for its end directly: alive and not done above, neither
/// cancelled, nor of a sort that calls back.
///
/// # Safety
/// As [`plain`].
#[inline(always)]
pub unsafe fn askable(handle: *mut Object) -> Option<*mut Request> {
    if !arch::is_address(handle) {
        return None;
    }
    let request: *mut Request = handle.cast();
    // SAFETY: an object; it is a request if its head says so.
    unsafe {
        let alive = (*handle).is(HandleKind::Request)
            && !(*handle).predefined()
            && Form::of(handle) == Form::WHOLE;
        let known = alive
            && (*request).state != State::Done
            && (*request).flags & (CANCELLED | ASKED) == 0
            && !matches!(
                (*request).kind,
                Kind::Generalized | Kind::OneSided | Kind::File
            );
        known.then_some(request)
    }
}

/// Returns the next number, for a persistent request that is started again.
pub fn next_begun() -> u64 {
    light::ring::number();
    let mut requests = REQUESTS.take();
    requests.begun += 1;
    requests.begun
}

/// Ends a request: its slot is free from here on, except the one that all sends share which were [over](super::over) at once. The lower half must have nothing
/// left of it.
///
/// # Safety
/// Inside a stub; `request` must be alive, and used no more.
#[inline(always)]
pub unsafe fn end(request: *mut Request) {
    // SAFETY: the caller gives the request up.
    unsafe {
        if Form::of(request.cast()) == Form::OVER {
            return;
        }
        let it = &mut *request;
        let_go(it.datatype);
        let_go(it.communicator);
        if it.recipe.is_some() || it.completion.is_some() {
            end_rest(it);
        }
        if it.head.fortran != -1 {
            fortran::forget(request.cast());
            it.head.fortran = -1;
        }
        it.number = 0;
        it.head.magic = FREED;
        let mut requests = REQUESTS.take();
        it.head.body = requests.free.cast();
        requests.free = request;
    }
}

#[cold]
unsafe fn end_rest(request: &mut Request) {
    request.recipe = None;
    if request.completion.take().is_some() {
        if let Some(ending) = request.ending.take() {
            // SAFETY: the context that came with it, used no more.
            unsafe { ending(request.context) };
        }
        COMPLETIONS.fetch_sub(1, Ordering::Relaxed);
    }
    for object in core::mem::take(&mut request.held) {
        // SAFETY: held since the recipe was made.
        unsafe { let_go(object) };
    }
}

/// [`end`] of a [`plain`] message where no other thread calls MPI.
///
/// # Safety
/// As [`end`].
#[inline(always)]
pub unsafe fn end_alone(request: *mut Request) {
    // SAFETY: the caller gives the request up.
    unsafe {
        let it = &mut *request;
        // A request that was a light send does not know its datatype.
        if !it.datatype.is_null() {
            let_go_alone(it.datatype);
        }
        let_go_alone(it.communicator);
        it.head.magic = FREED;
        let requests = REQUESTS.alone();
        it.head.body = requests.free.cast();
        requests.free = request;
    }
}

/// Every live request, in the order in which the operations were begun; each is a whole one from here on. The place of light sends has no meaning.
pub fn live() -> Vec<*mut Request> {
    light::ring::number();
    let requests = REQUESTS.take();
    // SAFETY: slots are never unmapped, and the list of them is locked here.
    let mut found: Vec<_> = requests
        .all
        .iter()
        .copied()
        .filter(|it| unsafe { (**it).head.magic == ALIVE && !Form::of((*it).cast()).is_resting() })
        .collect();
    drop(requests);
    for request in &found {
        // SAFETY: slots never go away, and `unfold` leaves alone what is no light request.
        unsafe { light::unfold(*request) };
    }
    // SAFETY: slots never go away; each of these was live a moment ago, so its number is set.
    found.sort_by_key(|it| unsafe { (**it).begun });
    found
}
