//! A directory on a file system in user space (FUSE), with delays and errors for each kind of operation. Needs root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Failed, command, ensure, place};

/// The time to mount it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A directory that is removed with the test.
#[derive(Debug)]
pub struct UserSpace {
    path: PathBuf,
    settings: PathBuf,
    server: Child,
}

fn compiled(directory: &Path) -> Result<PathBuf, Failed> {
    let program = directory.join("user_space");
    if program.exists() {
        return Ok(program);
    }
    let source = place::project().join("tests/harness/user_space.c");
    let script = "cc -O1 -o \"$0\" \"$1\" $(pkg-config --cflags --libs fuse3)";
    let mut command = Command::new("sh");
    command.args(["-euc", script]).arg(&program).arg(source);
    let said = command.output();
    let said = said.map_err(|error| format!("{}: {error}", command::describe(&command)))?;
    ensure!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    Ok(program)
}

impl UserSpace {
    /// Makes one in a directory, without delays.
    pub fn new(directory: &Path) -> Result<UserSpace, Failed> {
        let (lower, path) = (directory.join("lower"), directory.join("seen"));
        fs::create_dir(&lower).map_err(|error| format!("{}: {error}", lower.display()))?;
        UserSpace::mounted(directory, &lower, path, &[])
    }

    /// Makes a view of a directory that writes whole pages, as a client of NFS does.
    pub fn client(directory: &Path, lower: &Path, path: PathBuf) -> Result<UserSpace, Failed> {
        UserSpace::mounted(directory, lower, path, &["cached"])
    }

    fn mounted(
        directory: &Path,
        lower: &Path,
        path: PathBuf,
        words: &[&str],
    ) -> Result<UserSpace, Failed> {
        let program = compiled(directory)?;
        let settings = directory.join("settings");
        let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
        fs::create_dir(&path).map_err(failed)?;
        let mut server = Command::new(program);
        server.args([lower, &settings, &path]).args(words);
        server.stdin(Stdio::null());
        let server = server.stderr(Stdio::null()).spawn().map_err(failed)?;
        let made = UserSpace {
            path,
            settings,
            server,
        };
        made.late(&[], Duration::ZERO)?;
        let marker = lower.join("mounted");
        fs::write(&marker, "").map_err(failed)?;
        let began = Instant::now();
        while !made.path.join("mounted").exists() {
            ensure!(began.elapsed() < PATIENCE, "it is not mounted");
            thread::sleep(Duration::from_millis(20));
        }
        fs::remove_file(marker).map_err(failed)?;
        Ok(made)
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Delays these operations from now on, and no others.
    pub fn late(&self, operations: &[&str], by: Duration) -> Result<(), Failed> {
        let lines = operations
            .iter()
            .map(|operation| format!("{operation} {}\n", by.as_millis()));
        self.told(&lines.collect::<String>())
    }

    /// Does these lines from now on (`user_space.c` says what they mean), and nothing else that it was told.
    pub fn told(&self, whole: &str) -> Result<(), Failed> {
        let next = self.settings.with_extension("next");
        fs::write(&next, whole)
            .and_then(|()| fs::rename(&next, &self.settings))
            .map_err(|error| format!("{}: {error}", self.settings.display()))
    }
}

impl Drop for UserSpace {
    fn drop(&mut self) {
        // No process is to wait for it any more.
        let _ = self.late(&[], Duration::ZERO);
        let unmounted = Command::new("umount")
            .arg("--lazy")
            .arg(&self.path)
            .output();
        if !unmounted.is_ok_and(|said| said.status.success()) {
            let _ = self.server.kill();
        }
        let _ = self.server.wait();
        let _ = fs::remove_dir(&self.path);
    }
}
