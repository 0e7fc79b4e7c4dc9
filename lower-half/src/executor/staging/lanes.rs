//! The lanes of one image's blocks to its sinks, and the choice of a lane for each block.
//!
//! A block goes to the sink that has had the smallest part of its share, among those whose queues are not full. So all of them end at about
//! the same time, even if the image turns out longer or shorter than estimated. Blocks beyond all shares go to the slow tier.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use stillpoint_image::blocks::{BlockRecord, FastTierDirectory, SLOW};
use stillpoint_image::fast_tier::JobPart;
use stillpoint_protocol::tier::{Announced, Assignment};

use super::sink::Block;
use super::{BLOCK, StagingState};

/// The most blocks that wait for a sink.
const DEPTH: usize = 4;
const PAGE: u64 = crate::arch::PAGE as u64;

/// The destination of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneDestination {
    Slow,
    Local,
    /// The node that this rank serves.
    Peer(u32),
}

/// The way to one sink.
#[derive(Debug)]
pub struct Lane {
    pub way: LaneDestination,
    /// Its number in the table of blocks.
    place: u32,
    /// The lane that carries second copies of its blocks.
    pub copies: Option<usize>,
    pub share: u64,
    pub taken: u64,
    pub queue: VecDeque<Block>,
    /// Bytes and seconds of its sink's work.
    pub bytes: u64,
    pub copied: u64,
    pub seconds: f64,
}

#[derive(Debug, Default)]
pub struct State {
    pub lanes: Vec<Lane>,
    pub records: Vec<BlockRecord>,
    /// The image's length, when nothing more comes.
    pub closed: Option<u64>,
    pub failure: Option<String>,
}

/// Returns the lanes that an assignment needs, the slow tier's first.
pub fn lanes(
    shared: &StagingState,
    peers: &[Announced],
    epoch: u64,
    assignment: &Assignment,
) -> Result<(Vec<Lane>, Vec<FastTierDirectory>), String> {
    let me = peers
        .get(shared.rank as usize)
        .ok_or("the other ranks' tiers are not known")?;
    let (mut lanes, mut places) = (
        vec![lane(LaneDestination::Slow, SLOW, assignment.slow)],
        vec![],
    );
    let mut add =
        |lanes: &mut Vec<Lane>, way: LaneDestination, share: u64| -> Result<usize, String> {
            if let Some(known) = lanes.iter().position(|lane| lane.way == way) {
                lanes[known].share += share;
                return Ok(known);
            }
            let node = match way {
                LaneDestination::Peer(rank) => peers
                    .get(rank as usize)
                    .ok_or("the plan names an unknown rank")?,
                LaneDestination::Local | LaneDestination::Slow => me,
            };
            places.push(FastTierDirectory {
                host: node.host.clone(),
                directory: JobPart::new(Path::new(&node.directory), &shared.job).epoch(epoch),
            });
            lanes.push(lane(way, places.len() as u32, share));
            Ok(lanes.len() - 1)
        };
    let here = |rank: u32| {
        peers
            .get(rank as usize)
            .is_some_and(|peer| peer.same_node(me))
    };
    let own = (assignment.local > 0).then_some((LaneDestination::Local, assignment.local));
    let others = assignment.peers.iter();
    let others = others.map(|(rank, bytes)| (LaneDestination::Peer(*rank), *bytes));
    for (way, share) in own.into_iter().chain(others) {
        let holds = |rank: u32| match way {
            LaneDestination::Peer(holder) => rank == holder,
            LaneDestination::Local | LaneDestination::Slow => here(rank),
        };
        let this = add(&mut lanes, way, share)?;
        let partner = assignment.partners.iter().find(|(node, _)| holds(*node));
        if let Some((_, partner)) = partner {
            let way = if here(*partner) {
                LaneDestination::Local
            } else {
                LaneDestination::Peer(*partner)
            };
            lanes[this].copies = Some(add(&mut lanes, way, 0)?);
        }
    }
    Ok((lanes, places))
}

pub fn lane(way: LaneDestination, place: u32, share: u64) -> Lane {
    Lane {
        way,
        place,
        copies: None,
        share,
        taken: 0,
        queue: VecDeque::new(),
        bytes: 0,
        copied: 0,
        seconds: 0.0,
    }
}

impl State {
    /// Returns the lane for the next block, and the greatest length that the block may have there, or `None` if every lane that may take
    /// one is full.
    pub fn choose(&self) -> Option<(usize, usize)> {
        let open = |lane: &Lane| lane.queue.len() < DEPTH;
        let may = |lane: &Lane| {
            let copies = lane.copies.and_then(|copies| self.lanes.get(copies));
            open(lane) && copies.is_none_or(open)
        };
        let part = |lane: &Lane| lane.taken as f64 / lane.share as f64;
        let room = |lane: &Lane| lane.share.saturating_sub(lane.taken + self.page());
        let left = || (0..self.lanes.len()).filter(|lane| room(&self.lanes[*lane]) >= PAGE);
        if left().next().is_none() {
            return may(&self.lanes[0]).then_some((0, BLOCK));
        }
        left()
            .filter(|lane| may(&self.lanes[*lane]))
            .min_by(|a, b| part(&self.lanes[*a]).total_cmp(&part(&self.lanes[*b])))
            .map(|lane| (lane, room(&self.lanes[lane]).min(BLOCK as u64) as usize))
    }

    /// Returns the bytes that a block may take besides its own: if blocks of one image lie in several files, each may touch a page more
    /// than it fills.
    fn page(&self) -> u64 {
        match self.lanes.iter().filter(|lane| lane.share > 0).count() {
            0 | 1 => 0,
            _ => PAGE,
        }
    }

    pub fn push(&mut self, chosen: usize, offset: u64, bytes: Arc<[u8]>, sum: u64) {
        let page = self.page();
        let lane = &mut self.lanes[chosen];
        lane.taken += bytes.len() as u64 + page;
        let (place, copies) = (lane.place, lane.copies);
        self.records.push(BlockRecord {
            offset,
            checksum: sum,
            bytes: bytes.len() as u32,
            place,
            copy: copies.map_or(SLOW, |copies| self.lanes[copies].place),
            reserved: 0,
        });
        if let Some(copies) = copies {
            self.lanes[copies].queue.push_back(Block {
                offset,
                bytes: Arc::clone(&bytes),
                copy: true,
            });
        }
        self.lanes[chosen].queue.push_back(Block {
            offset,
            bytes,
            copy: false,
        });
    }
}
