//! Links: how long a copy takes at the least. A link has time to give, and a copy takes as much of it as its bytes need, behind
//! whoever came before; nobody spins.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use stillpoint_emulated_gpu_protocol::description::Node;

/// One direction of a link.
pub struct Lane {
    bandwidth: Option<f64>,
    /// When the last byte that is promised will be over, in nanoseconds since the start.
    free_at: Mutex<u64>,
    bytes: AtomicU64,
}

/// Nanoseconds that bytes take.
fn duration(bytes: u64, bandwidth: f64) -> u64 {
    (bytes as f64 / bandwidth * 1e9).ceil() as u64
}

impl Lane {
    fn new(bandwidth: Option<f64>) -> Lane {
        Lane {
            bandwidth: bandwidth.filter(|rate| *rate > 0.0),
            free_at: Mutex::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Takes the time for some bytes, from `now` at the earliest; when they are over.
    fn reserve(&self, now: u64, bytes: u64) -> u64 {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let Some(bandwidth) = self.bandwidth else {
            return now;
        };
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        *free_at = (*free_at).max(now) + duration(bytes, bandwidth);
        *free_at
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
    start: Instant,
    from_host: Vec<Lane>,
    to_host: Vec<Lane>,
    /// From each device to each, where there is a link.
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
            start: Instant::now(),
            from_host: host().collect(),
            to_host: host().collect(),
            between: (0..count).map(row).collect(),
        }
    }

    /// The lanes that a copy takes.
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

    /// Nanoseconds since the start.
    pub fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Takes the time that bytes need on a way, from now on; when they are over.
    pub fn reserve(&self, way: Way, bytes: u64) -> u64 {
        let now = self.now();
        let lanes = self.lanes(way).into_iter();
        lanes
            .map(|lane| lane.reserve(now, bytes))
            .max()
            .unwrap_or(now)
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
    use super::Lane;

    #[test]
    fn bytes_queue_up() {
        let lane = Lane::new(Some(1e9));
        assert_eq!(lane.reserve(100, 1000), 1100);
        assert_eq!(lane.reserve(100, 500), 1600);
        assert_eq!(lane.reserve(5000, 1), 5001);
    }

    #[test]
    fn without_a_bandwidth_there_is_no_waiting() {
        assert_eq!(Lane::new(None).reserve(7, 1 << 40), 7);
    }
}
