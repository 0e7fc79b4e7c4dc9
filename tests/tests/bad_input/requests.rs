//! Requests that cannot be met.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::ensure;
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;

use crate::common::{fails, io, must, with_suspended};

#[test]
fn no_such_job_and_no_such_epoch() {
    must((|| {
        Directory::new("no-such-job")?.run(|directory| {
            let empty = directory.file("empty.d");
            fs::create_dir(&empty).map_err(io)?;
            let nowhere = directory.file("nowhere.d");
            let name = Path::new("no-job-has-this-name");
            for target in [empty.as_path(), nowhere.as_path(), name] {
                let shown = target.display().to_string();
                for asked in ["status", "checkpoint", "suspend", "verify", "inspect"] {
                    command::stillpoint(directory, [Path::new(asked), target])?
                        .expect_one_reason(exit::NO_SUCH, &[&shown])?;
                }
            }
            for target in [&empty, &nowhere] {
                let job = Job::start(job::restarted(2, target)?, directory)?;
                fails(job, exit::NO_SUCH, &[&target.display().to_string()])?;
            }
            Ok(())
        })
    })());
}

#[test]
fn an_epoch_that_is_not_there_and_a_job_that_does_not_run() {
    with_suspended("no-such-epoch", |trial, _| {
        let target = trial.epochs_at();
        let words = |command: &'static str| {
            [
                OsStr::new(command),
                target.as_os_str(),
                "--epoch".as_ref(),
                "7".as_ref(),
            ]
        };
        for asked in ["verify", "inspect"] {
            command::stillpoint(trial.directory, words(asked))?
                .expect_one_reason(exit::NO_SUCH, &["epoch 7", "only 1"])?;
        }
        let mut command = job::restarted(2, &target)?;
        command.args(["--epoch", "7"]);
        fails(
            trial.launch(command)?,
            exit::NO_SUCH,
            &["epoch 7", "only 1"],
        )?;
        for ask in [command::checkpoint, command::suspend] {
            ask(trial.directory, &target)?.expect_one_reason(exit::NO_SUCH, &["suspended"])?;
        }
        Ok(())
    });
}

#[test]
fn wrong_usage() {
    must((|| {
        Directory::new("usage")?.run(|directory| {
            let wrong: [&[&str]; 8] = [
                &[],
                &["nonsense"],
                &["run"],
                &["run", "--nonsense", "--", "true"],
                &["run", "--keep", "0", "--", "true"],
                &["run", "--interval", "soon", "--", "true"],
                &["restart"],
                &["checkpoint", "one", "two"],
            ];
            for words in wrong {
                let answer = command::stillpoint(directory, words)?.expect(exit::USAGE)?;
                ensure!(
                    answer.stderr.contains("Usage") || answer.stderr.contains("--help"),
                    "it does not say how: {}",
                    answer.show()
                );
                ensure!(!answer.stderr.contains("panicked"), "{}", answer.show());
            }
            Ok(())
        })
    })());
}

/// A job refuses a checkpoint for something that cannot be carried, with the reason, each time; it runs on.
#[test]
fn a_checkpoint_that_is_refused() {
    must((|| {
        let program = Program::named(Kind::Refused, "live_child")?;
        let ranks = program.ranks.first().copied().unwrap_or(2);
        Directory::new("refused")?.run(|directory| {
            let trial = Trial::new(&program, ranks, directory)?;
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            for ask in [command::checkpoint, command::suspend] {
                ask(trial.directory, &trial.epochs_at())?
                    .expect_one_reason(exit::REFUSED, &["rank", "child"])?;
            }
            ensure!(
                command::epochs(&trial.epochs_at()).is_empty(),
                "a refused checkpoint left an epoch"
            );
            trial.go()?;
            trial.ends_well(job)?;
            Ok(())
        })
    })());
}
