//! The common part of both halves of the process: the neutral form of MPI values, the layout of the gate page, and the dispatch table.
//!
//! This crate does not know how anything is checkpointed.
#![cfg_attr(not(test), no_std)]

#[cfg(test)]
#[macro_use]
mod conversions;

pub mod abi;
pub mod clocks;
pub mod contract;
pub mod devices;
pub mod direct;
pub mod dispatch;
pub mod extra;
pub mod found;
pub mod gate;
pub mod gpu_queries;
pub mod lengths;
pub mod mpich;
pub mod neutral;
pub mod openmpi;
pub mod predefined;
pub mod standard;
