//! Buffers in a GPU's memory, where the real MPI cannot read or write them: a copy in host memory takes their place.
//!
//! A program that was written for an MPI with GPU support hands it addresses of device memory. The stubs see this before anything else.
//! They carry the operation out with *staged* buffers ([`staged::Staged`]). So every record of it - a request's arguments, a
//! recipe, a drained message - knows host memory only, which the image holds like any other. The data of a receive goes to the device when the
//! application is told of its end, in this launch or after a restart.
//!
//! Only the bytes that the datatype covers are written to the device: the application may be busy with those between.
//!
//! A function that cannot be served in this way refuses by name ([`refuses`]). A program without a GPU never comes here: see [`present`].

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
pub use parts::{ElementRun, bytes, each, listed, once, total, typed};
pub use staged::{Staged, freed, landed, starting};

/// `MPI_ERR_BUFFER` and `MPI_ERR_OTHER`.
const ERR_BUFFER: i32 = 1;
const ERR_OTHER: i32 = 16;

/// Whether the process uses a GPU. From then on no thread goes the shortest way, so that every call asks this.
#[inline(always)]
pub fn present() -> bool {
    HOOKS.long_way.load(Ordering::Relaxed) & IN_USE != 0
}

/// Called by the constructor: a library that was started earlier may use a GPU already, before anything could tell us.
pub fn look_at_start() {
    if crate::ground::arch::is_mapped(WINDOW.start) {
        HOOKS.long_way.fetch_or(IN_USE, Ordering::SeqCst);
        crossing::gate().direct.store(HOOKS.again, Ordering::SeqCst);
    }
}

/// MPI's use of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferUse {
    /// It is read.
    In,
    /// It is written to; perhaps not everywhere.
    Out,
}

/// A buffer of a call: its address, MPI's use of it, and its parts.
pub struct Buffer {
    pub pointer: *mut c_void,
    pub way: BufferUse,
    pub parts: Vec<ElementRun>,
}

impl Buffer {
    /// A buffer that counts for this process. A buffer in place does not, since its input is in the other one.
    pub fn new(pointer: *const c_void, way: BufferUse, parts: Vec<ElementRun>) -> Buffer {
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

/// Whether a function that cannot work on a device's memory has been given some. If so, the function fails and says why.
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
    // SAFETY: the thread is inside from here on; `on` is null or leads to an object, by the caller's promise.
    Some(unsafe { raise(on, ERR_BUFFER, name) })
}

/// Prints an error with a device's memory.
fn say(name: &CStr, what: core::fmt::Arguments<'_>) {
    let text = format!("stillpoint: {}: {what}\n", name.to_string_lossy());
    if let Some(print) = crossing::gate().services.print {
        // SAFETY: works with any FS; the text is there.
        unsafe { print(text.as_ptr(), text.len()) };
    }
}

/// Attaches staged buffers to the request that the call has just made.
///
/// # Safety
/// Inside a stub; a live request, which no other code knows yet.
unsafe fn attach(request: *mut Request, staged: Box<Staged>) {
    // SAFETY: the request is alive and known to no other code, by the caller's promise; `forget` drops the box when the request ends.
    unsafe {
        crate::operations::request::on_completion(
            request.cast(),
            staged::land,
            Some(staged::forget),
            Box::into_raw(staged).cast(),
        );
    }
}
