//! Ranks that never sleep, more of them than processors: an epoch is written in bounded time, and waiting commands name the cause.

use std::time::Duration;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure};

/// A command that waits this long names the cause.
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
