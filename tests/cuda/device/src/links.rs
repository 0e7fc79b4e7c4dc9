//! Links, which set the least time of a copy. A link has time to give, and a copy takes as much of it as its bytes need, behind
//! earlier copies; threads sleep instead of spinning.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use stillpoint_emulated_gpu_protocol::clock;
use stillpoint_emulated_gpu_protocol::description::Node;

/// One direction of a link.
pub struct Lane {
    bandwidth: Option<f64>,
    promised: Mutex<Promised>,
}

/// The time that a lane has promised so far. Times are nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promised {
    pub bytes: u64,
    /// The time that these bytes take, without idle time.
    pub busy: u64,
    /// The time of the first byte, and the time at which the last promised one will have passed.
    pub first: u64,
    pub last: u64,
}

/// Returns the nanoseconds that bytes take.
fn duration(bytes: u64, bandwidth: f64) -> u64 {
    (bytes as f64 / bandwidth * 1e9).ceil() as u64
}

impl Lane {
    fn new(bandwidth: Option<f64>) -> Lane {
        Lane {
            bandwidth: bandwidth.filter(|rate| *rate > 0.0),
            promised: Mutex::default(),
        }
    }

    /// Takes the time for some bytes, from `now` at the earliest, and returns when they will have passed.
    fn reserve(&self, now: u64, bytes: u64) -> u64 {
        let mut promised = self.promised();
        if promised.bytes == 0 {
            promised.first = now;
        }
        let takes = self.bandwidth.map_or(0, |rate| duration(bytes, rate));
        promised.bytes += bytes;
        promised.busy += takes;
        promised.last = promised.last.max(now) + takes;
        promised.last
    }

    fn promised(&self) -> MutexGuard<'_, Promised> {
        self.promised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The way of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    FromHost(u32),
    ToHost(u32),
    Between(u32, u32),
}

/// All links of a node.
pub struct Links {
    from_host: Vec<Lane>,
    to_host: Vec<Lane>,
    /// The link from each device to each, if there is one.
    between: Vec<Vec<Option<Lane>>>,
}

impl Links {
    pub fn new(node: &Node) -> Links {
        let host = || node.devices.iter().map(|device| Lane::new(device.host));
        let count = node.devices.len() as u32;
        let row = |one: u32| {
            (0..count)
                .map(|other| Some(Lane::new(node.link(one, other)?.bandwidth)))
                .collect()
        };
        Links {
            from_host: host().collect(),
            to_host: host().collect(),
            between: (0..count).map(row).collect(),
        }
    }

    /// Returns the lanes that a copy takes.
    fn lanes(&self, way: Way) -> Vec<&Lane> {
        match way {
            Way::FromHost(device) => vec![&self.from_host[device as usize]],
            Way::ToHost(device) => vec![&self.to_host[device as usize]],
            Way::Between(one, other) if one == other => vec![],
            Way::Between(one, other) => match &self.between[one as usize][other as usize] {
                Some(lane) => vec![lane],
                None => vec![&self.to_host[one as usize], &self.from_host[other as usize]],
            },
        }
    }

    /// Returns nanoseconds of the machine's clock. New devices continue the count of earlier ones, so the times of a
    /// program's events do not depend on the devices.
    pub fn now(&self) -> u64 {
        clock::now()
    }

    /// Takes the time that bytes need on a way, from now on, and returns when they will have passed.
    pub fn reserve(&self, way: Way, bytes: u64) -> u64 {
        let now = self.now();
        let lanes = self.lanes(way).into_iter();
        lanes
            .map(|lane| lane.reserve(now, bytes))
            .max()
            .unwrap_or(now)
    }

    /// Returns a line for each lane with any traffic: from, to, and the promised time.
    pub fn report(&self) -> Vec<String> {
        let line = |from: &str, to: &str, lane: &Lane| {
            let Promised {
                bytes,
                busy,
                first,
                last,
            } = *lane.promised();
            (bytes > 0).then(|| format!("link {from} {to} {bytes} {busy} {first} {last}"))
        };
        let mut lines = vec![];
        for (device, lane) in self.from_host.iter().enumerate() {
            lines.push(line("host", &device.to_string(), lane));
        }
        for (device, lane) in self.to_host.iter().enumerate() {
            lines.push(line(&device.to_string(), "host", lane));
        }
        for (from, lanes) in self.between.iter().enumerate() {
            for (to, lane) in lanes.iter().enumerate() {
                let lane = lane.as_ref();
                lines.push(lane.and_then(|lane| line(&from.to_string(), &to.to_string(), lane)));
            }
        }
        lines.into_iter().flatten().collect()
    }

    /// Waits for a time.
    pub fn wait(&self, until: u64) {
        let left = until.saturating_sub(self.now());
        if left > 0 {
            thread::sleep(Duration::from_nanos(left));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lane, Promised};

    #[test]
    fn bytes_queue_up() {
        let lane = Lane::new(Some(1e9));
        assert_eq!(lane.reserve(100, 1000), 1100);
        assert_eq!(lane.reserve(100, 500), 1600);
        assert_eq!(lane.reserve(5000, 1), 5001);
        let promised = Promised {
            bytes: 1501,
            busy: 1501,
            first: 100,
            last: 5001,
        };
        assert_eq!(*lane.promised(), promised);
    }

    #[test]
    fn without_a_bandwidth_there_is_no_waiting() {
        assert_eq!(Lane::new(None).reserve(7, 1 << 40), 7);
    }
}
