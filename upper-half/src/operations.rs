//! Operations between ranks: collective operations and their clocks, messages, requests and their completion.

pub mod ahead;
#[cfg(not(application = "openmpi"))]
pub mod buffered;
pub mod clock;
pub mod completion;
pub mod devices;
pub mod direct;
pub mod grequest;
pub mod messages;
pub mod p2p;
pub mod persistent;
pub mod probe;
pub mod request;
pub mod synchronous;
