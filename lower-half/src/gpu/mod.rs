//! This rank's GPUs: whether it uses any, and how their memory comes into the rank's own, and back.
//!
//! The driver moves the memory itself, at the request of another process, the node's helper (`plugins/gpu/helper`). Only the driver knows the state of the
//! devices; this module decides what the helper is asked for and which threads run meanwhile.
//!
//! * [`arena`] - host memory of the helper's, in which bytes come and go
//! * [`client`] - the connection to the helper, which the first rank that needs it starts
//! * [`early`] - tells the helper early that a checkpoint comes
//! * [`fitting`] - whether a node's devices can take what an image was written from; pure
//! * [`hashes`] - hashing of staged memory where it lies, and the choice of what comes
//! * [`held`] - how far the rank's devices have come in a checkpoint, and the way back from there
//! * [`returning`] - devices come back in a restart
//! * [`staged`] - what the helper has staged, on its way into the image
//! * [`remaining_ranges`] - which of these bytes are to come, and whether they have; pure
//! * [`traces`] - traces of a driver in a process; pure except for reading them

pub mod arena;
pub mod client;
pub mod early;
pub mod fitting;
pub mod hashes;
pub mod held;
pub mod remaining_ranges;
pub mod returning;
pub mod staged;
pub mod traces;
