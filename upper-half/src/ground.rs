//! The ground floor: the processor, memory, objects and their handles, the application's ABI, and the way down to the lower half.

/// The description of the ABI that this library is built for (`build/first.rs` says which).
#[cfg(application = "abi")]
pub use stillpoint_wrappers::abi as description;
#[cfg(application = "mpich")]
pub use stillpoint_wrappers::mpich as description;
#[cfg(application = "openmpi")]
pub use stillpoint_wrappers::openmpi as description;

pub mod abi;
pub mod allocator;
pub mod arch;
pub mod crossing;
pub mod export;
pub mod fortran;
pub mod handle;
pub mod hindrances;
pub mod hooks;
pub mod keeps;
pub mod lock;
pub mod narrow;
pub mod object;
pub mod own_code;
pub mod shared;
pub mod upward_calls;
