//! The internals of MPICH that its Fortran and C++ layers call directly, bound to our objects.
//!
//! Those layers belong to the application and stay as they are: almost all that they call is MPI, with handles that are numbers in every language. Names and
//! signatures are in `wrappers/abi/mpich.txt`. The exported functions are made from that (`internals.rs`), and call the functions here.

use std::ffi::{CStr, c_int, c_void};

use stillpoint_wrappers::gate::HandleKind;

use crate::ground::abi::{
    CommHandle, DatatypeHandle, ErrhandlerHandle, Handle, OpHandle, RequestHandle, WinHandle,
};
use crate::ground::description::internals;
use crate::ground::object::Object;
use crate::ground::{crossing, fortran, handle};
use crate::objects::attribute::store::{Language, STORE, Value};
use crate::objects::errhandler::{self, run};
use crate::objects::outcome::class;
use crate::objects::{attribute, operator};

/// The binding that a sort of values is of.
fn language(sort: c_int) -> Language {
    match sort {
        internals::ATTRIBUTE_IS_INTEGER => Language::FortranInteger,
        internals::ATTRIBUTE_IS_ADDRESS => Language::FortranAddress,
        _ => Language::C,
    }
}

/// A keyval's number in C. Predefined ones have the next number in Fortran.
fn in_c(number: c_int) -> c_int {
    const PREDEFINED: [c_int; 2] = [0x6440_0000, 0x6600_0000];
    match PREDEFINED.contains(&(number & !0xff)) && number % 2 == 0 {
        true => number - 1,
        false => number,
    }
}

/// # Safety
/// `object` must be null or a handle's; `value` a place for an address, `flag` writable.
unsafe fn get(
    object: *mut Object,
    kind: HandleKind,
    number: c_int,
    value: *mut c_void,
    flag: *mut c_int,
    sort: c_int,
    name: &'static CStr,
) -> c_int {
    // SAFETY: `valid` looks at the object; both places are writable, by the caller's promise, and `value` need not be aligned.
    unsafe {
        run(object, name, || {
            *flag = 0;
            if !handle::valid(object, kind) {
                return Err(class::ARG);
            }
            if let Some(found) = attribute::get(object, kind, in_c(number), language(sort))? {
                *flag = 1;
                value.cast::<isize>().write_unaligned(found);
            }
            Ok(())
        })
    }
}

/// # Safety
/// `object` must be null or a handle's.
unsafe fn set(
    object: *mut Object,
    kind: HandleKind,
    number: c_int,
    value: *mut c_void,
    sort: c_int,
    name: &'static CStr,
) -> c_int {
    // SAFETY: `valid` looks at the object; the value is only kept, and nothing is locked.
    unsafe {
        run(object, name, || {
            if !handle::valid(object, kind) {
                return Err(class::ARG);
            }
            let value = Value::new(language(sort), value as isize);
            attribute::set(object, kind, in_c(number), value, true)
        })
    }
}

macro_rules! attributes {
    ($($kind:ident $handle:ident: $get:ident $get_name:literal, $set:ident $set_name:literal;)*) => {$(
        /// An attribute, as a layer wants it.
        ///
        /// # Safety
        /// As MPICH's function.
        pub unsafe fn $get(
            object: $handle,
            number: c_int,
            value: *mut c_void,
            flag: *mut c_int,
            sort: c_int,
        ) -> c_int {
            // SAFETY: the layer passes a handle and two writable places, as MPICH's function demands; `get` looks at the object.
            unsafe { get(object.object(), HandleKind::$kind, number, value, flag, sort, $get_name) }
        }

        /// An attribute, set by a layer.
        ///
        /// # Safety
        /// As MPICH's function.
        pub unsafe fn $set(
            object: $handle,
            number: c_int,
            value: *mut c_void,
            sort: c_int,
        ) -> c_int {
            // SAFETY: the layer passes a handle, as MPICH's function demands, and `set` looks at the object; the value is only kept.
            unsafe { set(object.object(), HandleKind::$kind, number, value, sort, $set_name) }
        }
    )*};
}

attributes! {
    Communicator CommHandle: comm_get_attr c"MPI_Comm_get_attr", comm_set_attr c"MPI_Comm_set_attr";
    Datatype DatatypeHandle: type_get_attr c"MPI_Type_get_attr", type_set_attr c"MPI_Type_set_attr";
    Window WinHandle: win_get_attr c"MPI_Win_get_attr", win_set_attr c"MPI_Win_set_attr";
}

/// `MPII_Keyval_set_proxy`: the functions that call a keyval's functions.
///
/// # Safety
/// As MPICH's function.
pub unsafe fn keyval_set_proxy(number: c_int, copy: usize, delete: usize) {
    let _inside = crossing::enter();
    STORE.lock().set_proxies(number, [copy, delete]);
}

/// `MPII_Grequest_set_lang_f77`: the request's functions are Fortran's.
///
/// # Safety
/// As MPICH's function.
pub unsafe fn grequest_set_lang_f77(request: RequestHandle) {
    let (_inside, request) = (crossing::enter(), request.object());
    // SAFETY: `valid` looks at the request, which the layer has just made.
    unsafe {
        if handle::valid(request, HandleKind::Request) && !(*request).predefined() {
            fortran::note_fortran(request);
        }
    }
}

/// `MPII_Errhandler_set_cxx`: the function that calls the handler's function.
///
/// # Safety
/// As MPICH's function.
pub unsafe fn errhandler_set_cxx(handler: ErrhandlerHandle, function: usize) {
    let (_inside, handler) = (crossing::enter(), handler.object());
    // SAFETY: `valid` looks at the error handler, which the bindings have just made, so no other thread uses it yet.
    unsafe {
        if handle::valid(handler, HandleKind::Errhandler) && !(*handler).predefined() {
            errhandler::make_cxx(handler);
            fortran::note_cxx_handler(handler, function);
        }
    }
}

/// `MPII_Op_set_cxx`: the function that calls the operator's function.
///
/// # Safety
/// As MPICH's function.
pub unsafe fn op_set_cxx(operator: OpHandle, function: usize) {
    let (_inside, operator) = (crossing::enter(), operator.object());
    // SAFETY: `valid` looks at the operator, which the bindings have just made, so no other thread uses it yet.
    unsafe {
        if handle::valid(operator, HandleKind::Operator) && !(*operator).predefined() {
            operator::set_caller(operator, function);
        }
    }
}
