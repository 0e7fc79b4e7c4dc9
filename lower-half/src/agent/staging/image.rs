//! One image on its way to its tiers: the writer's blocks go to several sinks at once, to each about as much as the plan
//! says.
//!
//! Every sink has a thread and a short queue. A block goes to the sink that has had the smallest part of its share,
//! among those whose queues are not full: so all of them end at about the same time, also where the image turns out
//! longer or shorter than it was guessed to be. What is beyond all shares goes to the slow tier.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use stillpoint_image::blocks::{BlockRecord, Blocks, Place, SLOW};
use stillpoint_image::format::checksum;
use stillpoint_image::store::Store;
use stillpoint_protocol::tier::{Announced, Assignment, Moved, Rates};

use super::held::{ImageId, epoch_directory};
use super::sink::{Block, Local, Remote, Sink, Slow};
use super::{BLOCK, Shared, Staging, rate};

/// Blocks that wait for a sink, at most.
const DEPTH: usize = 4;
const PAGE: u64 = 4096;

/// Where a lane leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Slow,
    Local,
    /// To the node that this rank serves.
    Peer(u32),
}

/// The way to one sink.
#[derive(Debug)]
struct Lane {
    way: Way,
    /// Its number in the table of blocks.
    place: u32,
    /// The lane that carries second copies of what goes here.
    copies: Option<usize>,
    share: u64,
    taken: u64,
    queue: VecDeque<Block>,
    /// Bytes and seconds of its sink's work.
    bytes: u64,
    copied: u64,
    seconds: f64,
}

#[derive(Debug, Default)]
struct State {
    lanes: Vec<Lane>,
    records: Vec<BlockRecord>,
    /// The image's length, when nothing more comes.
    closed: Option<u64>,
    failure: Option<String>,
}

/// An image that is being staged.
pub struct Image {
    state: Mutex<State>,
    changed: Condvar,
    places: Vec<Place>,
}

/// The writer's end of it: waits for the sinks when the image is finished, or given up.
pub struct Lanes {
    image: Arc<Image>,
    sinks: Mutex<Vec<JoinHandle<()>>>,
}

/// What became of a staged image.
pub struct Staged {
    pub blocks: Blocks,
    pub moved: Moved,
    pub rates: Rates,
}

impl Staging {
    /// Opens every sink of an image.
    pub fn stage(
        &self,
        attempt: u64,
        epoch: u64,
        path: &Path,
        assignment: &Assignment,
    ) -> Result<(Arc<Image>, Lanes), String> {
        let peers = self.shared.peers();
        let (lanes, places) = lanes(&self.shared, &peers, epoch, assignment)?;
        let ways: Vec<Way> = lanes.iter().map(|lane| lane.way).collect();
        let image = Arc::new(Image {
            state: Mutex::new(State {
                lanes,
                ..State::default()
            }),
            changed: Condvar::new(),
            places,
        });
        let writer = Lanes {
            image: Arc::clone(&image),
            sinks: Mutex::default(),
        };
        let this = ImageId {
            attempt,
            epoch,
            rank: self.shared.rank,
        };
        for (lane, way) in ways.into_iter().enumerate() {
            let sink: Box<dyn Sink> = match way {
                Way::Slow => Box::new(Slow::create(&self.shared, path)?),
                Way::Local => Box::new(Local::open(&self.shared, this)?),
                Way::Peer(rank) => {
                    let peer = peers
                        .get(rank as usize)
                        .ok_or("the plan names an unknown rank")?;
                    Box::new(Remote::open(&self.shared, this, &peer.address)?)
                }
            };
            let image = Arc::clone(&image);
            let thread = std::thread::Builder::new()
                .name("stillpoint-sink".to_owned())
                .stack_size(1 << 20)
                .spawn(move || image.drain(lane, sink))
                .map_err(|error| format!("cannot start a thread: {error}"))?;
            let mut sinks = writer.sinks.lock().unwrap_or_else(PoisonError::into_inner);
            sinks.push(thread);
        }
        Ok((image, writer))
    }

    /// What has been measured on the way.
    pub fn learn(&self, rates: Rates) {
        self.note_rates(rates, None);
    }
}

/// The lanes that an assignment needs: the slow tier's first.
fn lanes(
    shared: &Shared,
    peers: &[Announced],
    epoch: u64,
    assignment: &Assignment,
) -> Result<(Vec<Lane>, Vec<Place>), String> {
    let me = peers
        .get(shared.rank as usize)
        .ok_or("the other ranks' tiers are not known")?;
    let (mut lanes, mut places) = (vec![lane(Way::Slow, SLOW, assignment.slow)], vec![]);
    let mut add = |lanes: &mut Vec<Lane>, way: Way, share: u64| -> Result<usize, String> {
        if let Some(known) = lanes.iter().position(|lane| lane.way == way) {
            lanes[known].share += share;
            return Ok(known);
        }
        let node = match way {
            Way::Peer(rank) => peers
                .get(rank as usize)
                .ok_or("the plan names an unknown rank")?,
            Way::Local | Way::Slow => me,
        };
        places.push(Place {
            host: node.host.clone(),
            directory: epoch_directory(Path::new(&node.directory), &shared.job, epoch),
        });
        lanes.push(lane(way, places.len() as u32, share));
        Ok(lanes.len() - 1)
    };
    let here = |rank: u32| {
        peers
            .get(rank as usize)
            .is_some_and(|peer| peer.same_node(me))
    };
    let own = (assignment.local > 0).then_some((Way::Local, assignment.local));
    let others = assignment.peers.iter();
    let others = others.map(|(rank, bytes)| (Way::Peer(*rank), *bytes));
    for (way, share) in own.into_iter().chain(others) {
        let holds = |rank: u32| match way {
            Way::Peer(holder) => rank == holder,
            Way::Local | Way::Slow => here(rank),
        };
        let this = add(&mut lanes, way, share)?;
        let partner = assignment.partners.iter().find(|(node, _)| holds(*node));
        if let Some((_, partner)) = partner {
            let way = if here(*partner) {
                Way::Local
            } else {
                Way::Peer(*partner)
            };
            lanes[this].copies = Some(add(&mut lanes, way, 0)?);
        }
    }
    Ok((lanes, places))
}

fn lane(way: Way, place: u32, share: u64) -> Lane {
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
    /// The lane for the next block, and how long the block may be there; `None`: every lane that may take one is full.
    fn choose(&self) -> Option<(usize, usize)> {
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

    /// Where blocks of one image lie in several files, each may touch a page more than it fills.
    fn page(&self) -> u64 {
        match self.lanes.iter().filter(|lane| lane.share > 0).count() {
            0 | 1 => 0,
            _ => PAGE,
        }
    }

    fn push(&mut self, chosen: usize, offset: u64, bytes: Arc<[u8]>, sum: u64) {
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

impl Image {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a block, or the first part of it, to a sink as soon as one has room for it. How much it was.
    fn put(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state();
        loop {
            if let Some(failure) = &state.failure {
                return Err(io::Error::other(failure.clone()));
            }
            if let Some((chosen, most)) = state.choose() {
                let part = &bytes[..bytes.len().min(most)];
                state.push(chosen, offset, Arc::from(part), checksum(part));
                self.changed.notify_all();
                return Ok(part.len());
            }
            state = self.wait(state);
        }
    }

    /// A sink's thread: takes what its lane brings, to the end.
    fn drain(&self, lane: usize, mut sink: Box<dyn Sink>) {
        loop {
            let (block, closed) = self.next(lane);
            let began = Instant::now();
            let done = match (&block, closed) {
                (Some(block), _) => sink.write(block),
                (None, Some(bytes)) => sink.finish(bytes),
                (None, None) => return,
            };
            let seconds = began.elapsed().as_secs_f64();
            let mut state = self.state();
            let mine = &mut state.lanes[lane];
            mine.seconds += seconds;
            if let Some(block) = &block {
                let bytes = block.bytes.len() as u64;
                mine.bytes += bytes;
                mine.copied += if block.copy { bytes } else { 0 };
            }
            if let Err(failure) = done {
                state.failure.get_or_insert(failure);
            }
            self.changed.notify_all();
            if block.is_none() {
                return;
            }
        }
    }

    /// The next block of a lane, or the image's length when there are no more; neither: the image is given up.
    fn next(&self, lane: usize) -> (Option<Block>, Option<u64>) {
        let mut state = self.state();
        loop {
            if state.failure.is_some() {
                return (None, None);
            }
            if let Some(block) = state.lanes[lane].queue.pop_front() {
                // There is room for another one.
                self.changed.notify_all();
                return (Some(block), None);
            }
            if state.closed.is_some() {
                return (None, state.closed);
            }
            state = self.wait(state);
        }
    }

    /// What became of it, when it is finished.
    pub fn staged(&self) -> Staged {
        let mut state = self.state();
        let mut staged = Staged {
            blocks: Blocks::new(self.places.clone(), std::mem::take(&mut state.records)),
            moved: Moved::default(),
            rates: Rates::default(),
        };
        let (mut sent, mut longest) = (0, 0f64);
        for lane in &state.lanes {
            let first = lane.bytes - lane.copied;
            staged.moved.copies += lane.copied;
            match lane.way {
                Way::Slow => {
                    staged.moved.slow = first;
                    staged.rates.slow = rate(lane.bytes, lane.seconds);
                }
                Way::Local => {
                    staged.moved.local = first;
                    staged.rates.fast = rate(lane.bytes, lane.seconds);
                }
                Way::Peer(_) => {
                    staged.moved.peers += first;
                    (sent, longest) = (sent + lane.bytes, longest.max(lane.seconds));
                }
            }
        }
        staged.rates.peers = rate(sent, longest);
        staged
    }
}

impl Store for Lanes {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            done += self.image.put(offset + done as u64, &bytes[done..])?;
        }
        Ok(())
    }

    fn finish(&self, file_bytes: u64) -> io::Result<()> {
        self.image.state().closed = Some(file_bytes);
        self.image.changed.notify_all();
        self.join();
        match &self.image.state().failure {
            Some(failure) => Err(io::Error::other(failure.clone())),
            None => Ok(()),
        }
    }
}

impl Lanes {
    fn join(&self) {
        let sinks = std::mem::take(&mut *self.sinks.lock().unwrap_or_else(PoisonError::into_inner));
        for sink in sinks {
            // A sink that ended early has left its reason.
            let _ = sink.join();
        }
    }
}

impl Drop for Lanes {
    /// An image that was not finished is given up.
    fn drop(&mut self) {
        {
            let mut state = self.image.state();
            if state.closed.is_none() {
                state.failure.get_or_insert_with(|| "given up".to_owned());
            }
        }
        self.image.changed.notify_all();
        self.join();
    }
}
