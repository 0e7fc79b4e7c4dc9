//! Nodes to or from which GPU memory cannot be carried are refused by name.

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::gpu::{Gpus, Node};
use stillpoint_tests::{Failed, ensure};

use crate::heat::{self, Heat, LONG, PATIENCE, node};

/// Suspends the job, tries to restart it on another node, then restarts it on its own again.
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

/// Checks that `check` names the node's problem, that a checkpoint is refused for it, and that the job runs on.
fn never_on(other: &Node, needed: &str, named: &str) {
    heat::on(other, 2, LONG, |heat| {
        let natively = heat.natively()?;
        let rows = checked(heat)?;
        let missing = rows.lines().filter(|line| line.contains(needed));
        ensure!(missing.count() == 2 && rows.contains(named), "{rows}");
        let job = heat.start(&[])?;
        // The hindrance does not pass: a waiting user is told when the patience is over.
        let answer = command::checkpoint(heat.directory, heat.target())?;
        answer.expect_reason(exit::REFUSED, needed)?;
        ensure!(command::epochs(heat.target()).is_empty(), "an epoch");
        heat.ends_as(job, &natively)
    });
}

/// The driver is older than these calls.
#[test]
fn a_driver_without_checkpoints() {
    let mut older = node(1);
    (older.custom_storage, older.cuda) = (false, 12070);
    let needed = "install a driver for CUDA 12.8 or later";
    never_on(&older, needed, "cuCheckpointProcessLock");
}

/// Each process sees one part of a GPU, and the helper another one than its ranks, so checkpoints and restarts are refused there.
#[test]
fn parts_of_gpus() {
    let mut parts = node(2);
    parts.devices[1].part_of = Some([0xee; 16]);
    never_on(&parts, "(MIG)", "Emulated GPU is a part");
    heat::on(&node(2), 2, LONG, |heat| not_on(heat, &parts, &["(MIG)"]));
}

/// The driver has these calls, but lends no memory.
#[test]
fn a_driver_without_custom_storage_is_told_by_check() {
    let mut older = node(1);
    (older.custom_storage, older.cuda) = (false, 13030);
    heat::on(&older, 1, 10, |heat| {
        let rows = checked(heat)?;
        ensure!(
            rows.contains("install a driver for CUDA 13.4 or later")
                && rows.contains("through the rank's own memory"),
            "{rows}"
        );
        Ok(())
    });
}

/// Returns the output of `stillpoint check` on this node.
fn checked(heat: &Heat) -> Result<String, Failed> {
    let mut command = std::process::Command::new(stillpoint_tests::place::stillpoint()?);
    command.arg("check");
    heat.gpus.reach(&mut command)?;
    let answer = command::run(command, heat.directory, PATIENCE)?;
    Ok(answer.stdout)
}

#[test]
fn what_there_is_is_told_by_the_helper() {
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
