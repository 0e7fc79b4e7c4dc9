//! Where the image of a checkpoint goes. What is in it the parts say, each in its turn; they do not know the destination, and the destination
//! knows none of them: it takes bytes.

use std::path::Path;

use stillpoint_faults::{Point, strike};
use stillpoint_image::store::Store;
use stillpoint_protocol::agent::{Progress, Written};

/// The destination of one image.
pub trait Destination: Send {
    /// Opens it, before anything is written. What is to take the bytes; `None`: the file at the image's path, and no other.
    ///
    /// # Errors
    /// In words for people.
    fn open(&mut self, path: &Path) -> Result<Option<Box<dyn Store>>, String>;

    /// The image is whole: what the coordinator is told.
    ///
    /// # Errors
    /// In words for people: there will be no epoch.
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
