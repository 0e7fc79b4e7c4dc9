//! Programs that cannot be run.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use stillpoint_tests::command;
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::{ensure, reason};

use crate::common::{LONGEST, fails, io, must};

/// Checks that `stillpoint run -- PROGRAM` fails with `status`, both under `mpirun` and by itself.
fn does_not_run(program: &Path, status: i32, words: &[&str]) {
    must((|| {
        Directory::new("does-not-run")?.run(|directory| {
            let target = directory.file("stillpoint.d");
            let mut command = job::under_stillpoint(2, &target)?;
            command.arg(program);
            fails(Job::start(command, directory)?, status, words)?;
            let alone = [
                OsStr::new("run"),
                "--dir".as_ref(),
                target.as_ref(),
                "--".as_ref(),
                program.as_ref(),
            ];
            command::stillpoint(directory, alone)?.expect_one_reason(status, words)?;
            Ok(())
        })
    })());
}

fn file_with(name: &str, text: &[u8], mode: u32) -> PathBuf {
    let place = Directory::new(name).and_then(|directory| {
        // The file is the test's as long as the target directory exists.
        let path = place::target().join("trials").join(format!(
            "{name}.{}",
            directory.path().file_name().unwrap_or_default().display()
        ));
        fs::write(&path, text).map_err(io)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(io)?;
        Ok(path)
    });
    place.unwrap_or_else(|failed| panic!("{failed}"))
}

#[test]
fn no_such_program() {
    let name = Path::new("/nonexistent/program");
    does_not_run(name, 127, &["/nonexistent/program", "no such program"]);
    let name = Path::new("no-such-program-anywhere");
    does_not_run(name, 127, &["no-such-program-anywhere", "PATH"]);
}

#[test]
fn a_file_that_is_not_executable() {
    let file = file_with("not-executable", b"#!/bin/sh\nexit 0\n", 0o644);
    does_not_run(&file, 126, &["not-executable", "not executable"]);
    let _ = fs::remove_file(file);
}

#[test]
fn a_file_that_is_no_program() {
    let file = file_with("no-program", b"neither this nor that", 0o755);
    does_not_run(&file, 126, &["no-program", "not a program"]);
    let _ = fs::remove_file(file);
}

#[test]
fn a_script_whose_interpreter_is_missing() {
    let file = file_with("no-interpreter", b"#!/nonexistent/interpreter\n", 0o755);
    does_not_run(&file, 127, &["/nonexistent/interpreter"]);
    let _ = fs::remove_file(file);
}

#[test]
fn a_program_that_ends_early_in_its_file() {
    let program = Program::named(Kind::Moving, "ring").and_then(|program| program.build());
    let program = program.unwrap_or_else(|failed| panic!("{failed}"));
    let whole = fs::read(program).unwrap_or_else(|error| panic!("{error}"));
    let file = file_with("cut-off", &whole[..3000], 0o755);
    does_not_run(&file, 126, &["cut-off"]);
    let _ = fs::remove_file(file);
}

#[test]
fn a_directory() {
    does_not_run(Path::new("/usr"), 126, &["/usr", "directory"]);
}

#[test]
fn a_statically_linked_program() {
    must((|| {
        let source = file_with("static.c", b"int main(void) { return 0; }\n", 0o644);
        let program = source.with_extension("static");
        let made = Command::new("cc")
            .args(["-static", "-x", "c", "-o"])
            .arg(&program)
            .arg(&source)
            .output()
            .map_err(io)?;
        ensure!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        does_not_run(&program, 126, &["static", "link it dynamically"]);
        let _ = (fs::remove_file(source), fs::remove_file(program));
        Ok(())
    })());
}

/// A program without MPI runs as it does without Stillpoint.
#[test]
fn a_program_without_mpi_just_runs() {
    must((|| {
        Directory::new("without-mpi")?.run(|directory| {
            let mut command = job::under_stillpoint(2, &directory.file("stillpoint.d"))?;
            command.args(["sh", "-c", "echo here; exit 7"]);
            let ended = Job::start(command, directory)?.end(LONGEST)?;
            ensure!(ended.status == 7, "{}", ended.show());
            ensure!(
                ended.stdout.matches("here").count() >= 1,
                "{}",
                ended.show()
            );
            ensure!(reason::lines(&ended.stderr).is_empty(), "{}", ended.show());
            Ok(())
        })
    })());
}
