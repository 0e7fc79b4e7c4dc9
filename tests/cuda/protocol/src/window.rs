//! The device window: the range of addresses that the driver reserves in every client, and its layout.

/// The beginning of the window.
pub const START: u64 = 0x2_0000_0000;
/// The end of the window.
pub const END: u64 = 0x10_0000_0000;
/// The page by which another process finds the client.
pub const PAGE: u64 = START;
/// The memory shared with the device, while there is a connection.
pub const CHANNEL: u64 = START + 0x1_0000;
/// Device memory.
pub const DEVICE: std::ops::Range<u64> = START + 0x40_0000..0xC_0000_0000;
/// Managed memory.
pub const MANAGED: std::ops::Range<u64> = 0xC_0000_0000..0xE_0000_0000;
/// Pinned host memory.
pub const PINNED: std::ops::Range<u64> = 0xE_0000_0000..END;
