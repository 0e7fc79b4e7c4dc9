//! What both halves of the process share: the neutral form of MPI values, the layout of the gate
//! page, the dispatch table, and the one table of MPI functions that the stubs are generated from.
//!
//! This crate does not know how anything is checkpointed.
#![cfg_attr(not(any(test, feature = "generator")), no_std)]

#[cfg(any(test, feature = "generator"))]
pub mod constants;
pub mod contract;
pub mod direct;
pub mod dispatch;
#[cfg(any(test, feature = "generator"))]
pub mod emit;
pub mod extra;
pub mod gate;
pub mod neutral;
pub mod openmpi;
#[cfg(any(test, feature = "generator"))]
pub mod table;
