//! Fetches blocks that other hosts hold.

use std::collections::BTreeMap;

use stillpoint_ids::Rank;
use stillpoint_image::blocks::Blocks;
use stillpoint_image::format::checksum;
use stillpoint_image::nearest::holders;
use stillpoint_protocol::Terms;
use stillpoint_protocol::peer::Peer;
use stillpoint_protocol::tier::Announced;

use super::PATIENCE;

/// The blocks of one image that other hosts hold.
pub struct Fetch<'a> {
    rank: Rank,
    here: &'a str,
    peers: &'a [Announced],
    terms: Terms,
    blocks: &'a Blocks,
    /// By host; `None`: no process there answers.
    connections: BTreeMap<&'a str, Option<Peer>>,
}

impl<'a> Fetch<'a> {
    pub fn new(
        rank: Rank,
        here: &'a str,
        peers: &'a [Announced],
        terms: Terms,
        blocks: &'a Blocks,
    ) -> Fetch<'a> {
        Fetch {
            rank,
            here,
            peers,
            terms,
            blocks,
            connections: BTreeMap::new(),
        }
    }

    /// Fetches a block, by its number in the table, from the first host that has it whole.
    pub fn block(&mut self, number: usize) -> Option<Vec<u8>> {
        let (blocks, here) = (self.blocks, self.here);
        let record = blocks.records.get(number)?;
        let places = holders(record).filter_map(|place| blocks.places.get(place as usize - 1));
        places
            .filter(|place| place.host != here)
            .filter_map(|place| self.from(&place.host, number))
            .find(|bytes| checksum(bytes) == record.checksum)
    }

    fn from(&mut self, host: &'a str, number: usize) -> Option<Vec<u8>> {
        if !self.connections.contains_key(host) {
            let peer = self.connect(host);
            self.connections.insert(host, peer);
        }
        let connection = self.connections.get_mut(host)?;
        match connection.as_mut()?.get(self.rank, number as u32) {
            Ok(block) => block,
            Err(_) => {
                // The host has gone. Its blocks are lost, unless there are copies.
                *connection = None;
                None
            }
        }
    }

    /// Connects to one of the host's ranks. Different ranks ask different ones, so that these share the work.
    fn connect(&self, host: &str) -> Option<Peer> {
        let there: Vec<&Announced> = self.peers.iter().filter(|peer| peer.host == host).collect();
        let chosen = there.get(self.rank.index() % there.len().max(1))?;
        Peer::open(&chosen.address, &self.terms, PATIENCE).ok()
    }
}
