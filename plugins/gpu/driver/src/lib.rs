//! The CUDA driver: `libcuda.so.1`, opened at run time, its functions looked up one by one, and safe wrappers around the used ones.
//!
//! If the installed driver lacks a function, only the calls that need it fail.
//!
//! * [`library`] - the library, and the lookup of functions
//! * [`devices`] - the node's devices
//! * [`context`] - a device's memory, streams and copies, for this process itself
//! * [`kernel`] - programs of a device, for this process itself
//! * [`checkpoint`] - locks, checkpoints, restores and unlocks another process
//! * [`storage`] - borrows another process's device memory meanwhile

pub mod checkpoint;
pub mod context;
pub mod devices;
pub mod kernel;
pub mod library;
pub mod storage;

pub use library::{Driver, Error, OpenError};
