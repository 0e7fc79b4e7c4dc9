//! Predefined handles of any ABI.

use core::ffi::CStr;

use crate::gate::HandleKind;

/// A predefined handle of an ABI in which handles are addresses.
#[derive(Clone, Copy, Debug)]
pub struct Predefined {
    pub kind: HandleKind,
    /// Value in the MPI 5.0 standard's ABI; from 1024 on this project's own.
    pub standard: i32,
    /// MPI's name.
    pub name: &'static CStr,
    /// The data symbol whose address is the handle, and its size.
    pub symbol: &'static CStr,
    pub bytes: usize,
    /// The handle's number in Fortran.
    pub fortran: i32,
}

impl Predefined {
    /// Whether it is its kind's null handle.
    pub const fn is_null(&self) -> bool {
        self.standard == null_handle(self.kind)
    }

    /// The handle's number in Fortran.
    pub const fn number(&self) -> i32 {
        self.fortran
    }
}

/// A predefined handle of an ABI in which handles are numbers.
#[derive(Clone, Copy, Debug)]
pub struct Numbered {
    pub kind: HandleKind,
    /// As in [`Predefined`].
    pub standard: i32,
    /// MPI's name.
    pub name: &'static CStr,
    /// The handle, and its number in Fortran.
    pub value: i32,
}

impl Numbered {
    /// Whether it is its kind's null handle.
    pub const fn is_null(&self) -> bool {
        self.standard == null_handle(self.kind)
    }

    /// The handle's number in Fortran.
    pub const fn number(&self) -> i32 {
        self.value
    }
}

include!(concat!(env!("OUT_DIR"), "/null_handles.rs"));
