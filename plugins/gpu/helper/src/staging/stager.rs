//! The thread that stages: it waits until all who are locked have asked, plans for all of them, copies, and owns what is reserved.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use stillpoint_gpu_driver::storage::{self, Storage};
use stillpoint_gpu_driver::{Driver, checkpoint};
use stillpoint_gpu_messages::{Report, WayReport};
use stillpoint_gpu_plan::{Place, Source};
use stillpoint_gpu_staging::{Measured, Settings, Staged, stage};

use super::locked::Locked;
use super::node::Surveyed;
use super::{DRAIN, Group, Portion, sources};
use crate::checkpoint::driver;

/// How often it is looked whether somebody who is locked has given up.
const LOOK: Duration = Duration::from_millis(10);
/// How long anybody is waited for. Whoever comes later is staged by himself.
const GATHER: Duration = Duration::from_secs(60);

/// What the thread is asked for.
pub enum Order {
    Survey {
        directory: PathBuf,
        done: mpsc::Sender<()>,
    },
    Stage(Asked),
    GiveBack(Staged),
}

/// A locked process whose memory is to be staged.
pub struct Asked {
    pub pid: i32,
    pub rank: u32,
    pub epoch: u64,
    pub directory: PathBuf,
    pub outcome: mpsc::Sender<Outcome>,
}

/// What came of it.
pub enum Outcome {
    Staged(Arc<Portion>, Report),
    /// Nothing has changed for the process.
    Not(String),
    /// The process is between two states, and its memory is lost.
    Lost(String),
}

/// Starts the thread.
pub fn start(locked: Locked) -> mpsc::Sender<Order> {
    let (orders, given) = mpsc::channel();
    let back = orders.clone();
    thread::spawn(move || {
        let mut stager = Stager {
            locked,
            surveyed: None,
            back,
        };
        stager.serve(&given);
    });
    orders
}

struct Stager {
    locked: Locked,
    surveyed: Option<Surveyed>,
    back: mpsc::Sender<Order>,
}

impl Stager {
    fn serve(&mut self, orders: &mpsc::Receiver<Order>) {
        let mut asked: Vec<Asked> = Vec::new();
        let mut first = Instant::now();
        loop {
            let order = match asked.is_empty() {
                true => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => orders.recv_timeout(LOOK),
            };
            match order {
                Ok(Order::Survey { directory, done }) => {
                    // What goes wrong is told when something is to be staged.
                    let _ = self.survey(&directory);
                    let _ = done.send(());
                }
                Ok(Order::GiveBack(staged)) => {
                    if let Some(surveyed) = &mut self.surveyed {
                        staged.give_back(&mut surveyed.gpus);
                    }
                }
                Ok(Order::Stage(one)) => {
                    if asked.is_empty() {
                        first = Instant::now();
                    }
                    asked.push(one);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let here = |pid| asked.iter().any(|one| one.pid == pid);
            if !asked.is_empty() && (self.locked.are(here) || first.elapsed() > GATHER) {
                self.stage(std::mem::take(&mut asked));
            }
        }
    }

    fn survey(&mut self, directory: &std::path::Path) -> Result<&mut Surveyed, String> {
        if self.surveyed.is_none() {
            self.surveyed = Some(Surveyed::begin(driver()?, directory)?);
        }
        self.surveyed.as_mut().ok_or_else(String::new)
    }

    fn stage(&mut self, asked: Vec<Asked>) {
        let Some(first) = asked.first() else { return };
        let (directory, epoch) = (first.directory.clone(), first.epoch);
        let settings = Settings {
            drain: DRAIN,
            ..Settings::default()
        };
        let slots = settings.drain_bytes();
        let ready = self
            .survey(&directory)
            .and_then(|surveyed| surveyed.has_room(slots));
        let driver = match ready.and_then(|()| driver()) {
            Ok(driver) => driver,
            Err(reason) => {
                for one in asked {
                    let _ = one.outcome.send(Outcome::Not(reason.clone()));
                }
                return;
            }
        };
        let (lent, sources) = lend(driver, asked);
        let Some(surveyed) = &mut self.surveyed else {
            return;
        };
        match copy(surveyed, &sources) {
            Ok(staged) => {
                surveyed.note(&staged.measured, epoch);
                let measured = staged.measured.clone();
                let node = &surveyed.node;
                let ways = |measured: &Measured| {
                    let way = |by: &stillpoint_gpu_staging::ByWay| WayReport {
                        from: node.gpus[by.way.from].uuid.clone(),
                        to: node.way_name(by.way).to_owned(),
                        bytes: by.bytes,
                        streams: by.copies.streams,
                        slot: by.copies.slot,
                        predicted: by.predicted,
                        seconds: by.seconds,
                    };
                    measured.ways.iter().map(way).collect::<Vec<_>>()
                };
                let all = Report {
                    seconds: measured.seconds,
                    predicted: measured.predicted,
                    ways: ways(&measured),
                    ..Report::default()
                };
                let reports: Vec<Report> = lent
                    .iter()
                    .map(|(one, _)| by_place(&staged, one.rank, all.clone()))
                    .collect();
                let group = Arc::new(Group {
                    staged: Some(staged),
                    back: self.back.clone(),
                });
                for ((one, storage), report) in lent.into_iter().zip(reports) {
                    let outcome = match storage::complete(driver, storage) {
                        Ok(()) => {
                            let portion = Portion {
                                group: Arc::clone(&group),
                                rank: one.rank,
                            };
                            Outcome::Staged(Arc::new(portion), report)
                        }
                        Err(error) => Outcome::Lost(error.to_string()),
                    };
                    let _ = one.outcome.send(outcome);
                }
            }
            Err(reason) => {
                // A checkpoint that has begun can only be completed, and then what was not copied is gone.
                for (one, _) in lent {
                    let _ = one.outcome.send(Outcome::Lost(reason.clone()));
                }
            }
        }
    }
}

/// Has everybody's memory lent; whom the driver refuses is told.
fn lend(driver: &Driver, asked: Vec<Asked>) -> (Vec<(Asked, Storage)>, Vec<Source>) {
    let (mut all, mut every) = (Vec::new(), Vec::new());
    for one in asked {
        match storage::checkpoint(driver, one.pid) {
            Ok(storage) => {
                every.extend(sources(one.rank, &storage));
                all.push((one, storage));
            }
            Err(error) => {
                let locked = checkpoint::state(driver, one.pid) == Ok(checkpoint::State::Locked);
                let outcome = match locked {
                    true => Outcome::Not(error.to_string()),
                    false => Outcome::Lost(error.to_string()),
                };
                let _ = one.outcome.send(outcome);
            }
        }
    }
    (all, every)
}

/// By the plan over all of them.
fn copy(surveyed: &mut Surveyed, sources: &[Source]) -> Result<Staged, String> {
    let choice = surveyed.record.choice(&surveyed.node, &surveyed.version);
    let settings = Settings {
        choice: &choice,
        drain: DRAIN,
        ..Settings::default()
    };
    let staged = stage(&mut surveyed.gpus, &surveyed.node, sources, &settings);
    staged.map_err(|error| error.to_string())
}

/// Where a rank's bytes went.
fn by_place(staged: &Staged, rank: u32, mut report: Report) -> Report {
    for piece in staged.pieces() {
        let source = &staged.sources()[piece.source];
        if source.rank != rank {
            continue;
        }
        match piece.spot.place {
            Place::Host => report.host_bytes += piece.bytes,
            Place::Gpu(gpu) if gpu == source.gpu => report.own_bytes += piece.bytes,
            Place::Gpu(_) => report.peer_bytes += piece.bytes,
        }
    }
    report
}
