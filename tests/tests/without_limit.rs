//! An unlimited stack moves the mappings of a process: the kernel keeps five sixths of all addresses free for the stack. A job's batch script sets
//! this for all ranks (`ulimit -s unlimited`, as programs in Fortran often need), or a script of one rank does.

use std::process::Command;

use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, job};

const RANKS: u32 = 2;
const LIMIT: &str = "unlimited";

/// Makes the command, started by a shell that removes the limit first.
fn limited(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -s \"$0\" && exec \"$@\"", LIMIT]);
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

/// Runs the job, suspends it, and carries it on.
fn passes(start: impl Fn(&Trial) -> Result<Command, Failed>) -> Result<(), Failed> {
    let program = Program::named(Kind::Still, "stack_limit_and_helpers")?;
    Directory::new("without-limit")?.run(|directory| {
        let trial = Trial::new(&program, RANKS, directory)?;
        let mut command = start(&trial)?;
        command.env("TRIAL_STACK", LIMIT);
        let mut job = trial.launch(command)?;
        trial.ready(&mut job)?;
        trial.suspended(job)?;
        let job = trial.launch(limited(&job::restarted(RANKS, &trial.epochs_at())?))?;
        trial.go()?;
        trial.ends_well(job)?;
        Ok(())
    })
}

#[test]
fn a_job_without_a_limit() {
    let tested = passes(|trial| {
        let mut command = job::under_stillpoint(RANKS, &trial.epochs_at())?;
        command.arg(trial.executable());
        Ok(limited(&command))
    });
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

#[test]
fn a_script_of_each_rank_that_takes_the_limit_away() {
    let tested = passes(|trial| {
        let mut command = job::under_stillpoint(RANKS, &trial.epochs_at())?;
        command.args(["sh", "-c", "ulimit -s unlimited; exec \"$0\""]);
        command.arg(trial.executable());
        Ok(command)
    });
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}
