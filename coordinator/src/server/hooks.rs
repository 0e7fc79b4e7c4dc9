//! Commands of the user (`--on-event`) and of the site (`/etc/stillpoint.d/`) that hear of the job's events.
//!
//! The coordinator runs them, never a rank. A command gets a line of JSON on its standard input. Nothing waits for it: a command that fails or takes too long
//! is told of in the log and on the job's stderr, and the job goes on. The end of the job alone is held up by commands that still run.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Event, Spec};
use crate::job::Happening;

/// The directory of the site's commands.
const SITE: &str = "/etc/stillpoint.d";
/// The time that a command may take.
const LIMIT: Duration = Duration::from_secs(30);
/// The most bytes of its error output that are kept, and the most characters that are told of.
const MOST_KEPT: u64 = 4096;
const MOST_TOLD: usize = 300;
/// The most commands at a time.
const MOST: usize = 64;
/// The time in which the last words of a command come, or its end when it was killed.
const A_MOMENT: Duration = Duration::from_millis(200);

/// The commands.
pub(super) struct Hooks {
    command: Option<String>,
    site: PathBuf,
    limit: Duration,
    events: mpsc::UnboundedSender<Event>,
    running: JoinSet<()>,
}

impl Hooks {
    pub fn new(command: Option<String>, events: mpsc::UnboundedSender<Event>) -> Hooks {
        Hooks {
            command,
            site: SITE.into(),
            limit: LIMIT,
            events,
            running: JoinSet::new(),
        }
    }

    /// Starts the commands for an event. `at`: seconds since 1970.
    pub fn tell(&mut self, happening: &Happening, spec: &Spec, at: f64) {
        while self.running.try_join_next().is_some() {}
        let mut programs: Vec<(String, Command)> = vec![];
        if let Some(text) = &self.command {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(text);
            programs.push(("--on-event".to_owned(), command));
        }
        for path in site_programs(&self.site) {
            programs.push((path.display().to_string(), Command::new(path)));
        }
        if programs.is_empty() {
            return;
        }
        let text = json!({
            "event": happening.name,
            "at": at,
            "job": spec.job,
            "name": spec.name,
            "directory": spec.directory,
            "ranks": spec.ranks,
            "command": spec.command,
            "epoch": happening.epoch,
            "reason": happening.reason,
        });
        let text = format!("{text}\n");
        for (name, command) in programs {
            let (events, limit, text) = (self.events.clone(), self.limit, text.clone());
            let event = happening.name;
            if self.running.len() >= MOST {
                let told = format!(
                    "the command of {name} for the event {event} was not run: {MOST} commands run already"
                );
                // As below.
                let _ = events.send(Event::HookFailed(told));
                continue;
            }
            self.running.spawn(async move {
                if let Err(why) = run(command, &text, limit).await {
                    let told = format!("the command of {name} for the event {event} failed: {why}");
                    // When the job has ended, the receiver is gone.
                    let _ = events.send(Event::HookFailed(told));
                }
            });
        }
    }

    /// Returns when no command runs any more. Each has its limit.
    pub async fn all_done(&mut self) {
        while self.running.join_next().await.is_some() {}
    }
}

/// Runs a command to its end, and returns why it failed. Its children may outlive it, unless it takes too long.
async fn run(mut command: Command, text: &str, limit: Duration) -> Result<(), String> {
    let child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let mut child = child.map_err(|error| error.to_string())?;
    let (input, errors) = (child.stdin.take(), child.stderr.take());
    let mut said = Vec::new();
    let ended = {
        let mut talk = pin!(async {
            tokio::join!(give(input, text), hear(errors, &mut said));
        });
        let ended = timeout(limit, async {
            tokio::select! {
                status = child.wait() => return (status, false),
                () = &mut talk => {}
            }
            (child.wait().await, true)
        });
        let ended = ended.await;
        // Its last words may be on their way. A process that it has left may hold the other end open.
        if let Ok((Ok(status), false)) = &ended
            && !status.success()
        {
            let _ = timeout(A_MOMENT, talk).await;
        }
        ended
    };
    let Ok((status, _)) = ended else {
        // Nothing has waited for it, so its number is still its own.
        if let Some(group) = child.id() {
            let _ = killpg(Pid::from_raw(group as i32), Signal::SIGKILL);
        }
        let _ = timeout(A_MOMENT, child.wait()).await;
        let seconds = limit.as_secs();
        return Err(format!("it took longer than {seconds} s, and was killed"));
    };
    let status = status.map_err(|error| error.to_string())?;
    if status.success() {
        return Ok(());
    }
    let said: String = String::from_utf8_lossy(&said)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(MOST_TOLD)
        .collect();
    Err(format!("{status}: {said}"))
}

async fn give(input: Option<ChildStdin>, text: &str) {
    if let Some(mut input) = input {
        // A command may end without reading.
        let _ = input.write_all(text.as_bytes()).await;
    }
}

/// Keeps the beginning of the error output, and discards the rest.
async fn hear(errors: Option<ChildStderr>, said: &mut Vec<u8>) {
    let Some(mut errors) = errors else { return };
    // The text before an error is enough.
    let _ = (&mut errors).take(MOST_KEPT).read_to_end(said).await;
    let _ = tokio::io::copy(&mut errors, &mut tokio::io::sink()).await;
}

/// The site's programs, in the order of their names: those of root that no other user can have changed.
fn site_programs(folder: &Path) -> Vec<PathBuf> {
    let ours = |path: &Path| {
        let about = path.metadata();
        about.is_ok_and(|about| {
            let mode = about.permissions().mode();
            about.is_file() && about.uid() == 0 && mode & 0o022 == 0 && mode & 0o111 != 0
        })
    };
    if !folder
        .metadata()
        .is_ok_and(|about| about.uid() == 0 && about.mode() & 0o022 == 0)
    {
        return vec![];
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| ours(path));
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(script: &str, limit: Duration) -> Result<(), String> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(run(command, "{\"event\":\"x\"}\n", limit))
    }

    #[test]
    fn a_command_hears_the_event_and_its_failure_is_told() {
        assert_eq!(
            runs("read line; [ \"$line\" = '{\"event\":\"x\"}' ]", LIMIT),
            Ok(())
        );
        assert_eq!(runs("exit 0", LIMIT), Ok(()));
        let failed = runs("echo no mail >&2; exit 3", LIMIT).unwrap_err();
        assert!(
            failed.contains("exit status: 3") && failed.ends_with("no mail"),
            "{failed}"
        );
        let slow = runs("sleep 60", Duration::from_millis(50)).unwrap_err();
        assert!(slow.contains("was killed"), "{slow}");
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed_with_what_it_has_started() {
        let folder = tempfile::tempdir().unwrap();
        let numbers = folder.path().join("numbers");
        let script = format!("sleep 60 & echo $$ $! >{}; wait", numbers.display());
        let slow = runs(&script, Duration::from_secs(2)).unwrap_err();
        assert!(slow.contains("was killed"), "{slow}");
        let numbers = std::fs::read_to_string(numbers).unwrap();
        let lives = |number: &str| {
            // A process that has ended has no command line, until its parent takes note.
            let line = std::fs::read(format!("/proc/{number}/cmdline"));
            line.is_ok_and(|line| !line.is_empty())
        };
        let since = std::time::Instant::now();
        while numbers.split_whitespace().any(lives) {
            assert!(since.elapsed() < LIMIT, "{numbers}");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(numbers.split_whitespace().count(), 2);
    }

    #[test]
    fn a_command_ends_when_its_process_does() {
        let since = std::time::Instant::now();
        // It leaves a process behind that holds its stderr, and says more than a pipe holds.
        let script = "echo first >&2; head -c 300000 /dev/zero >&2; sleep 20 & exit 3";
        let failed = runs(script, LIMIT).unwrap_err();
        assert!(failed.starts_with("exit status: 3: first"), "{failed}");
        assert!(since.elapsed() < Duration::from_secs(15), "{failed}");
    }

    #[test]
    fn only_roots_own_programs_run_for_the_site() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, mode: u32| {
            let path = folder.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for (name, mode) in [
            ("20-b", 0o755),
            ("10-a", 0o755),
            ("text", 0o644),
            ("open", 0o777),
        ] {
            make(name, mode);
        }
        let names: Vec<_> = site_programs(folder.path())
            .iter()
            .map(|path| path.file_name().unwrap().to_owned())
            .collect();
        let root = nix::unistd::geteuid().is_root();
        assert_eq!(names.len(), if root { 2 } else { 0 });
        if root {
            assert_eq!(names, ["10-a", "20-b"]);
        }
    }
}
