//! Staging by GPUs in virtual time.

mod blocking;
mod figures;
mod staging;
mod virtual_device;
mod wanted;
