//! Functions of attributes that a layer of the application's MPI calls: those of Fortran and of C++ under MPICH's ABI.
//!
//! For a keyval, the layer names a function that calls its functions (`MPII_Keyval_set_proxy`). That function gets the value itself, and how it was set.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use super::store::{Attribute, Keyval, Value};
use crate::ground::fortran;
use crate::ground::object::Object;

/// `(function, handle, keyval, extra state, sort, value, place for the copy, flag)`.
type Copy =
    unsafe extern "C" fn(usize, c_int, c_int, usize, c_int, isize, *mut isize, *mut c_int) -> c_int;
/// `(function, handle, keyval, sort, value, extra state)`.
type Delete = unsafe extern "C" fn(usize, c_int, c_int, c_int, isize, usize) -> c_int;

/// How a value was set (`MPIR_Attr_type`).
fn sort(value: &Value) -> c_int {
    match value {
        Value::Pointer(_) => 0,
        Value::Address(_) => 1,
        Value::Integer(_) => 3,
    }
}

/// An attribute that is about to be copied by its keyval's proxy.
pub struct Proxied {
    proxy: usize,
    number: i32,
    value: Value,
}

impl Proxied {
    /// Returns the attribute in this form, if its keyval has a proxy and a function.
    pub fn copying(attribute: &Attribute) -> Option<Self> {
        let keyval = &attribute.keyval;
        let proxy = keyval.proxies[0].load(Ordering::Relaxed);
        (proxy != 0 && keyval.copy != 0).then(|| Self {
            proxy,
            number: attribute.number,
            value: attribute.value.like(attribute.value.raw()),
        })
    }

    /// Returns the value for the copy of `object`.
    ///
    /// # Safety
    /// As `callback::copy`.
    pub unsafe fn copy(self, keyval: &Keyval, object: *mut Object) -> Result<Option<Value>, i32> {
        let (mut new, mut flag) = (0, 0);
        // SAFETY: the layer gave this function for this use.
        let error = unsafe {
            let copy: Copy = std::mem::transmute(self.proxy);
            copy(
                keyval.copy,
                fortran::to_fortran(object),
                self.number,
                keyval.extra,
                sort(&self.value),
                self.value.raw(),
                &raw mut new,
                &raw mut flag,
            )
        };
        match error {
            0 => Ok((flag != 0).then(|| self.value.like(new))),
            error => Err(error),
        }
    }
}

/// Tells the application by its keyval's proxy that an attribute goes. Returns the application's error, or `None` if there is no proxy.
///
/// # Safety
/// As `callback::delete`.
pub unsafe fn delete(attribute: &Attribute, object: *mut Object) -> Option<c_int> {
    let keyval = &*attribute.keyval;
    let proxy = keyval.proxies[1].load(Ordering::Relaxed);
    (proxy != 0).then(|| {
        // SAFETY: the layer gave this function for this use.
        unsafe {
            let delete: Delete = std::mem::transmute(proxy);
            let (value, number) = (&attribute.value, attribute.number);
            let handle = fortran::to_fortran(object);
            delete(
                keyval.delete,
                handle,
                number,
                sort(value),
                value.raw(),
                keyval.extra,
            )
        }
    })
}
