//! Trials of a program: it runs natively and in the split process, and is checkpointed, suspended and restarted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::command::{self, exit};
use crate::job::{self, Ended, Job};
use crate::kept::Kept;
use crate::place::Directory;
use crate::program::{CLOCK, Kind, Program};
use crate::seed::Seed;
use crate::{Failed, ensure};

/// The longest time for a program to become ready, and to end.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The time for a program to block where it wants to, after it has reported that it is ready.
const SETTLE: Duration = Duration::from_millis(150);

/// One program on a number of ranks, in a directory of its own.
#[derive(Clone, Debug)]
pub struct Trial<'a> {
    pub program: &'a Program,
    pub ranks: u32,
    pub directory: &'a Directory,
    /// The program's arguments.
    pub arguments: Vec<String>,
    /// Environment variables of its launches.
    pub settings: Vec<(&'static str, &'static str)>,
    executable: PathBuf,
}

impl<'a> Trial<'a> {
    /// Makes a trial, and compiles the program if need be.
    pub fn new(
        program: &'a Program,
        ranks: u32,
        directory: &'a Directory,
    ) -> Result<Trial<'a>, Failed> {
        Ok(Trial {
            program,
            ranks,
            directory,
            arguments: vec![],
            settings: vec![],
            executable: program.build()?,
        })
    }

    /// Returns the same trial with arguments.
    pub fn with(mut self, arguments: &[&str]) -> Self {
        self.arguments = arguments.iter().map(|&text| text.to_owned()).collect();
        self
    }

    /// Returns its executable, compiled.
    pub fn executable(&self) -> &Path {
        &self.executable
    }

    /// Returns the directory of its epochs.
    pub fn epochs_at(&self) -> PathBuf {
        self.directory.epochs().to_owned()
    }

    /// Starts `command`, which is to run the program.
    pub fn launch(&self, mut command: Command) -> Result<Job, Failed> {
        command
            .env("TRIAL_DIR", self.directory.path())
            .envs(self.safe_state())
            .envs(self.settings.iter().copied())
            .current_dir(self.directory.path());
        Job::start(command, self.directory)
    }

    /// Returns the variable that tells `run` the way to a still point, if it is not the clock.
    fn safe_state(&self) -> Option<(&'static str, &str)> {
        let first = self.program.safe_states.first()?;
        (first != CLOCK).then_some(("STILLPOINT_SAFE_STATE", first))
    }

    /// Starts the program natively.
    pub fn native(&self) -> Result<Job, Failed> {
        let mut command = job::mpirun(self.ranks);
        command.arg(&self.executable).args(&self.arguments);
        self.launch(command)
    }

    /// Starts the program under `stillpoint run`.
    pub fn split(&self) -> Result<Job, Failed> {
        let mut command = job::under_stillpoint(self.ranks, &self.epochs_at())?;
        command.arg(&self.executable).args(&self.arguments);
        self.launch(command)
    }

    /// Starts the program again from its newest epoch.
    pub fn restarted(&self) -> Result<Job, Failed> {
        self.launch(job::restarted(self.ranks, &self.epochs_at())?)
    }

    /// Waits until the program is where it wants to be checkpointed.
    pub fn ready(&self, job: &mut Job) -> Result<(), Failed> {
        // In a moving program, rank 0 reports for all.
        let count = if self.program.kind == Kind::Moving {
            1
        } else {
            self.ranks
        };
        self.first_ready(job, count)
    }

    /// Waits until the first so many ranks are ready.
    pub fn first_ready(&self, job: &mut Job, count: u32) -> Result<(), Failed> {
        let files: Vec<_> = (0..count)
            .map(|rank| self.directory.file(&format!("ready.{rank}")))
            .collect();
        job.until("ready", PATIENCE, |_| {
            files.iter().all(|file| file.exists())
        })?;
        thread::sleep(SETTLE);
        Ok(())
    }

    /// Lets the program go on to its end.
    pub fn go(&self) -> Result<(), Failed> {
        let path = self.directory.file("go");
        fs::write(&path, b"").map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Waits for its end, which has to be the right one.
    pub fn ends_well(&self, job: Job) -> Result<Ended, Failed> {
        let ended = job.end(PATIENCE)?;
        let right = ended
            .stdout
            .lines()
            .filter(|line| line.starts_with("OK "))
            .count();
        ensure!(ended.status == 0, "the program failed: {}", ended.show());
        ensure!(
            right == self.ranks as usize,
            "{right} of {} ranks said OK: {}",
            self.ranks,
            ended.show()
        );
        ensure!(!ended.stderr.contains("WRONG"), "wrong: {}", ended.show());
        Ok(ended)
    }

    /// Suspends the job and waits until its `mpirun` has ended, with 0.
    pub fn suspended(&self, job: Job) -> Result<(), Failed> {
        command::suspend(self.directory, &self.epochs_at())?.expect(exit::DONE)?;
        let ended = job.end(PATIENCE)?;
        ensure!(
            ended.status == 0,
            "a suspended job ends with 0: {}",
            ended.show()
        );
        ensure!(!ended.stderr.contains("WRONG"), "wrong: {}", ended.show());
        let state = command::state(self.directory, &self.epochs_at())?;
        ensure!(state == "suspended", "a suspended job is '{state}'");
        Ok(())
    }

    /// Starts the program again and waits until it runs.
    pub fn resumed(&self) -> Result<Job, Failed> {
        let mut job = self.restarted()?;
        self.runs_again(&mut job)?;
        Ok(job)
    }

    /// Waits until the restarted job runs.
    pub fn runs_again(&self, job: &mut Job) -> Result<(), Failed> {
        let mut latest = String::new();
        job.until("running again", PATIENCE, |_| {
            let runs = command::says_it_runs(self.directory, &self.epochs_at());
            runs.map_err(|why| latest = why).is_ok()
        })
        .map_err(|failed| format!("{failed}\nstate: {latest}"))
    }
}

fn on_trial(
    program: &Program,
    ranks: u32,
    way: &str,
    test: impl FnOnce(&Trial) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let directory = Directory::new(&format!("{}-{ranks}-{way}", program.name))?;
    directory.run(|directory| test(&Trial::new(program, ranks, directory)?))
}

/// Checks that the program is right without Stillpoint, so that failures of other tests are not its own fault. The result is kept
/// until the program, its libraries, the machine or the way it is started change.
pub fn natively(program: &Program, ranks: u32) -> Result<(), Failed> {
    let name = format!("natively-{:?}-{}-{ranks}", program.kind, program.name);
    let executable = program.build()?;
    let kept = Kept::named(&name).on_program(&executable)?.on(concat!(
        include_str!("job.rs"),
        include_str!("program.rs"),
        include_str!("trial.rs")
    ));
    let run = || {
        on_trial(program, ranks, "natively", |trial| {
            let mut job = trial.native()?;
            trial.ready(&mut job)?;
            trial.go()?;
            trial.ends_well(job)?;
            Ok(())
        })
    };
    kept.text(|| run().map(|()| "right".to_owned())).map(drop)
}

/// Checks that the program's output in the split process, undisturbed, is the native one.
pub fn undisturbed(program: &Program, ranks: u32) -> Result<(), Failed> {
    on_trial(program, ranks, "undisturbed", |trial| {
        let mut job = trial.split()?;
        trial.ready(&mut job)?;
        trial.go()?;
        trial.ends_well(job)?;
        Ok(())
    })
}

/// Checkpoints the program twice; it must carry on to the right end.
pub fn carries_on(program: &Program, ranks: u32) -> Result<(), Failed> {
    on_trial(program, ranks, "carries-on", |trial| {
        let mut job = trial.split()?;
        trial.ready(&mut job)?;
        for epoch in 1..=2 {
            command::checkpoint(trial.directory, &trial.epochs_at())?
                .expect(exit::DONE)
                .map_err(|failed| format!("{failed}\n{}", job.stderr()))?;
            let committed = command::epochs(&trial.epochs_at());
            ensure!(
                committed.len() == epoch,
                "after checkpoint {epoch} there are the epochs {committed:?}"
            );
        }
        if let Some(most) = program.most_bytes {
            small(trial, most)?;
        }
        trial.go()?;
        trial.ends_well(job)?;
        Ok(())
    })
}

/// Suspends and restarts the program twice; it must come to the right end.
pub fn restarts(program: &Program, ranks: u32) -> Result<(), Failed> {
    on_trial(program, ranks, "restarts", |trial| {
        let mut job = trial.split()?;
        trial.ready(&mut job)?;
        trial.suspended(job)?;
        let job = trial.resumed()?;
        trial
            .suspended(job)
            .map_err(|failed| format!("the second time: {failed}"))?;
        trial.go()?;
        trial.ends_well(trial.restarted()?)?;
        Ok(())
    })
}

/// Checkpoints a moving program at random moments, several times in a row; then suspends and restarts it at random
/// moments, several times in a row.
pub fn moves(program: &Program, ranks: u32) -> Result<(), Failed> {
    let mut seed = Seed::new();
    let start = seed.start;
    on_trial(program, ranks, "moves", |trial| {
        never_still(trial, &mut seed, 3)
    })
    .map_err(|failed| format!("{failed}\n(STILLPOINT_TEST_SEED={start})"))
}

/// Does the same with these environment variables in its launches.
pub fn moves_with(
    program: &Program,
    ranks: u32,
    settings: &[(&'static str, &'static str)],
) -> Result<(), Failed> {
    let mut seed = Seed::new();
    let start = seed.start;
    let way: Vec<&str> = settings.iter().map(|(_, value)| *value).collect();
    on_trial(program, ranks, &way.join("-"), |trial| {
        let mut trial = trial.clone();
        trial.settings = settings.to_vec();
        never_still(&trial, &mut seed, 4)
    })
    .map_err(|failed| format!("{failed}\n(STILLPOINT_TEST_SEED={start})"))
}

/// Runs the random program of a seed, which decides the moments too.
pub fn random(program: &Program, number: u64) -> Result<(), Failed> {
    let mut seed = Seed::from(number);
    let ranks = 2 + seed.below(3) as u32;
    on_trial(program, ranks, &number.to_string(), |trial| {
        let mut trial = trial.clone();
        trial.arguments = vec![number.to_string()];
        never_still(&trial, &mut seed, 2)
    })
}

/// Checkpoints a moving program at random moments, so many times in a row; then suspends and restarts it as often; then
/// lets it come to its end.
fn never_still(trial: &Trial, seed: &mut Seed, times: u32) -> Result<(), Failed> {
    let longest = Duration::from_millis(250);
    let mut job = trial.split()?;
    trial.first_ready(&mut job, 1)?;
    for _ in 0..times {
        thread::sleep(seed.moment(longest));
        command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
    }
    for _ in 0..times {
        thread::sleep(seed.moment(longest));
        trial.suspended(job)?;
        job = trial.resumed()?;
    }
    thread::sleep(seed.moment(longest));
    trial.go()?;
    trial.ends_well(job)?;
    Ok(())
}

/// Checks that a checkpoint is refused with a reason, and that the job runs on to its right end.
pub fn refuses(program: &Program, ranks: u32) -> Result<(), Failed> {
    ensure!(
        !program.refuses.is_empty(),
        "{}: no `refuses=`",
        program.name
    );
    on_trial(program, ranks, "refuses", |trial| {
        let mut job = trial.split()?;
        trial.ready(&mut job)?;
        for answer in [
            command::checkpoint(trial.directory, &trial.epochs_at())?,
            command::suspend(trial.directory, &trial.epochs_at())?,
        ] {
            program.refuses.iter().try_fold(answer, |answer, code| {
                answer.expect_code(exit::REFUSED, *code)
            })?;
        }
        ensure!(
            command::epochs(&trial.epochs_at()).is_empty(),
            "a refused checkpoint left an epoch"
        );
        ensure!(
            command::state(trial.directory, &trial.epochs_at())? == "running",
            "it does not run on"
        );
        trial.go()?;
        trial.ends_well(job)?;
        Ok(())
    })
}

/// Checks that no rank's image in the newest epoch is larger than `most`.
fn small(trial: &Trial, most: u64) -> Result<(), Failed> {
    let newest = command::epochs(&trial.epochs_at())
        .pop()
        .unwrap_or_default();
    let epoch = trial.epochs_at().join(format!("epoch-{newest:06}"));
    for file in fs::read_dir(&epoch)
        .map_err(|error| format!("{}: {error}", epoch.display()))?
        .flatten()
    {
        let bytes = file.metadata().map_or(0, |about| about.len());
        ensure!(
            bytes <= most,
            "{} has {bytes} bytes, more than {most}",
            file.path().display()
        );
    }
    Ok(())
}
