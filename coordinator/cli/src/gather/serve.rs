//! Serves blocks of this host's fast tiers to the ranks of other hosts.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::thread;

use stillpoint_ids::Rank;
use stillpoint_image::blocks::{Blocks, blocks_name};
use stillpoint_image::image_name;
use stillpoint_image::nearest::FastParts;
use stillpoint_protocol::Terms;
use stillpoint_protocol::job_file::host_name;
use stillpoint_protocol::peer::serve::{Work, serve};
use stillpoint_protocol::peer::{self, Peer, PeerError, Request};

/// Serves the blocks of the epoch in `directory` until this process becomes its rank. Returns its address.
pub fn start(reachable_at: IpAddr, terms: Terms, directory: &Path) -> io::Result<String> {
    let (listener, address) = peer::listen(reachable_at)?;
    let directory = directory.to_owned();
    spawn(Box::new(move || {
        // A peer that breaks off ends only its own connection.
        serve(&listener, &terms, spawn, move |peer| {
            let _ = serve_peer(peer, &directory);
        })
    }))?;
    Ok(address)
}

fn spawn(work: Work) -> io::Result<()> {
    thread::Builder::new().spawn(work).map(drop)
}

/// The part of a rank's image that is on this host.
struct Held {
    blocks: Blocks,
    parts: FastParts,
}

fn serve_peer(mut peer: Peer, directory: &Path) -> Result<(), PeerError> {
    let mut images: HashMap<Rank, Option<Held>> = HashMap::new();
    while let Some(request) = peer.request()? {
        // A process that is about to become a rank gets no other requests.
        let Request::Get { rank, block } = request else {
            break;
        };
        let held = images.entry(rank).or_insert_with(|| open(directory, rank));
        let bytes = held.as_ref().and_then(|held| {
            let record = held.blocks.records.get(block as usize)?;
            held.parts.read(record)
        });
        peer.give(bytes.as_deref())?;
    }
    Ok(())
}

fn open(directory: &Path, rank: Rank) -> Option<Held> {
    let blocks = Blocks::read(&directory.join(blocks_name(rank))).ok()?;
    let image = PathBuf::from(image_name(rank));
    let parts = FastParts::open(&blocks, &image, &host_name(), None);
    Some(Held { blocks, parts })
}
