//! A directory of a test's own, and the processes that it starts.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub const LOWER: &str = env!("CARGO_BIN_EXE_stillpoint-lower-openmpi");

/// A directory for one test, removed at its end.
pub struct TestDirectory(pub PathBuf);

impl TestDirectory {
    pub fn new(name: &str) -> TestDirectory {
        let path =
            std::env::temp_dir().join(format!("stillpoint-split-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        TestDirectory(path)
    }

    pub fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.join(name);
        write(&path, text.as_bytes());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    pub fn compile(&self, program: &str, flags: &[&str]) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/programs")
            .join(program)
            .with_extension("c");
        let binary = self.0.join(format!(
            "{program}{}",
            flags.concat().replace(['/', ' '], "")
        ));
        let mut compiler = Command::new("cc");
        compiler
            .args(["-O1", "-pthread", "-w", "-o"])
            .args([&binary, &source])
            .args(flags)
            .arg("-lm");
        let status = spawn(&mut compiler).wait().unwrap();
        assert!(status.success(), "{program} does not compile");
        binary
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Held while a process is started, and while a script is written: a child of another test that inherits the script's open file prevents its execution ("text
/// file busy").
static FORKS: Mutex<()> = Mutex::new(());

pub fn write(path: &Path, bytes: &[u8]) {
    let _alone = FORKS.lock().unwrap_or_else(PoisonError::into_inner);
    std::fs::write(path, bytes).unwrap();
}

fn spawn(command: &mut Command) -> Child {
    let _alone = FORKS.lock().unwrap_or_else(PoisonError::into_inner);
    command.spawn().unwrap()
}

/// Runs a command to its end, for at most a minute.
pub fn finish(mut command: Command) -> Output {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = spawn(&mut command);
    let end = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            panic!(
                "{command:?} hangs, having said:\n{}",
                String::from_utf8_lossy(&output.stdout)
            );
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().unwrap()
}
