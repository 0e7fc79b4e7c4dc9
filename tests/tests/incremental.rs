//! Epochs that hold what has changed since the ones before: programs that never hold still are checkpointed, suspended and restarted at random moments.

use std::fs;
use std::path::Path;

use serde_json::Value;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::{self, Trial};
use stillpoint_tests::turn::Turn;
use stillpoint_tests::{Failed, ensure};

const INCREMENTAL: &str = "STILLPOINT_INCREMENTAL";

fn tested(test: impl FnOnce() -> Result<(), Failed>) {
    if let Err(failed) = test() {
        panic!("{failed}");
    }
}

fn moves(program: &str, how: &'static str, copy: &'static str) {
    tested(|| {
        let program = Program::named(Kind::Moving, program)?;
        trial::moves_with(
            &program,
            2,
            &[(INCREMENTAL, how), ("STILLPOINT_COPY", copy)],
        )
    });
}

#[test]
fn memory_that_is_rewritten_in_pages() {
    moves("rewrites_everything", "pages", "auto");
}

#[test]
fn memory_that_is_rewritten_in_blocks() {
    moves("rewrites_everything", "blocks", "auto");
}

#[test]
fn memory_that_comes_and_goes() {
    moves("memory_churn", "blocks", "auto");
}

#[test]
fn memory_that_comes_and_goes_while_the_application_stands() {
    moves("memory_churn", "blocks", "off");
}

#[test]
fn threads_that_come_and_go() {
    moves("threads_come_and_go", "pages", "auto");
}

#[test]
fn memory_of_windows() {
    moves("windows_shared_all_the_time", "blocks", "auto");
}

#[test]
fn messages_of_all_kinds() {
    moves("random_messages", "auto", "auto");
}

/// What `inspect` says of the newest epoch: bytes of pages that it has itself, of all its pages, and the epochs that it needs.
fn inspected(trial: &Trial) -> Result<(u64, u64, Vec<u64>), Failed> {
    let target = trial.epochs_at();
    let words = [Path::new("inspect"), target.as_path(), Path::new("--json")];
    let shown = command::stillpoint(trial.directory, words)?
        .expect(exit::DONE)?
        .json()?;
    let sum = |field: &str| -> u64 {
        let images = shown["images"].as_array().into_iter().flatten();
        images
            .filter_map(|image| image["sizes"][field].as_u64())
            .sum()
    };
    let needs = shown["manifest"]["needs"].as_array().into_iter().flatten();
    let needs = needs.filter_map(Value::as_u64).collect();
    Ok((sum("own_page_bytes"), sum("page_bytes"), needs))
}

fn checkpointed(trial: &Trial) -> Result<(u64, u64, Vec<u64>), Failed> {
    command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
    inspected(trial)
}

/// Memory that is not written to is written down once; where the epoch that has it is gone, again.
#[test]
fn what_does_not_change_is_not_written_again() {
    tested(|| {
        let program = Program::named(Kind::Special, "large_and_awake")?;
        let _turn = Turn::take()?;
        Directory::new("increments")?.run(|directory| {
            let mut trial = Trial::new(&program, 1, directory)?.with(&["64"]);
            trial.settings = vec![(INCREMENTAL, "auto")];
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            let (own, all, needs) = checkpointed(&trial)?;
            ensure!(
                own == all && all > 64 << 20 && needs.is_empty(),
                "{own} of {all}"
            );
            let (own, all, needs) = checkpointed(&trial)?;
            ensure!(
                own < 4 << 20 && all > 64 << 20 && needs == [1],
                "{own} of {all}"
            );
            let (own, all, needs) = checkpointed(&trial)?;
            ensure!(
                own < 4 << 20 && all > 64 << 20 && needs.contains(&1),
                "{own} of {all}"
            );
            // Two are kept, and what they need.
            let epochs = command::epochs(&trial.epochs_at());
            ensure!(epochs == [1, 2, 3], "{epochs:?}");
            fs::remove_dir_all(trial.epochs_at().join("epoch-000001"))
                .map_err(|e| e.to_string())?;
            let (own, all, needs) = checkpointed(&trial)?;
            ensure!(own == all && needs.is_empty(), "{own} of {all}, {needs:?}");
            trial.suspended(job)?;
            let (own, _, needs) = inspected(&trial)?;
            ensure!(own < 4 << 20 && needs == [4], "{own}, {needs:?}");
            trial.go()?;
            trial.ends_well(trial.restarted()?)?;
            Ok(())
        })
    });
}

/// A program that handles page faults itself has them for itself, whoever kept track of them before.
#[test]
fn page_faults_that_the_program_handles_are_its_own() {
    tested(|| {
        let program = Program::named(Kind::Special, "handles_page_faults")?;
        let _turn = Turn::take()?;
        Directory::new("page-faults")?.run(|directory| {
            let mut trial = Trial::new(&program, 1, directory)?;
            trial.settings = vec![(INCREMENTAL, "auto")];
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            checkpointed(&trial)?;
            let (_, _, needs) = checkpointed(&trial)?;
            ensure!(needs == [1], "{needs:?}");
            trial.go()?;
            trial.ends_well(job)?;
            Ok(())
        })
    });
}
