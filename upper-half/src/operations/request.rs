//! Requests: the record of a pending operation, which can begin it again after a restart.
//!
//! A request is an [`Object`] with its recipe behind it in the same slot. Slots are reused through a
//! list of our own, so that making one costs a handful of stores. The order in which operations were
//! begun is kept as a number: receives are posted again in that order.

use core::ffi::c_void;
use core::mem::offset_of;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::{AtomicPtr, Ordering};

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::constants::{ANY_SOURCE, ANY_TAG, PROC_NULL};
use stillpoint_wrappers::neutral::{Status, Word};

use crate::ground::abi::{PlaceOf, RequestHandle};
use crate::ground::handle;
use crate::ground::object::{Object, ROOM};

pub mod brief;
mod collectives;
mod in_wait;
mod life;
pub mod light;
pub mod over;
mod recipe;
mod slots;
mod standing;
mod survey;

pub use collectives::{Numbers, begun_collective, from_recipe, initiate, start_again};
pub use in_wait::look;
pub use life::{
    CompletionOutcome, adopt, complete, count, finish, is_being_made, on_completion, tell,
};
use light::Form;
pub use recipe::Recipe;
pub use slots::{
    askable, create, create_alone, end, end_alone, hold, let_go, live, next_begun, plain,
};
pub use survey::{Pending, abandon, pending, test_all};

/// `MPI_ERR_REQUEST`.
pub const ERR_REQUEST: i32 = 7;

/// The status of a null or inactive request (MPI 5.0, section 3.7.3).
pub const EMPTY: Status = Status {
    source: ANY_SOURCE,
    tag: ANY_TAG,
    error: 0,
    internal: [0; 5],
};

/// The status of a receive from `MPI_PROC_NULL` (MPI 4.1, section 3.10). The real MPI is not asked for it, because it may know it in some calls only: MPICH
/// 4.0's `MPI_Test` tells source and tag 0.
pub const FROM_NOBODY: Status = Status {
    source: PROC_NULL,
    ..EMPTY
};

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Receive,
    Send,
    SynchronousSend,
    BufferedSend,
    ReadySend,
    /// A collective operation; so also the making of a communicator (`MPI_Comm_idup`).
    Collective,
    /// `MPI_Grequest_start`.
    Generalized,
    /// On a file: finished before an image is written.
    File,
    /// On a window: a flush completes it.
    OneSided,
    /// `MPI_Psend_init`, `MPI_Precv_init`: always persistent, and no image has it.
    Partitioned,
}

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Persistent, not started.
    Inactive,
    /// The lower half has it.
    Active,
    /// Over: the status is here, the application has not been told yet. The lower half has nothing
    /// any more, or only an inactive persistent request.
    Done,
}

/// `MPI_*_init`: started again and again.
pub const PERSISTENT: u8 = 1;
/// `MPI_Cancel` was called since it was begun.
pub const CANCELLED: u8 = 2;
/// The application has freed it while it was active.
pub const ORPHAN: u8 = 4;
/// A collective operation whose input MPI changes on the way (`MPI_IN_PLACE`): never begun again.
pub const UNREPEATABLE: u8 = 16;
/// A persistent collective that another member had freed at a restart: no rank can start it, and the lower half does not have it.
pub const GONE: u8 = 32;
/// With `MPI_PROC_NULL`: no message.
pub const NO_MESSAGE: u8 = 8;
/// A synchronous send with a message: the real MPI's word that it is over is not enough. See `operations::synchronous`, which alone asks for it.
pub const ASKED: u8 = 128;
/// Done above, but the real MPI still has it, in a pending wait. See [`look`].
pub const SEEN: u8 = 64;

/// A function that runs, inside the completing stub, when the application is told that a request is over. Returns the error to tell then, or 0.
pub type Completion = unsafe fn(context: *mut ()) -> i32;
/// A function that ends a completion's context.
pub type Ending = unsafe fn(context: *mut ());

/// A request of the application.
#[repr(C)]
pub struct Request {
    pub head: Object,
    /// Left to the Open MPI object that the Fortran layer takes this one for.
    untouched: [u8; REST - size_of::<Object>()],
    pub kind: Kind,
    pub state: State,
    pub flags: u8,
    /// See [`brief`].
    pub brief: bool,
    pub count: i32,
    pub buffer: *mut c_void,
    pub datatype: *mut Object,
    pub communicator: *mut Object,
    pub peer: i32,
    pub tag: i32,
    /// Its place in the order in which this rank begins operations.
    pub begun: u64,
    /// Its place in the same order when it was made, if it has a recipe. In a slot of the [ring](light::ring) of light receives: the slot that follows.
    pub made: u64,
    /// Persistent collectives: number among those of the communicator, the same on all members; the cell of its own clock, how often it was started, and the
    /// newest start that the application knows to be over. See `clock::persistent`. A synchronous send has one in `starts` when it is over below. In a slot of
    /// that ring, `initialised` is the slot before.
    pub initialised: u64,
    pub own: u32,
    pub starts: u32,
    pub told: u32,
    /// Nonblocking collectives: number on the communicator (0: one that cannot be begun again), and in
    /// the communicator's clock; of persistent ones the start's, in their own. See `collective`. The number is 0 in a free
    /// slot, except in [`brief`] ones.
    pub number: u32,
    pub clock: u64,
    /// Persistent collectives and generalized requests: how to make it.
    pub recipe: Option<Recipe>,
    pub completion: Option<Completion>,
    pub context: *mut (),
    /// With a completion: the function that ends its context.
    pub ending: Option<Ending>,
    /// Objects that the recipe refers to.
    pub held: Vec<*mut Object>,
    /// In a done request: the status, with the operation's error.
    pub status: Status,
}

impl Request {
    /// Whether a send that is [`ASKED`] is over below. If so, its status is here.
    pub fn is_sent(&self) -> bool {
        self.starts != 0
    }

    pub fn set_sent(&mut self, sent: bool) {
        self.starts = sent.into();
    }
}

/// The offset of our part of the slot.
const REST: usize = 256;

const _: () = assert!(offset_of!(Request, kind) == REST);
// The fields that a message needs lie in one cache line beside the head's.
const _: () = assert!(offset_of!(Request, initialised) + size_of::<u64>() <= REST + 64);
const _: () = assert!(size_of::<Request>() <= ROOM);

/// The arguments of an operation.
pub struct Arguments {
    pub kind: Kind,
    pub buffer: *mut c_void,
    pub count: i32,
    pub datatype: *mut Object,
    /// Neutral, like `tag`.
    pub peer: i32,
    pub tag: i32,
    pub communicator: *mut Object,
}

impl Arguments {
    /// The arguments of an operation that is not a message.
    #[inline(always)]
    pub fn without_message(kind: Kind, communicator: *mut Object) -> Arguments {
        Arguments {
            kind,
            buffer: core::ptr::null_mut(),
            count: 0,
            datatype: core::ptr::null_mut(),
            peer: 0,
            tag: 0,
            communicator,
        }
    }
}

/// The object of `MPI_REQUEST_NULL`: asked for so often that it is kept.
static NULL: AtomicPtr<Object> = AtomicPtr::new(core::ptr::null_mut());

/// Keeps `MPI_REQUEST_NULL`, when the library starts.
pub fn initialise() {
    let null = crate::ground::abi::predefined::null_handle(HandleKind::Request);
    NULL.store(null, Ordering::Relaxed);
    // SAFETY: such a handle is no wider than a word; it is the library's own place.
    unsafe {
        PlaceOf::at(NULL_HANDLE.as_ptr().cast::<RequestHandle>()).set(null);
    }
}

/// `MPI_REQUEST_NULL` as the application writes it.
pub static NULL_HANDLE: AtomicUsize = AtomicUsize::new(0);

const _: () = assert!(size_of::<RequestHandle>() <= size_of::<usize>());

/// `MPI_REQUEST_NULL`.
#[inline(always)]
pub fn null() -> *mut Object {
    NULL.load(Ordering::Relaxed)
}

/// The lower half's word for `MPI_REQUEST_NULL`.
#[inline(always)]
pub fn null_word() -> Word {
    // SAFETY: a predefined object, never gone.
    unsafe { (*null()).lower }
}

/// The request that a handle leads to, a whole one from here on, or `None` for `MPI_REQUEST_NULL`. An error if the handle leads to no request.
///
/// # Safety
/// Inside a stub; `handle` must be null or a handle that MPI gave.
#[inline(always)]
pub unsafe fn of(handle: *mut Object) -> Result<Option<*mut Request>, i32> {
    if handle == null() {
        return Ok(None);
    }
    // SAFETY: `handle` is null or MPI's, by the caller's promise; a request that is valid and does not rest is alive.
    unsafe {
        if !handle::valid(handle, HandleKind::Request) || Form::of(handle).is_resting() {
            return Err(ERR_REQUEST);
        }
        light::unfold(handle.cast());
    }
    Ok(Some(handle.cast()))
}
