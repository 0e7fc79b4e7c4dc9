//! The fields that Open MPI's Fortran layer finds in our objects, and the numbers by which it knows the objects.
//!
//! The application's own copy of Open MPI's Fortran library works on our handles as it would on Open MPI's. Almost everything goes through `PMPI_` functions,
//! which are ours. The library reads and writes a few fields itself. They lie outside the head of an [`Object`](crate::ground::object::Object) and are laid out
//! by [`mirror`]. Offsets are Open MPI 4.1's on x86-64 (the same in 4.0; its ABI is fixed within the 40.x library version). MPICH's layers call functions to
//! have something noted (`noted.rs`); no layer knows anything of the objects of the standard's ABI (`unseen.rs`).

#[cfg(application = "openmpi")]
mod mirror;
#[cfg(application = "mpich")]
#[path = "fortran/noted.rs"]
mod mirror;
#[cfg(application = "abi")]
#[path = "fortran/unseen.rs"]
mod mirror;
mod numbers;

pub use mirror::{
    call_cxx_handler, call_cxx_operator, is_in_c, mirror, mirror_groups, takes_fortran,
};
#[cfg(application = "mpich")]
pub use mirror::{note_cxx_handler, note_fortran};
pub use numbers::{forget, from_fortran, predefine, to_fortran};
