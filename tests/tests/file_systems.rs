//! A checkpoint directory whose file system fails in the middle of an image, a manifest, a rename or a removal: an epoch is committed whole or not at all,
//! the reason is told, the job runs on, and its next epoch is right.

use std::path::{Path, PathBuf};
use std::time::Duration;

use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::{PATIENCE, Trial};
use stillpoint_tests::user_space::UserSpace;
use stillpoint_tests::{Failed, ensure};

/// The fate of an epoch.
enum Outcome {
    /// It is committed all the same.
    Commits,
    /// It is not, for a reason with these words.
    Fails(&'static str),
}
use Outcome::{Commits, Fails};

/// The file system's orders during one checkpoint.
const STRUCK: [(&str, Outcome); 24] = [
    // In the middle of an image.
    ("write EIO rank- 100000", Fails("Input/output error")),
    ("write EDQUOT rank- 100000", Fails("quota")),
    ("write ENOSPC rank- 100000", Fails("No space left")),
    ("write ESTALE rank- 100000", Fails("tale")),
    ("fsync EIO rank-", Fails("Input/output error")),
    ("fsync EDQUOT rank-", Fails("quota")),
    ("create EDQUOT rank-", Fails("quota")),
    ("write short", Commits),
    ("fsync lies", Commits),
    // In the manifest.
    ("create ENOSPC manifest", Fails("No space left")),
    ("write EIO manifest", Fails("Input/output error")),
    ("fsync ESTALE manifest", Fails("tale")),
    // The epoch begins, and gets its name.
    ("mkdir EDQUOT epoch-", Fails("quota")),
    ("fsyncdir EIO .part", Fails("Input/output error")),
    ("rename EIO epoch-", Fails("Input/output error")),
    ("rename ESTALE epoch-", Fails("tale")),
    // The server did it, and its answer did not come, or was asked twice.
    ("mkdir done-EEXIST epoch-", Commits),
    ("rename done-EIO .part", Commits),
    ("rename done-ENOENT .part", Commits),
    ("rename done-ETIMEDOUT job.json", Commits),
    // Beside an epoch that is committed.
    ("unlink EIO rank-", Commits),
    ("rmdir ESTALE epoch-", Commits),
    ("write EIO timeline", Commits),
    ("write EDQUOT coordinator.log", Commits),
];

struct Played<'a> {
    trial: Trial<'a>,
    system: &'a UserSpace,
    target: PathBuf,
}

impl Played<'_> {
    fn ask(&self, words: &[&str]) -> Result<Answer, Failed> {
        let words = words.iter().map(Path::new);
        command::stillpoint(self.trial.directory, words.chain([self.target.as_path()]))
    }

    fn start(&self, settings: &[(&str, &str)]) -> Result<Job, Failed> {
        let mut command = job::under_stillpoint(self.trial.ranks, &self.target)?;
        command.envs(settings.iter().copied());
        command
            .arg(self.trial.executable())
            .args(&self.trial.arguments);
        let mut job = self.trial.launch(command)?;
        self.trial.ready(&mut job)?;
        Ok(job)
    }

    fn whole(&self, after: &str) -> Result<(), Failed> {
        let checked = self.ask(&["verify"])?.expect(exit::DONE);
        checked
            .map(drop)
            .map_err(|failed| format!("after {after}: {failed}"))
    }

    /// One checkpoint on a file system that does as it is told, and one on a sound one.
    fn strike(&self, told: &str, outcome: &Outcome) -> Result<(), Failed> {
        let before = command::epochs(&self.target).pop();
        self.system.told(told)?;
        let answer = self.ask(&["checkpoint"])?;
        self.system.told("")?;
        let after = command::epochs(&self.target).pop();
        match outcome {
            Commits => {
                ensure!(answer.status == exit::DONE, "{told}: {}", answer.show());
                ensure!(after > before, "{told}: {after:?} is the newest epoch");
            }
            Fails(words) => {
                ensure!(
                    answer.status == exit::FAILED && answer.show().contains(words),
                    "{told}: {}",
                    answer.show()
                );
                ensure!(
                    after == before,
                    "{told}: a failed epoch is there: {after:?} after {before:?}"
                );
            }
        }
        if after.is_some() {
            self.whole(told)?;
        }
        let answer = self.ask(&["checkpoint"])?;
        ensure!(
            answer.status == exit::DONE,
            "after {told}: {}",
            answer.show()
        );
        self.whole(told)
    }
}

fn played(name: &str, size: &str, test: impl FnOnce(&Played<'_>) -> Result<(), Failed>) {
    let tested = (|| {
        let program = Program::named(Kind::Special, "uneven_sizes")?;
        Directory::new(name)?.run(|directory| {
            let system = UserSpace::new(directory.path())?;
            test(&Played {
                trial: Trial::new(&program, 2, directory)?.with(&[size, size]),
                target: system.path().join("stillpoint.d"),
                system: &system,
            })
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn all_cells(name: &str, settings: &[(&str, &str)]) {
    played(name, "4", |played| {
        let job = played.start(settings)?;
        let mut wrong = String::new();
        for (told, outcome) in &STRUCK {
            if let Err(failed) = played.strike(told, outcome) {
                wrong += &format!("{failed}\n");
            }
        }
        ensure!(wrong.is_empty(), "{wrong}");
        played.ask(&["suspend"])?.expect(exit::DONE)?;
        let ended = job.end(PATIENCE)?;
        ensure!(ended.status == 0, "{}", ended.show());
        // The error is told, and the next restart is right.
        played.system.told("read EIO rank-\n")?;
        let refused = played.trial.launch(job::restarted(2, &played.target)?)?;
        let refused = refused.end(PATIENCE)?;
        ensure!(
            refused.status != 0 && refused.stderr.contains("Input/output error"),
            "{}",
            refused.show()
        );
        played.system.told("")?;
        let again = played.trial.launch(job::restarted(2, &played.target)?)?;
        played.trial.go()?;
        played.trial.ends_well(again).map(drop)
    });
}

#[test]
fn an_error_in_the_middle_of_a_checkpoint_costs_at_most_its_epoch() {
    all_cells("file-systems", &[("STILLPOINT_KEEP", "1")]);
}

/// Images that build upon earlier ones, written while the application stands still.
#[test]
fn an_error_in_the_middle_of_an_incremental_checkpoint_costs_at_most_its_epoch() {
    let settings = [
        ("STILLPOINT_INCREMENTAL", "pages"),
        ("STILLPOINT_COPY", "off"),
        ("STILLPOINT_KEEP", "2"),
    ];
    all_cells("file-systems-incremental", &settings);
}

/// A suspend is a checkpoint that ends the job: it ends only if its epoch is there.
#[test]
fn a_suspend_whose_answers_are_lost_neither_loses_the_job_nor_ends_it_without_an_epoch() {
    played("file-systems-suspend", "1", |played| {
        let job = played.start(&[])?;
        played.system.told("rename EIO .part")?;
        let answer = played.ask(&["suspend"])?;
        ensure!(answer.status == exit::FAILED, "{}", answer.show());
        played.system.told("rename done-EIO .part")?;
        played.ask(&["suspend"])?.expect(exit::DONE)?;
        let ended = job.end(PATIENCE)?;
        ensure!(ended.status == 0, "{}", ended.show());
        played.system.told("")?;
        played.whole("the suspend")?;
        let again = played.trial.launch(job::restarted(2, &played.target)?)?;
        played.trial.go()?;
        played.trial.ends_well(again).map(drop)
    });
}

/// The server is away: nothing is answered for a while, and then everything.
#[test]
fn a_server_that_is_away_for_a_while_is_waited_for() {
    played("file-systems-away", "1", |played| {
        let job = played.start(&[])?;
        let away: String = ["write", "fsync", "rename", "create", "mkdir"]
            .iter()
            .map(|operation| format!("{operation} 3000\n"))
            .collect();
        played.system.told(&away)?;
        let back = Duration::from_secs(4);
        let answer = std::thread::scope(|scope| {
            let asking = scope.spawn(|| played.ask(&["checkpoint"]));
            std::thread::sleep(back);
            played
                .system
                .told("")
                .and(asking.join().map_err(|_| "it failed".to_owned())?)
        })?;
        ensure!(
            answer.status == exit::DONE && answer.took >= Duration::from_secs(3),
            "{}",
            answer.show()
        );
        played.whole("its return")?;
        played.trial.go()?;
        played.trial.ends_well(job).map(drop)
    });
}

/// A command ends at its limit although it waits in a call that does not return, and the job goes on.
#[test]
fn a_command_with_a_limit_does_not_wait_for_a_server_that_is_away() {
    played("file-systems-limit", "1", |played| {
        let job = played.start(&[])?;
        played.system.told("read 4000 job.json\n")?;
        let answer = played.ask(&["checkpoint", "--timeout", "1s", "--json"])?;
        played.system.told("")?;
        ensure!(
            answer.status == exit::FAILED
                && answer.stderr.contains("has not answered for 1 s")
                && answer.stdout.contains("has not answered for 1 s"),
            "{}",
            answer.show()
        );
        played
            .ask(&["checkpoint", "--timeout", "20s"])?
            .expect(exit::DONE)?;
        played.whole("its return")?;
        played.trial.go()?;
        played.trial.ends_well(job).map(drop)
    });
}
