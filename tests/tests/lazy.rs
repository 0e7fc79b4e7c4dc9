//! Restarts that carry on before all memory is there.

use std::fs;
use std::time::Duration;

use stillpoint_ids::Rank;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::{self, Trial};
use stillpoint_tests::{Failed, broken, ensure};

const LAZY: (&str, &str) = ("STILLPOINT_LAZY", "true");
/// The delay of every chunk, so that the program needs memory before it has come.
const SLOWLY: usize = 60;

fn tested(test: impl FnOnce() -> Result<(), Failed>) {
    if let Err(failed) = test() {
        panic!("{failed}");
    }
}

fn slowly() -> String {
    vec!["restart-arrive:stall=40"; SLOWLY].join(",")
}

/// Suspends the program, and lets it go before it is restarted.
fn touched(settings: &[(&'static str, &'static str)], epochs_before: u32) {
    tested(|| {
        let program = Program::named(Kind::Special, "touches_late_memory")?;
        Directory::new("late-memory")?.run(|directory| {
            let mut trial = Trial::new(&program, 3, directory)?;
            trial.settings = settings.to_vec();
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            for _ in 0..epochs_before {
                command::checkpoint(directory, &trial.epochs_at())?.expect(exit::DONE)?;
            }
            trial.suspended(job)?;
            trial.go()?;
            for faults in [slowly(), String::new()] {
                let mut command = stillpoint_tests::job::restarted(3, &trial.epochs_at())?;
                command.env(LAZY.0, LAZY.1).env("STILLPOINT_FAULT", &faults);
                let ended = trial.ends_well(trial.launch(command)?)?;
                let slowed = ended.stderr.matches("restart-arrive: stall").count();
                ensure!(
                    faults.is_empty() || slowed > 10,
                    "only {slowed} chunks came late"
                );
            }
            Ok(())
        })
    });
}

#[test]
fn what_is_done_to_memory_that_has_not_come() {
    touched(&[("STILLPOINT_COMPRESS", "none")], 0);
}

#[test]
fn what_is_done_to_memory_that_several_epochs_have() {
    touched(&[("STILLPOINT_INCREMENTAL", "blocks")], 3);
}

fn moves(program: &str, more: &[(&'static str, &'static str)]) {
    tested(|| {
        let program = Program::named(Kind::Moving, program)?;
        let mut settings = vec![LAZY];
        settings.extend(more);
        trial::moves_with(&program, 2, &settings)
    });
}

/// A checkpoint waits for memory that is still coming.
#[test]
fn memory_that_is_rewritten_by_restarts_and_epochs_in_turn() {
    moves(
        "rewrites_everything",
        &[("STILLPOINT_INCREMENTAL", "blocks")],
    );
}

#[test]
fn memory_that_comes_and_goes() {
    moves("memory_churn", &[]);
}

#[test]
fn threads_that_come_and_go() {
    moves("threads_come_and_go", &[]);
}

/// A chunk that cannot be read ends the job with a message, and leaves the epoch as it was.
#[test]
fn what_cannot_be_read_ends_the_job() {
    tested(|| {
        let program = Program::named(Kind::Special, "touches_late_memory")?;
        Directory::new("late-and-broken")?.run(|directory| {
            let mut trial = Trial::new(&program, 3, directory)?;
            // Shared chunks lie in rank 1's own image too, and most of these are memory that comes late.
            trial.settings = vec![("STILLPOINT_COMPRESS", "none"), ("STILLPOINT_DEDUP", "off")];
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            trial.suspended(job)?;
            let epoch = trial.epochs_at().join("epoch-000001");
            let image = epoch.join(stillpoint_image::image_name(Rank(1)));
            let about = fs::metadata(&image).map_err(|e| e.to_string())?;
            trial.go()?;
            {
                let _broken = broken::flipped(&image, about.len() / 2 * 8)?;
                let mut command = stillpoint_tests::job::restarted(3, &trial.epochs_at())?;
                command.env(LAZY.0, LAZY.1);
                let ended = trial.launch(command)?.end(Duration::from_secs(60))?;
                ensure!(ended.status != 0, "it ended well: {}", ended.show());
                for word in [
                    "cannot read its memory from the image",
                    "rank-000001.img",
                    "without --lazy",
                ] {
                    ensure!(
                        ended.stderr.contains(word),
                        "not said: {word}: {}",
                        ended.show()
                    );
                }
            }
            trial.ends_well(trial.restarted()?)?;
            Ok(())
        })
    });
}
