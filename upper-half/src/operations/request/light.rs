//! Messages in their most frequent form: begun by the short way, completed by it, with nothing in between.
//!
//! Their request is *light*: its slot has no more than a restart needs. A receive's arguments are as the application gave them; a send has
//! only its communicator, since no send is begun again. A light request holds nothing: its datatype is predefined or not needed any more, and its communicator
//! is held only when the application gives that up ([`unfold_all`]). Code that needs more of it - a call that goes the long way, a checkpoint,
//! Fortran - first has it [unfolded](unfold) into a whole request. So only this module and the short way know that there are light ones.
//! Their slots are kept apart: those of sends are used again last in, first out, those of receives in a [ring].
//!
//! Rules: as for every short way, no other thread calls MPI; and only in a stay is it certain that a light request still is one.

use core::sync::atomic::{AtomicU64, Ordering};

use super::slots::{REQUESTS, hold, slot};
use super::{Kind, Request, State};
use crate::ground::abi::{Handle, PlaceOf, RequestHandle};
use crate::ground::object::{Datatype, Object};
use crate::ground::shared::concurrent;
use crate::ground::{abi, arch};

pub mod ring;

/// The short way's knowledge of a slot. It lies where other objects have the place of their clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form(u32);

impl Form {
    /// A request with all its parts, or an unused slot for one.
    pub const WHOLE: Form = Form(0);
    /// An unused slot, kept for light requests.
    pub const RESTING: Form = Form(1);
    /// The request of all sends that were over at once; see [`super::over`].
    pub const OVER: Form = Form(2);
    /// The clocks of other objects have smaller numbers.
    const LIGHT: u32 = 0x4c69_6700;
    /// A light receive.
    pub const RECEIVE: Form = Form::light(Kind::Receive);

    const fn light(kind: Kind) -> Form {
        Form(Form::LIGHT + kind as u32)
    }

    /// The form of an object, alive or freed.
    ///
    /// # Safety
    /// `object` must point to one.
    #[inline(always)]
    pub unsafe fn of(object: *const Object) -> Form {
        // SAFETY: `object` points to an object, alive or freed, by the caller's promise; its form is always set.
        unsafe { Form((*object).clock) }
    }

    /// The form as a number.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Whether it is a light request.
    #[inline(always)]
    pub fn is_light(self) -> bool {
        self.0.wrapping_sub(Form::LIGHT) <= Kind::ReadySend as u32
    }

    /// Whether it is an unused slot, kept for light requests.
    #[inline(always)]
    pub fn is_resting(self) -> bool {
        self == Form::RESTING
    }

    /// Gives an object that form.
    ///
    /// # Safety
    /// `request` must be a slot of ours.
    pub unsafe fn give(self, request: *mut Request) {
        // SAFETY: `request` is a slot of ours, by the caller's promise, and slots are never unmapped.
        unsafe { (*request).head.clock = self.0 };
    }

    fn kind(self) -> Option<Kind> {
        [
            Kind::Receive,
            Kind::Send,
            Kind::SynchronousSend,
            Kind::BufferedSend,
            Kind::ReadySend,
        ]
        .into_iter()
        .find(|kind| self == Form::light(*kind))
    }
}

// The messages are the first kinds.
const _: () = assert!(Kind::Receive as u32 == 0 && Kind::ReadySend as u32 == 4);

/// The number of light requests that have been unfolded so far. Code that has looked at one before it called the real MPI sees by this whether it may have been
/// unfolded meanwhile, by the application in a function that the real MPI has called.
static UNFOLDED: AtomicU64 = AtomicU64::new(0);

/// The number of light requests that have been unfolded so far.
#[inline(always)]
pub fn unfolded() -> u64 {
    UNFOLDED.load(Ordering::Relaxed)
}

/// The number of slots that are laid aside at once.
const STOCK: usize = 8;

/// Makes the request of a send, if a slot rests. The lower half has nothing yet.
///
/// # Safety
/// In a stay of the short way; `communicator` must point to an object. No other thread may call MPI.
#[inline(always)]
pub unsafe fn send(kind: Kind, communicator: *mut Object) -> Option<*mut Request> {
    // SAFETY: no other thread uses the list of resting slots, and what it leads to is null or such a slot, whose `body` links to the next.
    unsafe {
        let requests = REQUESTS.alone();
        let request = requests.light;
        if request.is_null() {
            return None;
        }
        requests.light = (*request).head.body.cast();
        Form::light(kind).give(request);
        (*request).communicator = communicator;
        Some(request)
    }
}

/// Makes the request of a receive, if a slot rests. The lower half has nothing yet. The arguments are the application's.
///
/// # Safety
/// As [`send`]; `datatype` must be predefined.
#[inline(always)]
pub unsafe fn receive(
    buffer: *mut core::ffi::c_void,
    count: i32,
    datatype: Datatype,
    peer: i32,
    tag: i32,
    communicator: *mut Object,
) -> Option<*mut Request> {
    // SAFETY: the ring gives a slot that rests, so nothing else uses it; the objects are alive, since the caller has checked them.
    unsafe {
        let request = ring::take()?;
        let it = &mut *request;
        it.communicator = communicator;
        it.buffer = buffer;
        it.count = count;
        it.datatype = datatype;
        it.peer = peer;
        it.tag = tag;
        Some(request)
    }
}

/// Makes sure that slots rest, if there may be light requests.
#[cold]
#[inline(never)]
pub fn stock() {
    if concurrent() {
        return;
    }
    ring::make_room();
    if !REQUESTS.take().light.is_null() {
        return;
    }
    for _ in 0..STOCK {
        let mut requests = REQUESTS.take();
        let request = slot(&mut requests);
        drop(requests);
        // SAFETY: no other code has the slot.
        unsafe {
            (*request).head.magic = crate::ground::object::ALIVE;
            rest_as_send(request);
        }
    }
}

/// Lays the slot of a light request aside.
///
/// # Safety
/// In a stay, no other thread in MPI; a light request, used no more.
#[inline(always)]
pub unsafe fn rest(request: *mut Request) {
    // SAFETY: the caller gives the slot up.
    unsafe {
        if Form::of(request.cast()) == Form::RECEIVE {
            ring::rest(request);
        } else {
            rest_as_send(request);
        }
    }
}

/// Lays a slot aside that is not in the ring.
///
/// # Safety
/// In a stay, no other thread in MPI; a light send or an unused slot, used no more.
#[inline(always)]
unsafe fn rest_as_send(request: *mut Request) {
    // SAFETY: the caller gives the slot up.
    unsafe {
        let requests = REQUESTS.alone();
        (*request).head.clock = Form::RESTING.0;
        (*request).head.body = requests.light.cast();
        requests.light = request;
    }
}

/// Ends a light request that is over below: its message is counted.
///
/// # Safety
/// As [`rest`]; `request` must be light.
#[inline(always)]
pub unsafe fn end(request: *mut Request) {
    // SAFETY: the request is light and over, by the caller's promise; its form tells to which list the slot goes back.
    unsafe {
        if Form::of(request.cast()) == Form::RECEIVE {
            arch::count_received();
            ring::rest(request);
        } else {
            rest_as_send(request);
        }
    }
}

/// Ends light receives that are over below: their messages are counted, and their handles lead nowhere.
///
/// # Safety
/// In a stay of the short way; `count` handles of light receives, used no more; `object` gives the object of each.
#[inline(always)]
pub unsafe fn end_receives(
    handles: PlaceOf<RequestHandle>,
    count: usize,
    object: impl Fn(usize) -> *mut Object,
) {
    let null = RequestHandle::of(super::null());
    // SAFETY: each index is below `count`, and each handle is a light receive's, used no more, by the caller's promise.
    unsafe {
        let end = |index: usize| {
            ring::rest(object(index).cast());
            handles.add(index).write(null);
        };
        let mut index = 0;
        // Written out: an iterator's function would be called each time.
        while index < count & !3 {
            end(index);
            end(index + 1);
            end(index + 2);
            end(index + 3);
            index += 4;
        }
        while index < count {
            end(index);
            index += 1;
        }
        arch::count_received_many(count as u64);
    }
}

/// Makes a whole request of a light one, which holds its objects from here on; leaves every other as it is.
///
/// # Safety
/// In a stay or parked; `request` must be a slot of ours.
#[inline(always)]
pub unsafe fn unfold(request: *mut Request) {
    // SAFETY: `request` is a slot of ours, so its form may be read even if it rests.
    unsafe {
        if Form::of(request.cast()).is_light() {
            unfold_light(request);
        }
    }
}

/// # Safety
/// As [`unfold`]; the form must be a light one.
#[cold]
#[inline(never)]
unsafe fn unfold_light(request: *mut Request) {
    // SAFETY: the form is a light one, so the fields mean what such a request gives them; the objects that it names are held from here on.
    unsafe {
        let Some(kind) = Form::of(request.cast()).kind() else {
            return;
        };
        UNFOLDED.fetch_add(1, Ordering::Relaxed);
        if kind == Kind::Receive {
            ring::leave(request);
        }
        let it = &mut *request;
        it.head.clock = Form::WHOLE.0;
        it.head.body = core::ptr::null_mut();
        it.kind = kind;
        it.state = State::Active;
        it.flags = 0;
        it.brief = false;
        if kind == Kind::Receive {
            it.buffer = abi::buffer(it.buffer);
            it.peer = abi::rank_to_neutral(it.peer);
            it.tag = abi::tag_to_neutral(it.tag);
        } else {
            it.buffer = core::ptr::null_mut();
            it.datatype = core::ptr::null_mut();
            (it.count, it.peer, it.tag, it.begun) = (0, 0, 0, 0);
        }
        hold(it.datatype);
        hold(it.communicator);
    }
}

/// Makes whole requests of all light ones: a communicator's last holder is about to let it go.
pub fn unfold_all() {
    if !concurrent() {
        drop(super::live());
    }
}

#[cfg(test)]
mod tests {
    use core::ptr;

    use stillpoint_wrappers::gate::HandleKind;

    use super::*;
    use crate::ground::handle;
    use crate::operations::request;

    #[test]
    fn a_light_request_is_unfolded_for_whoever_wants_more_and_a_resting_slot_is_none() {
        let communicator = handle::create(HandleKind::Communicator, 1, ptr::null_mut());
        let datatype = handle::create(HandleKind::Datatype, 2, ptr::null_mut());
        let buffer = ptr::dangling_mut::<u64>().cast();
        // SAFETY: the objects are the test's, and no other test has requests.
        unsafe {
            assert!(send(Kind::Send, communicator).is_none());
            stock();
            let received = receive(buffer, 3, datatype, 1, 7, communicator).unwrap();
            let sent = send(Kind::SynchronousSend, communicator).unwrap();
            assert_eq!(Form::of(received.cast()), Form::RECEIVE);
            assert!(Form::of(sent.cast()).is_light());
            assert_eq!(Object::held_by(communicator), 1);
            let before = unfolded();

            // The oldest first; the place of sends has no meaning.
            let all = request::live();
            assert!(all == [sent, received] || all == [received, sent]);
            assert_eq!(unfolded(), before + 2);
            assert_eq!(
                (Object::held_by(communicator), Object::held_by(datatype)),
                (3, 2)
            );
            let it = &*received;
            assert_eq!(
                (it.kind, it.state, it.flags),
                (Kind::Receive, State::Active, 0)
            );
            assert_eq!((it.buffer, it.count, it.datatype), (buffer, 3, datatype));
            assert_eq!((it.peer, it.tag, it.communicator), (1, 7, communicator));
            assert_eq!((*sent).kind, Kind::SynchronousSend);
            assert_eq!(request::of(sent.cast()), Ok(Some(sent)));

            request::end(sent);
            request::end(received);
            assert_eq!(
                (Object::held_by(communicator), Object::held_by(datatype)),
                (1, 1)
            );
            let light = send(Kind::Send, communicator).unwrap();
            rest(light);
            assert_eq!(request::of(light.cast()), Err(request::ERR_REQUEST));
            assert!(request::live().is_empty());
        }
        ring::tests::the_ring_keeps_the_order_in_which_receives_were_begun();
    }
}
