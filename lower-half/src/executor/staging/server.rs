//! Takes peers' blocks in, for this node's fast tier.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, mpsc};

use stillpoint_faults::{Point, strike};
use stillpoint_ids::{Epoch, Rank};
use stillpoint_protocol::peer::serve::serve;
use stillpoint_protocol::peer::{self, Answer, Peer, PeerError, Request};

use super::error::StagingError;
use super::held::ImageId;
use super::{StagingState, start as start_thread, table};

/// Accepts peers for as long as the process lives. Returns the address that leads here.
///
/// # Errors
/// There is no thread, no descriptor table or no socket to be had.
pub fn start(reachable_at: IpAddr, shared: &Arc<StagingState>) -> io::Result<String> {
    let shared = Arc::clone(shared);
    let (tell, told) = mpsc::channel();
    start_thread("peers", move || {
        let listening = table::own().and_then(|()| peer::listen(reachable_at));
        let listener = match listening {
            Ok((listener, address)) => {
                // The caller waits for this.
                let _ = tell.send(Ok(address));
                listener
            }
            Err(error) => return drop(tell.send(Err(error))),
        };
        let terms = shared.terms.clone();
        // A peer that breaks off only ends its own connection.
        serve(
            &listener,
            &terms,
            |work| start_thread("peer", work),
            move |peer| {
                drop(serve_peer(peer, &shared));
            },
        )
    })?;
    told.recv()
        .unwrap_or_else(|_| Err(io::Error::other("its thread has ended")))
}

fn serve_peer(mut peer: Peer, shared: &StagingState) -> Result<(), PeerError> {
    let mut files: HashMap<(u64, Epoch, Rank), File> = HashMap::new();
    let mut buffer = Vec::new();
    let mut kept = 0;
    let mut failure: Option<StagingError> = None;
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
                let file = strike(Point::PeerKeep).and(file);
                let keep = file.and_then(|file| shared.held.keep(file, image, offset, block, copy));
                match keep {
                    Ok(()) => kept += u64::from(bytes),
                    Err(error) => failure = Some(shared.fast_failed(error)),
                }
            }
            Request::Probe { bytes } => {
                let block = peer.bytes(bytes, &mut buffer)?;
                shared.takes.wait(block.len());
            }
            // Blocks are fetched only before a restart, from the processes that are to become the ranks.
            Request::Get { .. } => peer.give(None)?,
            Request::Close => {
                let answer = match failure.take() {
                    None => Answer::Kept { bytes: kept },
                    Some(failure) => Answer::Failed {
                        reason: failure.to_string(),
                    },
                };
                kept = 0;
                peer.answer(&answer)?;
            }
        }
    }
    Ok(())
}
