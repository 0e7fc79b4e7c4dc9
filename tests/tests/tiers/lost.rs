//! Losses before an epoch is durable: the restart is still right, or is refused.

use stillpoint_tests::command::exit;
use stillpoint_tests::ensure;

use crate::nodes::{PATIENCE, on_nodes};

#[test]
fn the_loss_of_a_fast_tier_before_the_flush_goes_back_to_the_last_durable_epoch() {
    on_nodes(
        "lost",
        |nodes| nodes.slow = ",limit=8MB/s",
        |nodes| {
            let job = nodes.start()?;
            nodes.checkpoint()?.expect(exit::DONE)?;
            nodes.killed_before_flush(job, 2)?;
            nodes.lose(0)?;
            let ended = nodes.ends_well(nodes.restart()?)?;
            ensure!(
                ended.stderr.contains("going back to epoch 1"),
                "{}",
                ended.show()
            );
            ensure!(
                nodes.status()?["restarted_from"] == 1,
                "{}",
                nodes.status()?
            );
            ensure!(
                nodes.status()?["staged"].is_null(),
                "the lost epoch can still be found"
            );
            Ok(())
        },
    );
}

#[test]
fn without_a_durable_epoch_the_loss_of_a_fast_tier_is_a_clear_refusal() {
    on_nodes(
        "refused",
        |nodes| nodes.slow = ",limit=5MB/s",
        |nodes| {
            nodes.killed_before_flush(nodes.start()?, 1)?;
            nodes.lose(1)?;
            let ended = nodes.restart()?.end(PATIENCE)?;
            ensure!(ended.status == exit::FAILED, "{}", ended.show());
            ensure!(
                ended.stderr.contains("no durable epoch to go back to")
                    && ended.stderr.contains("fast.1"),
                "{}",
                ended.show()
            );
            Ok(())
        },
    );
}

#[test]
fn with_a_partner_the_loss_of_either_fast_tier_loses_nothing() {
    for lost in 0..2 {
        on_nodes(
            &format!("partner-{lost}"),
            |nodes| {
                nodes.slow = ",limit=8MB/s";
                nodes.capacity = "64M";
                nodes.more = &["--redundancy=partner"];
            },
            |nodes| {
                nodes.killed_before_flush(nodes.start()?, 1)?;
                nodes.lose(lost)?;
                nodes.ends_well(nodes.restart()?)?;
                ensure!(
                    nodes.status()?["restarted_from"] == 1,
                    "{}",
                    nodes.status()?
                );
                Ok(())
            },
        );
    }
}
