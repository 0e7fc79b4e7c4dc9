//! Pulling messages in, and handing them out again: the code between the [`Queue`] and the real MPI.
//!
//! Messages are received as the bytes of their packed form, without blocking: a large one may take until
//! its sender makes progress. Delivery lets the real MPI unpack them into the application's datatype.
//!
//! The queue's lock also orders receives. A thread that posts one holds it from its look into the queue
//! until the receive is posted; a thread that pulls holds it while a message moves from MPI to the queue.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use stillpoint_refusals::Code;
use stillpoint_wrappers::extra::INTERRUPTED;
use stillpoint_wrappers::found;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::{Status, Word};

use crate::ground::abi::predefined::null_word;
use crate::ground::arch;
use crate::ground::crossing::cross;
use crate::ground::hindrances::Text;
use crate::ground::object::Object;
use crate::ground::shared::{Shared, SharedGuard};
use crate::objects::communicator;
use crate::operations::messages::message;
use crate::operations::messages::queue::{Drained, Queue};
use crate::operations::messages::taken;
use crate::operations::request;

static QUEUE: Shared<Queue> = Shared::new(Queue::new());

/// The number of messages in the queue, for a quick look.
pub static WAITING: AtomicUsize = AtomicUsize::new(0);

/// The error of the real MPI when it could not look for messages in the current round of the drain; 0 if it could.
static LAST_ERROR: AtomicI32 = AtomicI32::new(0);

/// Whether the real MPI finds a message again until its receive is over ([`found::ALONE`]). No image holds messages of such a library.
static ALONE: AtomicBool = AtomicBool::new(false);

/// Whether no drained message waits for its receive: one load. The answer holds only within the stay in which it is asked, because a checkpoint drains
/// messages.
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
    count(queue);
    message
}

/// Notes the number of waiting messages.
fn count(queue: &Queue) {
    WAITING.store(queue.len(), Ordering::Relaxed);
    request::light::ring::close(!queue.is_empty());
}

/// The status that a probe returns for the earliest drained message that matches.
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
    // SAFETY: the bytes are all there after the wait, unless the real MPI has failed to receive them; the rest is the caller's.
    unsafe {
        tell_sender(&mut message);
        arrive(&mut message);
        if message.error != 0 {
            status = status_of(message.source, message.tag, 0);
            status.error = message.error;
            return status;
        }
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

/// Tells the sender that a receive has begun to take the message, or that none ever will.
///
/// # Safety
/// Inside a stub or parked.
unsafe fn tell_sender(message: &mut Drained) {
    if let Some(sender) = message.sender.take() {
        // SAFETY: the caller is inside a stub or parked, by its promise.
        unsafe { taken::taken(sender) };
    }
}

/// Waits until all of a message's bytes are there. Its sender is in MPI, or parked and making progress.
///
/// # Safety
/// Inside a stub or parked.
unsafe fn arrive(message: &mut Drained) {
    while let Some(mut word) = message.arriving {
        // SAFETY: a receive of ours; no status is wanted.
        let code =
            unsafe { cross(|dispatch| (dispatch.extra.wait)(&mut word, core::ptr::null_mut())) };
        if code == INTERRUPTED {
            arch::yield_processor();
        } else if message.answered(code, true) {
            // SAFETY: the thread is inside a stub or parked, so it has a record.
            unsafe { arch::count_received() };
        }
    }
}

/// Begins to receive a message on a communicator that the lower half has set aside as `word`; its sender hears of it first.
///
/// # Safety
/// Inside a stub or parked; `communicator` must be a live communicator, `word` a message that no other code receives.
pub unsafe fn receive(communicator: *mut Object, mut word: Word, status: &Status) -> Drained {
    let bytes = status.bytes() as usize;
    // SAFETY: the communicator is alive, by the caller's promise.
    let sender = unsafe { taken::drained(communicator, status.source, status.tag) };
    let mut drained = Drained {
        source: status.source,
        tag: status.tag,
        bytes: vec![0u8; bytes].into_boxed_slice(),
        arriving: None,
        error: 0,
        sender,
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
    } else if drained.answered(code, true) {
        // The message has left the real MPI all the same.
        // SAFETY: the thread is inside a stub or parked, so it has a record.
        unsafe { arch::count_received() };
    }
    drained
}

/// Whether all bytes of a message have arrived.
///
/// # Safety
/// As [`receive`].
pub unsafe fn has_arrived(message: &mut Drained) -> bool {
    let Some(word) = &mut message.arriving else {
        return true;
    };
    let mut flag = 0;
    let mut status = Status::default();
    // SAFETY: the receive is this message's own, and `message` is borrowed exclusively.
    unsafe {
        let code = cross(|dispatch| (dispatch.test)(word, &mut flag, &mut status));
        if !message.answered(code, flag != 0) {
            return false;
        }
        arch::count_received();
    }
    true
}

/// Pulls in all messages that have arrived on any communicator. Returns whether anything moved.
///
/// # Safety
/// Inside a stub, or parked on the driver thread.
pub unsafe fn pull() -> bool {
    let mut moved = false;
    // SAFETY: the caller is inside a stub or parked; `for_each_held` gives live communicators only.
    unsafe {
        communicator::for_each_held(|communicator| moved |= pull_from(communicator));
        match taken::listen() {
            Ok(more) => moved |= more,
            Err(code) => LAST_ERROR.store(code, Ordering::Relaxed),
        }
    }
    // SAFETY: the caller is inside a stub or parked.
    moved | unsafe { arrived(turn().iter_mut()) }
}

/// Tells whether a message has arrived that had not.
///
/// # Safety
/// Inside a stub or parked.
unsafe fn arrived<'a>(messages: impl Iterator<Item = &'a mut Drained>) -> bool {
    let mut any = false;
    for message in messages.filter(|message| message.arriving.is_some()) {
        // SAFETY: the caller is inside a stub or parked, and has the messages for itself.
        any |= unsafe { has_arrived(message) };
    }
    any
}

/// # Safety
/// As [`pull`]; `communicator` must be a live communicator.
unsafe fn pull_from(communicator: *mut Object) -> bool {
    let mut moved = false;
    // A communicator that is being made (`MPI_Comm_idup`) has nothing below yet.
    // SAFETY: `communicator` is alive, by the caller's promise.
    let lower = unsafe { (*communicator).lower };
    if lower == 0 || lower == null_word(HandleKind::Communicator) {
        return false;
    }
    if request::is_being_made(communicator.cast()) {
        return false;
    }
    loop {
        let mut queue = turn();
        if ALONE.load(Ordering::Relaxed) {
            // SAFETY: the caller is inside a stub or parked.
            moved |= unsafe { arrived(queue.of(communicator as usize)) };
            if queue
                .of(communicator as usize)
                .any(|message| message.arriving.is_some())
            {
                return moved;
            }
        }
        let (mut found, mut word, mut status) = (0, 0, Status::default());
        // SAFETY: `communicator` is alive, by the caller's promise; the answers go into local variables.
        let code = unsafe {
            let lower = (*communicator).lower;
            cross(|dispatch| (dispatch.extra.pull)(lower, &mut found, &mut word, &mut status))
        };
        if code != 0 {
            LAST_ERROR.store(code, Ordering::Relaxed);
        }
        if code != 0 || found == 0 {
            return moved;
        }
        // SAFETY: the message is ours alone.
        let drained = unsafe { receive(communicator, word, &status) };
        queue.push(communicator as usize, drained);
        count(&queue);
        moved = true;
        ALONE.fetch_or(found == found::ALONE, Ordering::Relaxed);
    }
}

/// Whether messages are still on their way into the queue.
pub fn still_arriving() -> bool {
    turn().iter_mut().any(|message| message.arriving.is_some())
}

/// Forgets a communicator that the application has freed, and the messages drained from it.
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
        // SAFETY: the caller is inside a stub. The message's memory is given back only when the lower half no longer writes into it.
        unsafe {
            tell_sender(&mut message);
            arrive(&mut message);
        }
    }
}

/// One round of the drain proper, with all threads of the process parked: tests pending requests and
/// pulls in messages that have arrived, including those that were probed for (`MPI_Mprobe`).
///
/// # Safety
/// Parked on the driver thread, every other thread stopped.
pub unsafe fn round() -> bool {
    look_again();
    // SAFETY: the caller is parked on the driver thread, and every other thread is stopped.
    unsafe { request::test_all() | pull() | message::pull_all() }
}

/// Forgets the earlier error of the real MPI.
pub fn look_again() {
    LAST_ERROR.store(0, Ordering::Relaxed);
}

/// Whether the last [`round`] may have left a message behind, or taken one twice.
pub fn failed() -> bool {
    LAST_ERROR.load(Ordering::Relaxed) != 0 || ALONE.load(Ordering::Relaxed)
}

/// Describes that failure.
pub fn describe(text: &mut Text) {
    if ALONE.load(Ordering::Relaxed) {
        let what = format_args!(
            "MPI finds messages again that a receive has taken, as over libfabric's provider 'sockets': start the job on another provider"
        );
        text.reason(Code::MpiMessages, what);
    }
    let code = LAST_ERROR.load(Ordering::Relaxed);
    if code != 0 {
        text.reason(
            Code::MpiMessages,
            format_args!(
                "MPI cannot look for messages on one of its communicators (MPI_Iprobe: error {code})"
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use core::ptr;

    use super::*;

    #[test]
    fn a_message_that_could_not_be_received_gives_its_error_to_the_receive_and_touches_no_buffer() {
        let message = Drained {
            source: 3,
            tag: 7,
            bytes: Box::new([1; 8]),
            arriving: None,
            error: 15,
            sender: None,
        };
        // SAFETY: neither buffer nor datatype are touched where the message has an error.
        let status = unsafe { deliver(message, ptr::null_mut(), 8, ptr::null_mut()) };
        assert_eq!((status.source, status.tag, status.error), (3, 7, 15));
        assert_eq!(status.bytes(), 0);
    }

    #[test]
    fn an_error_of_the_probe_is_a_reason_until_a_round_goes_well() {
        let mut text = Text::new();
        describe(&mut text);
        assert!(text.is_empty() && !failed());
        LAST_ERROR.store(5, Ordering::Relaxed);
        describe(&mut text);
        let said = std::str::from_utf8(text.as_bytes()).unwrap();
        assert!(failed() && said.contains("MPI_Iprobe: error 5"), "{said}");
        LAST_ERROR.store(0, Ordering::Relaxed);
    }
}
