//! What Open MPI's Fortran layer finds in our objects, and the numbers it knows them by.
//!
//! The application's own copy of Open MPI's Fortran library works on our handles as it would on Open
//! MPI's. Almost everything goes through `PMPI_` functions, which are ours; a few fields it reads and writes
//! itself. They lie outside the head of an [`Object`](crate::ground::object::Object) and are laid out by
//! [`mirror`]. Offsets are Open MPI 4.1's on x86-64 (the same in 4.0; its ABI is fixed within the 40.x
//! library version). Of other ABIs' objects no layer knows anything (`unseen.rs`).

#[cfg(application = "openmpi")]
mod mirror;
#[cfg(not(application = "openmpi"))]
#[path = "fortran/unseen.rs"]
mod mirror;
mod numbers;

pub use mirror::{call_cxx_handler, is_in_c, mirror, mirror_groups, takes_fortran};
pub use numbers::{forget, from_fortran, predefine, to_fortran};
