//! Why the blocks of an epoch cannot be gathered.

use std::io;

use stillpoint_image::ImageError;
use stillpoint_protocol::client::ClientError;
use stillpoint_refusals::Refusal;
use thiserror::Error;

/// The reason.
#[derive(Debug, Error)]
pub enum GatherError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("{0}")]
    Rejected(Refusal),
    #[error("the coordinator closed the connection")]
    Closed,
    #[error("{0}")]
    OwnAddress(io::Error),
    #[error("cannot serve other hosts: {0}")]
    Serve(io::Error),
    #[error("cannot get memory: {0}")]
    Memory(io::Error),
    #[error(transparent)]
    Image(#[from] ImageError),
}
