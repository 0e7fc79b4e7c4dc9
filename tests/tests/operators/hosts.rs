//! A job of two hosts is found from either, even from the one without its coordinator.

use std::fs;
use std::process::Command;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::job::Job;
use stillpoint_tests::network::Network;
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::{Failed, ensure, strike};

use super::house::{House, PATIENCE, shown, text};
use super::{on_trial, outcomes};

/// Runs `stillpoint` on every host, with a registry of the host's own, as each has its own `/run`.
fn on_hosts(
    network: &Network,
    house: &House,
    words: &[&str],
    directory: &Directory,
) -> Result<Job, Failed> {
    let mut command: Command = network.mpirun(&house.root.join("own"));
    let script = "STILLPOINT_RUNTIME_DIR=$0/$(hostname) exec \"$0/stillpoint\" \"$@\"";
    command.args(["sh", "-c", script]).arg(&house.root);
    command.args(words).env("TRIAL_DIR", &house.root);
    Job::start(command, directory)
}

#[test]
fn a_job_of_two_hosts_is_suspended_from_the_one_without_its_coordinator() {
    on_trial("hosts", |house, directory| {
        if !house.is_root() {
            return alone(house, directory);
        }
        let network = Network::up(2)?;
        for node in 0..2 {
            let own = house.root.join(format!("own.{}", network.host(node)));
            fs::create_dir(own).map_err(text)?;
        }
        let epochs = house.root.join("epochs.d");
        let program = house.program.clone();
        let run = ["run", "--dir", shown(&epochs), "--", shown(&program)];
        let mut job = on_hosts(&network, house, &run, directory)?;
        let ready = |rank: u32| house.root.join(format!("ready.{rank}")).exists();
        job.until("ready", PATIENCE, |_| ready(0) && ready(1))?;
        let file = strike::job_file(&epochs)?;
        let far = network.host(1);
        ensure!(file["coordinator"]["host"] == network.host(0), "{file}");
        let mut command = network.on(1);
        let registry = house.root.join(&far);
        command.arg(format!(
            "STILLPOINT_RUNTIME_DIR={} {} suspend --all --timeout 60 --json",
            shown(&registry),
            place::stillpoint()?.display()
        ));
        let answer = command::run(command, directory, PATIENCE)?.expect(exit::DONE)?;
        let found = outcomes(&answer.json()?, "suspended").len();
        ensure!(found == 1, "not found on {far}: {}", answer.show());
        let ended = job.end(PATIENCE)?;
        ensure!(ended.status == 0, "{}", ended.show());
        let again = on_hosts(&network, house, &["restart", shown(&epochs)], directory)?;
        fs::write(house.root.join("go"), "").map_err(text)?;
        let ended = again.end(PATIENCE)?;
        let right = ["OK 0", "OK 1"].iter().all(|ok| ended.stdout.contains(ok));
        ensure!(right, "{}", ended.show());
        Ok(())
    });
}

/// Without the right to make hosts, checks that a registry without jobs has none suspended.
fn alone(house: &House, directory: &Directory) -> Result<(), Failed> {
    let answer = house.stillpoint(directory, &["suspend", "--all"])?;
    let answer = answer.expect(exit::DONE)?;
    ensure!(answer.stdout.contains("no job"), "{}", answer.show());
    Ok(())
}
