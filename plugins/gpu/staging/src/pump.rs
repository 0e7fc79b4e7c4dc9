//! All ways at once: copies are cut into slots, and each way's streams are kept busy until all copies have ended.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use stillpoint_gpu_plan::{Copies, StagingPlace};

use crate::device::{Copy, Device, DeviceError, Stream, Ticket};

/// The copies of a stream at a time. The next one is there when the one before it ends.
const AHEAD: usize = 2;

/// From place to place.
pub(crate) type Between = (StagingPlace, StagingPlace);

/// The copies of one way.
#[derive(Debug)]
pub(crate) struct Line {
    waiting: VecDeque<(usize, Copy)>,
    /// The number of copies under way, by stream.
    under_way: Vec<usize>,
    pub bytes: u64,
    /// The time when its last copy ended.
    pub ended: Duration,
}

/// All copies to be made, by way.
#[derive(Debug, Default)]
pub(crate) struct Pump {
    lines: BTreeMap<Between, Line>,
    tickets: BTreeMap<Ticket, (usize, Between, u32)>,
}

impl Pump {
    /// Sets how a way copies. The caller does this before it adds a copy to the way.
    pub fn line(&mut self, between: Between, copies: Copies) {
        let streams = copies.streams.max(1) as usize;
        self.lines.entry(between).or_insert_with(|| Line {
            waiting: VecDeque::new(),
            under_way: vec![0; streams],
            bytes: 0,
            ended: Duration::ZERO,
        });
    }

    /// Adds a copy, which the caller knows by a number. Its way has been set.
    pub fn add(&mut self, number: usize, copy: Copy) {
        let between = (copy.from.place, copy.to.place);
        if let Some(line) = self.lines.get_mut(&between) {
            line.bytes += copy.bytes;
            line.waiting.push_back((number, copy));
        }
    }

    /// Begins as many copies as the streams have place for.
    pub fn begin(&mut self, device: &mut dyn Device) -> Result<(), DeviceError> {
        for (between, line) in &mut self.lines {
            while let Some(&(number, copy)) = line.waiting.front() {
                let streams = line.under_way.iter().zip(0u32..);
                let Some((&busy, stream)) = streams.min() else {
                    break;
                };
                if busy >= AHEAD {
                    break;
                }
                let stream_of = Stream {
                    from: between.0,
                    to: between.1,
                    number: stream,
                };
                let ticket = device.begin(stream_of, &copy)?;
                line.waiting.pop_front();
                line.under_way[stream as usize] += 1;
                self.tickets.insert(ticket, (number, *between, stream));
            }
        }
        Ok(())
    }

    /// Waits for a copy to end, and returns its number, or `None` if no copy is under way.
    pub fn next(&mut self, device: &mut dyn Device) -> Result<Option<usize>, DeviceError> {
        self.begin(device)?;
        loop {
            if self.tickets.is_empty() {
                return Ok(None);
            }
            // A copy of an earlier caller has no number here.
            let ticket = device.ended()?;
            if let Some((number, between, stream)) = self.tickets.remove(&ticket) {
                if let Some(line) = self.lines.get_mut(&between) {
                    line.under_way[stream as usize] -= 1;
                    line.ended = device.now();
                }
                return Ok(Some(number));
            }
        }
    }

    pub fn lines(&self) -> impl Iterator<Item = (&Between, &Line)> {
        self.lines.iter()
    }
}
