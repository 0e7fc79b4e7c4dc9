//! Incremental epochs on tiers.

use serde_json::Value;
use stillpoint_tests::command::exit;
use stillpoint_tests::{Failed, ensure};

use crate::nodes::{Nodes, bytes, on_nodes};

/// Returns the bytes that an epoch wrote to any tier.
fn written(nodes: &Nodes) -> Result<u64, Failed> {
    let answer: Value = nodes.checkpoint()?.expect(exit::DONE)?.json()?;
    let fields = ["local_bytes", "peer_bytes", "slow_bytes"];
    Ok(fields.iter().map(|field| bytes(&answer, field)).sum())
}

/// The memory of these ranks does not change: the first epoch contains it, and later ones refer to it once it is
/// durable.
fn three_epochs(nodes: &Nodes) -> Result<(), Failed> {
    let whole = written(nodes)?;
    ensure!(whole > 27_000_000, "the first epoch has {whole} bytes");
    for _ in 0..2 {
        let next = written(nodes)?;
        ensure!(
            next < whole / 4,
            "{next} bytes of {whole} were written again"
        );
    }
    Ok(())
}

const PAGES: &[&str] = &["--peer-limit=60MB/s", "--incremental=pages", "--keep=1"];
const WITH_PARTNERS: &[&str] = &[
    "--peer-limit=60MB/s",
    "--incremental=blocks",
    "--redundancy=partner",
];

#[test]
fn what_has_changed_is_staged_and_what_has_not_is_found_where_it_is_durable() {
    on_nodes(
        "increments",
        |nodes| {
            nodes.capacity = "60M";
            nodes.more = PAGES;
        },
        |nodes| {
            let job = nodes.start()?;
            three_epochs(nodes)?;
            nodes.verified()?.expect(exit::DONE)?;
            nodes.kill(job)?;
            nodes.ends_well(nodes.restart_on_tiers()?)?;
            Ok(())
        },
    );
}

#[test]
fn partners_and_peers_have_parts_of_what_has_changed() {
    on_nodes(
        "increments-partners",
        |nodes| nodes.more = WITH_PARTNERS,
        |nodes| {
            let job = nodes.start()?;
            three_epochs(nodes)?;
            nodes.verified()?.expect(exit::DONE)?;
            nodes.kill(job)?;
            nodes.lose(1)?;
            nodes.ends_well(nodes.restart_on_tiers()?)?;
            Ok(())
        },
    );
}

/// A staged epoch refers only to durable ones.
#[test]
fn what_is_staged_only_is_carried_on_with_what_it_needs() {
    on_nodes(
        "increments-staged",
        |nodes| {
            nodes.capacity = "60M";
            nodes.more = PAGES;
            nodes.slow = ",limit=20MB/s";
        },
        |nodes| {
            let job = nodes.start()?;
            three_epochs(nodes)?;
            nodes.killed_before_flush(job, 4)?;
            nodes.ends_well(nodes.restart_on_tiers()?)?;
            Ok(())
        },
    );
}
