//! Starts another coordinator from within the application's process, which must not notice. The command forks, and
//! its parent ends at once (`stillpoint coordinator`).

use std::ffi::CString;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use stillpoint_protocol::launch::Ready;

use crate::ground::{hidden_child, wake};

/// How long the coordinator may take until it serves.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts `command coordinator --succeed DIRECTORY`. Returns when it serves, or says why it does not.
pub fn start(command: &Path, directory: &Path) -> Result<(), String> {
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    let directory = CString::new(directory.as_os_str().as_bytes())
        .map_err(|error| failed("the directory's path", &error))?;
    let (answer, stdout) = io::pipe().map_err(|error| failed("prepare for it", &error))?;
    let arguments = [c"coordinator", c"--succeed", &directory];
    let child = hidden_child::start(command, &arguments, Some(stdout.into()))
        .map_err(|error| failed("start a process", &error))?;
    let said = first_line(answer);
    child.reap();
    match serde_json::from_str(&said.map_err(|error| failed("wait for it", &error))?) {
        Ok(Ready::Serving) => Ok(()),
        Ok(Ready::Failed { text, .. }) => Err(text),
        Err(_) => Err("it ended without a word".to_owned()),
    }
}

/// Reads a line, unless the application's process ends meanwhile.
fn first_line(mut answer: io::PipeReader) -> io::Result<String> {
    let began = Instant::now();
    let mut line = Vec::new();
    while !line.contains(&b'\n') {
        if began.elapsed() > PATIENCE || wake::ending().is_some() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut descriptors = [PollFd::new(answer.as_fd(), PollFlags::POLLIN)];
        if poll(&mut descriptors, PollTimeout::from(50_u8)) != Ok(1) {
            continue;
        }
        let mut bytes = [0; 4096];
        match answer.read(&mut bytes)? {
            0 => break,
            count => line.extend_from_slice(&bytes[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}
