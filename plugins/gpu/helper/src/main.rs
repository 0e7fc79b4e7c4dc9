//! The helper of a job's ranks on one node that use GPUs. The driver locks, checkpoints and restores a process only on request of another one,
//! such as this.
//!
//! ```text
//! stillpoint-gpu --start NAME    starts one that serves, and ends
//! stillpoint-gpu --serve NAME    serves the ranks that come to the socket NAME (abstract), until all have gone
//! stillpoint-gpu --facts         says as JSON what the node has
//! stillpoint-gpu --measure DIR BYTES    measures what its GPUs do; DIR gets the record
//! ```
//!
//! The first rank that needs the helper starts it, from its lower half. It is no child of the application's, and outlives a rank that
//! dies.
//!
//! * [`facts`] - facts about the node's driver and devices
//! * [`checkpoint`] - the requests of one rank
//! * [`measure`] - measurements of the node's GPUs
//! * [`staging`] - copies of device memory to any place with room on the node
//! * [`serve`] - the server loop

mod checkpoint;
mod facts;
mod measure;
mod refused;
mod serve;
mod staging;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["--facts"] => say_facts(),
        ["--measure", directory, bytes] => match bytes.parse() {
            Ok(bytes) => measure::measure(directory.as_ref(), bytes),
            Err(_) => Err(format!("'{bytes}' is not a number of bytes")),
        },
        ["--start", name] => start(name),
        ["--serve", name] => serve::until_all_have_gone(name.as_bytes()),
        _ => Err("usage: stillpoint-gpu --facts | --measure DIR BYTES | --serve NAME (started by Stillpoint)".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stillpoint-gpu: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Starts the server, outside of the rank's file descriptors, working directory and process group.
fn start(name: &str) -> Result<(), String> {
    // SAFETY: this process has opened nothing itself, so only descriptors that it has inherited are closed.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
    let itself = std::env::current_exe().map_err(|error| error.to_string())?;
    Command::new(itself)
        .args(["--serve", name])
        .current_dir("/")
        .process_group(0)
        .spawn()
        .map(|_| ())
        .map_err(|error| format!("cannot start the serving process: {error}"))
}

fn say_facts() -> Result<(), String> {
    facts::see_every_device();
    let facts = facts::of(&facts::open()?)?;
    let text = serde_json::to_string(&facts).map_err(|error| error.to_string())?;
    println!("{text}");
    Ok(())
}
