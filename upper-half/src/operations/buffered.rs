//! Buffered sends and their buffers - of the process, of a communicator, of a session (MPI 5.0, section 3.6) -, for ABIs that have all three, and flushes
//! of them.
//!
//! MPICH 4.0 and Open MPI have only the process's, so the real MPI does not learn of any. A message is packed into its buffer, or into memory of ours if the
//! buffer is automatic, and goes from there by a send that only this module waits for ([`sends`]). An image holds the copy like any other memory, and the send
//! like any other request: at a checkpoint all have come to their end. A flush is a generalized request, which is completed when its sends are found to be over
//! ([`flush`]).

use core::ffi::{CStr, c_int, c_void};
use core::ptr;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::constants::PROC_NULL;

use crate::ground::abi::{self, Count, PlaceOf, RequestHandle};
use crate::ground::object::{Comm, Datatype, Object};
use crate::ground::{arch, crossing};
use crate::objects::communicator::usable;
use crate::objects::errhandler::{raise, run};
use crate::objects::outcome::{MpiResult, class, live};
use crate::operations::devices::{self, BufferUse};
use crate::operations::request::{self, Arguments, EMPTY, Kind, NO_MESSAGE, State, null_word};

mod flush;
mod sends;
mod space;

pub use flush::{
    asked_again, buffer_flush, buffer_iflush, comm_flush_buffer, comm_iflush_buffer, has_flush,
    notice, session_flush_buffer, session_iflush_buffer, until_flushed,
};
use sends::{ALL, Buffer, Owner};
pub use sends::{Message, send};

/// The owner of the buffer that a call is about, as the application says.
#[derive(Clone, Copy)]
pub enum BufferOwner {
    Process,
    Communicator(Comm),
    Session(*mut Object),
}

impl BufferOwner {
    /// The object on which errors are raised.
    fn object(self) -> *mut Object {
        match self {
            BufferOwner::Process => ptr::null_mut(),
            BufferOwner::Communicator(object) | BufferOwner::Session(object) => object,
        }
    }

    /// # Safety
    /// A handle of the application, or null.
    unsafe fn owner(self) -> MpiResult<Owner> {
        // SAFETY: `usable` and `live` look at the handle, which is the application's or null, before its object is read.
        unsafe {
            Ok(match self {
                BufferOwner::Process => Owner::Process,
                BufferOwner::Communicator(comm) => Owner::Communicator(usable(comm)?.0.addr()),
                BufferOwner::Session(session) => {
                    Owner::Session((*live(session, HandleKind::Session)?).id)
                }
            })
        }
    }
}

/// Gives an owner a buffer.
///
/// # Safety
/// As the MPI function.
pub unsafe fn attach(
    of: BufferOwner,
    buffer: *mut c_void,
    size: Count,
    name: &'static CStr,
) -> c_int {
    let automatic = buffer.addr() == abi::BUFFER_AUTOMATIC.cast_unsigned();
    // SAFETY: MPI demands that `buffer` has `size` bytes and stays the library's until it is detached; `owner` looks at the handle.
    unsafe {
        if devices::present()
            && let Some(code) = devices::refuses(of.object(), name, &[buffer])
        {
            return code;
        }
        run(of.object(), name, || {
            let owner = of.owner()?;
            if !automatic && size < 0 {
                return Err(class::ARG);
            }
            let mut all = ALL.lock();
            if all.buffer_of(owner).is_some() {
                return Err(class::BUFFER);
            }
            all.add(Buffer::new(owner, buffer.addr(), size, automatic));
            Ok(())
        })
    }
}

/// Takes an owner's buffer away, and waits until its messages are sent.
///
/// # Safety
/// As the MPI function.
pub unsafe fn detach(
    of: BufferOwner,
    buffer: *mut c_void,
    size: *mut Count,
    name: &'static CStr,
) -> c_int {
    let mut taken = None;
    // SAFETY: `owner` looks at the handle; MPI demands that `buffer` is a pointer's address, and both places writable; null is left out.
    unsafe {
        let code = run(of.object(), name, || {
            taken = ALL.lock().take_away(of.owner()?);
            Ok(())
        });
        if code != 0 {
            return code;
        }
        // If there is no buffer, MPI behaves as if it had one of no size.
        let (address, bytes) = match taken {
            None => (0, 0),
            Some((id, address, bytes)) => {
                flush::until_over(id);
                (address, bytes)
            }
        };
        if !buffer.is_null() {
            *buffer.cast::<usize>() = address;
        }
        if !size.is_null() {
            *size = bytes;
        }
    }
    0
}

/// An owner ends, and its buffer with it: waits until the buffer's messages are sent.
///
/// # Safety
/// In a stub, not inside; a handle of the application.
pub unsafe fn ends(of: BufferOwner) {
    let taken = {
        let _inside = crossing::enter();
        // SAFETY: the handle is the application's, by the caller's promise, and `owner` looks at it before it uses it.
        let owner = unsafe { of.owner() };
        owner.ok().and_then(|owner| ALL.lock().take_away(owner))
    };
    if let Some((id, ..)) = taken {
        flush::until_over(id);
    }
}

/// A communicator is freed: its buffer's messages still go out, but no thread waits for them.
///
/// # Safety
/// Inside a stub; a live communicator.
pub unsafe fn is_freed(comm: Comm) {
    ALL.lock().take_away(Owner::Communicator(comm.addr()));
}

/// Waits until everything in all buffers is sent, before MPI ends.
pub fn finish() {
    let buffers = {
        let _inside = crossing::enter();
        ALL.lock().buffers()
    };
    buffers.into_iter().for_each(flush::until_over);
}

/// A smaller function's place for a size: a size that an int does not hold is undefined.
///
/// # Safety
/// As the MPI function.
unsafe fn detach_small(
    of: BufferOwner,
    buffer: *mut c_void,
    size: *mut c_int,
    name: &'static CStr,
) -> c_int {
    let mut bytes = 0;
    // SAFETY: `detach` looks at the handle and writes to the address's place; `size` is writable or null.
    unsafe {
        let code = detach(of, buffer, &mut bytes, name);
        if code == 0 && !size.is_null() {
            *size = c_int::try_from(bytes).unwrap_or(abi::UNDEFINED);
        }
        code
    }
}

macro_rules! attached {
    ($($attach:ident $attach_name:literal, $detach:ident $detach_name:literal: ($($of:ident: $type:ty)?) $variant:expr;)*) => {$(
        /// A buffer is attached.
        ///
        /// # Safety
        /// As the MPI function.
        pub unsafe fn $attach($($of: $type,)? buffer: *mut c_void, size: c_int) -> c_int {
            // SAFETY: `attach` demands what MPI does of this function's arguments.
            unsafe { attach($variant, buffer, size.into(), $attach_name) }
        }

        /// A buffer is detached.
        ///
        /// # Safety
        /// As the MPI function.
        pub unsafe fn $detach($($of: $type,)? buffer_addr: *mut c_void, size: *mut c_int) -> c_int {
            // SAFETY: `detach_small` demands what MPI does of this function's arguments.
            unsafe { detach_small($variant, buffer_addr, size, $detach_name) }
        }
    )*};
}

attached! {
    buffer_attach c"MPI_Buffer_attach", buffer_detach c"MPI_Buffer_detach": () BufferOwner::Process;
    comm_attach_buffer c"MPI_Comm_attach_buffer", comm_detach_buffer c"MPI_Comm_detach_buffer":
        (comm: Comm) BufferOwner::Communicator(comm);
    session_attach_buffer c"MPI_Session_attach_buffer", session_detach_buffer c"MPI_Session_detach_buffer":
        (session: *mut Object) BufferOwner::Session(session);
}

/// `MPI_Bsend`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn bsend(
    buf: *const c_void,
    count: c_int,
    datatype: Datatype,
    dest: c_int,
    tag: c_int,
    comm: Comm,
) -> c_int {
    // SAFETY: MPI demands live handles and a buffer that stays readable until the call returns; `send` copies the message.
    unsafe {
        if devices::present()
            && let Some(code) = devices::sends(c"MPI_Bsend", (buf, count, datatype, comm), |buf| {
                bsend(buf, count, datatype, dest, tag, comm)
            })
        {
            return code;
        }
        let _inside = crossing::enter();
        match send(&Message::new(buf, count, datatype, (dest, tag), comm)) {
            Ok(()) => 0,
            Err(code) => raise(comm, code, c"MPI_Bsend"),
        }
    }
}

/// `MPI_Ibsend`: over as soon as the message is in the buffer.
///
/// # Safety
/// As the MPI function.
pub unsafe fn ibsend(
    buf: *const c_void,
    count: c_int,
    datatype: Datatype,
    dest: c_int,
    tag: c_int,
    comm: Comm,
    request: PlaceOf<RequestHandle>,
) -> c_int {
    // SAFETY: MPI demands live handles, a readable buffer, and a writable place for the request; `send` has copied the message when it returns.
    unsafe {
        if devices::present()
            && let Some(code) = devices::starts(
                c"MPI_Ibsend",
                BufferUse::In,
                (buf, count, datatype, comm),
                request,
                |buf| ibsend(buf, count, datatype, dest, tag, comm, request),
            )
        {
            return code;
        }
        let _inside = crossing::enter();
        if let Err(code) = send(&Message::new(buf, count, datatype, (dest, tag), comm)) {
            return raise(comm, code, c"MPI_Ibsend");
        }
        let arguments = Arguments::without_message(Kind::BufferedSend, comm);
        let made = request::create(&arguments, NO_MESSAGE);
        (*made).head.lower = null_word();
        (*made).status = EMPTY;
        (*made).state = State::Done;
        request.set(made.cast());
    }
    0
}

/// Gives the processor to others, between two looks at pending messages.
fn pause() {
    arch::yield_processor();
}
