//! The places of staged blocks, and how they become durable.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::ensure;

use crate::nodes::{bytes, on_nodes};

#[test]
fn what_fits_stays_on_its_own_node_until_it_is_durable() {
    on_nodes(
        "fits",
        |nodes| nodes.capacity = "60M",
        |nodes| {
            let job = nodes.start()?;
            for epoch in 1..=2 {
                let answer = nodes.checkpoint()?.expect(exit::DONE)?.json()?;
                ensure!(answer["epoch"] == epoch, "{answer}");
                let (local, peers, slow) = (
                    bytes(&answer, "local_bytes"),
                    bytes(&answer, "peer_bytes"),
                    bytes(&answer, "slow_bytes"),
                );
                ensure!(local > 27_000_000 && peers == 0 && slow == 0, "{answer}");
            }
            nodes.verified()?.expect(exit::DONE)?;
            let status = nodes.status()?;
            ensure!(
                status["epochs"] == serde_json::json!([1, 2]) && status["staged"].is_null(),
                "{status}"
            );
            nodes.ends_well(job)?;
            // Durable epochs do not fill the nodes' memory when the job has ended.
            for rank in 0..2 {
                let left = fs::read_dir(nodes.fast(rank))
                    .map_err(|error| error.to_string())?
                    .count();
                ensure!(
                    left == 0,
                    "{left} entries are left on the fast tier of rank {rank}"
                );
            }
            Ok(())
        },
    );
}

#[test]
fn what_does_not_fit_goes_to_a_peer_and_to_the_slow_tier_and_is_read_where_it_is_nearest() {
    on_nodes(
        "spills",
        |nodes| nodes.slow = ",limit=20MB/s",
        |nodes| {
            let job = nodes.start()?;
            let answer = nodes.checkpoint()?.expect(exit::DONE)?.json()?;
            for field in ["local_bytes", "peer_bytes", "slow_bytes"] {
                ensure!(
                    (1_000_000..40_000_000).contains(&bytes(&answer, field)),
                    "{answer}"
                );
            }
            nodes.verified()?.expect(exit::DONE)?;
            nodes.kill(job)?;
            // The first blocks of page data are broken on the slow tier; the copies on fast tiers are whole.
            let image = nodes.target().join("epoch-000001/rank-000001.img");
            OpenOptions::new()
                .write(true)
                .open(&image)
                .and_then(|file| file.write_all_at(&[0x55; 4096], 4096))
                .map_err(|error| error.to_string())?;
            nodes.verified()?.expect(exit::FAILED)?;
            nodes.ends_well(nodes.restart()?)?;
            Ok(())
        },
    );
}

#[test]
fn an_epoch_that_was_only_staged_is_made_whole_by_a_restart() {
    on_nodes(
        "before-flush",
        |nodes| nodes.slow = ",limit=5MB/s",
        |nodes| {
            nodes.killed_before_flush(nodes.start()?, 1)?;
            let job = nodes.restart()?;
            nodes.ends_well(job)?;
            ensure!(
                command::epochs(&nodes.target()) == [1],
                "{:?}",
                command::epochs(&nodes.target())
            );
            nodes.verified()?.expect(exit::DONE)?;
            let status = nodes.status()?;
            ensure!(
                status["restarted_from"] == 1 && status["staged"].is_null(),
                "{status}"
            );
            Ok(())
        },
    );
}

#[test]
fn a_suspend_leaves_nothing_on_the_fast_tiers() {
    on_nodes(
        "suspend",
        |_| {},
        |nodes| {
            let job = nodes.start()?;
            nodes.checkpoint()?.expect(exit::DONE)?;
            nodes.trial.suspended(job)?;
            for rank in 0..2 {
                nodes.lose(rank)?;
            }
            let job = nodes.restart()?;
            nodes.ends_well(job)?;
            Ok(())
        },
    );
}
