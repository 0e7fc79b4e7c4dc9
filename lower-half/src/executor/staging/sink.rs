//! One of the places that an image's blocks go to: this node's fast tier, the slow tier, or a peer's fast tier.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stillpoint_faults::{Point, strike};
use stillpoint_protocol::peer::{Peer, PeerError, Request};

use super::error::StagingError;
use super::held::ImageId;
use super::{PATIENCE, StagingState};
use crate::ground::disk;

/// A stretch of an image on its way.
#[derive(Clone, Debug)]
pub struct Block {
    pub offset: u64,
    pub bytes: Arc<[u8]>,
    /// Whether it is a second copy.
    pub copy: bool,
}

/// Takes blocks, one after the other.
pub trait Sink: Send {
    fn write(&mut self, block: &Block) -> Result<(), StagingError>;

    /// Returns when every block lasts in its place.
    fn finish(&mut self, image_bytes: u64) -> Result<(), StagingError>;
}

/// This node's fast tier.
pub struct Local {
    pub shared: Arc<StagingState>,
    pub file: File,
    pub image: ImageId,
}

impl Local {
    pub fn open(shared: &Arc<StagingState>, image: ImageId) -> Result<Local, StagingError> {
        let file = shared.held.create(image);
        Ok(Local {
            file: file.map_err(|error| shared.fast_failed(error))?,
            shared: Arc::clone(shared),
            image,
        })
    }
}

impl Sink for Local {
    fn write(&mut self, block: &Block) -> Result<(), StagingError> {
        self.shared.fast.wait(block.bytes.len());
        let held = &self.shared.held;
        let (file, image, copy) = (&self.file, self.image, block.copy);
        strike(Point::FastWrite)
            .and_then(|()| held.keep(file, image, block.offset, &block.bytes, copy))
            .map_err(|error| self.shared.fast_failed(error))
    }

    fn finish(&mut self, _image_bytes: u64) -> Result<(), StagingError> {
        strike(Point::FastSync)
            .and_then(|()| self.file.sync_data())
            .map_err(|error| self.shared.fast_failed(error))
    }
}

/// The slow tier: the image itself, with holes.
pub struct Slow {
    shared: Arc<StagingState>,
    path: PathBuf,
    file: File,
}

impl Slow {
    pub fn create(shared: &Arc<StagingState>, path: &Path) -> Result<Slow, StagingError> {
        let file = strike(Point::SlowCreate)
            .and_then(|()| stillpoint_directory::create(path))
            .map_err(StagingError::file(path, "create the image"))?;
        Ok(Slow {
            shared: Arc::clone(shared),
            path: path.to_owned(),
            file,
        })
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> StagingError {
        StagingError::file(&self.path, "write the image")
    }
}

impl Sink for Slow {
    fn write(&mut self, block: &Block) -> Result<(), StagingError> {
        self.shared.slow.wait(block.bytes.len());
        strike(Point::SlowWrite)
            .and_then(|()| disk::write(&self.file, &block.bytes, block.offset))
            .map_err(self.failed())
    }

    fn finish(&mut self, image_bytes: u64) -> Result<(), StagingError> {
        strike(Point::SlowSync)
            .and_then(|()| self.file.set_len(image_bytes))
            .and_then(|()| self.file.sync_all())
            .map_err(self.failed())
    }
}

/// Another node's fast tier.
pub struct Remote {
    shared: Arc<StagingState>,
    peer: Peer,
    image: ImageId,
    address: String,
}

impl Remote {
    pub fn open(
        shared: &Arc<StagingState>,
        image: ImageId,
        address: &str,
    ) -> Result<Remote, StagingError> {
        strike(Point::PeerOpen).map_err(|source| PeerError::Unreachable {
            address: address.to_owned(),
            source,
        })?;
        Ok(Remote {
            peer: Peer::open(address, &shared.terms, PATIENCE)?,
            shared: Arc::clone(shared),
            image,
            address: address.to_owned(),
        })
    }

    fn failed(&self, source: PeerError) -> StagingError {
        StagingError::PeerRefused {
            address: self.address.clone(),
            source,
        }
    }
}

impl Sink for Remote {
    fn write(&mut self, block: &Block) -> Result<(), StagingError> {
        self.shared.sends.wait(block.bytes.len());
        let request = Request::Put {
            attempt: self.image.attempt,
            epoch: self.image.epoch,
            rank: self.image.rank,
            offset: block.offset,
            bytes: block.bytes.len() as u32,
            copy: block.copy,
        };
        strike(Point::PeerSend).map_err(StagingError::FaultPoint)?;
        self.peer
            .send(&request, &block.bytes)
            .map_err(|error| self.failed(error))
    }

    fn finish(&mut self, _image_bytes: u64) -> Result<(), StagingError> {
        strike(Point::PeerClose).map_err(StagingError::FaultPoint)?;
        self.peer
            .close()
            .map(drop)
            .map_err(|error| self.failed(error))
    }
}
