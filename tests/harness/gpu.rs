//! A node with emulated GPUs: its folder, the process that is its devices, and the settings with which a program finds them. All
//! of it goes with the test, even if that fails: the devices end when their standard input does.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{self, Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub use stillpoint_emulated_gpu_protocol::description::{Device, Link, Node};
pub use stillpoint_emulated_gpu_protocol::fault::Fault;

use stillpoint_emulated_gpu_protocol::{DESCRIPTION, FAULTS, VARIABLE};

use crate::{Failed, ensure, place};

/// A node's devices, running.
#[derive(Debug)]
pub struct Gpus {
    folder: PathBuf,
    devices: Child,
    says: BufReader<ChildStdout>,
}

/// The traffic of one direction of a link. Times are nanoseconds of the machine's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// A device's number, or `host`.
    pub from: String,
    pub to: String,
    pub bytes: u64,
    /// The time that these bytes need at the link's bandwidth.
    pub busy: u64,
    /// The times of the first and of the last byte.
    pub first: u64,
    pub last: u64,
}

impl Gpus {
    /// Starts the devices of a node.
    pub fn start(node: &Node) -> Result<Gpus, Failed> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // The path begins like that of a real driver's devices, so that open files and mappings there count as the
        // GPU's.
        let folder = PathBuf::from(format!("/dev/nvidia-emulated-{}-{count}", process::id()));
        fs::create_dir(&folder).map_err(|error| {
            format!(
                "cannot make {}: {error}; emulated GPUs need a folder in /dev, which root may make",
                folder.display()
            )
        })?;
        let started = Gpus::devices(node, &folder);
        if started.is_err() {
            // The folder holds only the description.
            let _ = fs::remove_dir_all(&folder);
        }
        let (devices, says) = started?;
        Ok(Gpus {
            folder,
            devices,
            says,
        })
    }

    fn devices(node: &Node, folder: &Path) -> Result<(Child, BufReader<ChildStdout>), Failed> {
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
        let mut says = BufReader::new(devices.stdout.take().ok_or("no standard output")?);
        says.read_line(&mut line).map_err(wrong)?;
        ensure!(
            line == "ready\n",
            "the emulated GPUs did not start: they said '{line}'"
        );
        Ok((devices, says))
    }

    /// Sends a word to the devices, and returns their answer line by line.
    fn report(&mut self, word: &str) -> Result<Vec<String>, Failed> {
        let wrong = |error: io::Error| format!("the emulated GPUs: {error}");
        let input = self.devices.stdin.as_mut().ok_or("no standard input")?;
        input
            .write_all(format!("{word}\n").as_bytes())
            .map_err(wrong)?;
        let mut lines = vec![];
        loop {
            let mut line = String::new();
            let read = self.says.read_line(&mut line).map_err(wrong)?;
            match line.trim_end() {
                "end" => return Ok(lines),
                _ if read == 0 => return Err("the emulated GPUs say no more".to_owned()),
                line => lines.push(line.to_owned()),
            }
        }
    }

    /// Returns how often a fault has struck so far.
    pub fn struck(&mut self, fault: Fault) -> Result<u64, Failed> {
        let name = fault.to_string();
        let lines = self.report("faults")?;
        let times = lines
            .iter()
            .find_map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
                ["fault", its, times] if its == name => Some(times.parse::<u64>()),
                _ => None,
            });
        let times = times.unwrap_or(Ok(0));
        times.map_err(|error| format!("{lines:?}: {error}"))
    }

    /// Returns the free memory of each device.
    pub fn free(&mut self) -> Result<Vec<u64>, Failed> {
        let lines = self.report("memory")?;
        let number = |line: &String| {
            let text = line.strip_prefix("memory ").unwrap_or_default();
            text.parse::<u64>()
                .map_err(|error| format!("'{line}': {error}"))
        };
        lines.iter().map(number).collect()
    }

    /// Counts a process's contexts on all devices.
    pub fn contexts(&mut self, process: i32) -> Result<u64, Failed> {
        let lines = self.report("contexts")?;
        let mut contexts = 0;
        for line in &lines {
            let [_, pid, _, count] = line.split(' ').collect::<Vec<_>>()[..] else {
                return Err(format!("the emulated GPUs say '{line}'"));
            };
            if pid == process.to_string() {
                let count = count.parse::<u64>();
                contexts += count.map_err(|error| format!("'{line}': {error}"))?;
            }
        }
        Ok(contexts)
    }

    /// Returns the traffic of the links so far.
    pub fn traffic(&mut self) -> Result<Vec<Traffic>, Failed> {
        let mut found = vec![];
        for line in self.report("links")? {
            let words: Vec<&str> = line.split_whitespace().collect();
            let ["link", from, to, bytes, busy, first, last] = words[..] else {
                return Err(format!("the emulated GPUs say '{line}'"));
            };
            let number = |text: &str| {
                text.parse::<u64>()
                    .map_err(|error| format!("'{line}': {error}"))
            };
            found.push(Traffic {
                from: from.to_owned(),
                to: to.to_owned(),
                bytes: number(bytes)?,
                busy: number(busy)?,
                first: number(first)?,
                last: number(last)?,
            });
        }
        Ok(found)
    }

    /// Returns the folder of the devices.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sets the variables with which a command finds the devices.
    pub fn reach(&self, command: &mut Command) -> Result<(), Failed> {
        for (name, value) in self.environment()? {
            command.env(name, value);
        }
        Ok(())
    }

    /// Returns the variables with which a program finds the devices.
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

    /// Injects a fault from now on, so many times or until it is removed. Its names are in [`Fault`].
    pub fn fault(&self, name: &str, times: Option<u64>) -> Result<(), Failed> {
        ensure!(Fault::named(name).is_some(), "there is no fault '{name}'");
        let file = self.folder.join(FAULTS).join(name);
        let text = times.map_or_else(String::new, |times| times.to_string());
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Removes a fault.
    pub fn no_fault(&self, name: &str) -> Result<(), Failed> {
        let file = self.folder.join(FAULTS).join(name);
        fs::remove_file(&file).map_err(|error| format!("{}: {error}", file.display()))
    }
}

impl Drop for Gpus {
    fn drop(&mut self) {
        // Their standard input closes, and they end and remove the folder.
        drop(self.devices.stdin.take());
        let _ = self.devices.wait();
        // This removes files that they may have left.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the folder with `libcuda.so.1`: a copy of the built library, under the name by which programs look for it. It
/// is no link, since the mappings of a process show the file's own name.
pub fn driver() -> Result<PathBuf, Failed> {
    let built = place::binaries().join("libemulated_cuda.so");
    let wrong = |error: io::Error| format!("{}: {error}", built.display());
    let bytes = fs::read(&built).map_err(wrong)?;
    let folder = place::target().join("trials").join("cuda");
    fs::create_dir_all(&folder).map_err(wrong)?;
    // Two tests must not copy it at once.
    let lock = File::create(folder.join("lock")).map_err(wrong)?;
    lock.lock().map_err(wrong)?;
    let library = folder.join("libcuda.so.1");
    if fs::read(&library).is_ok_and(|there| there == bytes) {
        return Ok(folder);
    }
    // Processes that use the old library keep it.
    let draft = folder.join("libcuda.so.1.new");
    fs::write(&draft, &bytes).map_err(wrong)?;
    fs::rename(&draft, &library).map_err(wrong)?;
    Ok(folder)
}
