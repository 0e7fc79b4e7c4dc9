//! GPUs in virtual time: memory is real, bandwidths and waits are computed. Repeated runs are the same to the nanosecond.
//!
//! Copies that are first in their streams share their way's bandwidth, and an uplink's if there is one; one stream alone does not fill
//! a way. Before its bytes move, a copy takes some time to begin.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use stillpoint_gpu_plan::{CopyRoute, Node, Source, StagingPlace};
use stillpoint_gpu_staging::{Copy, Device, DeviceError, Digest, Spot, Stream, Ticket, digest};
use stillpoint_ids::Rank;

/// Injected faults, by the number of the copy.
#[derive(Clone, Copy, Default, Debug)]
pub struct Faults {
    /// Flips a bit during the copy.
    pub corrupt: Option<u64>,
    pub fail: Option<u64>,
    pub lose: Option<u64>,
}

struct UnderWay {
    ticket: Ticket,
    copy: Copy,
    /// Seconds until bytes move, then bytes that are left.
    to_begin: f64,
    left: f64,
}

pub struct Machine {
    pub node: Node,
    /// Memory by place: addresses before `free_from` belong to the ranks.
    memory: BTreeMap<StagingPlace, Vec<u8>>,
    reserved: BTreeMap<(StagingPlace, u64), u64>,
    /// The largest reservation in a place, whatever the driver reports as free.
    pub largest_piece: BTreeMap<StagingPlace, u64>,
    streams: BTreeMap<Stream, VecDeque<UnderWay>>,
    begun: u64,
    seconds: f64,
    pub faults: Faults,
    pub hashes: bool,
    /// Seconds that every copy takes to begin.
    pub to_begin: f64,
    /// The share of a way's bandwidth that one stream alone gets.
    pub one_stream: f64,
    /// The most memory that was ever taken of each place.
    pub peak: BTreeMap<StagingPlace, u64>,
}

/// Addresses of places do not overlap, so that a mixed-up one is found.
fn base(place: StagingPlace) -> u64 {
    match place {
        StagingPlace::Gpu(gpu) => (gpu as u64 + 1) << 40,
        StagingPlace::Host => 1 << 60,
    }
}

impl Machine {
    /// Makes a node whose GPUs hold the ranks' memory and as much besides as is free.
    pub fn new(node: &Node, sizes: &[(u32, usize, u64)]) -> (Machine, Vec<Source>) {
        let mut memory: BTreeMap<StagingPlace, Vec<u8>> = BTreeMap::new();
        let mut sources = Vec::new();
        for (number, &(rank, gpu, bytes)) in sizes.iter().enumerate() {
            let place = StagingPlace::Gpu(gpu);
            let all = memory.entry(place).or_default();
            sources.push(Source {
                rank: Rank(rank),
                gpu,
                address: base(place) + all.len() as u64,
                bytes,
            });
            let end = all.len() + bytes as usize;
            let mut next = number as u64 + 1;
            while all.len() < end {
                next = next
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                all.extend_from_slice(&(next >> 8).to_le_bytes());
            }
            all.truncate(end);
        }
        let machine = Machine {
            node: node.clone(),
            memory,
            reserved: BTreeMap::new(),
            largest_piece: BTreeMap::new(),
            streams: BTreeMap::new(),
            begun: 0,
            seconds: 0.0,
            faults: Faults::default(),
            hashes: false,
            to_begin: 0.0,
            one_stream: 1.0,
            peak: BTreeMap::new(),
        };
        (machine, sources)
    }

    pub fn bytes(&self, source: &Source) -> &[u8] {
        let spot = Spot {
            place: StagingPlace::Gpu(source.gpu),
            address: source.address,
        };
        self.at(spot, source.bytes)
    }

    /// Changes a source, as the program does when it runs on.
    pub fn overwrite(&mut self, source: &Source) {
        let spot = Spot {
            place: StagingPlace::Gpu(source.gpu),
            address: source.address,
        };
        self.at_mut(spot, source.bytes).fill(0xee);
    }

    /// Returns the number of copies that have been begun.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    pub fn nothing_is_reserved(&self) -> bool {
        self.reserved.is_empty() && self.streams.values().all(VecDeque::is_empty)
    }

    fn taken(&self, place: StagingPlace) -> u64 {
        let here = self.reserved.iter().filter(|((of, _), _)| *of == place);
        here.map(|(_, bytes)| bytes).sum()
    }

    pub fn at(&self, spot: Spot, bytes: u64) -> &[u8] {
        let from = spot
            .address
            .checked_sub(base(spot.place))
            .expect("an address of the place") as usize;
        &self.memory[&spot.place][from..from + bytes as usize]
    }

    fn at_mut(&mut self, spot: Spot, bytes: u64) -> &mut [u8] {
        let from = spot
            .address
            .checked_sub(base(spot.place))
            .expect("an address of the place") as usize;
        &mut self.memory.get_mut(&spot.place).expect("a place")[from..from + bytes as usize]
    }

    /// Returns the bytes per second of a way, in either direction.
    fn bandwidth(&self, stream: &Stream) -> f64 {
        let way = match (stream.from, stream.to) {
            (StagingPlace::Gpu(from), to) => CopyRoute { from, to },
            (StagingPlace::Host, StagingPlace::Gpu(gpu)) => CopyRoute {
                from: gpu,
                to: StagingPlace::Host,
            },
            (StagingPlace::Host, StagingPlace::Host) => panic!("host to host"),
        };
        let bandwidth = self
            .node
            .bandwidth(way)
            .map_or(1e15, |bandwidth| bandwidth as f64);
        assert!(
            bandwidth > 0.0,
            "no link from {:?} to {:?}",
            stream.from,
            stream.to
        );
        bandwidth
    }

    fn uplink(&self, stream: &Stream) -> Option<usize> {
        let gpu = match (stream.from, stream.to) {
            (StagingPlace::Gpu(gpu), StagingPlace::Host)
            | (StagingPlace::Host, StagingPlace::Gpu(gpu)) => gpu,
            _ => return None,
        };
        self.node
            .uplinks
            .iter()
            .position(|uplink| uplink.gpus.contains(&gpu))
    }

    /// Returns the current rate of every stream's first copy.
    fn rates(&self) -> Vec<(Stream, f64)> {
        let moving =
            |copies: &VecDeque<UnderWay>| copies.front().is_some_and(|copy| copy.to_begin <= 0.0);
        let active: Vec<&Stream> = self
            .streams
            .iter()
            .filter(|(_, copies)| moving(copies))
            .map(|(stream, _)| stream)
            .collect();
        let rate = |stream: &Stream| {
            let same = active
                .iter()
                .filter(|other| (other.from, other.to) == (stream.from, stream.to))
                .count();
            let bandwidth = self.bandwidth(stream);
            let mut rate = (bandwidth / same as f64).min(bandwidth * self.one_stream);
            if let Some(uplink) = self.uplink(stream) {
                let sharing = active
                    .iter()
                    .filter(|other| self.uplink(other) == Some(uplink))
                    .count();
                rate = rate.min(self.node.uplinks[uplink].bandwidth as f64 / sharing as f64);
            }
            rate
        };
        active
            .iter()
            .map(|stream| (**stream, rate(stream)))
            .collect()
    }

    /// Lets time pass until the first copy has ended.
    fn pass(&mut self) -> Option<(Stream, UnderWay)> {
        loop {
            let rates: BTreeMap<Stream, f64> = self.rates().into_iter().collect();
            let until = |stream: &Stream, copy: &UnderWay| match copy.to_begin > 0.0 {
                true => copy.to_begin,
                false => copy.left / rates[stream],
            };
            let heads = self
                .streams
                .iter()
                .filter_map(|(stream, copies)| Some((stream, copies.front()?)));
            let (stream, step) = heads
                .map(|(stream, copy)| (*stream, until(stream, copy)))
                .min_by(|a, b| a.1.total_cmp(&b.1))?;
            self.seconds += step;
            for (of, copies) in &mut self.streams {
                if let Some(copy) = copies.front_mut() {
                    match copy.to_begin > 0.0 {
                        true => copy.to_begin -= step,
                        false => copy.left -= step * rates[of],
                    }
                }
            }
            let head = self.streams.get_mut(&stream).expect("a stream");
            let first = head.front_mut().expect("a copy");
            if !rates.contains_key(&stream) {
                first.to_begin = 0.0;
                continue;
            }
            let ended = head.pop_front().expect("a copy");
            return Some((stream, ended));
        }
    }
}

impl Device for Machine {
    fn room(&mut self, place: StagingPlace) -> Result<u64, DeviceError> {
        let all = match place {
            StagingPlace::Gpu(gpu) => self.node.gpus[gpu].free,
            StagingPlace::Host => self.node.host.room,
        };
        Ok(all - self.taken(place))
    }

    fn reserve(&mut self, place: StagingPlace, bytes: u64) -> Result<Spot, DeviceError> {
        let most = self.largest_piece.get(&place).copied().unwrap_or(u64::MAX);
        if bytes > self.room(place)?.min(most) {
            return Err(DeviceError::OutOfMemory { place, bytes });
        }
        let all = self.memory.entry(place).or_default();
        let address = base(place) + all.len() as u64;
        all.resize(all.len() + bytes as usize, 0);
        self.reserved.insert((place, address), bytes);
        let taken = self.taken(place);
        let peak = self.peak.entry(place).or_default();
        *peak = taken.max(*peak);
        Ok(Spot { place, address })
    }

    fn give_back(&mut self, spot: Spot) {
        let bytes = self
            .reserved
            .remove(&(spot.place, spot.address))
            .expect("reserved, and given back once");
        self.at_mut(spot, bytes).fill(0xdd);
    }

    fn begin(&mut self, stream: Stream, copy: &Copy) -> Result<Ticket, DeviceError> {
        assert_eq!((stream.from, stream.to), (copy.from.place, copy.to.place));
        assert!(copy.bytes > 0);
        let ticket = Ticket(self.begun);
        self.begun += 1;
        self.streams.entry(stream).or_default().push_back(UnderWay {
            ticket,
            copy: *copy,
            to_begin: self.to_begin,
            left: copy.bytes as f64,
        });
        Ok(ticket)
    }

    fn ended(&mut self) -> Result<Ticket, DeviceError> {
        let (stream, UnderWay { ticket, copy, .. }) =
            self.pass().expect("somebody waits for a copy");
        if self.faults.lose == Some(ticket.0) {
            return Err(DeviceError::Lost {
                gpu: 0,
                problem: "it has fallen off the bus".to_owned(),
            });
        }
        if self.faults.fail == Some(ticket.0) {
            return Err(DeviceError::Copy {
                from: stream.from,
                to: stream.to,
                bytes: copy.bytes,
                problem: "an uncorrectable error".to_owned(),
            });
        }
        let mut bytes = self.at(copy.from, copy.bytes).to_vec();
        if self.faults.corrupt == Some(ticket.0) {
            bytes[copy.bytes as usize / 2] ^= 1;
        }
        self.at_mut(copy.to, copy.bytes).copy_from_slice(&bytes);
        Ok(ticket)
    }

    fn settle(&mut self) {
        self.streams.clear();
    }

    fn host(&self, spot: Spot, bytes: u64) -> Result<&[u8], DeviceError> {
        assert_eq!(spot.place, StagingPlace::Host);
        Ok(self.at(spot, bytes))
    }

    fn host_mut(&mut self, spot: Spot, bytes: u64) -> Result<&mut [u8], DeviceError> {
        assert_eq!(spot.place, StagingPlace::Host);
        Ok(self.at_mut(spot, bytes))
    }

    fn can_hash(&self) -> bool {
        self.hashes
    }

    fn digest(&mut self, spot: Spot, bytes: u64) -> Result<Option<Digest>, DeviceError> {
        Ok(self.hashes.then(|| digest(self.at(spot, bytes))))
    }

    fn now(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}
