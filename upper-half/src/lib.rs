//! The library beside the application: stubs, virtual handles, requests, drained messages, recipes.
//!
//! The folders are floors: each imports from those above it in this list only (`tests/floors.rs`).

pub mod checkpoint;
pub mod communicators;
pub mod ground;
pub mod objects;
pub mod operations;
pub mod stubs;
pub mod windows;
