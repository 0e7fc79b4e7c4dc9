//! Measures the speed of the ways from this rank: a few blocks on each, while the application starts.

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use stillpoint_protocol::peer::{Peer, PeerError, Request};
use stillpoint_protocol::tier::Rates;

use super::error::StagingError;
use super::throttle::Throttle;
use super::{BLOCK, PATIENCE, StagingState, rate};

/// The most blocks on each way.
const BLOCKS: usize = 8;
/// The longest measurement of a slow way.
const LONGEST: Duration = Duration::from_secs(1);

/// Measures every way. Also returns which ones cannot be used, and why.
pub fn measure(shared: &StagingState) -> (Rates, Option<String>) {
    let block = vec![0x5a; BLOCK];
    let fast = write(&shared.tiers.fast, &block, &shared.fast);
    let slow = write(&shared.directory, &block, &shared.slow);
    let mut problems = vec![];
    let mut sound = |rate: Result<Option<u64>, StagingError>| {
        rate.unwrap_or_else(|problem| {
            problems.push(problem.to_string());
            None
        })
    };
    let rates = Rates {
        fast: sound(fast.map_err(|error| shared.fast_failed(error))),
        slow: sound(slow.map_err(StagingError::file(&shared.directory, "write there"))),
        peers: sound(send(shared, &block).map_err(StagingError::from)),
    };
    (rates, (!problems.is_empty()).then(|| problems.join("; ")))
}

fn write(directory: &Path, block: &[u8], throttle: &Throttle) -> io::Result<Option<u64>> {
    let mut file = stillpoint_directory::scratch(directory)?;
    let began = Instant::now();
    let mut blocks = 0;
    let written: io::Result<()> = (|| {
        while blocks < BLOCKS && began.elapsed() < LONGEST {
            throttle.wait(block.len());
            file.write_all(block)?;
            blocks += 1;
        }
        file.sync_data()
    })();
    let seconds = began.elapsed().as_secs_f64();
    written.map(|()| rate((blocks * BLOCK) as u64, seconds))
}

/// Measures the way to the next node. Returns `None` if there is no other node.
fn send(shared: &StagingState, block: &[u8]) -> Result<Option<u64>, PeerError> {
    let Some(address) = next_node(shared) else {
        return Ok(None);
    };
    let mut peer = Peer::open(&address, &shared.terms, PATIENCE)?;
    let began = Instant::now();
    let mut blocks = 0;
    while blocks < BLOCKS && began.elapsed() < LONGEST {
        shared.sends.wait(block.len());
        let request = Request::Probe {
            bytes: block.len() as u32,
        };
        peer.send(&request, block)?;
        blocks += 1;
    }
    peer.close()?;
    Ok(rate((blocks * BLOCK) as u64, began.elapsed().as_secs_f64()))
}

/// Returns the address at which the first rank of the next node takes blocks in.
fn next_node(shared: &StagingState) -> Option<String> {
    let peers = shared.peers();
    let mine = peers.get(shared.rank.index())?;
    let others = (1..peers.len()).map(|step| (shared.rank.index() + step) % peers.len());
    let other = others
        .filter_map(|rank| peers.get(rank))
        .find(|other| !other.same_node(mine))?;
    let first = peers.iter().find(|first| first.same_node(other))?;
    Some(first.address.clone())
}
