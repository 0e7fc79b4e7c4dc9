//! A restart that may not give a thread the application's scheduling settings goes on all the same, and prints a
//! warning.

use std::process::Command;
use std::thread::available_parallelism;

use nix::unistd::Uid;
use stillpoint_tests::job;
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure};

/// Returns the first of the processors that this process may run on.
fn first_processor() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.unwrap_or_default()
        .trim()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect()
}

/// Runs `command` with a higher nice value, on the first processor, without the right to lower the value again.
fn with_less(command: &Command) -> Command {
    let mut less = vec![];
    if Uid::effective().is_root() {
        less.extend([
            "setpriv",
            "--inh-caps=-sys_nice",
            "--bounding-set=-sys_nice",
        ]);
    }
    less.extend(["nice", "-n", "5", "taskset", "-c"]);
    let mut words = less.into_iter();
    let mut wrapped = Command::new(words.next().unwrap_or_default());
    wrapped
        .args(words)
        .arg(first_processor())
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    wrapped
}

fn goes_on(trial: &Trial) -> Result<(), Failed> {
    let mut job = trial.split()?;
    trial.ready(&mut job)?;
    trial.suspended(job)?;
    trial.go()?;
    let restarted = with_less(&job::restarted(trial.ranks, &trial.epochs_at())?);
    let ended = trial.ends_well(trial.launch(restarted)?)?;
    let mut lost = vec!["goes on without its nice value"];
    if available_parallelism().is_ok_and(|processors| processors.get() > 1) {
        lost.push("goes on without its processors");
    }
    for lost in lost {
        let said = ended
            .stderr
            .lines()
            .filter(|line| line.contains(lost))
            .count();
        ensure!(said == 1, "'{lost}' {said} times: {}", ended.show());
    }
    Ok(())
}

#[test]
fn a_restart_without_the_right_to_a_priority_goes_on_and_says_so() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "chosen_beyond_reach")?;
        Directory::new("scheduling")?.run(|directory| goes_on(&Trial::new(&program, 1, directory)?))
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// Starts the program behind a script's commands, and restarts it without them.
fn keeps(trial: &Trial, script: &str) -> Result<(), Failed> {
    let mut command = job::under_stillpoint(trial.ranks, &trial.epochs_at())?;
    command
        .args(["bash", "-c", script, "bash"])
        .arg(trial.executable());
    let mut job = trial.launch(command)?;
    trial.ready(&mut job)?;
    trial.suspended(job)?;
    trial.suspended(trial.resumed()?)?;
    trial.go()?;
    trial.ends_well(trial.restarted()?)?;
    Ok(())
}

#[test]
fn what_a_script_has_given_to_the_program_is_given_again() {
    let given = "nice -n 5 setarch -R choom -n 300 --";
    for script in [
        format!("exec {given} \"$1\""),
        format!("{given} \"$1\"; exit"),
    ] {
        let tested = (|| {
            let program = Program::named(Kind::Special, "given_by_a_script")?;
            Directory::new("scheduling")?
                .run(|directory| keeps(&Trial::new(&program, 1, directory)?, &script))
        })();
        if let Err(failed) = tested {
            panic!("{script}: {failed}");
        }
    }
}
