//! The CUDA driver, as we call it: `libcuda.so.1`, opened at run time, its functions looked up one by one, and safe wrappers around those that are used.
//!
//! A function that the installed driver does not have is an error of whoever needs it, and of nobody else.
//!
//! * [`library`] - the library, and how a function is found
//! * [`devices`] - what the node has
//! * [`context`] - a device's memory, streams and copies, for this process itself
//! * [`kernel`] - programs of a device, for this process itself
//! * [`checkpoint`] - another process is locked, checkpointed, restored, unlocked
//! * [`storage`] - another process's device memory is lent meanwhile

pub mod checkpoint;
pub mod context;
pub mod devices;
pub mod kernel;
pub mod library;
pub mod storage;

pub use library::{Driver, Error, OpenError};
