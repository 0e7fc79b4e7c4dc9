//! Pulling messages in, and handing them out again: what stands between the [`Queue`] and the real MPI.
//!
//! Messages are received as the bytes of their packed form, without blocking: a large one may take until
//! its sender makes progress. Delivery lets the real MPI unpack them into the application's datatype.
//!
//! The queue's lock also orders receives: whoever posts one holds it from looking into the queue
//! until the receive is posted, whoever pulls holds it while a message moves from MPI to the queue.

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};

use stillpoint_wrappers::extra::INTERRUPTED;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::{Status, Word};

use crate::abi::predefined::null_word;
use crate::crossing::cross;
use crate::object::Object;
use crate::queue::{Drained, Queue};
use crate::shared::{Shared, SharedGuard};
use crate::{arch, communicator, message, request};

static QUEUE: Shared<Queue> = Shared::new(Queue::new());

/// Messages in the queue, for the look in passing.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Whether no drained message waits for its receive: one load.
#[inline(always)]
pub fn nothing_waits() -> bool {
    WAITING.load(Ordering::Relaxed) == 0
}

/// The queue, with the right to post a receive.
#[inline(always)]
pub fn turn() -> SharedGuard<'static, Queue> {
    QUEUE.take()
}

/// Takes the earliest drained message that matches.
pub fn take(
    queue: &mut Queue,
    communicator: *mut Object,
    source: i32,
    tag: i32,
) -> Option<Drained> {
    let message = queue.take(communicator as usize, source, tag);
    WAITING.store(queue.len(), Ordering::Relaxed);
    message
}

/// The status that a probe gives for the earliest drained message that matches.
pub fn probe(
    queue: &mut Queue,
    communicator: *mut Object,
    source: i32,
    tag: i32,
) -> Option<Status> {
    let found = queue.find(communicator as usize, source, tag)?;
    Some(status_of(found.source, found.tag, found.bytes.len() as u64))
}

/// The status of a message of that many bytes.
pub fn status_of(source: i32, tag: i32, bytes: u64) -> Status {
    let mut status = Status {
        source,
        tag,
        ..Status::default()
    };
    status.set_bytes(bytes);
    status
}

/// Receives a drained message into the application's buffer. The status's `error` is the receive's.
///
/// # Safety
/// Inside a stub, the turn given back; buffer, count and datatype as for `MPI_Recv`.
pub unsafe fn deliver(
    mut message: Drained,
    buffer: *mut c_void,
    count: i32,
    datatype: *mut Object,
) -> Status {
    let mut status = Status::default();
    // SAFETY: the bytes are all there after the wait; the rest is the caller's.
    unsafe {
        arrive(&mut message);
        let (packed, bytes) = (message.bytes.as_ptr().cast(), message.bytes.len() as u64);
        let datatype = (*datatype).lower;
        status.error = cross(|dispatch| {
            (dispatch.extra.deliver)(packed, bytes, buffer, count, datatype, &mut status)
        });
    }
    status.source = message.source;
    status.tag = message.tag;
    status
}

/// Waits until all of a message's bytes are there. Its sender is in MPI, or parked and making progress.
unsafe fn arrive(message: &mut Drained) {
    while let Some(mut word) = message.arriving {
        // SAFETY: a receive of ours; no status is wanted.
        let code =
            unsafe { cross(|dispatch| (dispatch.extra.wait)(&mut word, core::ptr::null_mut())) };
        if code == INTERRUPTED {
            arch::yield_processor();
        } else {
            message.arriving = None;
            // SAFETY: the thread has a record.
            unsafe { arch::count_received() };
        }
    }
}

/// Begins to receive a message that the lower half has set aside as `word`.
///
/// # Safety
/// Inside a stub or parked; `word` must be a message that nobody else receives.
pub unsafe fn receive(mut word: Word, status: &Status) -> Drained {
    let bytes = status.bytes() as usize;
    let mut drained = Drained {
        source: status.source,
        tag: status.tag,
        bytes: vec![0u8; bytes].into_boxed_slice(),
        arriving: None,
    };
    let mut receive: Word = 0;
    let buffer = drained.bytes.as_mut_ptr().cast();
    // SAFETY: the buffer has the message's size and stays in place until the receive is over.
    let code = unsafe {
        cross(|dispatch| {
            (dispatch.extra.receive_bytes)(&mut word, buffer, bytes as u64, &mut receive)
        })
    };
    if code == 0 {
        drained.arriving = Some(receive);
    }
    drained
}

/// Whether all bytes of a message are there by now.
///
/// # Safety
/// As [`receive`].
pub unsafe fn has_arrived(message: &mut Drained) -> bool {
    let Some(word) = &mut message.arriving else {
        return true;
    };
    let mut flag = 0;
    let mut status = Status::default();
    // SAFETY: a receive of ours.
    unsafe {
        cross(|dispatch| (dispatch.test)(word, &mut flag, &mut status));
        if flag == 0 {
            return false;
        }
        arch::count_received();
    }
    message.arriving = None;
    true
}

/// Pulls in whatever has arrived on any communicator. Returns whether anything moved.
///
/// # Safety
/// Inside a stub, or parked on the driver thread.
pub unsafe fn pull() -> bool {
    let mut moved = false;
    communicator::for_each_live(|communicator| {
        // SAFETY: a live communicator; the caller's stay.
        moved |= unsafe { pull_from(communicator) };
    });
    let mut queue = turn();
    for message in queue
        .iter_mut()
        .filter(|message| message.arriving.is_some())
    {
        // SAFETY: the caller's stay.
        moved |= unsafe { has_arrived(message) };
    }
    moved
}

unsafe fn pull_from(communicator: *mut Object) -> bool {
    let mut moved = false;
    // A communicator that is being made (`MPI_Comm_idup`) has nothing below yet.
    // SAFETY: a live communicator.
    let lower = unsafe { (*communicator).lower };
    if lower == 0 || lower == null_word(HandleKind::Communicator) {
        return false;
    }
    if request::is_being_made(communicator.cast()) {
        return false;
    }
    loop {
        let mut queue = turn();
        let (mut found, mut word, mut status) = (0, 0, Status::default());
        // SAFETY: a live communicator.
        let code = unsafe {
            let lower = (*communicator).lower;
            cross(|dispatch| (dispatch.extra.pull)(lower, &mut found, &mut word, &mut status))
        };
        if code != 0 || found == 0 {
            return moved;
        }
        // SAFETY: the message is ours alone.
        let drained = unsafe { receive(word, &status) };
        queue.push(communicator as usize, drained);
        WAITING.store(queue.len(), Ordering::Relaxed);
        moved = true;
    }
}

/// Whether messages are still on their way into the queue.
pub fn still_arriving() -> bool {
    turn().iter_mut().any(|message| message.arriving.is_some())
}

/// Forgets a communicator that the application has freed, and what was drained from it.
///
/// # Safety
/// Inside a stub.
pub unsafe fn forget(communicator: *mut Object) {
    if nothing_waits() {
        return;
    }
    let mut queue = turn();
    let any = stillpoint_wrappers::neutral::constants::ANY_SOURCE;
    let tag = stillpoint_wrappers::neutral::constants::ANY_TAG;
    while let Some(mut message) = take(&mut queue, communicator, any, tag) {
        // SAFETY: the caller's stay; the lower half must not write into memory given back.
        unsafe { arrive(&mut message) };
    }
}

/// One round of the drain proper, all threads of the process being parked: tests what is pending and
/// pulls in what has arrived, messages that were probed for (`MPI_Mprobe`) included.
///
/// # Safety
/// Parked on the driver thread, every other thread stopped.
pub unsafe fn round() -> bool {
    // SAFETY: the caller's.
    unsafe { request::test_all() | pull() | message::pull_all() }
}
