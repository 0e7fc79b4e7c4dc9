//! This rank's GPUs: whether it uses any, and how their memory comes into the rank's own, and back.
//!
//! The driver does that itself, asked by another process: the node's helper (`plugins/gpu/helper`). What is to be known of devices only the driver
//! knows; here stands who is asked for what, and who runs meanwhile.
//!
//! * [`arena`] - host memory of the helper's, in which bytes come and go
//! * [`client`] - the connection to the helper, which is started by who needs it first
//! * [`early`] - the helper is told that a checkpoint comes
//! * [`fitting`] - whether a node's devices can take what an image was written from; pure
//! * [`hashes`] - what is staged is hashed where it lies, and what of it is wanted
//! * [`held`] - how far the rank's devices have come in a checkpoint, and the way back from there
//! * [`returning`] - devices come back in a restart
//! * [`staged`] - what the helper has staged, on its way into the image
//! * [`wanted`] - which of these bytes are to come, and whether they have; pure
//! * [`traces`] - what of a driver can be seen in a process; pure but for reading it

pub mod arena;
pub mod client;
pub mod early;
pub mod fitting;
pub mod hashes;
pub mod held;
pub mod returning;
pub mod staged;
pub mod traces;
pub mod wanted;
