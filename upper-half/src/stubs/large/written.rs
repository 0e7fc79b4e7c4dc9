//! Twins with large counts that are written by hand.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::standard;

use super::{int, place, write};
use crate::ground::abi::{
    self, Aint, CommHandle, Count, DatarepConversionFunction, DatarepExtentFunction,
    DatatypeHandle, Handle, OpHandle, PlaceOf, SessionHandle, Status, UserFunction,
};
use crate::ground::crossing::{self, cross};
use crate::ground::export::export;
use crate::ground::object::Object;
use crate::objects::datatype::large_arguments;
use crate::objects::errhandler::raise;
use crate::objects::operator;
use crate::objects::outcome::class;
use crate::operations::buffered::{self, BufferOwner};
use crate::stubs::{by_hand, steps};

const UNDEFINED: i64 = standard::UNDEFINED as i64;

/// A datatype's size.
///
/// # Safety
/// Inside a stub; `datatype` must lead to an object or be null.
unsafe fn size(datatype: *mut Object) -> Result<i64, i32> {
    let mut size = 0;
    // SAFETY: `datatype` is null or leads to an object, by the caller's promise; the size goes into a local variable.
    let code = unsafe {
        let word = abi::word(HandleKind::Datatype, datatype);
        cross(|lower| (lower.type_size_x)(word, &mut size))
    };
    if code == 0 { Ok(size) } else { Err(code) }
}

/// Whether a datatype was made with numbers that an int does not hold.
///
/// # Safety
/// In a stub, not inside yet; null or a handle.
unsafe fn is_asked(datatype: *mut Object) -> bool {
    let _inside = crossing::enter();
    // SAFETY: `was_asked` demands what the caller promises: no stay yet, and a handle or null.
    unsafe { large_arguments::was_asked(datatype) }
}

/// Gives a result, or raises the error.
///
/// # Safety
/// Inside a stub; `place` must be null or writable.
unsafe fn answer(place: *mut Count, found: Result<i64, i32>, name: &'static CStr) -> c_int {
    // SAFETY: `place` is null or writable, by the caller's promise; `as_mut` tells which, and nothing else refers to it meanwhile.
    unsafe {
        match (found, place.as_mut()) {
            (Ok(found), Some(place)) => {
                *place = match found {
                    UNDEFINED => abi::UNDEFINED.into(),
                    found => found,
                };
                0
            }
            (Ok(_), None) => raise(ptr::null_mut(), class::ARG, name),
            (Err(code), _) => raise(ptr::null_mut(), code, name),
        }
    }
}

macro_rules! twins {
    ($($(#[$doc:meta])* $own:ident $exported:literal $also:ident ($($parameter:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        $(#[$doc])*
        #[unsafe(export_name = $exported)]
        unsafe extern "C" fn $own($($parameter: $type),*) -> c_int $body
        export!($also => $own);
    )*};
}

twins! {
    /// `MPI_Buffer_attach_c`.
    buffer_attach "MPI_Buffer_attach_c" PMPI_Buffer_attach_c
        (buffer: *mut c_void, size: Count) {
        // SAFETY: the application lends `size` bytes until it detaches them, or passes `MPI_BUFFER_AUTOMATIC`; nothing is read here yet.
        unsafe { buffered::attach(BufferOwner::Process, buffer, size, c"MPI_Buffer_attach_c") }
    }

    /// `MPI_Buffer_detach_c`.
    buffer_detach "MPI_Buffer_detach_c" PMPI_Buffer_detach_c
        (buffer: *mut c_void, size: *mut Count) {
        // SAFETY: MPI demands two writable places, which `detach` tests for null.
        unsafe { buffered::detach(BufferOwner::Process, buffer, size, c"MPI_Buffer_detach_c") }
    }

    /// `MPI_Comm_attach_buffer_c`.
    comm_attach_buffer "MPI_Comm_attach_buffer_c" PMPI_Comm_attach_buffer_c
        (comm: CommHandle, buffer: *mut c_void, size: Count) {
        // SAFETY: `attach` looks at the communicator before it uses it; MPI demands that `buffer` has `size` bytes until it is detached.
        unsafe {
            let of = BufferOwner::Communicator(Handle::object(comm));
            buffered::attach(of, buffer, size, c"MPI_Comm_attach_buffer_c")
        }
    }

    /// `MPI_Comm_detach_buffer_c`.
    comm_detach_buffer "MPI_Comm_detach_buffer_c" PMPI_Comm_detach_buffer_c
        (comm: CommHandle, buffer: *mut c_void, size: *mut Count) {
        // SAFETY: `detach` looks at the communicator before it uses it, and tests the places, which MPI demands to be writable, for null.
        unsafe {
            let of = BufferOwner::Communicator(Handle::object(comm));
            buffered::detach(of, buffer, size, c"MPI_Comm_detach_buffer_c")
        }
    }

    /// `MPI_Session_attach_buffer_c`.
    session_attach_buffer "MPI_Session_attach_buffer_c" PMPI_Session_attach_buffer_c
        (session: SessionHandle, buffer: *mut c_void, size: Count) {
        // SAFETY: `attach` looks at the session before it uses it; MPI demands that `buffer` has `size` bytes until it is detached.
        unsafe {
            let of = BufferOwner::Session(Handle::object(session));
            buffered::attach(of, buffer, size, c"MPI_Session_attach_buffer_c")
        }
    }

    /// `MPI_Session_detach_buffer_c`.
    session_detach_buffer "MPI_Session_detach_buffer_c" PMPI_Session_detach_buffer_c
        (session: SessionHandle, buffer: *mut c_void, size: *mut Count) {
        // SAFETY: `detach` looks at the session before it uses it, and tests the places, which MPI demands to be writable, for null.
        unsafe {
            let of = BufferOwner::Session(Handle::object(session));
            buffered::detach(of, buffer, size, c"MPI_Session_detach_buffer_c")
        }
    }

    /// `MPI_Get_count_c`.
    get_count "MPI_Get_count_c" PMPI_Get_count_c
        (status: *const Status, datatype: DatatypeHandle, count: *mut Count) {
        let _inside = crossing::enter();
        // SAFETY: MPI demands a status that is readable and a writable place; the real MPI checks the datatype's word.
        unsafe {
            let (datatype, status) = (Handle::object(datatype), steps::status(status));
            let (word, mut small) = (abi::word(HandleKind::Datatype, datatype), 0);
            let code = cross(|lower| (lower.get_count)(&raw const status, word, &mut small));
            let found = match (code, i64::from(small)) {
                (0, UNDEFINED) => size(datatype).map(|size| match status.bytes() as i64 {
                    bytes if size > 0 && bytes % size == 0 => bytes / size,
                    _ => UNDEFINED,
                }),
                (0, small) => Ok(small),
                (code, _) => Err(code),
            };
            answer(count, found, c"MPI_Get_count_c")
        }
    }

    /// `MPI_Get_elements_c`.
    get_elements "MPI_Get_elements_c" PMPI_Get_elements_c
        (status: *const Status, datatype: DatatypeHandle, count: *mut Count) {
        let _inside = crossing::enter();
        // SAFETY: MPI demands a status that is readable and a writable place; the number of elements goes into a local variable first.
        unsafe {
            let status = steps::status(status);
            let word = abi::word(HandleKind::Datatype, Handle::object(datatype));
            let mut found = 0;
            let code = cross(|lower| (lower.get_elements_x)(&raw const status, word, &mut found));
            let found = if code == 0 { Ok(found) } else { Err(code) };
            answer(count, found, c"MPI_Get_elements_c")
        }
    }

    /// `MPI_Status_set_elements_c`.
    status_set_elements "MPI_Status_set_elements_c" PMPI_Status_set_elements_c
        (status: *mut Status, datatype: DatatypeHandle, count: Count) {
        let _inside = crossing::enter();
        // SAFETY: MPI demands a status that is readable and writable; the real MPI checks the datatype's word before anything is written.
        unsafe {
            let mut new = steps::status(status);
            let word = abi::word(HandleKind::Datatype, Handle::object(datatype));
            let code = cross(|lower| (lower.status_set_elements_x)(&raw mut new, word, count));
            if code != 0 {
                return raise(ptr::null_mut(), code, c"MPI_Status_set_elements_c");
            }
            steps::give_status(status, &new);
        }
        0
    }

    /// `MPI_Type_size_c`.
    type_size "MPI_Type_size_c" PMPI_Type_size_c
        (datatype: DatatypeHandle, place: *mut Count) {
        let _inside = crossing::enter();
        // SAFETY: the real MPI checks the datatype's word; `answer` leaves a null place unwritten.
        unsafe { answer(place, size(Handle::object(datatype)), c"MPI_Type_size_c") }
    }

    /// `MPI_Pack_size_c`: the library's answer for few elements; many take as much as their bytes.
    pack_size "MPI_Pack_size_c" PMPI_Pack_size_c
        (count: Count, datatype: DatatypeHandle, comm: abi::CommHandle, place: *mut Count) {
        let _inside = crossing::enter();
        // SAFETY: the real MPI checks both words, or only the datatype's if the number is large; `answer` leaves a null place unwritten.
        unsafe {
            let (datatype, comm) = (Handle::object(datatype), Handle::object(comm));
            let found = size(datatype).and_then(|size| {
                let bytes = size.checked_mul(count).ok_or(class::COUNT)?;
                if bytes > i64::from(c_int::MAX) / 2 {
                    return Ok(bytes);
                }
                let (count, mut small) = (int(count).ok_or(class::COUNT)?, 0);
                let word = abi::word(HandleKind::Datatype, datatype);
                let comm = abi::word(HandleKind::Communicator, comm);
                match cross(|lower| (lower.pack_size)(count, word, comm, &mut small)) {
                    0 => Ok(small.into()),
                    code => Err(code),
                }
            });
            answer(place, found, c"MPI_Pack_size_c")
        }
    }

    /// `MPI_Op_create_c`: the function takes the count in eight bytes.
    op_create "MPI_Op_create_c" PMPI_Op_create_c
        (function: UserFunction, commutes: c_int, place: *mut OpHandle) {
        // SAFETY: MPI demands a reduction function that counts in `MPI_Count`; `place` holds the new operator's handle once the code is 0.
        unsafe {
            let place = PlaceOf::at(place);
            let code = by_hand::op_create(function, commutes, place);
            if code == 0 {
                let _inside = crossing::enter();
                operator::count_in_eight_bytes(place.get());
            }
            code
        }
    }

    /// `MPI_Register_datarep_c`: libraries know no functions that convert.
    register_datarep "MPI_Register_datarep_c" PMPI_Register_datarep_c
        (name: *const core::ffi::c_char, read: DatarepConversionFunction, write: DatarepConversionFunction,
         extent: DatarepExtentFunction, extra: *mut c_void) {
        // SAFETY: the strings and the functions are those that MPI asks for; the function with small counts demands the same of them.
        unsafe { by_hand::register_datarep(name, read, write, extent, extra) }
    }

    /// `MPI_Type_get_envelope_c`.
    type_get_envelope "MPI_Type_get_envelope_c" PMPI_Type_get_envelope_c
        (datatype: DatatypeHandle, integers: *mut Count, addresses: *mut Count, large: *mut Count,
         datatypes: *mut Count, combiner: *mut c_int) {
        let (mut i, mut a, mut d) = (0, 0, 0);
        // SAFETY: MPI demands a datatype's handle and writable places; ours for the small numbers live until they have been copied.
        unsafe {
            let object = Handle::object(datatype);
            if is_asked(object) {
                let places = [integers, addresses, large, datatypes];
                return large_arguments::type_get_envelope_asked(object, places, combiner);
            }
            let code = by_hand::type_get_envelope(
                object,
                place(integers, &mut i),
                place(addresses, &mut a),
                place(datatypes, &mut d),
                combiner,
            );
            for (place, number) in [(integers, i), (addresses, a), (large, 0), (datatypes, d)] {
                write(place, number, code);
            }
            code
        }
    }

    /// `MPI_Type_get_contents_c`.
    type_get_contents "MPI_Type_get_contents_c" PMPI_Type_get_contents_c
        (datatype: DatatypeHandle, max_integers: Count, max_addresses: Count, max_large: Count,
         max_datatypes: Count, integers: *mut c_int, addresses: *mut Aint, large: *mut Count,
         datatypes: *mut DatatypeHandle) {
        let most = |number: Count| number.clamp(-1, c_int::MAX.into()) as c_int;
        // SAFETY: MPI demands a datatype's handle, and arrays with as many elements as their maxima say; a larger maximum is only cut down.
        unsafe {
            let object = Handle::object(datatype);
            if is_asked(object) {
                let most = [max_integers, max_large, max_datatypes];
                return large_arguments::type_get_contents_asked(object, most, integers, large, PlaceOf::at(datatypes));
            }
            by_hand::type_get_contents(
                object,
                most(max_integers),
                most(max_addresses),
                most(max_datatypes),
                integers,
                addresses,
                PlaceOf::at(datatypes),
            )
        }
    }
}
