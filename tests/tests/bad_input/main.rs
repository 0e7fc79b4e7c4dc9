//! Whatever is wrong with what Stillpoint is given: one line that says what and what to do, the documented exit
//! status, nothing lost, nothing hanging.

mod another_mpi;
mod common;
mod epochs;
mod places;
mod programs;
mod requests;
