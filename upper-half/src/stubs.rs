//! The exported functions: what the generator wrote, and what it calls that is written by hand.

pub mod calls;
pub mod conversion;
pub mod crash;
pub mod foreign;
mod fortran;
mod generated;
pub mod init;
pub mod local;
pub mod pass;
