//! Tells the upper half that its process begins to use a GPU, so that from then on MPI calls may get addresses of a device's memory.
//!
//! NVIDIA's driver reserves the *device window* when it starts, before any such address exists. The gate sees that, sets [`IN_USE`] in
//! [`UpperHooks::long_way`](crate::gate::UpperHooks), and closes the shortest way for every thread. So a program without a GPU checks nothing on the shortest
//! way, and one with a GPU cannot miss it.

use core::ops::Range;

/// The addresses that the driver reserves.
pub const WINDOW: Range<usize> = 0x2_0000_0000..0x10_0000_0000;

/// The permanent reason for the long way: a bit that the count of the other reasons does not reach.
pub const IN_USE: u32 = 1 << 31;
