//! Sends that were over when they were begun: they share one request.
//!
//! Open MPI has one request of its own for all sends that are over at once - messages to `MPI_PROC_NULL`, and small ones that it could send right away. It need
//! not be given back. If Open MPI answers a send with that, the application gets a request of ours that stands for it. Nothing has to be written down, and the
//! real MPI need not be asked for its end.
//!
//! Rules: as for every short way, no other thread calls MPI. Whether a handle leads to that request may be asked anywhere.

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
use stillpoint_wrappers::standard;

/// The real MPI's request, or 0 if it is not known in this launch, or if there is none.
pub static WORD: AtomicU64 = AtomicU64::new(0);

/// Our request, once the real MPI's is known; before that, an address that is no handle.
pub static REQUEST: AtomicPtr<Object> = AtomicPtr::new(NOWHERE);

const NOWHERE: *mut Object = (&raw const WORD).cast_mut().cast();

/// Whether this launch has looked for the real MPI's request.
static LOOKED: AtomicBool = AtomicBool::new(false);

/// The real MPI's request.
#[inline(always)]
pub fn word() -> Word {
    WORD.load(Ordering::Relaxed)
}

/// The application's request.
#[inline(always)]
pub fn request() -> *mut Object {
    REQUEST.load(Ordering::Relaxed)
}

/// The application's request, as the application writes it, or `None` if handles are not addresses and the real MPI's is not known yet.
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

/// Called in a restart, when the predefined objects have their words: the real MPI of another launch has another request.
pub fn restarted() {
    WORD.store(0, Ordering::Relaxed);
    LOOKED.store(false, Ordering::Relaxed);
    if request() != NOWHERE {
        // SAFETY: ours, and it never goes away. Like every request that is over, it crosses as a null one.
        unsafe { (*request()).lower = null_word() };
    }
}

/// Looks for the real MPI's request, once a launch.
///
/// # Safety
/// In a stay of the short way; a communicator that the real MPI has just sent a message on.
pub unsafe fn look(table: &Direct, communicator: Comm) {
    if LOOKED.load(Ordering::Relaxed) {
        return;
    }
    LOOKED.store(true, Ordering::Relaxed);
    let mut words = [0; 2];
    // SAFETY: messages to `MPI_PROC_NULL` have no buffer; the communicator is alive, by the caller's promise, and the words are local.
    unsafe {
        let datatype = (*abi::predefined(HandleKind::Datatype, standard::BYTE)).lower;
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
