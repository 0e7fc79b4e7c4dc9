//! The pages of a process that exist, and those that have been written to, as the kernel reports them.
//!
//! * [`pagemap`] - pages that exist, that are the process's own, that were written to
//! * [`all_faults`] - lets the kernel report page faults, its own among them
//! * [`wp_async`] - lets the kernel keep track of writes
//! * [`offer`] - the mechanisms that this machine's kernel has, found out by trying them

pub mod all_faults;
pub mod offer;
pub mod pagemap;
pub mod wp_async;

pub use offer::{Offer, Unavailable, choose};
