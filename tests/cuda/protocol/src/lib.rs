//! The common parts of the emulated driver (a library in each client) and the emulated device (a process of its own): the
//! folder of a node's devices, the messages, the memory that both map, and the page by which another process finds a
//! client.

pub mod channel;
pub mod clock;
pub mod description;
pub mod fault;
pub mod futex;
pub mod message;
pub mod page;
pub mod window;

/// The environment variable that tells the driver which folder holds the node's devices.
pub const VARIABLE: &str = "EMULATED_GPU";

/// The named pipe in the folder by which a client announces itself, as the real control device is a file in `/dev`.
pub const CONTROL: &str = "nvidiactl";

/// The description of the node, in the folder.
pub const DESCRIPTION: &str = "description.toml";

/// The folder for faults that are injected while the devices run: one file for each, named like the fault.
pub const FAULTS: &str = "faults";

/// Returns the names of a client's three files in the folder.
pub fn files(client: &str) -> [String; 3] {
    ["request", "reply", "channel"].map(|part| format!("{client}.{part}"))
}
