//! Requests: what a pending operation needs to be begun again after a restart.
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
mod lent;
mod life;
pub mod light;
pub mod over;
mod recipe;
mod slots;
mod standing;
mod survey;

pub use collectives::{Numbers, begun_collective, from_recipe, initiate, start_again};
pub use lent::look;
pub use life::{Told, adopt, complete, count, finish, is_being_made, on_completion, tell};
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

/// The status of a receive from `MPI_PROC_NULL` (MPI 4.1, section 3.10). Not asked of the real MPI, which may know it in some calls only: MPICH 4.0's
/// `MPI_Test` tells source and tag 0.
pub const FROM_NOBODY: Status = Status {
    source: PROC_NULL,
    ..EMPTY
};

/// What a request does.
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

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Persistent, not started.
    Inactive,
    /// The lower half has it.
    Active,
    /// Over: the status is here, the application has not been told yet. The lower half has nothing
    /// any more, or an inactive persistent request.
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
/// A persistent collective that another member had freed at a restart: nobody can start it, the lower half does not have it.
pub const GONE: u8 = 32;
/// With `MPI_PROC_NULL`: no message.
pub const NO_MESSAGE: u8 = 8;
/// A synchronous send with a message: the real MPI's word that it is over is not enough. See `operations::synchronous`, which alone asks for it.
pub const ASKED: u8 = 128;
/// Done above, but the real MPI has it still, in a wait that is under way. See [`look`].
pub const SEEN: u8 = 64;

/// What is run, inside the completing stub, when the application is told that a request is over. Returns the error that the application is told of then, or 0.
pub type Completion = unsafe fn(context: *mut ()) -> i32;
/// What its context ends with.
pub type Ending = unsafe fn(context: *mut ());

/// A request of the application.
#[repr(C)]
pub struct Request {
    pub head: Object,
    /// Left to whatever Open MPI's Fortran layer takes the object for.
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
    /// When it was begun, in this rank's order.
    pub begun: u64,
    /// When it was made, in the same order, if it has a recipe. In a slot of the [ring](light::ring) of light receives: the slot that follows.
    pub made: u64,
    /// Persistent collectives: number among those of the communicator, the same on all members; the cell of its own clock, how often it
    /// was started, and the newest start that the application knows to be over. See `clock::persistent`. Of the starts a synchronous send has one when it is over below. The first of these is in a slot of that ring the one before.
    pub initialised: u64,
    pub own: u32,
    pub starts: u32,
    pub told: u32,
    /// Nonblocking collectives: number on the communicator (0: one that cannot be begun again), and in
    /// the communicator's clock; of persistent ones the start's, in their own. See `collective`. The number is 0 in a slot that is
    /// free, but for [`brief`] ones.
    pub number: u32,
    pub clock: u64,
    /// Persistent collectives and generalized requests: how to make it.
    pub recipe: Option<Recipe>,
    pub completion: Option<Completion>,
    pub context: *mut (),
    /// Where there is a completion: what its context ends with.
    pub ending: Option<Ending>,
    /// Objects that the recipe refers to.
    pub held: Vec<*mut Object>,
    /// Where it is done: the status, with the operation's error.
    pub status: Status,
}

impl Request {
    /// Whether a send that is [`ASKED`] is over below: then its status is here.
    pub fn is_sent(&self) -> bool {
        self.starts != 0
    }

    pub fn set_sent(&mut self, sent: bool) {
        self.starts = sent.into();
    }
}

/// Where our part of the slot begins.
const REST: usize = 256;

const _: () = assert!(offset_of!(Request, kind) == REST);
// What a message needs lies in one cache line beside the head's.
const _: () = assert!(offset_of!(Request, initialised) + size_of::<u64>() <= REST + 64);
const _: () = assert!(size_of::<Request>() <= ROOM);

/// What an operation is made of.
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
    /// Of an operation that is no message.
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

/// Where `MPI_REQUEST_NULL` leads: asked for so often that it is kept.
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

/// How the application writes `MPI_REQUEST_NULL`.
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

/// The request that a handle leads to, a whole one from here on; `None` for `MPI_REQUEST_NULL`. An error for what is no request.
///
/// # Safety
/// Inside a stub; `handle` must be null or a handle that MPI gave.
#[inline(always)]
pub unsafe fn of(handle: *mut Object) -> Result<Option<*mut Request>, i32> {
    if handle == null() {
        return Ok(None);
    }
    // SAFETY: the caller's handle.
    unsafe {
        if !handle::valid(handle, HandleKind::Request) || Form::of(handle).is_resting() {
            return Err(ERR_REQUEST);
        }
        light::unfold(handle.cast());
    }
    Ok(Some(handle.cast()))
}
