//! Buffers that lie in a GPU's memory, where the real MPI cannot read or write them: a copy in host memory takes their place.
//!
//! A program that was written for an MPI which knows of GPUs hands it addresses of device memory. The stubs see this before anything else:
//! the operation is carried out with *staged* buffers ([`staged::Staged`]), so whatever is written down of it - a request's arguments, a
//! recipe, a drained message - knows host memory only, which the image holds like any other. What a receive has brought goes to the device when the
//! application is told of its end, in this launch or after a restart.
//!
//! Only what the datatype says is written to the device: the application may be busy with what lies between.
//!
//! Where a function cannot be served so, it refuses by name ([`refuses`]). A program without a GPU never comes here: see [`present`].

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::Ordering;

use stillpoint_wrappers::devices::{IN_USE, WINDOW};

use crate::ground::abi;
use crate::ground::crossing;
use crate::ground::hooks::HOOKS;
use crate::ground::object::Object;
use crate::objects::errhandler::raise;
use crate::operations::request::Request;

mod driver;
mod layout;
mod message;
mod parts;
mod staged;

pub use message::{both, initialised, receives, sends, starts};
pub use parts::{Part, bytes, each, listed, once, total, typed};
pub use staged::{Staged, freed, landed, starting};

/// `MPI_ERR_BUFFER` and `MPI_ERR_OTHER`.
const ERR_BUFFER: i32 = 1;
const ERR_OTHER: i32 = 16;

/// Whether the process uses a GPU. From then on no thread goes the shortest way, so that every call comes to where this is asked.
#[inline(always)]
pub fn present() -> bool {
    HOOKS.long_way.load(Ordering::Relaxed) & IN_USE != 0
}

/// Called by the constructor: a library that was started earlier may use a GPU already, and nobody was there to be told.
pub fn look_at_start() {
    if crate::ground::arch::is_mapped(WINDOW.start) {
        HOOKS.long_way.fetch_or(IN_USE, Ordering::SeqCst);
        crossing::gate().direct.store(HOOKS.again, Ordering::SeqCst);
    }
}

/// What MPI does with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It is read.
    In,
    /// It is written to; perhaps not everywhere.
    Out,
}

/// A buffer of a call: where it is, what is done with it, and what it is made of.
pub struct Buffer {
    pub pointer: *mut c_void,
    pub way: Way,
    pub parts: Vec<Part>,
}

impl Buffer {
    /// A buffer that counts for this process; one in place does not, its input being in the other buffer.
    pub fn new(pointer: *const c_void, way: Way, parts: Vec<Part>) -> Buffer {
        let parts = if abi::is_in_place(pointer) {
            Vec::new()
        } else {
            parts
        };
        Buffer {
            pointer: pointer.cast_mut(),
            way,
            parts,
        }
    }
}

/// Whether a function that cannot work on a device's memory has been given some: then it fails, and says so.
///
/// # Safety
/// On a thread of the application; `on` must be null or lead to an object.
#[cold]
#[inline(never)]
pub unsafe fn refuses(
    on: *mut Object,
    name: &'static CStr,
    pointers: &[*const c_void],
) -> Option<c_int> {
    let _inside = crossing::enter();
    let driver = driver::driver()?;
    let refused = pointers
        .iter()
        .find(|pointer| driver.is_of_a_device(pointer.addr()))?;
    say(
        name,
        format_args!(
            "{:#x} is a GPU's memory, which this function cannot work on here; use host memory",
            refused.addr()
        ),
    );
    // SAFETY: inside; the caller's object.
    Some(unsafe { raise(on, ERR_BUFFER, name) })
}

/// Says what has gone wrong with a device's memory.
fn say(name: &CStr, what: core::fmt::Arguments<'_>) {
    let text = format!("stillpoint: {}: {what}\n", name.to_string_lossy());
    if let Some(print) = crossing::gate().services.print {
        // SAFETY: works with any FS; the text is there.
        unsafe { print(text.as_ptr(), text.len()) };
    }
}

/// The request that a call has just made is the one of these staged buffers.
///
/// # Safety
/// Inside a stub; a live request.
unsafe fn attach(request: *mut Request, staged: Box<Staged>) {
    // SAFETY: the caller's request; what is attached is freed with it.
    unsafe {
        crate::operations::request::on_completion(
            request.cast(),
            staged::land,
            Some(staged::forget),
            Box::into_raw(staged).cast(),
        );
    }
}
