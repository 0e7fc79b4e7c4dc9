//! A checkpoint directory on a file system in user space that delays one operation after the other: epochs are committed, and waiting commands are told.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::job;
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::{PATIENCE, Trial};
use stillpoint_tests::user_space::UserSpace;
use stillpoint_tests::{Failed, ensure};

/// Operations that are late together, the delay in milliseconds, and whether a checkpoint waits for it.
const LATE: [(&[&str], u64, bool); 9] = [
    (&["open", "create"], 200, true),
    (&["write"], 30, true),
    (&["fsync"], 500, true),
    (&["rename", "mkdir", "unlink"], 500, true),
    (&["getattr"], 50, true),
    (&["flush"], 150, true),
    (&["fsyncdir"], 500, true),
    // The kernel does not read cached data again, and the last release of a file delays no process.
    (&["read", "opendir", "readdir", "releasedir"], 150, false),
    (&["release"], 500, false),
];
/// Operations that are late at the same time, by this delay.
const ALL: [&str; 16] = [
    "open", "create", "write", "fsync", "rename", "mkdir", "unlink", "rmdir", "getattr", "flush",
    "fsyncdir", "read", "opendir", "readdir", "release", "flock",
];
const ALL_BY: Duration = Duration::from_millis(20);
/// The delay of an open that the application does not wait for.
const LATE_OPEN: Duration = Duration::from_secs(3);

#[test]
fn a_directory_in_user_space_that_is_late_in_any_operation_costs_no_epoch() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "uneven_sizes")?;
        Directory::new("user-space")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?.with(&["4", "4"]);
            play(&trial, &UserSpace::new(directory.path())?)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// An incremental image opens its earlier image again. That delays the checkpoint, but not the application.
#[test]
fn an_earlier_image_that_is_opened_late_does_not_hold_the_application() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "large_and_awake")?;
        Directory::new("user-space-earlier")?.run(|directory| {
            let trial = Trial::new(&program, 1, directory)?.with(&["4"]);
            let late = UserSpace::new(directory.path())?;
            let target = late.path().join("stillpoint.d");
            let ask = |words: &[&str]| {
                let words = words.iter().map(Path::new);
                command::stillpoint(directory, words.chain([target.as_path()]))
            };
            let mut command = job::under_stillpoint(1, &target)?;
            command.env("STILLPOINT_INCREMENTAL", "pages");
            command.env("STILLPOINT_COPY", "off");
            command.arg(trial.executable()).args(&trial.arguments);
            let mut job = trial.launch(command)?;
            trial.ready(&mut job)?;
            ask(&["checkpoint"])?.expect(exit::DONE)?;
            late.late(&["open-image"], LATE_OPEN)?;
            ask(&["checkpoint", "--timeout", "1"])?
                .expect_reason(exit::FAILED, "given up after 1 s in phase write")?;
            late.late(&[], Duration::ZERO)?;
            trial.go()?;
            trial.ends_well(job)?;
            let gap = fs::read_to_string(directory.file("gap")).map_err(|e| e.to_string())?;
            let gap: f64 = gap.trim().parse().map_err(|_| "no number".to_owned())?;
            ensure!(
                gap < LATE_OPEN.as_secs_f64() / 2.0,
                "it stood still for {gap} s"
            );
            Ok(())
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn play(trial: &Trial, late: &UserSpace) -> Result<(), Failed> {
    let target = late.path().join("stillpoint.d");
    let shown = target.to_string_lossy().into_owned();
    let stillpoint = |words: &[&str]| {
        let words = words.iter().copied().chain([shown.as_str()]);
        command::stillpoint(trial.directory, words)
    };
    let mut command = job::under_stillpoint(trial.ranks, &target)?;
    command.arg(trial.executable()).args(&trial.arguments);
    let mut job = trial.launch(command)?;
    trial.ready(&mut job)?;
    for (operations, by, waits) in LATE {
        let by = Duration::from_millis(by);
        late.late(operations, by)?;
        let (answer, status) = thread::scope(|scope| {
            let asking = scope.spawn(|| stillpoint(&["checkpoint"]));
            let status = stillpoint(&["status", "--json"]);
            let answer = asking.join();
            (answer, status)
        });
        late.late(&[], Duration::ZERO)?;
        let answer: Answer = answer.map_err(|_| "the thread that asks failed".to_owned())??;
        let answer = answer.expect(exit::DONE)?;
        ensure!(
            !waits || answer.took >= by,
            "{operations:?} were not late: {}",
            answer.show()
        );
        let status = status?.json()?;
        ensure!(
            status["state"] == "running",
            "{operations:?}: it does not run: {status}"
        );
    }
    let newest = command::epochs(&target).pop();
    ensure!(
        newest == Some(LATE.len() as u64),
        "{newest:?} is the newest epoch"
    );
    late.late(&ALL, ALL_BY)?;
    stillpoint(&["suspend"])?.expect(exit::DONE)?;
    let ended = job.end(PATIENCE)?;
    ensure!(ended.status == 0, "{}", ended.show());
    stillpoint(&["verify"])?.expect(exit::DONE)?;
    let again = trial.launch(job::restarted(trial.ranks, &target)?)?;
    trial.go()?;
    trial.ends_well(again).map(drop)
}
