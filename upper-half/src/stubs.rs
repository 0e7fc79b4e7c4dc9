//! The exported functions: the generated ones, and their hand-written parts.

pub mod both;
pub mod by_hand;
pub mod conversion;
pub mod counted;
pub mod crash;
#[cfg(not(application = "openmpi"))]
pub mod events;
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
#[cfg(not(application = "openmpi"))]
mod large;
pub mod local;
#[cfg(application = "mpich")]
mod mpich;
pub mod newer;
pub mod newest;
#[cfg(not(application = "openmpi"))]
pub mod partitioned;
#[cfg(not(application = "openmpi"))]
pub mod session;
mod short;
pub mod steps;
#[cfg(not(application = "openmpi"))]
pub mod told;
pub mod uncarried;
