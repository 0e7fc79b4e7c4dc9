//! Paths: the project, the binaries, and a directory for each test.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Failed;

/// Returns the project's root.
pub fn project() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests).to_owned()
}

/// Returns the programs' sources.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")
}

/// Returns Cargo's target directory: the one that this very test runs from.
pub fn target() -> PathBuf {
    // target/PROFILE/deps/programs-0123456789abcdef
    let this = env::current_exe().unwrap_or_default();
    match this.ancestors().nth(3) {
        Some(target) if target.join("CACHEDIR.TAG").exists() => target.to_owned(),
        _ => project().join("target"),
    }
}

/// Returns the directory of the binaries under test: `STILLPOINT_TEST_BINARIES`, else `target/release`.
pub fn binaries() -> PathBuf {
    env::var_os("STILLPOINT_TEST_BINARIES").map_or_else(|| target().join("release"), PathBuf::from)
}

/// Returns the `stillpoint` command.
pub fn stillpoint() -> Result<PathBuf, Failed> {
    let command = binaries().join("stillpoint");
    for needed in [
        "stillpoint",
        "stillpoint-lower-openmpi",
        "libstillpoint_upper_openmpi.so",
        "libstillpoint_preload.so",
    ] {
        crate::ensure!(
            binaries().join(needed).exists(),
            "{} is missing: run `cargo build --release --workspace` first",
            binaries().join(needed).display()
        );
    }
    Ok(command)
}

/// A new directory for one test. It is removed with the test, unless the test failed or `STILLPOINT_TEST_KEEP=1` is
/// set.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    epochs: PathBuf,
    keep: bool,
}

impl Directory {
    /// Makes a new directory whose name begins with `name`.
    pub fn new(name: &str) -> Result<Directory, Failed> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = name.replace(
            |c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_',
            "-",
        );
        let name = format!("{name}-{}-{count}", process::id());
        Directory::at(target().join("trials").join(&name), &name)
    }

    /// Makes a directory at a fixed path, which stays. Its epochs are in the usual place.
    pub fn staying(path: PathBuf) -> Result<Directory, Failed> {
        let name = format!("staying-{}", process::id());
        let mut directory = Directory::at(path, &name)?;
        directory.keep = true;
        Ok(directory)
    }

    fn at(path: PathBuf, name: &str) -> Result<Directory, Failed> {
        fs::create_dir_all(&path)
            .map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        let epochs = match env::var_os("STILLPOINT_TEST_EPOCHS") {
            Some(elsewhere) => Path::new(&elsewhere).join(format!("{name}.d")),
            None => path.join("stillpoint.d"),
        };
        let keep = env::var_os("STILLPOINT_TEST_KEEP").is_some_and(|value| value != "0");
        Ok(Directory { path, epochs, keep })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory for a job's epochs: within this one, unless `STILLPOINT_TEST_EPOCHS` names another
    /// directory for those of all tests. Epochs are forced to their disk, and a shared disk may take half a minute for
    /// that. A test gives a checkpoint less time.
    pub fn epochs(&self) -> &Path {
        &self.epochs
    }

    /// Returns the path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Runs a test in it, and keeps it if the test fails.
    pub fn run(
        mut self,
        test: impl FnOnce(&Directory) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        let result = test(&self);
        if result.is_err() {
            self.keep = true;
        }
        result.map_err(|failed| {
            format!(
                "{failed}\n(files are in {} and {})",
                self.path.display(),
                self.epochs.display()
            )
        })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !self.keep && !std::thread::panicking() {
            // `cargo clean` removes the rest.
            let _ = fs::remove_dir_all(&self.path);
            let _ = fs::remove_dir_all(&self.epochs);
        }
    }
}
