//! The shortest way down: the real MPI's own functions, called with the application's own arguments.
//!
//! The ABI makes no difference: if handles are numbers, stubs turn them into objects first, as everywhere.
//!
//! It is open to a thread that needs no switch of FS, if the real MPI has the application's ABI and no other
//! thread calls MPI ([`Reach::Direct`](stillpoint_wrappers::gate::Reach)). Then only handles have to be converted, and the rest of
//! a crossing is straight code: the stay, the clock or the count of messages, the call. Every unusual call - a
//! checkpoint is pending, a null handle, drained messages - goes the long way, which begins anew.
//!
//! While a checkpoint is pending the way is shut ([`SHUT`](stillpoint_wrappers::gate::SHUT)). So the end of a stay does not look for a checkpoint: the next
//! call parks, and a thread that makes none is stopped where it computes.
//!
//! A handle that has been freed leads to the word 0 here, which the real MPI refuses.
//!
//! A blocking collective operation's stub is written out (`arch::collective`): it can be begun again after a restart, from arguments that it keeps on the
//! stack.
//!
//! Rules: as in `crossing`; and nothing here may call anything between the begin of a stay and the real function, so that the
//! application's arguments stay in their registers.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;

use stillpoint_wrappers::direct::Direct;
use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate;
use stillpoint_wrappers::neutral::Word;

use crate::ground::abi::{self, PlaceOf, RequestHandle};
use crate::ground::arch;
use crate::ground::crossing::{self, StayKind};
use crate::ground::narrow::NARROW;
use crate::ground::object::{ALIVE, Comm, Object};
use crate::ground::shared::concurrent;
use crate::objects::errhandler::raise;
use crate::operations::clock::collective;
use crate::operations::devices;
use crate::operations::request::light::Form;
use crate::operations::request::{self, Recipe, Request};

/// A copy of this launch's table, one step nearer than the lower half's own.
pub struct DirectTable(UnsafeCell<MaybeUninit<Direct>>);

// SAFETY: written before the way opens, always with the same.
unsafe impl Sync for DirectTable {}

pub static TABLE: DirectTable = DirectTable(UnsafeCell::new(MaybeUninit::uninit()));

/// The real MPI's own functions; to be called only if the way is [`open`].
#[inline(always)]
pub fn table() -> &'static Direct {
    // SAFETY: the way opens when it is there.
    unsafe { (*TABLE.0.get()).assume_init_ref() }
}

/// Makes the copy, before the way opens in this launch.
pub fn keep_table() {
    // SAFETY: no thread goes this way yet, or the old contents are the same.
    unsafe { (*TABLE.0.get()).write(crossing::dispatch().direct) };
}

/// A request as the real MPI has it in its lists: a word, or its lower half.
#[cfg(application = "mpich")]
pub type Own = u32;
/// A request as the real MPI has it in its lists: a word, or its lower half.
#[cfg(not(application = "mpich"))]
pub type Own = Word;

const _: () = assert!(NARROW == (size_of::<Own>() < size_of::<Word>()));

/// Makes a place ready for a handle that the real MPI writes: it may write only the lower half of the word.
///
/// # Safety
/// `place` must be writable.
#[inline(always)]
pub unsafe fn clear(place: *mut Word) {
    if NARROW {
        // SAFETY: `place` is writable, by the caller's promise.
        unsafe { place.write(0) };
    }
}

/// The neutral form of an error of the real MPI's, which has the application's codes.
pub fn error(code: c_int) -> c_int {
    abi::error_to_neutral(abi::class(code))
}

/// Whether threads that are near may go this way.
pub fn possible() -> bool {
    let table = &crossing::dispatch().direct;
    let whole = table.improbe.is_some();
    table.abi == abi::ABI && whole && !concurrent() && !devices::present()
}

/// Whether the calling thread, in the application until now, may go this way.
#[inline(always)]
pub fn open() -> bool {
    // SAFETY: stubs run on threads that the lower half has given a record.
    unsafe { arch::outside_and_direct() }
}

/// Whether all are addresses of objects, alive or freed.
#[inline(always)]
pub fn objects<const N: usize>(handles: [*mut Object; N]) -> bool {
    handles.into_iter().all(|handle| arch::is_address(handle))
}

/// Whether all are live objects: for a caller that holds them beyond the call.
///
/// # Safety
/// Each must be null, a small number, or a handle of the application, alive or freed.
#[inline(always)]
pub unsafe fn alive<const N: usize>(handles: [*mut Object; N]) -> bool {
    // SAFETY: objects are never unmapped.
    handles
        .into_iter()
        .all(|handle| arch::is_address(handle) && unsafe { (*handle).magic } == ALIVE)
}

/// A stay inside MPI that goes this way. It ends like every other.
#[must_use]
pub struct Stay(());

/// Begins a stay that holds no collective operation.
///
/// # Safety
/// The way must be [`open`].
#[inline(always)]
pub unsafe fn enter() -> Stay {
    // SAFETY: the way is open, by the caller's promise, so the thread has a record and is in the application.
    unsafe { arch::be_inside::<{ StayKind::Stub as u32 }>() };
    Stay(())
}

/// The functions of the table that blocking collective operations find while a checkpoint is pending: the operation is not begun.
pub static AGAIN: [unsafe extern "C" fn() -> c_int; size_of::<Direct>() / 8] = {
    unsafe extern "C" fn again() -> c_int {
        // SAFETY: the stub's thread has a record.
        if let Some((cell, _)) = unsafe { collective::under_way() } {
            cell.count.take_back();
        }
        gate::AGAIN
    }
    [again; size_of::<Direct>() / 8]
};

/// The end of the stub of a blocking collective operation that is over while a checkpoint is pending, or that has been taken back before it goes the long way.
///
/// # Safety
/// In the application, `communicator` one that has just been used.
pub unsafe extern "C" fn returned(communicator: Comm) -> c_int {
    // SAFETY: the thread was in the application when it called the stub.
    unsafe {
        let stay = enter();
        collective::returned(&*(*communicator).counts);
        drop(stay);
    }
    0
}

/// The end of the stub of a blocking collective operation that has failed with one of the real MPI's codes.
///
/// # Safety
/// As [`returned`]; `name` is the function's.
pub unsafe extern "C" fn failed(
    communicator: Comm,
    code: c_int,
    name: *const core::ffi::c_char,
) -> c_int {
    // SAFETY: the thread was in the application when it called the stub.
    unsafe {
        let stay = enter();
        if crossing::pending() {
            collective::returned(&*(*communicator).counts);
        }
        stay.end(communicator, code, CStr::from_ptr(name))
    }
}

/// Whether all are predefined objects, which never end.
///
/// # Safety
/// As [`alive`].
#[inline(always)]
pub unsafe fn predefined<const N: usize>(handles: [*mut Object; N]) -> bool {
    // SAFETY: objects are never unmapped.
    handles
        .into_iter()
        .all(|handle| arch::is_address(handle) && unsafe { (*handle).standard } != 0)
}

/// A nonblocking collective operation that goes this way.
#[must_use]
pub struct Begun {
    stay: Stay,
    request: *mut Request,
    place: PlaceOf<RequestHandle>,
}

/// Begins a nonblocking collective operation on a communicator, unless it may not go this way. `again` begins it once more after a
/// restart; all that it refers to is [`predefined`], except the communicator.
///
/// # Safety
/// The way must be [`open`]; `place` must be null or writable.
#[inline(always)]
pub unsafe fn initiate(
    comm: Comm,
    place: PlaceOf<RequestHandle>,
    again: impl Fn(&'static Dispatch, *mut Word) -> i32 + 'static,
) -> Option<Begun> {
    if !objects([comm]) || place.is_null() {
        return None;
    }
    // SAFETY: an object; one that has been freed shows no cell.
    unsafe {
        if (*comm).cell.is_null() {
            return None;
        }
        arch::be_inside::<{ StayKind::Collective as u32 }>();
        let stay = Stay(());
        let Some(request) = request::brief::create(comm, Recipe::new(again)) else {
            stay.go_back();
            return None;
        };
        Some(Begun {
            stay,
            request,
            place,
        })
    }
}

impl Begun {
    /// The place for the lower half's request.
    #[inline(always)]
    pub fn word(&self) -> *mut Word {
        // SAFETY: the request was made for this stay, so it is alive, and no other code knows it.
        unsafe {
            let word = &raw mut (*self.request).head.lower;
            clear(word);
            word
        }
    }

    /// Gives the application its request, or the error of the function that was to begin the operation.
    ///
    /// # Safety
    /// In the stay; the place must be writable, `name` is the function's.
    #[inline(always)]
    pub unsafe fn end(self, code: c_int, name: &'static CStr) -> c_int {
        // SAFETY: the place is writable, by the caller's promise; the request is this operation's, and nothing has been told of it yet.
        unsafe {
            if code != 0 {
                return self.stay.abandon(self.request, code, name);
            }
            self.place.set(self.request.cast());
        }
        0
    }
}

impl Drop for Stay {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the thread was in the application before.
        unsafe { arch::be_inside::<{ StayKind::No as u32 }>() };
    }
}

impl Stay {
    /// Goes back to the beginning of the call, for the long way.
    #[inline(always)]
    pub fn go_back(self) {
        core::mem::forget(self);
        // SAFETY: the thread was in the application before.
        unsafe { arch::be_inside::<{ StayKind::No as u32 }>() };
    }

    /// Ends the stay of a function that returned `code`, one of the real MPI's own.
    ///
    /// # Safety
    /// `comm` must lead to an object.
    #[inline(always)]
    pub unsafe fn end(self, comm: Comm, code: c_int, name: &'static CStr) -> c_int {
        if arch::is_success(code) {
            return code;
        }
        // SAFETY: `comm` leads to an object, by the caller's promise, and the thread is still inside.
        unsafe { raise(comm, error(code), name) }
    }

    /// Ends the stay of a function that was to begin an operation and has failed with one of the real MPI's codes.
    ///
    /// # Safety
    /// `request` must be the operation's, used no more.
    #[cold]
    #[inline(never)]
    pub unsafe fn abandon(self, request: *mut Request, code: c_int, name: &'static CStr) -> c_int {
        // SAFETY: the request is the operation's and used no more, by the caller's promise. The application still has its communicator, since its call is not
        // over.
        unsafe {
            let communicator = (*request).communicator;
            if Form::of(request.cast()).is_light() {
                request::light::rest(request);
            } else {
                request::end(request);
            }
            self.end(communicator, code, name)
        }
    }
}
