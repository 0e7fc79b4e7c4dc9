//! Nodes in network namespaces. Each sees only its own fast tier, so blocks of another node come over the network or not
//! at all.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use stillpoint_ids::Rank;
use stillpoint_image::blocks::{BlockRecord, Blocks, SLOW, blocks_name, read_block};
use stillpoint_image::image_name;
use stillpoint_tests::command::exit;
use stillpoint_tests::network::Network;
use stillpoint_tests::user_space::UserSpace;
use stillpoint_tests::{Failed, ensure};

use crate::nodes::{Nodes, bytes, on_nodes};

fn on_network(
    name: &str,
    change: impl Fn(&mut Nodes),
    test: impl Fn(&Nodes) -> Result<(), Failed>,
) {
    on_nodes(
        name,
        |nodes| {
            nodes.network = Some(Network::up(2).unwrap_or_else(|failed| panic!("{failed}")));
            change(nodes);
        },
        test,
    );
}

/// Returns the blocks of rank 0's image that only another node holds.
fn with_the_peer(nodes: &Nodes, epoch: &Path) -> Result<Vec<BlockRecord>, Failed> {
    let table = epoch.join(blocks_name(Rank(0)));
    let blocks = Blocks::read(&table).map_err(|error| error.to_string())?;
    let own = nodes.fast(0);
    let far = |place: u32| {
        place == SLOW
            || !blocks.places[place as usize - 1]
                .directory
                .starts_with(&own)
    };
    let records = blocks.records.iter();
    Ok(records
        .filter(|record| record.place != SLOW && far(record.place) && far(record.copy))
        .copied()
        .collect())
}

fn sum(records: &[BlockRecord]) -> u64 {
    records.iter().map(|record| u64::from(record.bytes)).sum()
}

/// Counts the blocks of rank 0 in a directory.
fn held(records: &[BlockRecord], directory: &Path) -> usize {
    let Ok(image) = File::open(directory.join(image_name(Rank(0)))) else {
        return 0;
    };
    let whole = |record: &&BlockRecord| read_block(&image, record).is_some();
    records.iter().filter(whole).count()
}

fn fetched(nodes: &Nodes, bytes: u64) -> Result<(), Failed> {
    let log = nodes.log()?;
    let line = format!(" {bytes} came from peers");
    ensure!(log.contains(&line), "no line says{line}: {log}");
    Ok(())
}

#[test]
fn before_the_flush_a_restart_takes_a_peers_blocks_from_the_peer() {
    on_network(
        "net-staged",
        |nodes| nodes.slow = ",limit=5MB/s",
        |nodes| {
            nodes.killed_before_flush(nodes.start()?, 1)?;
            let staged = nodes.target().join("epoch-000001.staged");
            let far = with_the_peer(nodes, &staged)?;
            ensure!(
                sum(&far) > 1_000_000,
                "{} bytes are with the peer",
                sum(&far)
            );
            // The peer's agent may have copied a few when it was killed.
            let there = held(&far, &staged);
            ensure!(
                there < far.len(),
                "the slow tier has all {there} blocks already"
            );
            let own = nodes.fast(0).join(job(nodes)?).join("epoch-000001");
            ensure!(
                held(&far, &own) == 0,
                "rank 0 has its peer's blocks already"
            );
            nodes.ends_well(nodes.restart_on_tiers()?)?;
            fetched(nodes, sum(&far))?;
            nodes.verified()?.expect(exit::DONE)?;
            ensure!(
                nodes.status()?["restarted_from"] == 1,
                "{}",
                nodes.status()?
            );
            Ok(())
        },
    );
}

/// Returns the job's id, which names its part of a fast tier.
fn job(nodes: &Nodes) -> Result<String, Failed> {
    let file = stillpoint_tests::strike::job_file(&nodes.target())?;
    let job = file["job"].as_str().map(str::to_owned);
    job.ok_or_else(|| format!("no job in job.json: {file}"))
}

#[test]
fn a_durable_epoch_too_is_read_where_it_is_nearest() {
    on_network(
        "net-durable",
        |nodes| nodes.slow = ",limit=20MB/s",
        |nodes| {
            let started = nodes.start()?;
            let answer = nodes.checkpoint()?.expect(exit::DONE)?.json()?;
            ensure!(bytes(&answer, "peer_bytes") > 1_000_000, "{answer}");
            nodes.kill(started)?;
            let epoch = nodes.target().join("epoch-000001");
            let far = with_the_peer(nodes, &epoch)?;
            ensure!(
                sum(&far) > 1_000_000,
                "{} bytes are with the peer",
                sum(&far)
            );
            // The copies on the slow tier are broken, so a restart that read them there would fail.
            let image = OpenOptions::new()
                .write(true)
                .open(epoch.join(image_name(Rank(0))))
                .map_err(|error| error.to_string())?;
            // The restart reads the image's tables, at its ends, before it asks the peers.
            let pages = far
                .iter()
                .filter(|record| record.offset > 0 && record.bytes == 1 << 20);
            for record in pages.clone() {
                image
                    .write_all_at(&vec![0x55; record.bytes as usize], record.offset)
                    .map_err(|error| error.to_string())?;
            }
            ensure!(pages.count() > 0, "no block of page data is with the peer");
            nodes.ends_well(nodes.restart_on_tiers()?)?;
            fetched(nodes, sum(&far))
        },
    );
}

#[test]
fn when_a_node_has_lost_its_tier_its_partner_gives_the_copies() {
    on_network(
        "net-partner",
        |nodes| {
            nodes.slow = ",limit=8MB/s";
            nodes.capacity = "80M";
            nodes.more = &["--redundancy=partner"];
        },
        |nodes| {
            nodes.killed_before_flush(nodes.start()?, 1)?;
            nodes.lose(0)?;
            nodes.ends_well(nodes.restart_on_tiers()?)?;
            let log = nodes.log()?;
            ensure!(
                !log.contains(" 0 came from peers"),
                "nothing was fetched: {log}"
            );
            ensure!(
                nodes.status()?["restarted_from"] == 1,
                "{}",
                nodes.status()?
            );
            Ok(())
        },
    );
}

#[test]
fn a_block_that_only_a_lost_node_had_is_a_clear_refusal() {
    on_network(
        "net-lost",
        |nodes| nodes.slow = ",limit=5MB/s",
        |nodes| {
            nodes.killed_before_flush(nodes.start()?, 1)?;
            let host = nodes.network.as_ref().map(|network| network.host(1));
            nodes.lose(1)?;
            fs::create_dir(nodes.fast(1)).map_err(|error| error.to_string())?;
            let ended = nodes.restart_on_tiers()?.end(crate::nodes::PATIENCE)?;
            ensure!(ended.status == exit::FAILED, "{}", ended.show());
            ensure!(
                ended.stderr.contains("no durable epoch to go back to")
                    && ended.stderr.contains(&host.unwrap_or_default()),
                "{}",
                ended.show()
            );
            Ok(())
        },
    );
}

/// Both nodes copy blocks of one image to the slow tier at the same time, each through its own cache of whole pages.
#[test]
fn two_clients_that_write_one_image_lose_no_byte_of_each_other() {
    on_network(
        "net-clients",
        |nodes| {
            nodes.clients = true;
            nodes.slow = ",limit=8MB/s";
        },
        |nodes| {
            let target = nodes.target();
            fs::create_dir(&target).map_err(|error| error.to_string())?;
            let network = nodes.network.as_ref().ok_or("no network")?;
            let client = |node: u32| {
                let view = format!("{}.{}", target.display(), network.host(node));
                UserSpace::client(nodes.trial.directory.path(), &target, view.into())
            };
            let clients = [client(0)?, client(1)?];
            let started = nodes.start()?;
            for _ in 0..3 {
                let answer = nodes.checkpoint()?.expect(exit::DONE)?.json()?;
                ensure!(bytes(&answer, "peer_bytes") > 1_000_000, "{answer}");
                nodes.verified()?.expect(exit::DONE)?;
            }
            nodes.kill(started)?;
            drop(clients);
            for rank in 0..2 {
                nodes.lose(rank)?;
            }
            nodes.ends_well(nodes.restart()?).map(drop)
        },
    );
}
