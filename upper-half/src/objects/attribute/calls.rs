//! The functions that make keyvals, and set, get and delete attributes.

use std::ffi::{CStr, c_int, c_void};

use std::sync::atomic::AtomicBool;

use stillpoint_wrappers::gate::HandleKind;

use super::store::{Keyval, Language, STORE, Value};
use crate::ground::abi::{
    self, CommCopyAttrFunction, CommDeleteAttrFunction, CopyFunction, DeleteFunction,
    TypeCopyAttrFunction, TypeDeleteAttrFunction, WinCopyAttrFunction, WinDeleteAttrFunction,
};
use crate::ground::object::{Comm, Datatype, Object, Win};
use crate::objects::errhandler::run;
use crate::objects::outcome::{address, class, give, live, name};

/// # Safety
/// As the MPI function of that name.
unsafe fn create(keyval: Keyval, place: *mut c_int, name: &'static CStr) -> c_int {
    // SAFETY: `give` refuses a null place, and any other is writable, as MPI demands.
    unsafe {
        run(std::ptr::null_mut(), name, || {
            if (keyval.copy == 0 || keyval.delete == 0) && !abi::NULL_FUNCTIONS {
                return Err(class::ARG);
            }
            give(place, STORE.lock().add(keyval))
        })
    }
}

/// # Safety
/// As the MPI function of that name.
unsafe fn free(kind: HandleKind, place: *mut c_int, name: &'static CStr) -> c_int {
    // SAFETY: the place is not null when it is read, and MPI demands that it holds a keyval.
    unsafe {
        run(std::ptr::null_mut(), name, || {
            if place.is_null() || !STORE.lock().remove(kind, *place) {
                return Err(class::OTHER);
            }
            give(place, abi::KEYVAL_INVALID)
        })
    }
}

/// A keyval number that names nothing is a different error from one that names a keyval of another kind, or
/// of none any more.
fn plausible(number: c_int) -> Result<(), i32> {
    if number == abi::KEYVAL_INVALID {
        return Err(class::KEYVAL);
    }
    Ok(())
}

/// # Safety
/// As the MPI function of that name.
unsafe fn set(
    object: *mut Object,
    kind: HandleKind,
    number: c_int,
    value: *mut c_void,
    name: &'static CStr,
) -> c_int {
    // SAFETY: `live` looks at the object; the value is only kept, and nothing is locked.
    unsafe {
        run(object, name, || {
            let object = live(object, kind)?;
            let value = Value::new(Language::C, value as isize);
            super::set(object, kind, number, value, true)
        })
    }
}

/// # Safety
/// As the MPI function of that name.
unsafe fn get(
    object: *mut Object,
    kind: HandleKind,
    number: c_int,
    value: *mut c_void,
    flag: *mut c_int,
    name: &'static CStr,
) -> c_int {
    // SAFETY: `live` looks at the object; neither place is null when it is written, and MPI demands that `value` is the address of a pointer.
    unsafe {
        run(object, name, || {
            let object = live(object, kind)?;
            if value.is_null() || flag.is_null() {
                return Err(class::ARG);
            }
            plausible(number)?;
            let found = super::get(object, kind, number, Language::C)?;
            *flag = c_int::from(found.is_some());
            if let Some(found) = found {
                value.cast::<isize>().write_unaligned(found);
            }
            Ok(())
        })
    }
}

/// # Safety
/// As the MPI function of that name.
unsafe fn delete(
    object: *mut Object,
    kind: HandleKind,
    number: c_int,
    name: &'static CStr,
) -> c_int {
    // SAFETY: `live` looks at the object, and nothing is locked, so the delete function may call MPI.
    unsafe {
        run(object, name, || {
            super::delete(live(object, kind)?, kind, number)
        })
    }
}

/// Writes the five functions of one kind of object.
macro_rules! of_kind {
    ($kind:ident, $handle:ty, $copy:ty, $delete_fn:ty;
     $create:ident $create_name:literal, $free:ident $free_name:literal,
     $set:ident $set_name:literal, $get:ident $get_name:literal,
     $delete:ident $delete_name:literal) => {
        #[doc = concat!("`", $create_name, "`.")]
        ///
        /// # Safety
        /// As the MPI function.
        pub unsafe fn $create(
            copy: $copy,
            delete: $delete_fn,
            place: *mut c_int,
            extra: *mut c_void,
        ) -> c_int {
            let keyval = Keyval {
                kind: HandleKind::$kind,
                language: Language::C,
                copy: address(copy),
                delete: address(delete),
                extra: extra as usize,
                predefined: false,
                freed: AtomicBool::new(false),
                proxies: Keyval::no_proxies(),
            };
            // SAFETY: the functions have the types that MPI asks for; `create` refuses a null place.
            unsafe { create(keyval, place, name(concat!($create_name, "\0"))) }
        }

        #[doc = concat!("`", $free_name, "`.")]
        ///
        /// # Safety
        /// As the MPI function.
        pub unsafe fn $free(place: *mut c_int) -> c_int {
            // SAFETY: `free` refuses a null place.
            unsafe { free(HandleKind::$kind, place, name(concat!($free_name, "\0"))) }
        }

        #[doc = concat!("`", $set_name, "`.")]
        ///
        /// # Safety
        /// As the MPI function.
        pub unsafe fn $set(object: $handle, keyval: c_int, value: *mut c_void) -> c_int {
            // SAFETY: `set` looks at the object; the value is only kept.
            unsafe {
                set(
                    object,
                    HandleKind::$kind,
                    keyval,
                    value,
                    name(concat!($set_name, "\0")),
                )
            }
        }

        #[doc = concat!("`", $get_name, "`.")]
        ///
        /// # Safety
        /// As the MPI function.
        pub unsafe fn $get(
            object: $handle,
            keyval: c_int,
            value: *mut c_void,
            flag: *mut c_int,
        ) -> c_int {
            let name = name(concat!($get_name, "\0"));
            // SAFETY: `get` looks at the object; MPI demands a place for a pointer and a writable flag.
            unsafe { get(object, HandleKind::$kind, keyval, value, flag, name) }
        }

        #[doc = concat!("`", $delete_name, "`.")]
        ///
        /// # Safety
        /// As the MPI function.
        pub unsafe fn $delete(object: $handle, keyval: c_int) -> c_int {
            // SAFETY: `delete` looks at the object before its attribute goes.
            unsafe {
                delete(
                    object,
                    HandleKind::$kind,
                    keyval,
                    name(concat!($delete_name, "\0")),
                )
            }
        }
    };
}

of_kind!(Communicator, Comm, CommCopyAttrFunction, CommDeleteAttrFunction;
    comm_create_keyval "MPI_Comm_create_keyval",
    comm_free_keyval "MPI_Comm_free_keyval",
    comm_set_attr "MPI_Comm_set_attr",
    comm_get_attr "MPI_Comm_get_attr",
    comm_delete_attr "MPI_Comm_delete_attr");
of_kind!(Communicator, Comm, CopyFunction, DeleteFunction;
    keyval_create "MPI_Keyval_create",
    keyval_free "MPI_Keyval_free",
    attr_put "MPI_Attr_put",
    attr_get "MPI_Attr_get",
    attr_delete "MPI_Attr_delete");
of_kind!(Datatype, Datatype, TypeCopyAttrFunction, TypeDeleteAttrFunction;
    type_create_keyval "MPI_Type_create_keyval",
    type_free_keyval "MPI_Type_free_keyval",
    type_set_attr "MPI_Type_set_attr",
    type_get_attr "MPI_Type_get_attr",
    type_delete_attr "MPI_Type_delete_attr");
of_kind!(Window, Win, WinCopyAttrFunction, WinDeleteAttrFunction;
    win_create_keyval "MPI_Win_create_keyval",
    win_free_keyval "MPI_Win_free_keyval",
    win_set_attr "MPI_Win_set_attr",
    win_get_attr "MPI_Win_get_attr",
    win_delete_attr "MPI_Win_delete_attr");
