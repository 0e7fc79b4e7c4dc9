//! Incremental checkpoints: which blocks of memory have changed since the last epoch, and when it pays to look.
//!
//! The kernel tells which pages were written to, if it can ([`tracking`]). A page that was written to need not have changed, and of one that has changed
//! most bytes may be the same. So the bytes of these pages are hashed in smaller blocks, and only blocks with another hash than in
//! the last epoch are written. The terms and the model are those of Ferreira et al., "Accelerating incremental
//! checkpointing for extreme-scale computing" (Future Generation Computer Systems, 2013).
//!
//! Everything here is pure: no files, no clocks, no system calls. Whoever uses it brings the bytes and the pages' numbers.

#![forbid(unsafe_code)]

pub mod blocks;
pub mod tracking;
pub mod viability;
