//! Windows that are the real MPI's alone, and calls on them.

use std::collections::BTreeMap;

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use crate::ground::hindrances::{Alive, Reason};
use crate::ground::lock::SpinLock;
use crate::ground::object::{Comm, Info, Win};
use crate::ground::{crossing, handle};
use crate::objects::outcome::{MpiResult, check, class};
use crate::objects::{attribute, communicator, info};
use crate::operations::clock::collective;

/// Calls the lower half with the word of a window that is its own alone.
///
/// # Safety
/// Inside a stub; `window` must be live; `call` does nothing but call the lower half.
pub unsafe fn below(window: Win, call: impl FnOnce(&'static Dispatch, Word) -> i32) -> MpiResult {
    // SAFETY: the window is alive, by the caller's promise, so its word is the lower half's; `call` only calls the lower half.
    unsafe {
        let word = (*window).lower;
        check(crossing::cross(|d| call(d, word)))
    }
}

/// The hindrances of the live windows of this kind, by their objects.
static RAW: SpinLock<BTreeMap<usize, Alive>> = SpinLock::new(BTreeMap::new());

/// Notes that the real MPI has freed such a window.
pub fn freed(window: Win) {
    RAW.lock().remove(&window.addr());
}

/// Makes a window that is the real MPI's alone: it forbids a checkpoint.
///
/// # Safety
/// As `collective::clocked_once`; `comm` must be a live communicator; `call` makes a window of its members, and takes words of handles from their objects.
pub unsafe fn make(
    comm: Comm,
    call: impl FnOnce(&'static Dispatch, *mut Word) -> i32,
) -> MpiResult<Win> {
    let mut word = 0;
    // SAFETY: `comm` is a live communicator, by the caller's promise; the window is new, so no other thread knows it.
    unsafe {
        let place = &raw mut word;
        check(collective::clocked_once((*comm).clock, || {
            crossing::cross(|d| call(d, place))
        }))?;
        let window = handle::create(HandleKind::Window, word, std::ptr::null_mut());
        (*window).clock = communicator::group_clock(comm);
        attribute::describe_window(window);
        RAW.lock().insert(window.addr(), Alive::new(Reason::Window));
        Ok(window)
    }
}

/// The word of an info that the application gives. A restart may come before a collective call's beginning: in that case the word is taken again after it.
///
/// # Safety
/// Inside a stub; `hints` must be null or a handle.
pub unsafe fn word_of(hints: Info) -> MpiResult<Word> {
    // SAFETY: `hints` is null or a handle, by the caller's promise; its word is asked for only if it is alive.
    unsafe {
        if !handle::valid(hints, HandleKind::Info) {
            return Err(class::INFO);
        }
        info::word(hints)
    }
}
