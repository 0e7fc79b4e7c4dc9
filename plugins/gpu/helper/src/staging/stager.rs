//! The thread that stages: it waits until all locked processes have asked, plans for all of them, copies, and owns the reserved
//! memory.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use stillpoint_gpu_driver::storage::{self, Storage};
use stillpoint_gpu_driver::{Driver, checkpoint};
use stillpoint_gpu_messages::{Report, WayReport};
use stillpoint_gpu_plan::{Copies, Record, Source, StagingPlace};
use stillpoint_gpu_staging::{Device, Measured, MeasuredBack, Settings, Spot, Staged, stage};
use stillpoint_ids::{Epoch, Rank};

use super::locked::Locked;
use super::need::Need;
use super::node::Surveyed;
use super::{Group, Lain, Portion, sources};
use crate::checkpoint::driver;
use crate::refused;

/// The interval at which the thread looks whether a locked process has given up.
const LOOK: Duration = Duration::from_millis(10);
/// The longest wait for locked processes. A later one is staged alone.
const GATHER: Duration = Duration::from_secs(60);

/// An order to the thread.
pub enum Order {
    Survey {
        directory: PathBuf,
        done: mpsc::Sender<()>,
    },
    /// A connection that has asked for a survey needs it no more.
    Over,
    Stage(StagingRequest),
    /// The measured way back of an epoch's memory, and the epoch.
    Back(MeasuredBack, Epoch),
    GiveBack(Spot),
}

/// A locked process whose memory is to be staged.
pub struct StagingRequest {
    pub pid: i32,
    pub rank: Rank,
    pub epoch: Epoch,
    pub directory: PathBuf,
    pub outcome: mpsc::Sender<StagingOutcome>,
}

/// The result of staging.
pub enum StagingOutcome {
    Staged(Arc<Portion>, Report),
    /// Staging failed, and nothing has changed for the process.
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
            record: None,
            need: Need::default(),
            back,
        };
        stager.serve(&given);
    });
    orders
}

struct Stager {
    locked: Locked,
    surveyed: Option<Surveyed>,
    /// The record of the last surveyed GPUs.
    record: Option<Record>,
    need: Need,
    back: mpsc::Sender<Order>,
}

impl Stager {
    fn serve(&mut self, orders: &mpsc::Receiver<Order>) {
        let mut asked: Vec<StagingRequest> = Vec::new();
        let mut first = Instant::now();
        loop {
            let order = match asked.is_empty() {
                true => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => orders.recv_timeout(LOOK),
            };
            match order {
                Ok(Order::Survey { directory, done }) => {
                    // A failure is reported when something is to be staged.
                    let _ = self.survey(&directory);
                    self.need.expects();
                    let _ = done.send(());
                }
                Ok(Order::Back(measured, epoch)) => {
                    if let Some(surveyed) = &mut self.surveyed {
                        surveyed.note_back(&measured, epoch);
                    }
                }
                Ok(Order::Over) => self.need.is_over(),
                Ok(Order::GiveBack(spot)) => self.give_back(spot),
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
            if asked.is_empty() && !self.need.is_there() {
                self.record = (self.surveyed.take())
                    .map(|surveyed| surveyed.record)
                    .or_else(|| self.record.take());
            }
        }
    }

    fn survey(&mut self, directory: &std::path::Path) -> Result<&mut Surveyed, String> {
        if self.surveyed.is_none() {
            let known = self.record.take();
            self.surveyed = Some(Surveyed::begin(driver()?, directory, known)?);
        }
        self.surveyed.as_mut().ok_or_else(String::new)
    }

    fn stage(&mut self, asked: Vec<StagingRequest>) {
        let Some(first) = asked.first() else { return };
        let (directory, epoch) = (first.directory.clone(), first.epoch);
        let ranks = asked.len();
        let ready = self.survey(&directory).and_then(|surveyed| {
            let drain = surveyed.drain(ranks)?;
            surveyed.has_room(drain.slots() * ranks as u64)?;
            Ok((drain, driver()?))
        });
        let (drain, driver) = match ready {
            Ok(ready) => ready,
            Err(reason) => {
                for one in asked {
                    let _ = one.outcome.send(StagingOutcome::Not(reason.clone()));
                }
                return;
            }
        };
        let (lent, sources) = lend(driver, asked);
        let Some(surveyed) = &mut self.surveyed else {
            return;
        };
        let copied = copy(surveyed, &sources, drain).and_then(|staged| {
            let arena = surveyed.gpus.shown().map_err(|error| error.to_string())?;
            Ok((staged, arena))
        });
        match copied {
            Ok((staged, arena)) => {
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
                let lain: Vec<Arc<Lain>> = (staged.reserved().iter())
                    .map(|&(place, spot, _)| {
                        let back = self.back.clone();
                        Arc::new(Lain { place, spot, back })
                    })
                    .collect();
                self.need.hold(lain.len());
                let group = Arc::new(Group {
                    staged,
                    record: surveyed.record.clone(),
                    node: surveyed.node.clone(),
                    version: surveyed.version.clone(),
                    arena,
                    epoch,
                });
                for ((one, storage), report) in lent.into_iter().zip(reports) {
                    let outcome = match storage::complete(driver, storage) {
                        Ok(()) => {
                            let mine = group.staged.of(one.rank);
                            let needs = |lain: &&Arc<Lain>| {
                                lain.place == StagingPlace::Host || mine.is_on(lain.place)
                            };
                            let portion = Portion {
                                group: Arc::clone(&group),
                                rank: one.rank,
                                held: lain.iter().filter(needs).cloned().collect(),
                            };
                            StagingOutcome::Staged(Arc::new(portion), report)
                        }
                        Err(error) => StagingOutcome::Lost(error.to_string()),
                    };
                    let _ = one.outcome.send(outcome);
                }
            }
            Err(reason) => {
                // A checkpoint that has begun can only be completed, and memory that was not copied is then gone.
                for (one, _) in lent {
                    let _ = one.outcome.send(StagingOutcome::Lost(reason.clone()));
                }
            }
        }
    }
}

impl Stager {
    /// Gives a place's memory back.
    fn give_back(&mut self, spot: Spot) {
        if let Some(surveyed) = &mut self.surveyed {
            surveyed.gpus.give_back(spot);
        }
        self.need.gives_back();
    }
}

/// Asks the driver to lend each process's memory. Processes that the driver refuses get an answer.
fn lend(
    driver: &Driver,
    asked: Vec<StagingRequest>,
) -> (Vec<(StagingRequest, Storage)>, Vec<Source>) {
    let (mut all, mut every) = (Vec::new(), Vec::new());
    for one in asked {
        match storage::checkpoint(driver, one.pid) {
            Ok(storage) => {
                every.extend(sources(one.rank, &storage));
                all.push((one, storage));
            }
            Err(error) => {
                let locked = checkpoint::state(driver, one.pid) == Ok(checkpoint::State::Locked);
                let reason = refused::because(&error, one.pid);
                let outcome = match locked {
                    true => StagingOutcome::Not(reason),
                    false => StagingOutcome::Lost(reason),
                };
                let _ = one.outcome.send(outcome);
            }
        }
    }
    (all, every)
}

/// Copies by the plan for all sources.
fn copy(surveyed: &mut Surveyed, sources: &[Source], drain: Copies) -> Result<Staged, String> {
    let choice = surveyed.record.choice(&surveyed.node, &surveyed.version);
    let settings = Settings {
        choice: &choice,
        drain,
        ..Settings::default()
    };
    let staged = stage(&mut surveyed.gpus, &surveyed.node, sources, &settings);
    staged.map_err(|error| error.to_string())
}

/// Adds the destinations of a rank's bytes to a report.
fn by_place(staged: &Staged, rank: Rank, mut report: Report) -> Report {
    for piece in staged.pieces() {
        let source = &staged.sources()[piece.source];
        if source.rank != rank {
            continue;
        }
        match piece.spot.place {
            StagingPlace::Host => report.host_bytes += piece.bytes,
            StagingPlace::Gpu(gpu) if gpu == source.gpu => report.own_bytes += piece.bytes,
            StagingPlace::Gpu(_) => report.peer_bytes += piece.bytes,
        }
    }
    report
}
