//! The destination of a checkpoint's image. The parts provide the contents, each in its turn. They do not know the destination, and it does
//! not know them: it takes bytes.

use std::path::Path;

use stillpoint_faults::{Point, strike};
use stillpoint_image::store::Store;
use stillpoint_protocol::agent::{Progress, Written};
use stillpoint_refusals::{Refusal, refusal};

/// The destination of one image.
pub trait Destination: Send {
    /// Opens the destination before anything is written. Returns the store that takes the bytes, or `None` for the file at the image's path
    /// alone.
    ///
    /// # Errors
    /// The store cannot be opened.
    fn open(&mut self, path: &Path) -> Result<Option<Box<dyn Store>>, Refusal>;

    /// Closes the destination when the image is whole. Returns the report to the coordinator.
    ///
    /// # Errors
    /// The image is not kept; there will be no epoch.
    fn close(&mut self, path: &Path, written: Written) -> Result<Progress, Refusal>;
}

/// The checkpoint directory: a file, synced.
pub struct InFile;

impl Destination for InFile {
    fn open(&mut self, _path: &Path) -> Result<Option<Box<dyn Store>>, Refusal> {
        strike(Point::Write).map_err(|error| refusal!(FaultPoint, "{error}"))?;
        Ok(None)
    }

    fn close(&mut self, _path: &Path, written: Written) -> Result<Progress, Refusal> {
        strike(Point::Written).map_err(|error| refusal!(FaultPoint, "{error}"))?;
        Ok(Progress::Written(written))
    }
}
