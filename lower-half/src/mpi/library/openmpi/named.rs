//! A function that is looked up when it is called.

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::ffi::CString;

use super::abi;
use crate::ground::say;

/// A function by its name.
pub struct Named {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Named {
    pub const fn new(name: &'static CStr) -> Self {
        let found = AtomicPtr::new(null_mut());
        Self { name, found }
    }

    /// Returns its address, if the library has it, by its name or by the name that MPI-4 gave to a former extension.
    pub fn found(&self) -> Option<*const c_void> {
        let mut place = self.found.load(Relaxed);
        if place.is_null() {
            place = look_up(self.name);
            self.found.store(place, Relaxed);
        }
        (!place.is_null()).then_some(place.cast_const())
    }

    /// Reports that the library lacks the function. Returns the error code for that.
    #[cold]
    pub fn absent(&self) -> i32 {
        let name = self.name.to_string_lossy();
        say::line(format_args!("the MPI library has no {name}"));
        abi::ERR_UNSUPPORTED_OPERATION
    }
}

fn look_up(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends in NUL.
    let find = |name: &CStr| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    let found = find(name);
    let extension = name.to_bytes().strip_prefix(b"MPIX_");
    match extension.map(|rest| CString::new([b"MPI_", rest].concat())) {
        Some(Ok(standard)) if found.is_null() => find(&standard),
        _ => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_has_its_name_or_the_standards() {
        let place = |name| Named::new(name).found();
        assert!(place(c"MPIX_Barrier_init").is_some());
        // Open MPI 4.1 has only the standard's name.
        assert_eq!(place(c"MPIX_Type_vector"), place(c"MPI_Type_vector"));
        assert!(place(c"MPI_Type_vector").is_some());
        assert_eq!(place(c"MPI_No_such_function"), None);
    }
}
