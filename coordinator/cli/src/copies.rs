//! The record of copies of GPUs' memory in a checkpoint directory, for commands that show what is in it.

use std::path::Path;

use stillpoint_directory::{Directory, RequiredOwner};
use stillpoint_gpu_plan::record::{LARGEST, NAME, Record};

/// Returns `None` if there is no record, or none that can be read.
pub fn record(directory: &Path) -> Option<Record> {
    let directory = Directory::open(directory, RequiredOwner::Anyones).ok()?;
    let text = directory.read(NAME, LARGEST).ok()?;
    Record::parse(&text).ok()
}
