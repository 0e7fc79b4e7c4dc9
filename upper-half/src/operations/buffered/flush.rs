//! Flushes: waiting for a buffer's messages, and requests that are over when these are sent.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::sends::{ALL, end};
use super::{BufferOwner, pause};
use crate::ground::abi::{self, PlaceOf, RequestHandle};
use crate::ground::crossing;
use crate::ground::lock::SpinLock;
use crate::ground::object::{Comm, Object};
use crate::objects::errhandler::run;
use crate::operations::grequest::{grequest_complete, grequest_start};
use crate::operations::request::EMPTY;

/// A flush whose messages are not known to be over.
struct Flush {
    buffer: u64,
    /// The number of the newest message that it waits for.
    newest: u64,
    /// A generalized request.
    request: *mut Object,
}

// SAFETY: a request of the application's, which lives until it is complete.
unsafe impl Send for Flush {}

static FLUSHES: SpinLock<Vec<Flush>> = SpinLock::new(Vec::new());
/// How many there are: mostly 0.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Waits until all messages are over that a buffer has now.
///
/// In a stub, not inside: a thread that waits is stopped between two looks, as in a loop of the application's.
pub fn until_over(buffer: u64) {
    let mut newest = None;
    loop {
        {
            let _inside = crossing::enter();
            // SAFETY: the thread is inside, with nothing locked when the requests are ended.
            unsafe {
                let (over, done) = {
                    let mut all = ALL.lock();
                    let newest = *newest.get_or_insert(all.newest());
                    let over = all.look();
                    (over, all.is_empty(buffer, newest))
                };
                end(over);
                if done {
                    return;
                }
            }
        }
        pause();
    }
}

/// Completes the flushes whose messages are over.
///
/// # Safety
/// Inside a stub, nothing locked.
#[inline]
pub unsafe fn notice() {
    if COUNT.load(Ordering::Relaxed) != 0 {
        // SAFETY: the caller is inside a stub with nothing locked.
        unsafe { notice_some() };
    }
}

/// # Safety
/// As [`notice`].
#[cold]
#[inline(never)]
unsafe fn notice_some() {
    // SAFETY: the caller is inside a stub with nothing locked; a flush's request is alive until it is complete, and each is completed once.
    unsafe {
        let over = ALL.lock().look();
        end(over);
        let mut complete = Vec::new();
        {
            let all = ALL.lock();
            FLUSHES.lock().retain(|it| {
                let waits = !all.is_empty(it.buffer, it.newest);
                if !waits {
                    complete.push(it.request);
                }
                waits
            });
        }
        for request in complete {
            grequest_complete(request);
            COUNT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Whether a request is a flush whose messages are not known to be over.
///
/// # Safety
/// Inside a stub.
unsafe fn is_flush(request: *mut Object) -> bool {
    COUNT.load(Ordering::Relaxed) != 0 && FLUSHES.lock().iter().any(|it| it.request == request)
}

/// Whether one of these requests is a flush.
///
/// # Safety
/// In a stub, not inside; the application's array.
pub unsafe fn has_flush(requests: PlaceOf<RequestHandle>, count: c_int) -> bool {
    if COUNT.load(Ordering::Relaxed) == 0 || requests.is_null() {
        return false;
    }
    let _inside = crossing::enter();
    // SAFETY: each index is below `count`, and the array has so many handles, as MPI demands; `is_flush` looks at each.
    (0..usize::try_from(count).unwrap_or(0)).any(|at| unsafe { is_flush(requests.add(at).get()) })
}

/// Waits for all of these requests that are flushes: the real MPI does not know what they wait for, and would wait for ever.
///
/// # Safety
/// In a stub, not inside; the application's array.
pub unsafe fn until_flushed(requests: PlaceOf<RequestHandle>, count: c_int) {
    // SAFETY: the array has `count` handles, as MPI demands; it is looked at again each time, since a flush may have ended.
    unsafe {
        while has_flush(requests, count) {
            {
                let _inside = crossing::enter();
                notice();
            }
            pause();
        }
    }
}

/// Asks until there is an answer.
pub fn asked_again(mut ask: impl FnMut() -> Option<c_int>) -> c_int {
    loop {
        if let Some(code) = ask() {
            return code;
        }
        pause();
    }
}

/// Tells a flush's status, that of a request without a message.
unsafe extern "C" fn query(_: *mut c_void, status: *mut abi::Status) -> c_int {
    if !abi::is_ignored(status) {
        // SAFETY: the real MPI's place for the status.
        unsafe { *status = abi::Status::from_neutral(&EMPTY) };
    }
    0
}

unsafe extern "C" fn free(_: *mut c_void) -> c_int {
    0
}

/// Does nothing: messages on their way go on.
unsafe extern "C" fn cancel(_: *mut c_void, _: c_int) -> c_int {
    0
}

/// Waits until the messages of an owner's buffer are sent.
///
/// # Safety
/// As the MPI function.
unsafe fn flush(of: BufferOwner, name: &'static CStr) -> c_int {
    let mut buffer = None;
    // SAFETY: `owner` looks at the handle.
    let code = unsafe {
        run(of.object(), name, || {
            buffer = ALL.lock().buffer_of(of.owner()?);
            Ok(())
        })
    };
    if let Some(buffer) = buffer {
        until_over(buffer);
    }
    code
}

/// Makes a request that is over when the messages of an owner's buffer are sent.
///
/// # Safety
/// As the MPI function.
unsafe fn iflush(of: BufferOwner, place: PlaceOf<RequestHandle>, name: &'static CStr) -> c_int {
    // SAFETY: `owner` looks at the handle; MPI demands a writable place, and null is refused before it is written.
    unsafe {
        run(of.object(), name, || {
            let owner = of.owner()?;
            if place.is_null() {
                return Err(crate::objects::outcome::class::ARG);
            }
            let code = grequest_start(
                Some(query),
                Some(free),
                Some(cancel),
                ptr::null_mut(),
                place,
            );
            if code != 0 {
                return Err(abi::error_to_neutral(code));
            }
            let request = place.get();
            let buffer = {
                let all = ALL.lock();
                all.buffer_of(owner).map(|id| (id, all.newest()))
            };
            let Some((buffer, newest)) = buffer else {
                grequest_complete(request);
                return Ok(());
            };
            FLUSHES.lock().push(Flush {
                buffer,
                newest,
                request,
            });
            COUNT.fetch_add(1, Ordering::Relaxed);
            notice();
            Ok(())
        })
    }
}

macro_rules! flushes {
    ($($flush:ident $flush_name:literal, $iflush:ident $iflush_name:literal: ($($of:ident: $type:ty)?) $variant:expr;)*) => {$(
        /// A buffer is flushed.
        ///
        /// # Safety
        /// As the MPI function.
        pub unsafe fn $flush($($of: $type)?) -> c_int {
            // SAFETY: `flush` looks at the handle, if the function has one.
            unsafe { flush($variant, $flush_name) }
        }

        /// A buffer is flushed without waiting.
        ///
        /// # Safety
        /// As the MPI function.
        pub unsafe fn $iflush($($of: $type,)? request: PlaceOf<RequestHandle>) -> c_int {
            // SAFETY: `iflush` looks at the handle, if the function has one, and refuses a null place.
            unsafe { iflush($variant, request, $iflush_name) }
        }
    )*};
}

flushes! {
    buffer_flush c"MPI_Buffer_flush", buffer_iflush c"MPI_Buffer_iflush": () BufferOwner::Process;
    comm_flush_buffer c"MPI_Comm_flush_buffer", comm_iflush_buffer c"MPI_Comm_iflush_buffer":
        (comm: Comm) BufferOwner::Communicator(comm);
    session_flush_buffer c"MPI_Session_flush_buffer", session_iflush_buffer c"MPI_Session_iflush_buffer":
        (session: *mut Object) BufferOwner::Session(session);
}
