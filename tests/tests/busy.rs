//! Ranks that never sleep, more of them than the machine has processors: an epoch is written beside them in bounded time, and whoever waits is told what for.

use std::time::Duration;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure};

/// A command that waits so long is told what for.
const LONG: Duration = Duration::from_secs(5);

#[test]
fn an_epoch_is_written_beside_ranks_that_never_sleep() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "busy")?;
        Directory::new("busy")?.run(|directory| written(&Trial::new(&program, 8, directory)?))
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn written(trial: &Trial) -> Result<(), Failed> {
    let mut job = trial.split()?;
    trial.ready(&mut job)?;
    let answer = command::checkpoint(trial.directory, &trial.epochs_at())?;
    let answer = answer.expect(exit::DONE)?;
    let told = answer.stderr.contains("waiting for a processor");
    ensure!(
        (told || answer.took < LONG) && !answer.stderr.contains("file system"),
        "what it waited for is not told: {}",
        answer.show()
    );
    trial.go()?;
    trial.ends_well(job).map(drop)
}
