//! The bundle of `ci/gpu-acceptance`, on emulated GPUs and without an MPI or `ssh` in sight.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::{Failed, ensure};

/// Runs groups of its steps, and returns the status, the report and the names of the files that a failure leaves.
fn bundle(
    directory: &Directory,
    groups: &[&str],
    settings: &[(&str, &str)],
) -> Result<(Option<i32>, String, String), Failed> {
    let out = directory.file("out");
    fs::create_dir(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let mut command = Command::new(place::project().join("ci/gpu-acceptance"));
    command.arg("--emulated").args(groups).env("OUT", &out);
    command.envs(settings.iter().copied());
    let ended = command.output().map_err(|error| error.to_string())?;
    let report = fs::read_to_string(out.join("report.txt")).map_err(|error| {
        let said = String::from_utf8_lossy(&ended.stderr);
        format!("there is no report ({error}): {said}")
    })?;
    let mut listing = Command::new("tar");
    listing.arg("tzf").arg(out.join("evidence.tar.gz"));
    let listing = listing.output().map_err(|error| error.to_string())?;
    let names = String::from_utf8_lossy(&listing.stdout).into_owned();
    Ok((ended.status.code(), report, names))
}

fn tested(name: &str, test: impl FnOnce(&Directory) -> Result<(), Failed>) {
    let run = || Directory::new(name)?.run(test);
    if let Err(failed) = run() {
        panic!("{failed}");
    }
}

#[test]
fn a_machine_without_an_mpi_carries_jobs_with_gpus() {
    tested("gpu-acceptance", |directory| {
        let (status, report, _) = bundle(directory, &["driver", "jobs"], &[])?;
        ensure!(status == Some(0), "it ended with {status:?}:\n{report}");
        for passed in [
            "passed  checkpoint calls with 100000000 bytes on a GPU",
            "passed  a process with work on a GPU is locked and unlocked",
            "passed  two ranks, with their memory staged",
            "passed  MPI calls take a GPU's memory, across a restart",
        ] {
            ensure!(report.contains(passed), "no '{passed}':\n{report}");
        }
        Ok(())
    });
}

#[test]
fn a_failed_step_leaves_its_logs_and_nothing_that_needs_it_is_tried() {
    tested("gpu-acceptance-failed", |directory| {
        let strikes = [("FAULT", "checkpoint-breaks")];
        let (status, report, names) = bundle(directory, &["jobs"], &strikes)?;
        ensure!(status == Some(1), "it ended with {status:?}:\n{report}");
        for line in [
            "FAILED  one rank on a GPU",
            "not tried  two ranks on GPUs: 'one rank on a GPU",
            "not tried  MPI calls take a GPU's memory, across a restart: 'one rank on a GPU",
        ] {
            ensure!(report.contains(line), "no '{line}':\n{report}");
        }
        for name in ["./one.d/coordinator.log", "./one.first", "./logs/machine"] {
            ensure!(names.contains(name), "{name} is not kept:\n{names}");
        }
        Ok(())
    });
}

/// The machine's Python hangs in the first step that uses it.
#[test]
fn a_step_that_hangs_is_looked_at_and_ended() {
    tested("gpu-acceptance-hangs", |directory| {
        let python = directory.file("python");
        let script = "#!/bin/sh\n[ \"$2\" = has ] || exec sleep 1000\n";
        fs::write(&python, script).map_err(|error| error.to_string())?;
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&python, executable).map_err(|error| error.to_string())?;
        let settings = [("PYTHON", &*python.to_string_lossy()), ("TOTAL", "20")];
        let (status, report, names) = bundle(directory, &["python"], &settings)?;
        ensure!(status == Some(1), "it ended with {status:?}:\n{report}");
        ensure!(
            report.contains("torch, 1 rank(s) (ended after "),
            "{report}"
        );
        let looked_at = names
            .lines()
            .filter(|name| name.starts_with("./logs/torch.") && name.ends_with("/tasks"))
            .count();
        // The launcher and the program, at least.
        ensure!(looked_at >= 2, "{looked_at} processes:\n{names}");
        Ok(())
    });
}
