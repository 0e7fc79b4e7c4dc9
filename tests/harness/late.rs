//! A slow directory: a file system of its own, in a file, which is frozen for a while. Reads go on; a process that makes, writes, renames or syncs
//! files there waits until it is thawed. Needs root.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Failed, command, ensure};

/// The size of the file system, enough for some small epochs.
const BYTES: u64 = 400 << 20;

/// A slow directory, which is thawed and removed with the test.
#[derive(Debug)]
pub struct Late {
    path: PathBuf,
}

fn done(program: &str, words: &[&str]) -> Result<(), Failed> {
    let mut command = Command::new(program);
    command.args(words);
    let said = command.output();
    let said = said.map_err(|error| format!("{}: {error}", command::describe(&command)))?;
    ensure!(
        said.status.success(),
        "{}: {}",
        command::describe(&command),
        String::from_utf8_lossy(&said.stderr)
    );
    Ok(())
}

impl Late {
    /// Makes one in a directory.
    pub fn new(directory: &Path) -> Result<Late, Failed> {
        let (image, path) = (directory.join("late.img"), directory.join("late"));
        let failed = |error: std::io::Error| format!("{}: {error}", image.display());
        fs::create_dir(&path).map_err(failed)?;
        let file = File::create(&image).map_err(failed)?;
        file.set_len(BYTES).map_err(failed)?;
        let (image, at) = (image.to_string_lossy(), path.to_string_lossy());
        done("mkfs.ext4", &["-q", "-F", &image])?;
        done("mount", &["-o", "loop", &image, &at])?;
        Ok(Late { path })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Freezes it: no file changes until it is thawed.
    pub fn freeze(&self) -> Result<(), Failed> {
        done("fsfreeze", &["--freeze", &self.path.to_string_lossy()])
    }

    /// Thaws it: waiting operations complete.
    pub fn thaw(&self) -> Result<(), Failed> {
        done("fsfreeze", &["--unfreeze", &self.path.to_string_lossy()])
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        // It may not be frozen. A process with a file open there lets go of it later.
        let _ = self.thaw();
        let _ = done("umount", &["--lazy", &self.path.to_string_lossy()]);
    }
}
