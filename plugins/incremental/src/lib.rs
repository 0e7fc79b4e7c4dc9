//! Incremental checkpoints: finds the blocks of memory that have changed since the last epoch, and predicts when this
//! pays.
//!
//! The kernel tells which pages were written to, if it can ([`tracking`]). A page that was written to may be unchanged, and in a changed page most bytes may be
//! the same. So the bytes of these pages are hashed in smaller blocks, and only blocks whose hash has changed since the last epoch are written. The terms and
//! the model are those of Ferreira et al., "Accelerating incremental checkpointing for extreme-scale computing" (Future Generation Computer Systems, 2013).
//!
//! Everything here is pure: no files, no clocks, no system calls. The caller brings the bytes and the pages' numbers.

#![forbid(unsafe_code)]

pub mod blocks;
pub mod tracking;
pub mod viability;
