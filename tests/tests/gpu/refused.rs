//! What GPUs cannot be carried to, or from, is refused by name.

use stillpoint_tests::command::exit;
use stillpoint_tests::gpu::{Gpus, Node};
use stillpoint_tests::{Failed, ensure};

use crate::heat::{self, Heat, LONG, PATIENCE, node};

/// Suspends the job, and tries to restart it on another node; then on its own again.
fn not_on(heat: &mut Heat, other: &Node, words: &[&str]) -> Result<(), Failed> {
    let natively = heat.natively()?;
    let job = heat.start(&[])?;
    heat.suspend(job)?;
    let own = std::mem::replace(&mut heat.gpus, Gpus::start(other)?);
    let ended = heat.restart(&[])?.end(PATIENCE)?;
    ensure!(ended.status != 0, "it was restarted: {}", ended.show());
    for word in words {
        ensure!(
            ended.stderr.contains(word),
            "nothing of '{word}': {}",
            ended.show()
        );
    }
    heat.gpus = own;
    let job = heat.restarted()?;
    heat.ends_as(job, &natively)
}

#[test]
fn another_chip() {
    let mut other = node(2);
    other.devices[1].name = "Another GPU".to_owned();
    other.devices[1].uuid = [7; 16];
    heat::on(&node(2), 2, LONG, |heat| {
        not_on(
            heat,
            &other,
            &["GPU-656d756c", "no GPU of that kind", "Another GPU"],
        )
    });
}

#[test]
fn another_driver() {
    let mut other = node(2);
    other.cuda = 13030;
    heat::on(&node(2), 2, LONG, |heat| {
        not_on(heat, &other, &["CUDA 13.4", "CUDA 13.3"])
    });
}

#[test]
fn no_gpu_at_all() {
    heat::on(&node(1), 2, LONG, |heat| {
        let job = heat.start(&[])?;
        heat.suspend(job)?;
        let mut command = stillpoint_tests::job::restarted(2, heat.target())?;
        command.env_remove("LD_LIBRARY_PATH");
        let ended = stillpoint_tests::job::Job::start(command, heat.directory)?.end(PATIENCE)?;
        ensure!(
            ended.status != 0 && ended.stderr.contains("there is no CUDA driver"),
            "{}",
            ended.show()
        );
        Ok(())
    });
}

/// A driver that is older than these calls is said to be.
#[test]
fn what_is_missing_is_told_by_the_helper() {
    heat::on(&node(2), 2, 10, |heat| {
        let mut command = std::process::Command::new(
            stillpoint_tests::place::stillpoint()?.with_file_name("stillpoint-gpu"),
        );
        command.arg("--facts");
        heat.gpus.reach(&mut command)?;
        let answer = stillpoint_tests::command::run(command, heat.directory, PATIENCE)?;
        let facts = answer.expect(exit::DONE)?.json()?;
        ensure!(
            facts["devices"].as_array().map_or(0, Vec::len) == 2 && facts["cuda"] == 13040,
            "{facts}"
        );
        Ok(())
    });
}
