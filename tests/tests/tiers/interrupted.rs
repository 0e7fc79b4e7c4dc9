//! Signals to commands that wait for an epoch to become durable: they end at once, and no epoch is lost.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::job::Job;
use stillpoint_tests::{Failed, ensure, place, strike};

use crate::nodes::{Nodes, PATIENCE, on_nodes};

/// Starts `stillpoint checkpoint` or `suspend`, which waits.
fn asking(nodes: &Nodes, what: &str) -> Result<Child, Failed> {
    let mut command = Command::new(place::stillpoint()?);
    command.arg(what).arg(nodes.target());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    // The test runner may ignore SIGINT, as shells do for background commands; the command would inherit that.
    // SAFETY: `signal` may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            for signal in [Signal::SIGINT, Signal::SIGTERM] {
                nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigDfl)?;
            }
            Ok(())
        });
    }
    command.spawn().map_err(|error| error.to_string())
}

/// Checks that the command ends within a second, and returns its status and output.
fn interrupted(mut asking: Child, signal: Signal) -> Result<(ExitStatus, String), Failed> {
    let failed = |error: std::io::Error| error.to_string();
    kill(Pid::from_raw(asking.id() as i32), signal).map_err(|error| error.to_string())?;
    let began = Instant::now();
    while asking.try_wait().map_err(failed)?.is_none() {
        if began.elapsed() > Duration::from_secs(1) {
            asking.kill().map_err(failed)?;
            return Err(format!("{signal} does not end it"));
        }
        thread::sleep(Duration::from_millis(2));
    }
    let output = asking.wait_with_output().map_err(failed)?;
    Ok((
        output.status,
        String::from_utf8_lossy(&output.stderr).into_owned(),
    ))
}

/// Checks that the job ends suspended, that `checkpoint` has its answer and both epochs are durable, and that a restart
/// is right.
fn suspended_after(checkpoint: Child, nodes: &Nodes, job: Job) -> Result<(), Failed> {
    let ended = job.end(PATIENCE)?;
    ensure!(ended.status == 0, "{}", ended.show());
    let waited = checkpoint
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    ensure!(
        waited.status.success(),
        "{}",
        String::from_utf8_lossy(&waited.stderr)
    );
    ensure!(
        command::epochs(&nodes.target()) == [1, 2],
        "{}",
        nodes.status()?
    );
    nodes.ends_well(nodes.restart()?)?;
    Ok(())
}

fn until_durable(nodes: &Nodes, epochs: &[u64]) -> Result<(), Failed> {
    let began = Instant::now();
    while command::epochs(&nodes.target()) != epochs {
        ensure!(
            began.elapsed() < PATIENCE,
            "never durable: {}",
            nodes.status()?
        );
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

#[test]
fn a_checkpoint_that_is_interrupted_becomes_durable_all_the_same() {
    on_nodes(
        "interrupted",
        |nodes| nodes.slow = ",limit=8MB/s",
        |nodes| {
            let job = nodes.start()?;
            for (epoch, signal) in [(1, Signal::SIGINT), (2, Signal::SIGTERM)] {
                let asking = asking(nodes, "checkpoint")?;
                nodes.until_staged(epoch)?;
                let (status, said) = interrupted(asking, signal)?;
                ensure!(
                    status.code() == Some(128 + signal as i32),
                    "{status}: {said}"
                );
                ensure!(said.contains("the job finishes the epoch"), "{said}");
                until_durable(nodes, &(1..=epoch).collect::<Vec<u64>>())?;
            }
            nodes.verified()?.expect(exit::DONE)?;
            nodes.ends_well(job)?;
            Ok(())
        },
    );
}

#[test]
fn a_suspend_that_is_interrupted_behind_a_flush_suspends_all_the_same() {
    on_nodes(
        "interrupted-suspend",
        |nodes| nodes.slow = ",limit=8MB/s",
        |nodes| {
            let job = nodes.start()?;
            let checkpoint = asking(nodes, "checkpoint")?;
            nodes.until_staged(1)?;
            let suspend = asking(nodes, "suspend")?;
            // The suspend request must arrive first. The suspend then waits for the flush.
            thread::sleep(Duration::from_millis(300));
            let (status, said) = interrupted(suspend, Signal::SIGINT)?;
            ensure!(status.code() == Some(130), "{status}: {said}");
            suspended_after(checkpoint, nodes, job)
        },
    );
}

#[test]
fn the_suspend_signal_during_a_flush_waits_for_it() {
    on_nodes(
        "signalled-flush",
        |nodes| nodes.slow = ",limit=8MB/s",
        |nodes| {
            let job = nodes.start()?;
            let checkpoint = asking(nodes, "checkpoint")?;
            nodes.until_staged(1)?;
            for rank in strike::ranks(&nodes.target())? {
                strike::signal(rank, Signal::SIGUSR1)?;
            }
            suspended_after(checkpoint, nodes, job)
        },
    );
}
