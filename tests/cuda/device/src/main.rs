//! `emulated-gpu DIR`: the GPUs of a node, as a process of its own. A real GPU does not stop when a rank is stopped, and this
//! process does not either. It carries out copies and kernels by itself, stream by stream, and reads and writes the memory of
//! its clients as a device's DMA does.
//!
//! DIR holds `description.toml` (the devices, see `description` in the protocol's crate). The process makes `nvidiactl` in it, a
//! named pipe through which clients announce themselves, prints `ready`, and ends when its standard input is closed, so it never
//! outlives the test that has started it. It removes DIR when it ends.
//!
//! It imitates the memory of each device with its accounting; streams that run beside each other, each in order; events; copies
//! from and to pageable and pinned host memory, within a device and between devices, at the speed of the links in the
//! description; and kernels, some of which it knows by name (`kernels`). It does not imitate the instructions of a GPU. A kernel
//! is a function in here, and from a program's PTX it reads only that kernel's parameters. Kernels of different streams run
//! beside each other in any order, and a kernel cannot reach pinned host memory.

mod client;
mod contexts;
mod copy;
mod faults;
mod kernels;
mod links;
mod memory;
mod node;
mod stream;

use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use stillpoint_emulated_gpu_protocol::description;
use stillpoint_emulated_gpu_protocol::{CONTROL, DESCRIPTION, FAULTS};

use node::Gpus;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: emulated-gpu DIR");
        return ExitCode::from(2);
    };
    match serve(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("emulated-gpu: {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

fn serve(folder: &Path) -> io::Result<()> {
    let node = description::Node::read(&folder.join(DESCRIPTION))?;
    let gpus = Arc::new(Gpus::new(node, folder));
    fs::create_dir_all(folder.join(FAULTS))?;
    let control = folder.join(CONTROL);
    named_pipe(&control)?;
    // The process holds both ends, so the pipe does not end when the last client has gone.
    let control = OpenOptions::new().read(true).write(true).open(control)?;
    let (asked, goes) = (Arc::clone(&gpus), folder.to_owned());
    thread::spawn(move || {
        obey(&asked);
        // A failure to remove the folder does no harm.
        let _ = fs::remove_dir_all(goes);
        std::process::exit(0);
    });
    println!("ready");
    for line in BufReader::new(control).lines() {
        let name = line?;
        // The line holds a name, and no path.
        if name.is_empty() || name.contains('/') {
            continue;
        }
        let gpus = Arc::clone(&gpus);
        let folder = folder.to_owned();
        thread::spawn(move || {
            if let Err(error) = client::serve(&gpus, &folder, &name) {
                eprintln!("emulated-gpu: client {name}: {error}");
            }
        });
    }
    Ok(())
}

/// Obeys commands on standard input, until that ends. `links` prints the traffic of each link, `faults` how often each fault has
/// struck, `memory` how much of each device's memory is free, `contexts` how many contexts each process has.
fn obey(gpus: &Gpus) {
    for line in io::stdin().lines().map_while(Result::ok) {
        let report = match line.as_str() {
            "links" => gpus.links.report(),
            "faults" => gpus.faults.report(),
            "memory" => gpus.memory(),
            "contexts" => gpus.contexts.report(),
            _ => continue,
        };
        for line in report {
            println!("{line}");
        }
        println!("end");
    }
}

/// Makes a named pipe.
fn named_pipe(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a path that ends with a zero.
    match unsafe { libc::mkfifo(path.as_ptr(), 0o600) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
