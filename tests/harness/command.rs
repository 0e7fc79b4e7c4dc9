//! The `stillpoint` command as scripts use it: arguments in, and exit status, stdout and stderr out.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use stillpoint_refusals::Code;

use crate::place::{self, Directory};
use crate::{Failed, ensure, interrupt, strike};

/// The exit statuses that the command documents.
pub mod exit {
    pub const DONE: i32 = 0;
    pub const FAILED: i32 = 1;
    pub const USAGE: i32 = 2;
    pub const NO_SUCH: i32 = 3;
    pub const NOT_ALLOWED: i32 = 4;
    pub const REFUSED: i32 = 5;
}

/// The output of a command.
#[derive(Clone, Debug)]
pub struct Answer {
    pub command: String,
    /// The exit status; -1 if a signal ended it.
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Answer {
    /// Shows everything, for a failure's text.
    pub fn show(&self) -> String {
        format!(
            "`{}` ended with {} after {:.2} s\n--- stdout\n{}--- stderr\n{}",
            self.command,
            self.status,
            self.took.as_secs_f64(),
            self.stdout,
            self.stderr
        )
    }

    /// Fails unless the exit status is `status`.
    pub fn expect(self, status: i32) -> Result<Answer, Failed> {
        ensure!(
            self.status == status,
            "expected exit status {status}: {}",
            self.show()
        );
        Ok(self)
    }

    /// Fails unless the reason is one line for people, with this code.
    pub fn expect_code(self, status: i32, code: Code) -> Result<Answer, Failed> {
        self.expect_reason(status, &format!(" [{code}]"))
    }

    /// Fails unless the reason is one line for people (or two: what happened, what to do) that contains `word`.
    pub fn expect_reason(self, status: i32, word: &str) -> Result<Answer, Failed> {
        let answer = self.expect(status)?;
        // Lines of progress come before the reason.
        let progress = |line: &&str| {
            let words = ["epoch ", "waiting until this has passed: "];
            line.trim().is_empty() || words.iter().any(|word| line.starts_with(word))
        };
        let reason: Vec<&str> = answer
            .stderr
            .lines()
            .filter(|line| !progress(line))
            .collect();
        let (text, lines) = (reason.join("\n"), reason.len());
        ensure!(!text.is_empty(), "no reason on stderr: {}", answer.show());
        ensure!(
            lines <= 2,
            "the reason has {lines} lines: {}",
            answer.show()
        );
        ensure!(
            !text.contains("panicked") && !text.contains("backtrace"),
            "a panic is no reason: {}",
            answer.show()
        );
        ensure!(
            text.to_lowercase().contains(&word.to_lowercase()),
            "the reason does not speak of '{word}': {}",
            answer.show()
        );
        Ok(answer)
    }

    /// Parses the output of `--json`.
    pub fn json(&self) -> Result<Value, Failed> {
        serde_json::from_str(&self.stdout)
            .map_err(|error| format!("not JSON ({error}): {}", self.show()))
    }
}

/// Runs a command to its end, for at most `longest`. Its output goes through files in `directory`, so that no pipe can
/// fill up.
pub fn run(
    mut command: Command,
    directory: &Directory,
    longest: Duration,
) -> Result<Answer, Failed> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    interrupt::expect();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let text = describe(&command);
    let (out, err) = (
        directory.file(&format!("command-{count}.out")),
        directory.file(&format!("command-{count}.err")),
    );
    let make =
        |path: &Path| File::create(path).map_err(|error| format!("{}: {error}", path.display()));
    command
        .stdin(Stdio::null())
        .stdout(make(&out)?)
        .stderr(make(&err)?);
    let started = Instant::now();
    let mut child = command
        .spawn()
        .map_err(|error| format!("cannot start `{text}`: {error}"))?;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if started.elapsed() > longest || interrupt::seen() => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            Ok(None) => thread::sleep(Duration::from_millis(3)),
            Err(error) => return Err(format!("cannot wait for `{text}`: {error}")),
        }
    };
    let read =
        |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let answer = Answer {
        command: text,
        status: status.and_then(|status| status.code()).unwrap_or(-1),
        stdout: read(&out),
        stderr: read(&err),
        took: started.elapsed(),
    };
    ensure!(status.is_some(), "hangs: {}", answer.show());
    Ok(answer)
}

/// Shows a command line as a person would write it.
pub fn describe(command: &Command) -> String {
    let name = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The longest time of a checkpoint. A test treats a longer one as hanging.
pub const LONGEST: Duration = Duration::from_secs(40);

/// Runs `stillpoint WORDS...` to its end.
pub fn stillpoint<I, S>(directory: &Directory, words: I) -> Result<Answer, Failed>
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let mut command = Command::new(place::stillpoint()?);
    command.args(words).env_remove("STILLPOINT_DIR");
    run(command, directory, LONGEST)
}

/// Runs `stillpoint checkpoint DIR`. A hindrance is the answer at once.
pub fn checkpoint(directory: &Directory, target: &Path) -> Result<Answer, Failed> {
    stillpoint(
        directory,
        ["checkpoint", "--no-wait", "--timeout", "25"]
            .map(OsStr::new)
            .into_iter()
            .chain([target.as_os_str()]),
    )
}

/// Runs `stillpoint suspend DIR`. A hindrance is the answer at once.
pub fn suspend(directory: &Directory, target: &Path) -> Result<Answer, Failed> {
    stillpoint(
        directory,
        ["suspend", "--no-wait", "--timeout", "25"]
            .map(OsStr::new)
            .into_iter()
            .chain([target.as_os_str()]),
    )
}

/// Returns the `state` of `stillpoint status DIR --json`, or an error.
pub fn state(directory: &Directory, target: &Path) -> Result<String, Failed> {
    let answer = stillpoint(
        directory,
        [
            OsStr::new("status"),
            target.as_os_str(),
            OsStr::new("--json"),
        ],
    )?;
    let answer = answer.expect(exit::DONE)?;
    let json = answer.json()?;
    json["state"]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("no state: {}", answer.show()))
}

/// Checks that `stillpoint status` reports a running job. It first reads job.json: a test that waits for a job asks
/// again and again, and a file costs less than a command.
pub fn says_it_runs(directory: &Directory, target: &Path) -> Result<(), Failed> {
    let file = strike::job_file(target)?;
    ensure!(file["state"] == "running", "job.json: {}", file["state"]);
    let state = state(directory, target)?;
    ensure!(state == "running", "it is '{state}'");
    Ok(())
}

/// Returns the committed epochs in a checkpoint directory, oldest first.
pub fn epochs(target: &Path) -> Vec<u64> {
    let mut found: Vec<u64> = fs::read_dir(target)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()?
                .strip_prefix("epoch-")?
                .parse()
                .ok()
        })
        .collect();
    found.sort_unstable();
    found
}
