//! Sends that were over when they were begun: they share one request.
//!
//! Open MPI has one request of its own for whatever is over at once - messages to `MPI_PROC_NULL`, and small ones that it could send right away - which nobody has to
//! give back. Where it answers a send with that, the application gets one of ours that stands for it: there is nothing to write down, and nobody
//! below has to be asked for its end.
//!
//! Rules: as for every short way, no other thread calls MPI. That a handle leads to that request may be asked anywhere.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use stillpoint_wrappers::direct::Direct;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::light::Form;
use super::{EMPTY, Kind, Request, State, null_word};
use crate::ground::abi::{Handle, RequestHandle};
use crate::ground::object::{Comm, Object};
use crate::ground::{abi, handle};

/// The real MPI's request; 0: not known in this launch, or there is none.
pub static WORD: AtomicU64 = AtomicU64::new(0);

/// Ours, as soon as the real MPI's is known; before, an address that no handle is.
pub static REQUEST: AtomicPtr<Object> = AtomicPtr::new(NOWHERE);

const NOWHERE: *mut Object = (&raw const WORD).cast_mut().cast();

/// Standard-ABI value of `MPI_BYTE`.
const BYTE: i32 = 583;

/// Whether the real MPI's was looked for in this launch.
static LOOKED: AtomicBool = AtomicBool::new(false);

/// The real MPI's request.
#[inline(always)]
pub fn word() -> Word {
    WORD.load(Ordering::Relaxed)
}

/// The application's.
#[inline(always)]
pub fn request() -> *mut Object {
    REQUEST.load(Ordering::Relaxed)
}

/// The application's, as it writes it; `None` where handles are no addresses, before the real MPI's is known.
#[inline(always)]
pub fn own() -> Option<RequestHandle> {
    let request = request();
    if cfg!(not(application = "openmpi")) && request == NOWHERE {
        return None;
    }
    Some(RequestHandle::of(request))
}

/// Whether a handle leads to the request of sends that are over.
#[inline(always)]
pub fn is(handle: *mut Object) -> bool {
    handle == request()
}

/// Called in a restart, when the predefined objects have their words: another launch's real MPI has another one.
pub fn restarted() {
    WORD.store(0, Ordering::Relaxed);
    LOOKED.store(false, Ordering::Relaxed);
    if request() != NOWHERE {
        // SAFETY: ours, and it never goes away. As every request that is over, it crosses as a null one.
        unsafe { (*request()).lower = null_word() };
    }
}

/// Looks for the real MPI's, once a launch.
///
/// # Safety
/// In a stay of the short way; a communicator that the real MPI has just sent a message on.
pub unsafe fn look(table: &Direct, communicator: Comm) {
    if LOOKED.load(Ordering::Relaxed) {
        return;
    }
    LOOKED.store(true, Ordering::Relaxed);
    let mut words = [0; 2];
    // SAFETY: messages to nobody; the caller's objects, places of our own.
    unsafe {
        let datatype = (*abi::predefined(HandleKind::Datatype, BYTE)).lower;
        let communicator = (*communicator).lower;
        for word in &mut words {
            (table.isend)(
                ptr::null(),
                0,
                datatype,
                abi::PROC_NULL,
                0,
                communicator,
                word,
            );
        }
        let shared = words[0] == words[1];
        let found = words[0];
        for word in words.iter_mut().filter(|word| **word != 0) {
            let mut over = 0;
            (table.test)(word, &mut over, ptr::without_provenance_mut(abi::IGNORED));
        }
        if shared && found != 0 {
            if request() == NOWHERE {
                REQUEST.store(make(), Ordering::Relaxed);
            }
            WORD.store(found, Ordering::Relaxed);
        }
    }
}

/// A request that is over and never ends.
unsafe fn make() -> *mut Object {
    let object = handle::create(HandleKind::Request, null_word(), ptr::null_mut());
    let request: *mut Request = object.cast();
    // SAFETY: a fresh slot, with room for a request.
    unsafe {
        Form::OVER.give(request);
        (*request).kind = Kind::Send;
        (*request).state = State::Done;
        (*request).flags = 0;
        (*request).brief = false;
        (*request).number = 0;
        (*request).communicator = ptr::null_mut();
        (*request).datatype = ptr::null_mut();
        (*request).status = EMPTY;
        (&raw mut (*request).recipe).write(None);
        (&raw mut (*request).completion).write(None);
        (&raw mut (*request).held).write(Vec::new());
    }
    object
}
