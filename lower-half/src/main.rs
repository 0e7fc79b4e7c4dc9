//! The process of one rank: starts, or restarts, an application in the upper half, with the real MPI beside it in the
//! lower one.
//!
//! ```text
//! stillpoint-lower-openmpi run -- APP ARGS...          executed by `stillpoint run`
//! stillpoint-lower-openmpi restart                     executed by `stillpoint restart`
//! stillpoint-lower-openmpi exec PATH -- ARGV...        executed by an application's own execve (`gate::exec`)
//! stillpoint-lower-openmpi unsplit PATH -- ARGV...     the same, for a program that cannot be split
//! ```
//!
//! The folders are floors, and each imports only from lower ones; `tests/tests/floors.rs` has their order.

mod agent;
mod arch;
mod capture;
mod executor;
mod gate;
mod gpu;
mod ground;
mod launch;
mod loader;
mod mpi;
mod parts;
mod restore;
mod threads;

use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use launch::Entrance;
use launch::error::LaunchError;
use launch::restart;
use stillpoint_protocol::launch::Launch;
use stillpoint_refusals::{Coded, refusal};

fn main() {
    ground::inherited::runtime_has_begun();
    // This must come while there is one thread.
    ground::page::prepare_fence();
    ground::space::be_sparing();
    let arguments = match ground::stack_limit::ensure(std::env::args_os().skip(1).collect()) {
        Ok(arguments) => arguments.into_iter().map(OsStringExt::into_vec),
        Err(error) => {
            let refusal = refusal!(NotSetUp, "cannot begin at other addresses: {error}");
            ground::say::line(&refusal);
            std::process::exit(126);
        }
    };
    let arguments: Vec<Vec<u8>> = arguments.collect();
    stillpoint_directory::number_from(ground::hidden_child::LOWEST);
    if let Err(error) = stillpoint_faults::arm() {
        ground::say::line(&error);
        std::process::exit(2);
    }
    let Err(error) = start(&arguments);
    ground::say::line(error.refusal());
    std::process::exit(error.exit_status());
}

fn start(arguments: &[Vec<u8>]) -> Result<std::convert::Infallible, LaunchError> {
    let words: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
    match words.as_slice() {
        [b"run", b"--", name, ..] => {
            launch::run(Entrance::Run, path(name), arguments[2..].to_vec())
        }
        [b"exec", file, b"--", _, ..] => {
            launch::run(Entrance::Exec, path(file), arguments[3..].to_vec())
        }
        [b"unsplit", file, b"--", _, ..] => launch::unsplit::run(path(file), &arguments[3..]),
        [b"restart"] => {
            let launch = Launch::from_environment()?;
            restart::run(&launch, |launch| {
                agent::join(launch).map_err(|error| error.refusal())
            })
        }
        _ => Err(LaunchError::Usage),
    }
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes))
}
