//! Messages that were matched by `MPI_Mprobe` or `MPI_Improbe` and wait for their `MPI_Mrecv`.
//!
//! A message handle leads to an object that describes the matched message. The message itself is the lower half's
//! until a drain pulls it in, or was drained before it was probed for.

use core::ptr;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::{Status, Word};

use crate::ground::handle;
use crate::ground::object::Object;
use crate::operations::messages::drain;
use crate::operations::messages::queue::Drained;

/// The facts about a matched message.
pub struct Matched {
    /// The status that the probe gave.
    pub status: Status,
    pub communicator: Held,
    /// The message, if this half has it.
    pub drained: Option<Drained>,
}

/// The communicator of a message: it lives as long as the message waits for its receive.
pub struct Held(*mut Object);

impl Held {
    /// # Safety
    /// Inside a stub, in which it may be dropped too; a live communicator.
    pub unsafe fn new(communicator: *mut Object) -> Self {
        // SAFETY: the communicator is alive, by the caller's promise, and held until the value is dropped.
        unsafe { handle::retain(communicator) };
        Self(communicator)
    }

    pub fn object(&self) -> *mut Object {
        self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: held since it was made, by a thread that is inside a stub.
        unsafe { handle::release(self.0) };
    }
}

/// Makes the handle of a matched message: `word` is the lower half's if that still has it.
pub fn create(word: Word, matched: Matched) -> *mut Object {
    handle::create(
        HandleKind::Message,
        word,
        Box::into_raw(Box::new(matched)).cast(),
    )
}

/// Ends a message handle; the matched message is the caller's.
///
/// # Safety
/// `message` must be a live handle of [`create`], used no more.
pub unsafe fn end(message: *mut Object) -> Option<Box<Matched>> {
    // SAFETY: the caller gives the handle up; its body is the box that `create` made.
    unsafe {
        let body = (*message).body.cast::<Matched>();
        (*message).body = ptr::null_mut();
        handle::recycle(message);
        if body.is_null() {
            None
        } else {
            Some(Box::from_raw(body))
        }
    }
}

/// Whether a handle leads to a matched message; otherwise it is null or `MPI_MESSAGE_NO_PROC`.
///
/// # Safety
/// `message` must be null or a handle that MPI gave.
pub unsafe fn is_matched(message: *mut Object) -> bool {
    // SAFETY: `message` is null or a handle, by the caller's promise; it is read only if it is alive.
    unsafe { handle::valid(message, HandleKind::Message) && !(*message).predefined() }
}

/// Pulls in every matched message that the lower half still has. Returns whether anything moved.
///
/// # Safety
/// Parked on the driver thread, every other thread stopped.
pub unsafe fn pull_all() -> bool {
    let mut moved = false;
    for message in handle::live(HandleKind::Message) {
        // SAFETY: live handles made by `create`, which no other code touches now.
        unsafe {
            let Some(matched) = (*message).body.cast::<Matched>().as_mut() else {
                continue;
            };
            match &mut matched.drained {
                None => {
                    matched.drained = Some(drain::receive(
                        matched.communicator.object(),
                        (*message).lower,
                        &matched.status,
                    ));
                    moved = true;
                }
                Some(drained) if drained.arriving.is_some() => {
                    moved |= drain::has_arrived(drained);
                }
                Some(_) => {}
            }
        }
    }
    moved
}

/// Whether matched messages are still on their way into this half.
///
/// # Safety
/// As [`pull_all`].
pub unsafe fn still_arriving() -> bool {
    handle::live(HandleKind::Message)
        .into_iter()
        .any(|message| {
            // SAFETY: live handles made by `create`.
            let matched = unsafe { (*message).body.cast::<Matched>().as_ref() };
            matched.is_some_and(|matched| {
                matched
                    .drained
                    .as_ref()
                    .is_none_or(|drained| drained.arriving.is_some())
            })
        })
}
