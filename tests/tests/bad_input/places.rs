//! Places where epochs cannot be written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure, strike};

use crate::common::{fails, io, must, verify};

#[test]
fn directories_that_cannot_be_written() {
    must((|| {
        let program = Program::named(Kind::Moving, "ring")?.build()?;
        Directory::new("unwritable")?.run(|directory| {
            let file = directory.file("file");
            fs::write(&file, b"").map_err(io)?;
            for target in [file.join("below.d"), file, PathBuf::from("/proc/epochs.d")] {
                let mut command = job::under_stillpoint(2, &target)?;
                command.arg(&program);
                let shown = target.display().to_string();
                fails(
                    Job::start(command, directory)?,
                    exit::FAILED,
                    &[&shown, "--dir"],
                )?;
            }
            Ok(())
        })
    })());
}

/// The variable that tells a scenario that it has a mount namespace of its own and may mount.
const INSIDE: &str = "STILLPOINT_TEST_INSIDE";

/// Runs the test of this name again in a mount namespace of its own, where it may mount file systems. Tells whether
/// this is already that run.
fn inside_namespace(test: &str) -> Result<bool, Failed> {
    if std::env::var_os(INSIDE).is_some() {
        return Ok(true);
    }
    let this = std::env::current_exe().map_err(io)?;
    let run = |options: &[&str]| {
        Command::new("unshare")
            .args(options)
            .arg(&this)
            .args(["--exact", test, "--nocapture", "--test-threads", "1"])
            .env(INSIDE, "1")
            .output()
            .map_err(io)
    };
    // A user without root rights becomes root in a new user namespace.
    let options: &[&str] = match nix::unistd::geteuid().is_root() {
        true => &["--mount"],
        false => &["--mount", "--map-root-user"],
    };
    let output = run(options)?;
    let said = String::from_utf8_lossy(&output.stdout);
    // A name without a test would pass, too.
    ensure!(
        output.status.success() && said.contains("1 passed"),
        "in a namespace of its own ({options:?}): {said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(false)
}

fn mount_small(directory: &Path, options: &str) -> Result<(), Failed> {
    fs::create_dir_all(directory).map_err(io)?;
    let mut mount = Command::new("mount");
    // Other users may not write there.
    let options = format!("{options},mode=0700");
    mount.args(["-t", "tmpfs", "-o", &options, "small"]);
    succeed(mount.arg(directory))
}

fn unmount(directory: &Path) -> Result<(), Failed> {
    // Lazily, since the coordinator may be about to close its log.
    succeed(Command::new("umount").arg("--lazy").arg(directory))
}

fn succeed(command: &mut Command) -> Result<(), Failed> {
    let output = command.output().map_err(io)?;
    ensure!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Commits one epoch. After `fill`, writing fails for a reason that contains `words`; after `free` there is room again.
fn survives(
    trial: &Trial,
    fill: impl FnOnce() -> Result<(), Failed>,
    free: impl FnOnce() -> Result<(), Failed>,
    words: &[&str],
) -> Result<(), Failed> {
    let target = trial.epochs_at();
    let mut job = trial.split()?;
    trial.ready(&mut job)?;
    command::checkpoint(trial.directory, &target)?.expect(exit::DONE)?;
    fill()?;
    for ask in [command::checkpoint, command::suspend] {
        ask(trial.directory, &target)?.expect_one_reason(exit::FAILED, words)?;
        ensure!(
            command::epochs(&target) == [1],
            "epochs: {:?}",
            command::epochs(&target)
        );
        ensure!(job.runs(), "the job has ended: {}", job.stderr());
        ensure!(
            command::state(trial.directory, &target)? == "running",
            "it does not run on"
        );
    }
    verify(trial)?.expect(exit::DONE)?;
    free()?;
    command::checkpoint(trial.directory, &target)?.expect(exit::DONE)?;
    let epochs = command::epochs(&target);
    ensure!(epochs.len() == 2 && epochs[0] == 1, "epochs: {epochs:?}");
    verify(trial)?.expect(exit::DONE)?;
    trial.go()?;
    trial.ends_well(job)?;
    trial.ends_well(trial.restarted()?)?;
    Ok(())
}

#[test]
fn a_full_disk() {
    must((|| {
        if !inside_namespace("places::a_full_disk")? {
            return Ok(());
        }
        let program = Program::named(Kind::Moving, "ring")?;
        Directory::new("full-disk")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let small = trial.epochs_at();
            mount_small(&small, "size=100m")?;
            let filler = small.join("filler");
            survives(
                &trial,
                || {
                    // Half a megabyte is left, which is not enough for one image.
                    let room = free_bytes(&small)?.saturating_sub(512 << 10);
                    fs::write(&filler, vec![1; room as usize]).map_err(io)
                },
                || fs::remove_file(&filler).map_err(io),
                &["no space left", "free some space"],
            )?;
            unmount(&small)
        })
    })());
}

fn free_bytes(directory: &Path) -> Result<u64, Failed> {
    let output = Command::new("df")
        .args(["--output=avail", "--block-size=1"])
        .arg(directory)
        .output()
        .map_err(io)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .last()
        .and_then(|line| line.trim().parse().ok())
        .ok_or_else(|| format!("df says: {text}"))
}

/// A limit on the size of files (`ulimit -f`) applies to the application. Epochs may be larger, and the limit holds
/// again after each.
#[test]
fn a_limit_on_the_size_of_files() {
    const LIMIT: &str = "100000";
    must((|| {
        let program = Program::named(Kind::Moving, "ring")?;
        Directory::new("file-size")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let target = trial.epochs_at();
            let of_ranks = |arguments: &[&str]| -> Result<Vec<String>, Failed> {
                let ask = |rank: i32| {
                    let mut prlimit = Command::new("prlimit");
                    prlimit.args(["--pid", &rank.to_string()]).args(arguments);
                    let output = prlimit.output().map_err(io)?;
                    ensure!(
                        output.status.success(),
                        "{}",
                        String::from_utf8_lossy(&output.stderr)
                    );
                    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
                };
                strike::ranks(&target)?.into_iter().map(ask).collect()
            };
            let holds = || {
                let limits = of_ranks(&["--fsize", "--output=SOFT", "--noheadings", "--raw"])?;
                ensure!(limits == [LIMIT, LIMIT], "limits: {limits:?}");
                Ok::<(), Failed>(())
            };
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            // After the first epoch, job.json lists the ranks' processes.
            let checkpoint = || {
                command::checkpoint(trial.directory, &target)?
                    .expect(exit::DONE)
                    .map(drop)
            };
            checkpoint()?;
            of_ranks(&[&format!("--fsize={LIMIT}:")])?;
            checkpoint()?;
            holds()?;
            trial.suspended(job)?;
            let job = trial.resumed()?;
            checkpoint()?;
            holds()?;
            verify(&trial)?.expect(exit::DONE)?;
            trial.go()?;
            trial.ends_well(job).map(drop)
        })
    })());
}

#[test]
fn a_file_system_that_is_read_only() {
    must((|| {
        if !inside_namespace("places::a_file_system_that_is_read_only")? {
            return Ok(());
        }
        let program = Program::named(Kind::Moving, "ring")?.build()?;
        Directory::new("read-only")?.run(|directory| {
            let target = directory.file("stillpoint.d");
            mount_small(&target, "ro")?;
            let mut command = job::under_stillpoint(2, &target)?;
            command.arg(&program);
            let shown = target.display().to_string();
            fails(
                Job::start(command, directory)?,
                exit::FAILED,
                &[&shown, "read-only", "--dir"],
            )
        })
    })());
}

/// A second job must not write among the epochs of a running one.
#[test]
fn a_directory_in_which_a_job_runs() {
    must((|| {
        let program = Program::named(Kind::Moving, "ring")?;
        Directory::new("in-use")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
            let shown = trial.epochs_at().display().to_string();
            fails(trial.split()?, exit::FAILED, &[&shown])?;
            fails(trial.restarted()?, exit::FAILED, &[&shown])?;
            command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
            trial.go()?;
            trial.ends_well(job)?;
            Ok(())
        })
    })());
}
