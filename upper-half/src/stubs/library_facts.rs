//! Questions of MPI 4.1 and 5 about the library itself: for ABIs that have them.

use core::ffi::c_int;
use std::ffi::CString;

use stillpoint_wrappers::gate::HandleKind;

use crate::ground::abi::{self, Aint, Count, DatatypeHandle, InfoHandle, Offset, PlaceOf};
use crate::ground::object::{Datatype, Object};
use crate::objects::errhandler::run;
use crate::objects::info;
use crate::objects::info::pairs::Pairs;
use crate::objects::outcome::{class, give, live};
use stillpoint_wrappers::standard;

/// Types of pairs for `MPI_MAXLOC` and `MPI_MINLOC`, by standard-ABI values: of the value, of its index, of both.
const PAIRS: [[u16; 3]; 9] = [
    // MPI_SHORT, MPI_INT and MPI_LONG with an MPI_INT.
    [520, 521, 556],
    [521, 521, 555],
    [522, 521, 554],
    // MPI_FLOAT, MPI_DOUBLE and MPI_LONG_DOUBLE with an MPI_INT.
    [528, 521, 552],
    [532, 521, 553],
    [544, 521, 557],
    // Fortran's: two of MPI_REAL, MPI_DOUBLE_PRECISION and MPI_INTEGER.
    [538, 538, 560],
    [540, 540, 561],
    [537, 537, 562],
];

/// `MPI_Type_get_value_index`: the predefined type of such a pair, or `MPI_DATATYPE_NULL`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn type_get_value_index(
    value_type: Datatype,
    index_type: Datatype,
    place: PlaceOf<DatatypeHandle>,
) -> c_int {
    // SAFETY: `live` looks at both datatypes; the place is not null when it is written, and MPI demands that it is writable.
    unsafe {
        run(core::ptr::null_mut(), c"MPI_Type_get_value_index", || {
            let value = (*live(value_type, HandleKind::Datatype)?).standard;
            let index = (*live(index_type, HandleKind::Datatype)?).standard;
            if place.is_null() {
                return Err(class::ARG);
            }
            let pair = PAIRS.iter().find(|it| it[..2] == [value, index]);
            let null = abi::predefined::null_handle(HandleKind::Datatype);
            give(
                place,
                pair.map_or(null, |it| {
                    abi::predefined(HandleKind::Datatype, i32::from(it[2]))
                }),
            )
        })
    }
}

/// A new info with these pairs.
///
/// # Safety
/// Inside a stub; `place` must be null or writable.
unsafe fn give_info(place: PlaceOf<InfoHandle>, pairs: &[(&[u8], usize)]) -> Result<(), i32> {
    if place.is_null() {
        return Err(class::ARG);
    }
    let mut own = Pairs::new();
    for (key, size) in pairs {
        let text = CString::new(size.to_string()).map_err(|_| class::INTERN)?;
        own.set(key, text.as_bytes());
    }
    // SAFETY: the place is not null here, so it is writable, by the caller's promise.
    unsafe { give(place, info::create(own)) }
}

/// `MPI_Get_hw_resource_info`: this library knows nothing of hardware, and an application's knowledge of it would be wrong after a restart elsewhere.
///
/// # Safety
/// As the MPI function.
pub unsafe fn get_hw_resource_info(place: PlaceOf<InfoHandle>) -> c_int {
    // SAFETY: `give_info` refuses a null place.
    unsafe {
        run(core::ptr::null_mut(), c"MPI_Get_hw_resource_info", || {
            give_info(place, &[])
        })
    }
}

/// `MPI_Abi_get_info`: the widths of the integers of the application's ABI.
///
/// # Safety
/// As the MPI function.
pub unsafe fn abi_get_info(place: PlaceOf<InfoHandle>) -> c_int {
    // SAFETY: `give_info` refuses a null place, and any other is writable, as MPI demands.
    unsafe {
        run(core::ptr::null_mut(), c"MPI_Abi_get_info", || {
            give_info(
                place,
                &[
                    (b"mpi_aint_size", size_of::<Aint>()),
                    (b"mpi_count_size", size_of::<Count>()),
                    (b"mpi_offset_size", size_of::<Offset>()),
                ],
            )
        })
    }
}

/// `MPI_Abi_get_fortran_info`: empty, because no call of `MPI_Abi_set_fortran_info` has set anything.
///
/// # Safety
/// As the MPI function.
pub unsafe fn abi_get_fortran_info(place: PlaceOf<InfoHandle>) -> c_int {
    // SAFETY: `give` refuses a null place; the null info is a predefined object.
    unsafe {
        run(core::ptr::null_mut(), c"MPI_Abi_get_fortran_info", || {
            let null: *mut Object = abi::predefined(HandleKind::Info, standard::INFO_NULL);
            give(place, null)
        })
    }
}
