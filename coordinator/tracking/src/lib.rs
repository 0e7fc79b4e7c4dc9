//! Which pages of a process exist, and which of them have been written to, as its kernel tells.
//!
//! * [`pagemap`] - pages that exist, that are the process's own, that were written to
//! * [`all_faults`] - has the kernel tell of page faults, its own among them
//! * [`wp_async`] - has the kernel keep track of writes
//! * [`offer`] - what the kernel of this machine can do, found out by trying it

pub mod all_faults;
pub mod offer;
pub mod pagemap;
pub mod wp_async;

pub use offer::{Offer, Unavailable, choose};
