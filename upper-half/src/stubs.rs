//! The exported functions: the generated ones, and their hand-written parts.

pub mod by_hand;
pub mod conversion;
pub mod counted;
pub mod crash;
#[cfg(not(application = "openmpi"))]
pub mod events;
#[cfg(not(application = "abi"))]
mod extensions;
pub mod files;
#[cfg(application = "openmpi")]
mod fortran;
#[cfg(application = "mpich")]
#[path = "stubs/layers.rs"]
mod fortran;
#[allow(clippy::let_and_return)] // Steps stand behind some calls and not behind others.
mod generated;
pub mod init;
#[cfg(not(application = "abi"))]
mod internals;
pub mod isendrecv;
#[cfg(not(application = "openmpi"))]
mod large;
pub mod later_standards;
#[cfg(application = "openmpi")]
mod layer_names;
#[cfg(not(application = "openmpi"))]
pub mod library_facts;
pub mod local;
pub mod mpi4_missing_in_openmpi;
#[cfg(application = "mpich")]
mod mpich;
#[cfg(not(application = "openmpi"))]
pub mod partitioned;
#[cfg(not(application = "openmpi"))]
pub mod session;
mod short;
pub mod steps;
pub mod uncarried;
