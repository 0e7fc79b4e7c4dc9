//! Jobs whose ranks have memory on GPUs: checkpointed, suspended, restarted, given up, struck by faults. The GPUs are emulated (`tests/cuda`): a
//! driver in the programs, and devices in a process of their own.

#[path = "heat.rs"]
mod heat;
mod inside;
mod running;

mod buffers;
mod carried;
mod contexts;
mod habits;
mod hashed;
mod options;
mod phases;
mod programs;
mod refused;
mod staged;
mod struck;
mod troubled;
mod uncarried;
