//! Programs in the split process behave as they do natively: same output, same end.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

mod test_directory;

use test_directory::{LOWER, TestDirectory, finish, write};

fn native(program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env("NATIVE", "1");
    finish(command)
}

fn split(program: &Path, arguments: &[&str]) -> Output {
    split_with(program, arguments, &[])
}

fn split_with(program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(LOWER);
    command.envs(environment.iter().copied());
    // This tests the process alone: nothing is preloaded.
    command
        .args(["run", "--"])
        .arg(program)
        .args(arguments)
        .env("STILLPOINT_UPPER", "none");
    finish(command)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Checks that output and end are the same both ways.
fn same(program: &Path, arguments: &[&str]) {
    agree(
        program,
        &native(program, arguments),
        &split(program, arguments),
    );
}

fn agree(program: &Path, native: &Output, split: &Output) {
    let program = program.display();
    assert_eq!(
        text(&native.stdout),
        text(&split.stdout),
        "stdout of {program}"
    );
    assert_eq!(
        text(&native.stderr),
        text(&split.stderr),
        "stderr of {program}"
    );
    let end = |output: &Output| (output.status.code(), output.status.signal());
    assert_eq!(end(native), end(split), "end of {program}");
}

fn same_in_every_form(program: &str) {
    let place = TestDirectory::new(program);
    same(&place.compile(program, &[]), &[]);
    same(&place.compile(program, &["-no-pie"]), &[]);
}

#[test]
fn threads_come_and_go() {
    same_in_every_form("threads");
}

#[test]
fn signals_arrive_as_they_should() {
    same_in_every_form("signals");
}

#[test]
fn small_stacks_are_large_enough() {
    same_in_every_form("small_stacks");
    undisturbed("small_stacks", &["1"]);
}

#[test]
fn memory_lies_where_it_belongs() {
    same_in_every_form("memory");
}

#[test]
fn descriptors_are_the_applications_own() {
    same_in_every_form("descriptors");
}

#[test]
fn processes_are_started_and_waited_for() {
    same_in_every_form("processes");
}

#[test]
fn bad_pointers_are_errors() {
    same_in_every_form("bad_pointers");
}

#[test]
fn masks_read_back_as_they_were_set() {
    same_in_every_form("masks");
    undisturbed("masks", &["1"]);
}

#[test]
fn children_know_who_they_are() {
    same_in_every_form("children");
}

#[test]
fn children_inherit_no_locks() {
    same_in_every_form("fork_among_threads");
}

#[test]
fn signals_that_come_during_a_stop_end_what_they_would_have_ended() {
    // Most alarms come while the thread is stopped.
    undisturbed("waits", &["40,150"]);
}

#[test]
fn clocks_and_names_are_right() {
    let place = TestDirectory::new("clocks");
    same(
        &place.compile("clocks", &[]),
        &["one", "", "three words here"],
    );
    same(&place.compile("clocks", &["-no-pie"]), &[]);
}

#[test]
fn everyday_programs_run() {
    same(Path::new("/bin/ls"), &["/usr"]);
    same(
        Path::new("/bin/bash"),
        &[
            "-c",
            "set -o pipefail; echo {1..5} | tr ' ' '\\n' | sort -r; false | cat; echo $?; exit 7",
        ],
    );
    same(
        Path::new("/bin/bash"),
        &["-c", "(sleep 0.1; echo later) & wait; kill -TERM $$"],
    );
    same(Path::new("/usr/bin/env"), &["printf", "%s\\n", "a b"]);
}

#[test]
fn python_runs_with_its_threads_and_children() {
    let python = Path::new("/usr/bin/python3");
    if !python.exists() {
        return;
    }
    let script = "import threading,subprocess,sys,os,time\n\
        t=[threading.Thread(target=lambda: time.sleep(0.01)) for _ in range(20)]\n\
        [x.start() for x in t]; [x.join() for x in t]\n\
        print(subprocess.run(['echo','child'],capture_output=True,text=True).stdout)\n\
        print(os.path.basename(os.readlink('/proc/self/exe')), sys.version)\n\
        print(sum(bytearray(100_000_000)[::1000]))\n\
        sys.exit(9)";
    same(python, &["-c", script]);
}

#[test]
fn scripts_run_by_their_first_line() {
    let place = TestDirectory::new("scripts");
    same(
        &place.file("plain", "#!/bin/sh\necho \"$0\" \"$@\"; exit 3\n", 0o755),
        &["a b", "c"],
    );
    same(
        &place.file(
            "argument",
            "#! /bin/sh -e \necho before; false; echo after\n",
            0o755,
        ),
        &[],
    );
    same(
        &place.file(
            "through-env",
            "#!/usr/bin/env bash\necho ${BASH_VERSION:+bash}\n",
            0o755,
        ),
        &[],
    );
    let inner = place.file("inner", "#!/bin/sh\necho inner \"$@\"\n", 0o755);
    let nested = format!("#!{} x\n", inner.display());
    same(&place.file("nested", &nested, 0o755), &["y"]);
    let launcher = "#!/bin/sh\nexport A=1\nls /nonexistent 2>/dev/null\nexec sh -c 'echo $A $0; exit 6' name\n";
    same(&place.file("launcher", launcher, 0o755), &[]);
    same(
        &place.file(
            "background",
            "#!/bin/sh\nsleep 0.05 &\nwait $!\necho done\n",
            0o755,
        ),
        &[],
    );
}

/// Checks for a one-line error with the given exit status and these words.
fn refused(output: &Output, status: i32, words: &str) {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{error}");
    assert!(
        error.contains(words) && error.trim_end().lines().count() == 1,
        "{error}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn a_statically_linked_program_is_refused() {
    let place = TestDirectory::new("static");
    let program = place.compile("clocks", &["-static"]);
    refused(&split(&program, &[]), 126, "statically linked");
    let position_independent = place.compile("clocks", &["-static-pie"]);
    refused(&split(&position_independent, &[]), 126, "statically linked");
}

#[test]
fn a_script_may_use_a_statically_linked_helper() {
    let place = TestDirectory::new("static-helper");
    let helper = place.compile("clocks", &["-static"]);
    let script = format!("#!/bin/sh\n{} | head -3\necho after\n", helper.display());
    same(&place.file("script", &script, 0o755), &[]);
}

#[test]
fn an_upper_half_of_another_build_is_refused() {
    let mut command = Command::new(LOWER);
    command.args(["run", "--", "/bin/true"]);
    // It does not export a contract at all.
    command.env("STILLPOINT_UPPER", LOWER);
    refused(
        &finish(command),
        1,
        "belongs to another build: its contract is none",
    );
}

#[test]
fn what_cannot_be_started_is_said_in_one_line() {
    let place = TestDirectory::new("refused");
    let name = |name: &str| PathBuf::from(name);
    refused(&split(&name("no-such-program"), &[]), 127, "PATH");
    refused(
        &split(&name("/no/such/program"), &[]),
        127,
        "no such program",
    );
    refused(&split(&name("/usr"), &[]), 126, "directory");
    refused(
        &split(&place.file("plain", "text", 0o644), &[]),
        126,
        "permission",
    );
    refused(
        &split(&place.file("text", "text", 0o755), &[]),
        126,
        "neither an ELF executable nor a script",
    );
    refused(
        &split(&place.file("bad", "#!/no/such/interpreter\n", 0o755), &[]),
        127,
        "/no/such/interpreter",
    );
    refused(&split(&place.file("empty", "#!\n", 0o755), &[]), 126, "#!");
    let mut other = std::fs::read("/bin/true").unwrap();
    other[18] = 183;
    let path = place.file("other", "", 0o755);
    write(&path, &other);
    refused(&split(&path, &[]), 126, "another processor");
    let mut command = Command::new(LOWER);
    command.arg("run");
    refused(&finish(command), 2, "usage");
}

#[test]
fn names_are_looked_up_in_path() {
    let place = TestDirectory::new("path");
    place.file("stillpoint-test-name", "#!/bin/sh\necho found\n", 0o755);
    let mut command = Command::new(LOWER);
    command
        .args(["run", "--", "stillpoint-test-name"])
        .env("STILLPOINT_UPPER", "none");
    command.env(
        "PATH",
        format!("/nonexistent:{}:/usr/bin:/bin", place.0.display()),
    );
    assert_eq!(text(&finish(command).stdout), "found\n");
}

/// Checks that a program that is stopped and released every few milliseconds behaves as it does natively.
fn undisturbed(program: &str, pauses: &[&str]) {
    let place = TestDirectory::new(&format!("rehearse-{program}"));
    let program = place.compile(program, &[]);
    let native = native(&program, &[]);
    for pause in pauses {
        let split = split_with(&program, &[], &[("STILLPOINT_REHEARSE", *pause)]);
        agree(&program, &native, &split);
    }
}

#[test]
fn threads_do_not_notice_a_stop() {
    undisturbed("threads", &["1", "7"]);
}

#[test]
fn sleeps_do_not_notice_a_stop() {
    undisturbed("sleeps", &["1"]);
}

#[test]
fn signals_do_not_notice_a_stop() {
    undisturbed("signals", &["1", "7"]);
}

#[test]
fn processes_do_not_notice_a_stop() {
    undisturbed("processes", &["1", "7"]);
    undisturbed("descriptors", &["1", "7"]);
}

#[test]
fn blocked_calls_do_not_notice_a_stop() {
    // A sleep whose remaining time is not reported starts again, so the stops must be less frequent than the sleeps are long.
    undisturbed("blocked", &["230", "311"]);
}
