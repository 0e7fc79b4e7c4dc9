//! Storage tiers, as a rank's agent sees them: it writes its image to several places at once, keeps blocks of its peers on its node's fast
//! tier, and copies the blocks that it keeps to the slow tier while the application runs.
//!
//! * [`destination`] - the executor's view of it
//! * [`image`] - one image, on its way to its tiers
//! * [`lanes`] - the choice of a place for each block
//! * [`sink`] - one of the places that an image goes to
//! * [`held`] - the blocks on this node's fast tier
//! * [`server`] - takes peers' blocks in
//! * [`table`] - descriptors that do not belong to the application
//! * [`probe`] - the speed of the ways
//! * [`throttle`] - keeps a way at a limit
//!
//! Its threads belong to the lower half: they block all signals, and none of them calls MPI.

pub mod destination;
pub mod error;
pub mod held;
pub mod image;
pub mod lanes;
pub mod probe;
pub mod server;
pub mod sink;
pub mod table;
pub mod throttle;

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stillpoint_faults::{Point, pass, strike};
use stillpoint_ids::{Epoch, Rank};
use stillpoint_protocol::agent::FromAgent;
use stillpoint_protocol::job_file::host_name;
use stillpoint_protocol::launch::Launch;
use stillpoint_protocol::tier::{Announced, Rates, Sized, Tiers};
use stillpoint_protocol::{Sender, Terms};

use crate::capture::access::{Access, Revoked};
use crate::ground::thread;
use error::StagingError;
use held::Held;
use throttle::Throttle;

/// The length of the longest block.
pub const BLOCK: usize = 1 << 20;
/// How long a peer may take to answer a new connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// The state that the threads of staging share.
pub struct StagingState {
    rank: Rank,
    job: String,
    /// The checkpoint directory: the slow tier.
    directory: PathBuf,
    tiers: Tiers,
    terms: Terms,
    peers: Mutex<Vec<Announced>>,
    rates: Mutex<Rates>,
    held: Held,
    fast: Throttle,
    slow: Throttle,
    sends: Throttle,
    takes: Throttle,
}

/// A rank's staging.
#[derive(Clone)]
pub struct Staging {
    shared: Arc<StagingState>,
    sender: Sender<FromAgent>,
    /// The announcement of this rank's tiers to the coordinator.
    announced: Announced,
}

/// Starts a thread of the lower half.
fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::start(&format!("stillpoint-{name}"), thread::USUAL, work).map(drop)
}

/// Returns bytes per second, or `None` if too few have passed to tell.
fn rate(bytes: u64, seconds: f64) -> Option<u64> {
    (bytes >= BLOCK as u64 && seconds > 0.0).then(|| ((bytes as f64 / seconds) as u64).max(1))
}

impl Staging {
    /// Takes the rank's tiers into use and announces them. Returns `None` if the launch has none.
    pub fn open(
        launch: &Launch,
        reachable_at: IpAddr,
        sender: Sender<FromAgent>,
    ) -> Option<Staging> {
        let tiers = launch.tiers.clone()?;
        let announced = Announced {
            host: host_name(),
            directory: tiers.fast.to_string_lossy().into_owned(),
            capacity: tiers.capacity,
            address: String::new(),
            problem: None,
        };
        // A coordinator that has gone needs no message.
        let announce = |announced| drop(sender.send(&FromAgent::Tier(announced)));
        let terms = match launch.terms() {
            Ok(terms) => terms,
            Err(error) => {
                announce(Announced {
                    problem: Some(error.to_string()),
                    ..announced
                });
                return None;
            }
        };
        let shared = Arc::new(StagingState {
            rank: launch.rank,
            job: launch.job.clone(),
            directory: launch.directory.clone(),
            held: Held::new(&tiers.fast, &launch.job, tiers.capacity),
            terms,
            peers: Mutex::default(),
            rates: Mutex::default(),
            fast: Throttle::new(tiers.fast_limit),
            slow: Throttle::new(tiers.slow_limit),
            sends: Throttle::new(tiers.peer_limit),
            takes: Throttle::new(tiers.peer_limit),
            tiers,
        });
        let announced = match server::start(reachable_at, &shared) {
            Ok(address) => Announced {
                address,
                ..announced
            },
            Err(error) => Announced {
                problem: Some(format!("cannot listen for peers: {error}")),
                ..announced
            },
        };
        announce(announced.clone());
        Some(Staging {
            shared,
            sender,
            announced,
        })
    }

    /// Serves with another coordinator, which is told of the tiers, and of what happens from now on.
    pub fn serve_with(&mut self, sender: Sender<FromAgent>) {
        self.sender = sender;
        // A coordinator that has gone needs no message.
        let _ = self.sender.send(&FromAgent::Tier(self.announced.clone()));
    }

    /// Takes every rank's tier, and measures the ways.
    pub fn know(&self, peers: Vec<Announced>) {
        *self
            .shared
            .peers
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = peers;
        let this = self.clone();
        let started = start("measure", move || {
            let measured = table::apart("probe", || probe::measure(&this.shared));
            let (rates, problem) = measured.unwrap_or_else(|error| {
                let problem = format!("cannot measure the ways: {error}");
                (Rates::default(), Some(problem))
            });
            this.note_rates(rates, problem);
        });
        if let Err(error) = started {
            self.note_rates(
                Rates::default(),
                Some(format!("cannot start a thread: {error}")),
            );
        }
    }

    /// Records newer measurements; a way that was not used keeps its old one.
    fn note_rates(&self, new: Rates, problem: Option<String>) {
        let rates = {
            let mut rates = self
                .shared
                .rates
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *rates = Rates {
                fast: new.fast.or(rates.fast),
                slow: new.slow.or(rates.slow),
                peers: new.peers.or(rates.peers),
            };
            *rates
        };
        // A coordinator that has gone needs no message.
        let _ = self.sender.send(&FromAgent::Measured { rates, problem });
    }

    /// Returns how much there is to write, and how much room; earlier epochs leave the fast tier.
    pub fn size(&self, attempt: u64, bytes: u64, access: &Access) -> Result<Sized, Revoked> {
        let shared = &self.shared;
        // The slow tier may take its time.
        let slow_room = shared.slow_room();
        // A later attempt must find its own room.
        let _inside = access.enter()?;
        shared.held.make_room(attempt);
        Ok(Sized {
            bytes,
            fast_room: shared.held.room(),
            slow_room,
        })
    }

    /// Copies the blocks that are held of an epoch to the slow tier, in the background.
    pub fn flush(&self, epoch: Epoch, directory: PathBuf) {
        let this = self.clone();
        let work = move || {
            let shared = &this.shared;
            let flushed = table::apart("flush", || {
                strike(Point::Flush).map_err(StagingError::FaultPoint)?;
                shared.held.flush(epoch, &directory, &shared.slow)
            });
            let problem = match flushed {
                Ok(flushed) => flushed.err().map(|error| error.to_string()),
                Err(error) => Some(error.to_string()),
            };
            pass(Point::Flushed);
            this.flushed(epoch, problem);
        };
        if let Err(error) = start("flushing", work) {
            self.flushed(epoch, Some(format!("cannot start a thread: {error}")));
        }
    }

    fn flushed(&self, epoch: Epoch, problem: Option<String>) {
        // A coordinator that has gone needs no message.
        let _ = self.sender.send(&FromAgent::Flushed { epoch, problem });
    }

    /// Gives up an attempt that makes no epoch.
    pub fn give_up(&self, attempt: u64) {
        self.shared.held.give_up(attempt);
    }

    pub fn note_durable(&self, epoch: Epoch) {
        self.shared.held.note_durable(epoch);
    }

    /// Cleans up at the end of the process.
    pub fn leave(&self) {
        self.shared.held.leave();
    }
}

impl StagingState {
    fn peers(&self) -> Vec<Announced> {
        self.peers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns how much the slow tier takes: its file system's room, but no more than its capacity leaves beside the epochs there.
    fn slow_room(&self) -> u64 {
        let there = held::available(&self.directory);
        match self.tiers.slow_capacity {
            None => there,
            Some(capacity) => there.min(capacity.saturating_sub(used(&self.directory))),
        }
    }

    /// An error of the fast tier.
    fn fast_failed(&self, source: io::Error) -> StagingError {
        StagingError::FastTier {
            path: self.tiers.fast.clone(),
            host: host_name(),
            source,
        }
    }
}

/// Returns the bytes of the files in a directory's directories: the epochs of a checkpoint directory.
fn used(directory: &std::path::Path) -> u64 {
    let list = |path: &std::path::Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    list(directory)
        .flat_map(|epoch| list(&epoch.path()))
        .filter_map(|file| file.metadata().ok())
        .filter(|about| about.is_file())
        .map(|about| about.len())
        .sum()
}
