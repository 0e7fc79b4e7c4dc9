//! Takes peers' blocks in, for this node's fast tier.

use std::collections::HashMap;
use std::fs::File;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use stillpoint_protocol::peer::{Answer, Peer, PeerError, Request};

use super::held::ImageId;
use super::{Shared, spawn};

/// Accepts peers for as long as the process lives.
pub fn serve(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                let shared_there = Arc::clone(&shared);
                // A stranger, or a peer that breaks off, only ends its own connection; one for which there is no
                // thread sees it closed.
                let _ = spawn("peer", move || {
                    let _ = Peer::accept(stream, &shared_there.key)
                        .and_then(|peer| serve_peer(peer, &shared_there));
                });
            }
            // Out of descriptors, or a connection that ended at once.
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn serve_peer(mut peer: Peer, shared: &Shared) -> Result<(), PeerError> {
    let mut files: HashMap<(u64, u64, u32), File> = HashMap::new();
    let mut buffer = Vec::new();
    let mut kept = 0;
    let mut failure: Option<String> = None;
    while let Some(request) = peer.request()? {
        match request {
            Request::Put {
                attempt,
                epoch,
                rank,
                offset,
                bytes,
                copy,
            } => {
                let block = peer.bytes(bytes, &mut buffer)?;
                shared.takes.wait(block.len());
                if failure.is_some() {
                    continue;
                }
                let image = ImageId {
                    attempt,
                    epoch,
                    rank,
                };
                let file = match files.get(&(attempt, epoch, rank)) {
                    Some(file) => Ok(file),
                    None => shared
                        .held
                        .create(image)
                        .map(|file| &*files.entry((attempt, epoch, rank)).or_insert(file)),
                };
                let keep = file.and_then(|file| shared.held.keep(file, image, offset, block, copy));
                match keep {
                    Ok(()) => kept += u64::from(bytes),
                    Err(error) => failure = Some(shared.describe(&error)),
                }
            }
            Request::Probe { bytes } => {
                let block = peer.bytes(bytes, &mut buffer)?;
                shared.takes.wait(block.len());
            }
            // Blocks are fetched before a restart only, from the processes that are to become the ranks.
            Request::Get { .. } => peer.give(None)?,
            Request::Close => {
                let answer = match failure.take() {
                    None => Answer::Kept { bytes: kept },
                    Some(reason) => Answer::Failed { reason },
                };
                kept = 0;
                peer.answer(&answer)?;
            }
        }
    }
    Ok(())
}
