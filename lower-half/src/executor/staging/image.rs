//! One image on its way to its tiers: the writer's blocks go to several sinks at once, to each about as much as the plan says.
//!
//! Every sink has a thread and a short queue; [`super::lanes`] decides which block goes where.

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use stillpoint_ids::Epoch;
use stillpoint_image::blocks::{Blocks, FastTierDirectory};
use stillpoint_image::format::checksum;
use stillpoint_image::store::Store;
use stillpoint_protocol::tier::{Assignment, Moved, Rates};

use super::error::StagingError;
use super::held::ImageId;
use super::lanes::{LaneDestination, State, lanes};
use super::sink::{Block, Local, Remote, Sink, Slow};
use super::{Staging, rate};
use crate::ground::thread;

/// An image that is being staged.
pub struct Image {
    state: Mutex<State>,
    changed: Condvar,
    places: Vec<FastTierDirectory>,
}

/// The writer's end of it, which waits for the sinks when the image is finished, or given up.
pub struct Lanes {
    image: Arc<Image>,
    sinks: Mutex<Vec<JoinHandle<()>>>,
}

/// The outcome of a staged image.
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
        epoch: Epoch,
        path: &Path,
        assignment: &Assignment,
    ) -> Result<(Arc<Image>, Lanes), StagingError> {
        self.shared.held.need(epoch);
        let peers = self.shared.peers();
        let (lanes, places) = lanes(&self.shared, &peers, epoch, assignment)?;
        let ways: Vec<LaneDestination> = lanes.iter().map(|lane| lane.way).collect();
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
                LaneDestination::Slow => Box::new(Slow::create(&self.shared, path)?),
                LaneDestination::Local => Box::new(Local::open(&self.shared, this)?),
                LaneDestination::Peer(rank) => {
                    let peer = peers
                        .get(rank.index())
                        .ok_or(StagingError::UnknownRank(rank))?;
                    Box::new(Remote::open(&self.shared, this, &peer.address)?)
                }
            };
            let image = Arc::clone(&image);
            let drain = move || image.drain(lane, sink);
            let thread = thread::start("stillpoint-sink", thread::USUAL, drain)
                .map_err(StagingError::Thread)?;
            let mut sinks = writer.sinks.lock().unwrap_or_else(PoisonError::into_inner);
            sinks.push(thread);
        }
        Ok((image, writer))
    }

    /// Takes the rates that were measured on the way.
    pub fn learn(&self, rates: Rates) {
        self.note_rates(rates, None);
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

    /// Hands a block, or the first part of it, to a sink as soon as one has room for it. Returns the number of bytes.
    fn put(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state();
        loop {
            if let Some(failure) = &state.failure {
                return Err(io::Error::other(failure.to_string()));
            }
            if let Some((chosen, length)) = state.choose(offset, bytes.len()) {
                let part = &bytes[..length];
                state.push(chosen, offset, Arc::from(part), checksum(part));
                self.changed.notify_all();
                return Ok(part.len());
            }
            state = self.wait(state);
        }
    }

    /// Runs a sink's thread: takes the blocks of its lane, to the end.
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

    /// Returns the next block of a lane, or the image's length when there are no more, or neither if the image is given up.
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

    /// Returns the outcome of a finished image.
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
                LaneDestination::Slow => {
                    staged.moved.slow = first;
                    staged.rates.slow = rate(lane.bytes, lane.seconds);
                }
                LaneDestination::Local => {
                    staged.moved.local = first;
                    staged.rates.fast = rate(lane.bytes, lane.seconds);
                }
                LaneDestination::Peer(_) => {
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
            Some(failure) => Err(io::Error::other(failure.to_string())),
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
    /// Gives up an image that was not finished.
    fn drop(&mut self) {
        {
            let mut state = self.image.state();
            if state.closed.is_none() {
                state.failure.get_or_insert(StagingError::GivenUp);
            }
        }
        self.image.changed.notify_all();
        self.join();
    }
}

#[cfg(test)]
mod tests {
    use stillpoint_ids::Rank;
    use stillpoint_image::blocks::SLOW;

    use super::super::BLOCK;
    use super::super::lanes::{Lane, lane};
    use super::*;

    const MB: u64 = 1_000_000;

    fn image(lanes: Vec<Lane>) -> Image {
        Image {
            state: Mutex::new(State {
                lanes,
                ..State::default()
            }),
            changed: Condvar::new(),
            places: vec![],
        }
    }

    /// Puts so many bytes; the sinks take everything at once.
    fn put(image: &Image, bytes: u64) {
        let zeros = vec![0; BLOCK];
        let mut offset = 0;
        while offset < bytes {
            let block = &zeros[..(bytes - offset).min(BLOCK as u64) as usize];
            offset += image.put(offset, block).unwrap() as u64;
            for lane in &mut image.state().lanes {
                lane.queue.clear();
            }
        }
    }

    #[test]
    fn every_lane_gets_its_share_and_no_more_and_the_slow_tier_what_is_beyond() {
        let image = image(vec![
            lane(LaneDestination::Slow, SLOW, 2 * MB),
            lane(LaneDestination::Local, 1, 10 * MB),
            lane(LaneDestination::Peer(Rank(1)), 2, 6 * MB),
        ]);
        put(&image, 20 * MB);
        let mut end = 0;
        let mut by_place = [0; 3];
        for record in &image.state().records {
            assert_eq!(record.offset, end, "a gap, or an overlap");
            end += u64::from(record.bytes);
            by_place[record.place as usize] += u64::from(record.bytes);
        }
        assert_eq!(end, 20 * MB);
        for (place, share) in [(1, 10 * MB), (2, 6 * MB)] {
            let left = share - by_place[place];
            assert!(left < share / 50, "{left} of {share} bytes are not used");
        }
    }

    #[test]
    fn an_image_that_is_shorter_than_planned_leaves_every_lane_the_same_part() {
        let image = image(vec![
            lane(LaneDestination::Slow, SLOW, 30 * MB),
            lane(LaneDestination::Local, 1, 60 * MB),
        ]);
        put(&image, 45 * MB);
        let state = image.state();
        for lane in &state.lanes {
            let part = lane.taken as f64 / lane.share as f64;
            assert!((0.45..0.55).contains(&part), "{part}");
        }
    }

    #[test]
    fn every_page_goes_to_one_lane_whatever_the_order_and_the_lengths() {
        let lanes = [2, 5, 3].map(|share| share * MB);
        let image = image(vec![
            lane(LaneDestination::Slow, SLOW, lanes[0]),
            lane(LaneDestination::Local, 1, lanes[1]),
            lane(LaneDestination::Peer(Rank(1)), 2, lanes[2]),
        ]);
        // Two writers, one from the front and one from the middle on, and then a third one that fills what they have left.
        let length = |step: u64| 1 + step * step * 37 % 150_000;
        let mut writes = Vec::new();
        let mut ends = [0, 5 * MB];
        let bounds = [5 * MB - 1_000, 10 * MB];
        for step in 0.. {
            let writer = (step % 2) as usize;
            let bytes = length(step).min(bounds[writer] - ends[writer]);
            writes.push((ends[writer], bytes));
            ends[writer] += bytes;
            if ends == bounds {
                break;
            }
        }
        writes.push((bounds[0], 1_000));
        let zeros = vec![0; BLOCK];
        let mut all = 0;
        for (mut offset, bytes) in writes.into_iter().filter(|(_, bytes)| *bytes > 0) {
            let end = offset + bytes;
            all += bytes;
            while offset < end {
                offset += image
                    .put(offset, &zeros[..(end - offset) as usize])
                    .unwrap() as u64;
                for lane in &mut image.state().lanes {
                    lane.queue.clear();
                }
            }
        }
        let state = image.state();
        let mut lane_of = std::collections::BTreeMap::new();
        let (mut shared, mut sum) = (0, 0);
        let mut by_place = [0; 3];
        for record in &state.records {
            let (from, to) = (record.offset, record.offset + u64::from(record.bytes));
            sum += to - from;
            by_place[record.place.min(2) as usize] += to - from;
            for page in from / 4096..=(to - 1) / 4096 {
                shared += u32::from(*lane_of.entry(page).or_insert(record.place) != record.place);
            }
        }
        assert_eq!((shared, sum), (0, all), "pages of two lanes, and bytes");
        for (place, share) in [(1, lanes[1]), (2, lanes[2])] {
            assert!(by_place[place] <= share, "{} of {share}", by_place[place]);
            assert!(
                by_place[place] > share / 2,
                "{} of {share}",
                by_place[place]
            );
        }
    }

    #[test]
    fn a_second_copy_goes_where_the_partner_is() {
        let mut own = lane(LaneDestination::Local, 1, 4 * MB);
        own.copies = Some(2);
        let image = image(vec![
            lane(LaneDestination::Slow, SLOW, 0),
            own,
            lane(LaneDestination::Peer(Rank(1)), 2, 0),
        ]);
        image.put(0, &[7; 1000]).unwrap();
        let state = image.state();
        assert_eq!((state.records[0].place, state.records[0].copy), (1, 2));
        let copies: Vec<bool> = state.lanes[2]
            .queue
            .iter()
            .map(|block| block.copy)
            .collect();
        assert_eq!(copies, [true]);
    }
}
