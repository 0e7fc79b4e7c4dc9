//! `emulated-gpu DIR`: the GPUs of a node, as a process of its own. A real GPU does not stop when a rank is stopped, and this
//! does not either: it carries out copies and kernels by itself, stream by stream, and takes its data from the memory of its
//! clients and puts it there as a device's DMA does.
//!
//! DIR holds `description.toml` (the devices, see `description` in the protocol's crate). The process makes `nvidiactl` in it, a
//! named pipe in which clients say that they are there, prints `ready`, and ends when its standard input is closed: so it
//! never outlives the test that has started it. DIR goes with it.
//!
//! What it imitates: memory of each device with its accounting; streams that run beside each other and in themselves in order;
//! events; copies from and to pageable and pinned host memory, within a device and between devices, as quick as the
//! links of the description; kernels, of which it knows some by name (`kernels`). What it does not: instructions of
//! a GPU. A kernel is a function in here, and what a program's PTX says about a kernel of that name is not looked at but for its
//! parameters. Kernels of different streams run beside each other as they like, and a kernel does not reach pinned host memory.

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
    // Both ends: the pipe never comes to its end because the last client has gone.
    let control = OpenOptions::new().read(true).write(true).open(control)?;
    let (asked, goes) = (Arc::clone(&gpus), folder.to_owned());
    thread::spawn(move || {
        obey(&asked);
        // What cannot be removed now is nobody's loss.
        let _ = fs::remove_dir_all(goes);
        std::process::exit(0);
    });
    println!("ready");
    for line in BufReader::new(control).lines() {
        let name = line?;
        // A name, and no path.
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

/// Does what standard input says, until that ends. `links` says what went over each link, `faults` how often each fault has struck,
/// `memory` how much of each device's is free, `contexts` how
/// many each process has.
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
