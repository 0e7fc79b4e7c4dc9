//! LAMMPS, whose thermodynamic output must be the same, digit for digit.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::Directory;
use stillpoint_tests::seed::Seed;
use stillpoint_tests::{Failed, ensure};

use super::{PATIENCE, application, must};

/// A launch of LAMMPS: the numbers of ranks, threads and steps.
#[derive(Clone, Copy)]
struct Melt {
    ranks: u32,
    threads: u32,
    steps: u32,
    every: u32,
}

impl Melt {
    fn rows(self) -> usize {
        (self.steps / self.every + 1) as usize
    }

    /// Completes a command to `lmp ...`.
    fn launch(self, mut command: Command, directory: &Directory, log: &str) -> Result<Job, Failed> {
        let variables = [("every", self.every), ("steps", self.steps)];
        command.arg("lmp").arg("-in").arg(application("melt.in"));
        command.arg("-log").arg(directory.file(log));
        for (name, value) in variables {
            command.args(["-var", name, &value.to_string()]);
        }
        self.start(command, directory)
    }

    fn start(self, mut command: Command, directory: &Directory) -> Result<Job, Failed> {
        command
            // Open MPI's default, with all that it loads.
            .env_remove("OMPI_MCA_pml")
            .env("OMP_NUM_THREADS", self.threads.to_string())
            // Idle threads sleep, since there are more of them than cores.
            .env("OMP_WAIT_POLICY", "passive")
            .current_dir(directory.path());
        Job::start(command, directory)
    }
}

/// Returns the lines of thermodynamic output: a step and numbers.
fn thermo(text: &str) -> Vec<String> {
    let row = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() >= 5
            && words[0].bytes().all(|byte| byte.is_ascii_digit())
            && words[1..].iter().all(|word| word.parse::<f64>().is_ok())
    };
    text.lines().filter(row).map(str::to_owned).collect()
}

fn same(what: &str, native: &[String], split: &[String]) -> Result<(), Failed> {
    for (native, split) in native.iter().zip(split) {
        ensure!(
            native == split,
            "{what}: natively '{native}', here '{split}'"
        );
    }
    ensure!(
        native.len() == split.len(),
        "{what}: {} lines natively, {} here",
        native.len(),
        split.len()
    );
    Ok(())
}

/// Suspends and restarts LAMMPS three times in a row at seeded moments; its printed and logged output must equal the
/// native one.
fn melts(melt: Melt) {
    let mut seed = Seed::new();
    let start = seed.start;
    eprintln!("STILLPOINT_TEST_SEED={start}");
    let tested = (|| {
        Directory::new(&format!("melt-{}-{}", melt.ranks, melt.threads))?
            .run(|directory| melts_in(melt, directory, &mut seed))
    })();
    must(tested.map_err(|failed: Failed| format!("{failed}\n(STILLPOINT_TEST_SEED={start})")));
}

fn melts_in(melt: Melt, directory: &Directory, seed: &mut Seed) -> Result<(), Failed> {
    let native = melt
        .launch(job::mpirun(melt.ranks), directory, "native.log")?
        .end(PATIENCE)?;
    ensure!(native.status == 0, "natively: {}", native.show());
    let wanted = thermo(&native.stdout);
    ensure!(wanted.len() == melt.rows(), "natively: {}", native.show());
    let threads = format!("using {} OpenMP thread(s) per MPI task", melt.threads);
    ensure!(native.stdout.contains(&threads), "{}", native.show());

    let target = directory.epochs().to_owned();
    let mut printed = vec![];
    let mut job = melt.launch(
        job::under_stillpoint(melt.ranks, &target)?,
        directory,
        "split.log",
    )?;
    let log = directory.file("split.log");
    let third = melt.rows() as u64 / 3;
    for part in 0..3 {
        // The suspend comes in this third of the run, at any moment between two lines. (Before the first line a rank may not have
        // reached MPI_Init, and a suspend that does not wait refuses.)
        let until = (part * third + seed.below(third * 2 / 3)).max(1) as usize;
        // (The log also has the steps before the restart.)
        job.until("so far", PATIENCE, |_| {
            thermo(&fs::read_to_string(&log).unwrap_or_default()).len() >= until
                && command::says_it_runs(directory, &target).is_ok()
        })?;
        thread::sleep(seed.moment(Duration::from_millis(40)));
        command::suspend(directory, &target)?
            .expect(exit::DONE)
            .map_err(|failed| format!("suspend {part}: {failed}\n{}", job.stderr()))?;
        let ended = job.end(PATIENCE)?;
        ensure!(ended.status == 0, "suspended: {}", ended.show());
        let rows = thermo(&ended.stdout);
        ensure!(
            printed.len() + rows.len() < wanted.len(),
            "it had ended before suspend {part}"
        );
        printed.extend(rows);
        job = melt.start(job::restarted(melt.ranks, &target)?, directory)?;
    }
    let ended = job.end(PATIENCE)?;
    ensure!(ended.status == 0, "restarted: {}", ended.show());
    printed.extend(thermo(&ended.stdout));
    same("printed", &wanted, &printed)?;
    let logged = |name: &str| {
        let path = directory.file(name);
        let text = fs::read_to_string(&path);
        text.map(|text| thermo(&text))
            .map_err(|error| format!("{}: {error}", path.display()))
    };
    same("logged", &logged("native.log")?, &logged("split.log")?)
}

/// Reads its input piece by piece as `lmp <FILE`. After a restart it continues behind the part it has read: with no
/// input, the same, and another.
#[test]
fn lammps_reading_its_standard_input() {
    let melt = Melt {
        ranks: 2,
        threads: 1,
        steps: 30,
        every: 10,
    };
    const RUNS: u32 = 20;
    let tested = (|| {
        Directory::new("melt-read")?.run(|directory| melts_as_it_reads(melt, RUNS, directory))
    })();
    must(tested);
}

/// Makes a launcher's command with a file as its standard input.
fn reading(command: &Command, input: &Path) -> Command {
    let mut shell = Command::new("bash");
    shell.args(["-c", "exec \"$@\" <\"$0\""]).arg(input);
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

fn melts_as_it_reads(melt: Melt, runs: u32, directory: &Directory) -> Result<(), Failed> {
    let failed = |error: std::io::Error| error.to_string();
    let text = fs::read_to_string(application("melt.in")).map_err(failed)?;
    let begin = text
        .replace("${every}", &melt.every.to_string())
        .replace("run ${steps}\n", "");
    let run = format!("run {} post no\n", melt.steps);
    let input = directory.file("in");
    fs::write(&input, begin + &run.repeat(runs as usize)).map_err(failed)?;
    let other = directory.file("other");
    fs::write(&other, "run 7 post no\n").map_err(failed)?;
    let launch = |mut command: Command| {
        command.args(["lmp", "-log", "none"]);
        melt.start(reading(&command, &input), directory)
    };
    let native = launch(job::mpirun(melt.ranks))?.end(PATIENCE)?;
    ensure!(native.status == 0, "natively: {}", native.show());
    let wanted = thermo(&native.stdout);

    let target = directory.epochs().to_owned();
    let mut printed = vec![];
    let mut job = launch(job::under_stillpoint(melt.ranks, &target)?)?;
    for given in [Path::new("/dev/null"), &input, &other] {
        let so_far = wanted.len() / 6;
        job.until("so far", PATIENCE, |job| {
            command::state(directory, &target).as_deref() == Ok("running")
                && thermo(&job.stdout()).len() >= so_far
        })?;
        command::suspend(directory, &target)?.expect(exit::DONE)?;
        let ended = job.end(PATIENCE)?;
        ensure!(ended.status == 0, "suspended: {}", ended.show());
        printed.extend(thermo(&ended.stdout));
        ensure!(printed.len() < wanted.len(), "it had ended before");
        let restart = job::restarted(melt.ranks, &target)?;
        job = melt.start(reading(&restart, given), directory)?;
    }
    let ended = job.end(PATIENCE)?;
    ensure!(ended.status == 0, "restarted: {}", ended.show());
    printed.extend(thermo(&ended.stdout));
    same("printed", &wanted, &printed)
}

#[test]
fn lammps_on_two_ranks() {
    melts(Melt {
        ranks: 2,
        threads: 1,
        steps: 1500,
        every: 10,
    });
}

#[test]
fn lammps_on_four_ranks() {
    melts(Melt {
        ranks: 4,
        threads: 1,
        steps: 1500,
        every: 10,
    });
}

#[test]
fn lammps_with_two_openmp_threads_a_rank() {
    melts(Melt {
        ranks: 2,
        threads: 2,
        steps: 1500,
        every: 10,
    });
}
