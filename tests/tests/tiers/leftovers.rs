//! Leftovers of killed jobs on fast tiers: they stay as long as a restart needs them, and go afterwards.

use std::fs;
use std::path::Path;

use serde_json::Value;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::{Failed, ensure};

use crate::nodes::{Nodes, on_nodes};

/// Counts the entries on the fast tiers of both nodes.
fn left(nodes: &Nodes) -> usize {
    let entries = |rank| fs::read_dir(nodes.fast(rank)).into_iter().flatten().count();
    entries(0) + entries(1)
}

fn clean(nodes: &Nodes, fast: &Path) -> Result<Value, Failed> {
    let words = ["clean".as_ref(), "--json".as_ref(), fast.as_os_str()];
    command::stillpoint(nodes.trial.directory, words)?
        .expect(exit::DONE)?
        .json()
}

#[test]
fn the_blocks_of_a_killed_job_go_when_all_its_epochs_are_durable() {
    on_nodes(
        "killed",
        |_| {},
        |nodes| {
            let job = nodes.start()?;
            nodes.checkpoint()?.expect(exit::DONE)?;
            let said = clean(nodes, &nodes.fast(0))?;
            ensure!(
                said["jobs"][0]["left_alone"].is_string(),
                "a job that runs: {said}"
            );
            nodes.kill(job)?;
            ensure!(
                left(nodes) == 2,
                "{} entries are left by the job",
                left(nodes)
            );
            for rank in 0..2 {
                let said = clean(nodes, &nodes.fast(rank))?;
                let removed = said["jobs"][0]["removed_bytes"].as_u64();
                ensure!(removed.is_some_and(|bytes| bytes > 3_000_000), "{said}");
            }
            ensure!(left(nodes) == 0, "{} entries are left", left(nodes));
            nodes.ends_well(nodes.restart_on_tiers()?)?;
            Ok(())
        },
    );
}

#[test]
fn what_a_restart_needs_stays_whoever_cleans() {
    on_nodes(
        "needed",
        |nodes| nodes.slow = ",limit=5MB/s",
        |nodes| {
            nodes.killed_before_flush(nodes.start()?, 1)?;
            for rank in 0..2 {
                let said = clean(nodes, &nodes.fast(rank))?;
                ensure!(said["jobs"][0]["kept_epoch"] == 1, "{said}");
            }
            nodes.ends_well(nodes.restart_on_tiers()?)?;
            ensure!(
                nodes.status()?["restarted_from"] == 1,
                "{}",
                nodes.status()?
            );
            ensure!(
                left(nodes) == 0,
                "{} entries are left at the end",
                left(nodes)
            );
            Ok(())
        },
    );
}

#[test]
fn the_next_job_on_a_node_makes_room_for_itself() {
    on_nodes(
        "next-job",
        |_| {},
        |nodes| {
            let job = nodes.start()?;
            nodes.checkpoint()?.expect(exit::DONE)?;
            nodes.kill(job)?;
            ensure!(
                left(nodes) == 2,
                "{} entries are left by the job",
                left(nodes)
            );
            // Another job starts in the same directory, and reports by itself when it is ready.
            for rank in 0..2 {
                let ready = nodes.trial.directory.file(&format!("ready.{rank}"));
                fs::remove_file(ready).map_err(|error| error.to_string())?;
            }
            let job = nodes.start_another()?;
            ensure!(
                left(nodes) == 2,
                "{} entries beside the new job's own",
                left(nodes) - 2
            );
            nodes.checkpoint()?.expect(exit::DONE)?;
            nodes.ends_well(job)?;
            ensure!(
                left(nodes) == 0,
                "{} entries are left at the end",
                left(nodes)
            );
            Ok(())
        },
    );
}
