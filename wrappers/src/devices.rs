//! How the upper half learns that its process begins to use a GPU, and that MPI calls may be given addresses of a device's memory from then on.
//!
//! NVIDIA's driver reserves the *device window* when it starts, before there is any such address. The gate sees that, sets [`IN_USE`] in
//! [`UpperHooks::long_way`](crate::gate::UpperHooks), and closes the shortest way for every thread. So a program without a GPU
//! has nothing to look at on the shortest way, and one with a GPU cannot miss it.

use core::ops::Range;

/// Where the driver reserves addresses.
pub const WINDOW: Range<usize> = 0x2_0000_0000..0x10_0000_0000;

/// The reason for the long way that is never taken back: a bit that no count of the others gets at.
pub const IN_USE: u32 = 1 << 31;
