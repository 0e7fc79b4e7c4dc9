//! The destination of a checkpoint's image. The parts provide the contents, each in its turn. They do not know the destination, and it does
//! not know them: it takes bytes.

use std::path::Path;

use stillpoint_faults::{Point, strike};
use stillpoint_image::store::Store;
use stillpoint_protocol::agent::{Progress, Written};

/// The destination of one image.
pub trait Destination: Send {
    /// Opens the destination before anything is written. Returns the store that takes the bytes, or `None` for the file at the image's path
    /// alone.
    ///
    /// # Errors
    /// The text is for people.
    fn open(&mut self, path: &Path) -> Result<Option<Box<dyn Store>>, String>;

    /// Closes the destination when the image is whole. Returns the report to the coordinator.
    ///
    /// # Errors
    /// The text is for people; there will be no epoch.
    fn close(&mut self, path: &Path, written: Written) -> Result<Progress, String>;
}

/// The checkpoint directory: a file, synced.
pub struct InFile;

impl Destination for InFile {
    fn open(&mut self, _path: &Path) -> Result<Option<Box<dyn Store>>, String> {
        strike(Point::Write).map_err(|error| error.to_string())?;
        Ok(None)
    }

    fn close(&mut self, _path: &Path, written: Written) -> Result<Progress, String> {
        strike(Point::Written).map_err(|error| error.to_string())?;
        Ok(Progress::Written(written))
    }
}
