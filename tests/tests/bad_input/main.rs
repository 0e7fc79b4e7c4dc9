//! Bad input of all kinds. Stillpoint must print one line with the problem and the remedy, use the documented exit
//! status, lose nothing and never hang.

mod another_mpi;
mod common;
mod epochs;
mod places;
mod programs;
mod requests;
