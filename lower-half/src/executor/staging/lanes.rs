//! The lanes of one image's blocks to its sinks, and the choice of a lane for each block.
//!
//! A block goes to the sink that has had the smallest part of its share, among those whose queues are not full. So all of them end at about
//! the same time, even if the image turns out longer or shorter than estimated. Blocks beyond all shares go to the slow tier.
//!
//! Each page of the image goes to one sink alone, even if several blocks fill it. Later the hosts of the sinks write their blocks to one file
//! of the slow tier. On NFS a host writes whole pages of its cache, with its own old bytes beside the new ones: two hosts that write to one
//! page would overwrite each other's bytes.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::blocks::{BlockRecord, FastTierDirectory, SLOW};
use stillpoint_image::fast_tier::JobPart;
use stillpoint_protocol::tier::{Announced, Assignment};

use super::error::StagingError;
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
    Peer(Rank),
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

/// A page of the image that is filled in part.
#[derive(Debug)]
pub struct BegunPage {
    lane: usize,
    filled: u64,
}

#[derive(Debug, Default)]
pub struct State {
    pub lanes: Vec<Lane>,
    pub records: Vec<BlockRecord>,
    /// The pages that blocks have filled in part, by number.
    pub begun: BTreeMap<u64, BegunPage>,
    /// The image's length, when nothing more comes.
    pub closed: Option<u64>,
    pub failure: Option<StagingError>,
}

/// Returns the lanes that an assignment needs, the slow tier's first.
pub fn lanes(
    shared: &StagingState,
    peers: &[Announced],
    epoch: Epoch,
    assignment: &Assignment,
) -> Result<(Vec<Lane>, Vec<FastTierDirectory>), StagingError> {
    let me = peers
        .get(shared.rank.index())
        .ok_or(StagingError::UnknownPeers)?;
    let (mut lanes, mut places) = (
        vec![lane(LaneDestination::Slow, SLOW, assignment.slow)],
        vec![],
    );
    let mut add =
        |lanes: &mut Vec<Lane>, way: LaneDestination, share: u64| -> Result<usize, StagingError> {
            if let Some(known) = lanes.iter().position(|lane| lane.way == way) {
                lanes[known].share += share;
                return Ok(known);
            }
            let node = match way {
                LaneDestination::Peer(rank) => peers
                    .get(rank.index())
                    .ok_or(StagingError::UnknownRank(rank))?,
                LaneDestination::Local | LaneDestination::Slow => me,
            };
            places.push(FastTierDirectory {
                host: node.host.clone(),
                directory: JobPart::new(Path::new(&node.directory), &shared.job).epoch(epoch),
            });
            lanes.push(lane(way, places.len() as u32, share));
            Ok(lanes.len() - 1)
        };
    let here = |rank: Rank| {
        peers
            .get(rank.index())
            .is_some_and(|peer| peer.same_node(me))
    };
    let own = (assignment.local > 0).then_some((LaneDestination::Local, assignment.local));
    let others = assignment.peers.iter();
    let others = others.map(|(rank, bytes)| (LaneDestination::Peer(*rank), *bytes));
    for (way, share) in own.into_iter().chain(others) {
        let holds = |rank: Rank| match way {
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
    /// Returns the lane for the next block and the block's length, or `None` if every lane that may take it is full.
    pub fn choose(&self, offset: u64, bytes: usize) -> Option<(usize, usize)> {
        let open = |lane: &Lane| lane.queue.len() < DEPTH;
        let may = |lane: &Lane| {
            let copies = lane.copies.and_then(|copies| self.lanes.get(copies));
            open(lane) && copies.is_none_or(open)
        };
        let (page, within) = (offset / PAGE, offset % PAGE);
        // The block ends before the next page that has a lane already.
        let next = self.begun.range(page + 1..).next();
        let bound = next.map_or(u64::MAX, |(next, _)| next * PAGE - offset);
        let length = bytes
            .min(BLOCK)
            .min(usize::try_from(bound).unwrap_or(BLOCK));
        let pages = |lane: &Lane| lane.share.saturating_sub(lane.taken) / PAGE;
        if let Some(begun) = self.begun.get(&page) {
            let lane = &self.lanes[begun.lane];
            let room = (pages(lane).min(BLOCK as u64) + 1) * PAGE - within;
            let length = (length as u64).min(room) as usize;
            return may(lane).then_some((begun.lane, length));
        }
        let left = || (0..self.lanes.len()).filter(|lane| pages(&self.lanes[*lane]) > 0);
        if left().next().is_none() {
            return may(&self.lanes[0]).then_some((0, length));
        }
        let part = |lane: &Lane| lane.taken as f64 / lane.share as f64;
        left()
            .filter(|lane| may(&self.lanes[*lane]))
            .min_by(|a, b| part(&self.lanes[*a]).total_cmp(&part(&self.lanes[*b])))
            .map(|lane| {
                let room = pages(&self.lanes[lane]).min(BLOCK as u64) * PAGE - within;
                (lane, (length as u64).min(room) as usize)
            })
    }

    /// Counts a block's pages towards its lane: a page as a whole when its first bytes come.
    fn count(&mut self, chosen: usize, offset: u64, bytes: u64) {
        let end = offset + bytes;
        let (first, last) = (offset / PAGE, end.saturating_sub(1) / PAGE);
        // The pages between these two are new and full.
        let borders = std::iter::once(first).chain((last > first).then_some(last));
        let mut new = last + 1 - first;
        for page in borders {
            let filled = end.min((page + 1) * PAGE) - offset.max(page * PAGE);
            let before = self.begun.remove(&page).map(|begun| begun.filled);
            new -= u64::from(before.is_some());
            let filled = filled + before.unwrap_or(0);
            if filled < PAGE {
                let lane = chosen;
                self.begun.insert(page, BegunPage { lane, filled });
            }
        }
        self.lanes[chosen].taken += new * PAGE;
    }

    pub fn push(&mut self, chosen: usize, offset: u64, bytes: Arc<[u8]>, sum: u64) {
        self.count(chosen, offset, bytes.len() as u64);
        let lane = &self.lanes[chosen];
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
