//! Names that programs and layers for Fortran and C++ need of Open MPI's library besides functions of MPI.

mod addresses;
mod callbacks;
mod objects;
mod strings;

use core::cell::UnsafeCell;

/// Data that layers and programs write to, under the library's own name.
#[repr(transparent)]
struct Shared<T>(UnsafeCell<T>);

// SAFETY: this library does not touch the value; those that do, order their accesses as with the library's own.
unsafe impl<T> Sync for Shared<T> {}
