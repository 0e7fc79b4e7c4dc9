//! The exported functions: what the generator wrote, and what it calls that is written by hand.

pub mod by_hand;
pub mod conversion;
pub mod crash;
pub mod files;
#[cfg(application = "openmpi")]
mod fortran;
mod generated;
pub mod init;
#[cfg(application = "openmpi")]
mod internals;
pub mod local;
pub mod newer;
pub mod steps;
pub mod uncarried;
