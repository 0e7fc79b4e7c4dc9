//! Ranks without applications, and jobs of them.

mod agent;
mod image;
mod job;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use stillpoint_coordinator::fence::Fence;
use stillpoint_coordinator::log::Log;
use stillpoint_coordinator::server::InDirectory;
use stillpoint_directory::{Directory, RequiredOwner};

pub use agent::{Agent, Character, End};
pub use image::Builds;
pub use job::Job;

/// The longest time for an answer.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Records of the coordinator's own kind, in its directory.
pub fn in_directory(directory: &Path) -> (InDirectory, Arc<Fence>) {
    let directory = held(directory);
    let log = Log::open(&directory).unwrap();
    let fence = Arc::new(Fence::default());
    (InDirectory::new(directory, log, Arc::clone(&fence)), fence)
}

/// Holds a directory of ours.
pub fn held(directory: &Path) -> Directory {
    Directory::open(directory, RequiredOwner::Ours).unwrap()
}

/// The names in a directory, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
