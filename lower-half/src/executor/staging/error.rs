//! Why an image cannot be staged, or its blocks cannot be copied to the slow tier.

use std::io;
use std::path::{Path, PathBuf};

use stillpoint_ids::Rank;
use stillpoint_protocol::peer::PeerError;
use thiserror::Error;

/// The reason.
#[derive(Debug, Error)]
pub enum StagingError {
    #[error("{} on {host}: {source}", path.display())]
    FastTier {
        path: PathBuf,
        host: String,
        source: io::Error,
    },
    #[error("{}: cannot {action}: {source}", path.display())]
    File {
        path: PathBuf,
        action: &'static str,
        source: io::Error,
    },
    #[error("{}: the fast tier has lost the block at offset {offset}", path.display())]
    LostBlock { path: PathBuf, offset: u64 },
    #[error(transparent)]
    Unreachable(#[from] PeerError),
    #[error("the peer at {address} did not take a block: {source}")]
    PeerRefused { address: String, source: PeerError },
    #[error("the other ranks' tiers are not known")]
    UnknownPeers,
    #[error("the plan names an unknown rank: {0}")]
    UnknownRank(Rank),
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    #[error("{0}")]
    FaultPoint(io::Error),
    #[error("given up")]
    GivenUp,
}

impl StagingError {
    /// An error of a file, and what was tried.
    pub fn file(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> StagingError {
        let path = path.to_owned();
        move |source| StagingError::File {
            path,
            action,
            source,
        }
    }
}
