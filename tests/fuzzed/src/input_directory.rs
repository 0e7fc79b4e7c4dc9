//! The directory of an input's files while it runs.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A directory that goes with its input.
pub struct InputDirectory(TempDir);

impl InputDirectory {
    /// Makes the directory in memory if there is such a file system, since its files are temporary.
    pub fn new() -> InputDirectory {
        let memory = Path::new("/dev/shm");
        let made = match memory.is_dir() {
            true => TempDir::new_in(memory),
            false => TempDir::new(),
        };
        InputDirectory(made.expect("a directory for the input"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file in it.
    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, bytes).expect("a file for the input");
        path
    }
}
