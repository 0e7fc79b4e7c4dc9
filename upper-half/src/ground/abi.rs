//! The ABI that the application was compiled against: Open MPI 4.1's, or the MPI 5.0 standard's.
//!
//! No code outside this folder may assume one; types and numbers are those of its description (`wrappers/abi/`). Handles lead to [`Object`]s (`handles.rs`),
//! and special integers have that ABI's values; [`to_neutral`](description) and back takes a comparison or two, or nothing.
//!
//! Rules of living in the application's process hold: no allocation, no panic, no system call.

use core::ffi::{c_int, c_void};

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use crate::ground::description;
use crate::ground::object::{ALIVE, Object};

mod handles;
pub mod predefined;
mod symbols;

#[cfg(application = "mpich")]
pub use symbols::weights_to_neutral;

pub use handles::{Handle, ListOf, PlaceOf, Takes};

#[cfg(not(application = "openmpi"))]
pub use description::BUFFER_AUTOMATIC;
#[cfg(not(application = "mpich"))]
pub use description::weights_to_neutral;
pub use description::{
    ABI, DUPLICATES, ERR_LASTCODE, KEYVAL_INVALID, MAX_ERROR_STRING, MAX_INFO_KEY, MAX_INFO_VAL,
    MAX_OBJECT_NAME, NULL_FUNCTIONS, PROC_NULL, SUBVERSION, Status, UNDEFINED, VERSION,
    assertion_from_neutral, assertion_to_neutral, bind_from_neutral, bind_to_neutral,
    combiner_from_neutral, combiner_to_neutral, comparison_from_neutral, comparison_to_neutral,
    darg_from_neutral, darg_to_neutral, displacement_from_neutral, displacement_to_neutral,
    distribution_from_neutral, distribution_to_neutral, error_from_neutral, error_to_neutral,
    flavor_from_neutral, flavor_to_neutral, keyval_from_neutral, keyval_to_neutral,
    lock_from_neutral, lock_to_neutral, mode_from_neutral, mode_to_neutral, model_from_neutral,
    model_to_neutral, order_from_neutral, order_to_neutral, pvarclass_from_neutral,
    pvarclass_to_neutral, rank_from_neutral, rank_to_neutral, scope_from_neutral, scope_to_neutral,
    split_from_neutral, split_to_neutral, tag_from_neutral, tag_to_neutral, threads_from_neutral,
    threads_to_neutral, topology_from_neutral, topology_to_neutral, typeclass_from_neutral,
    typeclass_to_neutral, verbosity_from_neutral, verbosity_to_neutral, whence_from_neutral,
    whence_to_neutral,
};
pub use predefined::{initialise_predefined, predefined, predefined_from_word, predefined_handles};

// The types of C: made by `wrappers/generator` (`emit/abi.rs`; a sample is in `golden/types.rs`).
include!(concat!(env!("OUT_DIR"), "/types.rs"));

/// `MPI_Comm_copy_attr_function *` and its like: copies an attribute of an object whose handles are `H`.
pub type Copier<H> = Option<
    unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int,
>;
/// `MPI_Comm_delete_attr_function *` and its like.
pub type Deleter<H> = Option<unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void) -> c_int>;
/// `MPI_Comm_errhandler_function *` and its like (variadic in C: the callee ignores the further arguments).
pub type ErrorHandler<H> = Option<unsafe extern "C" fn(*mut H, *mut c_int, ...)>;

/// `MPI_Comm_copy_attr_function *`.
pub type CommCopyAttrFunction = Copier<CommHandle>;
/// `MPI_Comm_delete_attr_function *`.
pub type CommDeleteAttrFunction = Deleter<CommHandle>;
/// `MPI_Copy_function *`.
pub type CopyFunction = Copier<CommHandle>;
/// `MPI_Delete_function *`.
pub type DeleteFunction = Deleter<CommHandle>;
/// `MPI_Type_copy_attr_function *`.
pub type TypeCopyAttrFunction = Copier<DatatypeHandle>;
/// `MPI_Type_delete_attr_function *`.
pub type TypeDeleteAttrFunction = Deleter<DatatypeHandle>;
/// `MPI_Win_copy_attr_function *`.
pub type WinCopyAttrFunction = Copier<WinHandle>;
/// `MPI_Win_delete_attr_function *`.
pub type WinDeleteAttrFunction = Deleter<WinHandle>;
/// `MPI_Comm_errhandler_function *`.
pub type CommErrhandlerFunction = ErrorHandler<CommHandle>;
/// `MPI_Handler_function *`.
pub type HandlerFunction = ErrorHandler<CommHandle>;
/// `MPI_Win_errhandler_function *`.
pub type WinErrhandlerFunction = ErrorHandler<WinHandle>;
/// `MPI_File_errhandler_function *`.
pub type FileErrhandlerFunction = ErrorHandler<FileHandle>;
/// `MPI_Session_errhandler_function *`.
#[cfg(not(application = "openmpi"))]
pub type SessionErrhandlerFunction = ErrorHandler<SessionHandle>;
/// `MPI_User_function *`.
pub type UserFunction =
    Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut DatatypeHandle)>;
/// `MPI_Grequest_query_function *`.
pub type GrequestQueryFunction = Option<unsafe extern "C" fn(*mut c_void, *mut Status) -> c_int>;
/// `MPI_Grequest_free_function *`.
pub type GrequestFreeFunction = Option<unsafe extern "C" fn(*mut c_void) -> c_int>;
/// `MPI_Grequest_cancel_function *`.
pub type GrequestCancelFunction = Option<unsafe extern "C" fn(*mut c_void, c_int) -> c_int>;
/// `MPI_Datarep_extent_function *`.
pub type DatarepExtentFunction =
    Option<unsafe extern "C" fn(DatatypeHandle, *mut Aint, *mut c_void) -> c_int>;
/// `MPI_Datarep_conversion_function *`.
pub type DatarepConversionFunction = Option<
    unsafe extern "C" fn(
        *mut c_void,
        DatatypeHandle,
        c_int,
        *mut c_void,
        Offset,
        *mut c_void,
    ) -> c_int,
>;

// Assumptions of the functions below.
const _: () = assert!(description::BOTTOM == description::NEUTRAL_BOTTOM);
const _: () = assert!(description::STATUS_IGNORE == description::STATUSES_IGNORE);

/// A pointer to memory of the application.
pub trait Buffer: Copy {
    /// The address that it points to.
    fn at(self) -> usize;
    /// The pointer with another address.
    fn elsewhere(self, address: usize) -> Self;
}

impl<T> Buffer for *const T {
    #[inline(always)]
    fn at(self) -> usize {
        self.addr()
    }

    #[inline(always)]
    fn elsewhere(self, address: usize) -> Self {
        self.with_addr(address)
    }
}

impl<T> Buffer for *mut T {
    #[inline(always)]
    fn at(self) -> usize {
        self.addr()
    }

    #[inline(always)]
    fn elsewhere(self, address: usize) -> Self {
        self.with_addr(address)
    }
}

/// A buffer, made neutral: `MPI_IN_PLACE` becomes the standard's, if it has another value.
#[inline(always)]
pub fn buffer<P: Buffer>(buffer: P) -> P {
    if IN_PLACE != description::NEUTRAL_IN_PLACE && buffer.at() == IN_PLACE {
        return buffer.elsewhere(description::NEUTRAL_IN_PLACE);
    }
    buffer
}

/// The value of `MPI_IN_PLACE`.
pub const IN_PLACE: usize = description::IN_PLACE;

/// Whether a buffer is `MPI_IN_PLACE`.
#[inline(always)]
pub fn is_in_place(buffer: *const c_void) -> bool {
    buffer.addr() == IN_PLACE
}

/// The address that stands for no status.
pub const IGNORED: usize = description::STATUS_IGNORE;

/// Whether a pointer to one status or an array of them is `MPI_STATUS(ES)_IGNORE` or null.
#[inline(always)]
pub fn is_ignored(status: *const Status) -> bool {
    status.is_null() || status.addr() == description::STATUS_IGNORE
}

/// The class of an error code of a library that has the application's ABI. MPICH's codes hold more, above their lowest bits.
#[cfg(application = "mpich")]
pub const fn class(code: c_int) -> c_int {
    const CLASS: c_int = 0x7f;
    match code & CLASS {
        known if known <= description::T_ERR_INVALID => known,
        _ => description::ERR_OTHER,
    }
}

/// The class of an error code of a library that has the application's ABI: the code itself.
#[cfg(not(application = "mpich"))]
pub const fn class(code: c_int) -> c_int {
    code
}

/// The word under which the lower half knows an object that a handle of the application leads to. Any other value - a null pointer, an
/// object that was freed - crosses as the null handle of its kind, so that the real MPI refuses it. For infos, where
/// the null handle is a valid argument, it crosses as 0.
///
/// # Safety
/// `object` must be null, a small number, or an object that a handle leads to, alive or freed.
#[inline(always)]
pub unsafe fn word(kind: HandleKind, object: *mut Object) -> Word {
    if object.addr() >= 4096 {
        // SAFETY: objects are never unmapped.
        unsafe {
            if (*object).magic == ALIVE {
                return (*object).lower;
            }
        }
    }
    word_of_none(kind)
}

#[cold]
#[inline(never)]
fn word_of_none(kind: HandleKind) -> Word {
    if kind == HandleKind::Info {
        0
    } else {
        predefined::null_word(kind)
    }
}
