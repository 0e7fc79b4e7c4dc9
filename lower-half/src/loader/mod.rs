//! Brings a program into the arena: its segments, its interpreter's, its stack, its vDSO.

pub mod map;
pub mod needed;
pub mod stack;
pub mod vdso;
