//! A node with emulated GPUs: its folder, the process that is its devices, and what a program needs to find them. All of it goes
//! with the test, also when that fails: the devices end when their standard input does.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub use stillpoint_emulated_gpu_protocol::description::{Device, Link, Node};
use stillpoint_emulated_gpu_protocol::{DESCRIPTION, FAULTS, VARIABLE};

use crate::{Failed, ensure, place};

/// A node's devices, running.
#[derive(Debug)]
pub struct Gpus {
    folder: PathBuf,
    devices: Child,
}

impl Gpus {
    /// Starts the devices of a node.
    pub fn start(node: &Node) -> Result<Gpus, Failed> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // What is open and mapped there is the GPU's, as with a real driver: the path begins like its devices'.
        let folder = PathBuf::from(format!("/dev/nvidia-emulated-{}-{count}", process::id()));
        fs::create_dir(&folder).map_err(|error| {
            format!(
                "cannot make {}: {error}; emulated GPUs need a folder in /dev, which root may make",
                folder.display()
            )
        })?;
        let started = Gpus::devices(node, &folder);
        if started.is_err() {
            // Empty but for the description.
            let _ = fs::remove_dir_all(&folder);
        }
        Ok(Gpus {
            devices: started?,
            folder,
        })
    }

    fn devices(node: &Node, folder: &Path) -> Result<Child, Failed> {
        let wrong = |error: io::Error| format!("{}: {error}", folder.display());
        fs::write(folder.join(DESCRIPTION), node.text().map_err(wrong)?).map_err(wrong)?;
        let program = place::binaries().join("emulated-gpu");
        let mut devices = Command::new(&program)
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let mut line = String::new();
        let said = devices
            .stdout
            .take()
            .map(|said| BufReader::new(said).read_line(&mut line));
        ensure!(
            matches!(said, Some(Ok(_))) && line == "ready\n",
            "the emulated GPUs did not start: they said '{line}'"
        );
        Ok(devices)
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Gives a command what it needs to find them.
    pub fn reach(&self, command: &mut Command) -> Result<(), Failed> {
        for (name, value) in self.environment()? {
            command.env(name, value);
        }
        Ok(())
    }

    /// The variables by which a program finds them.
    pub fn environment(&self) -> Result<[(&'static str, OsString); 2], Failed> {
        let mut libraries = driver()?.into_os_string();
        if let Some(others) = env::var_os("LD_LIBRARY_PATH") {
            libraries.push(":");
            libraries.push(others);
        }
        Ok([
            (VARIABLE, self.folder.clone().into_os_string()),
            ("LD_LIBRARY_PATH", libraries),
        ])
    }

    /// From now on there is a fault: so many times, or until it is taken away. Its names are in `Faults`.
    pub fn fault(&self, name: &str, times: Option<u64>) -> Result<(), Failed> {
        let file = self.folder.join(FAULTS).join(name);
        let text = times.map_or_else(String::new, |times| times.to_string());
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// A fault is there no more.
    pub fn no_fault(&self, name: &str) -> Result<(), Failed> {
        let file = self.folder.join(FAULTS).join(name);
        fs::remove_file(&file).map_err(|error| format!("{}: {error}", file.display()))
    }
}

impl Drop for Gpus {
    fn drop(&mut self) {
        // Their standard input closes, and they end and take the folder along.
        drop(self.devices.stdin.take());
        let _ = self.devices.wait();
        // For what they may have left.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The folder with `libcuda.so.1`: a copy of what was built, under the name by which programs look for it. Not a link, as
/// whoever looks at a process's mappings sees the file's own name.
pub fn driver() -> Result<PathBuf, Failed> {
    let built = place::binaries().join("libemulated_cuda.so");
    let wrong = |error: io::Error| format!("{}: {error}", built.display());
    let bytes = fs::read(&built).map_err(wrong)?;
    let folder = place::target().join("trials").join("cuda");
    let library = folder.join("libcuda.so.1");
    if fs::read(&library).is_ok_and(|there| there == bytes) {
        return Ok(folder);
    }
    fs::create_dir_all(&folder).map_err(wrong)?;
    // Whoever has the one that was there before keeps it.
    let draft = folder.join(format!("libcuda.so.1.{}", process::id()));
    fs::write(&draft, &bytes).map_err(wrong)?;
    fs::rename(&draft, &library).map_err(wrong)?;
    Ok(folder)
}
