//! One attempt at an epoch: the messages that have come, and those that the phase still waits for.

mod pace;
mod reports;
mod times;

use std::collections::BTreeMap;
use std::time::Duration;

use stillpoint_clock::drain::{self, Drain};
use stillpoint_clock::rank::Activity;
use stillpoint_clock::safe_state::{self, SafeState};
use stillpoint_ids::{Epoch, Rank};
use stillpoint_protocol::agent::Order;
use stillpoint_protocol::command::{CommittedEpoch, Staging};
use stillpoint_refusals::{Refusal, refusal};

use super::CheckpointRequest;
use super::late_ranks::Absent;
use super::phase::Phase;
use super::rank_names::ranks_in_words;
pub use pace::Pace;
use reports::Reports;
pub use times::PastPhase;
use times::Times;

/// The fate of the epoch.
#[derive(Debug)]
pub enum Course {
    /// It may still be committed. `prepared`: its directory has been made.
    Open { prepared: bool },
    /// It is on the disk, at this path. `traced`: the times of the attempt have been recorded.
    Committed { directory: String, traced: bool },
    /// There will be no epoch; the attempt waits for the ranks to be released.
    GivenUp,
}

/// State of some phases alone.
#[derive(Debug)]
enum Work {
    /// On the way to the still point: the clocks, and questions about operations of late ranks that may be carried out in advance.
    StillPoint {
        safe: Box<SafeState>,
        absent: Absent,
    },
    Drain(Drain),
    /// The reports of the ranks are all that there is.
    Reports,
}

/// An attempt under way.
#[derive(Debug)]
pub struct Attempt {
    /// The number that every message of the attempt carries.
    pub number: u64,
    pub epoch: Epoch,
    pub suspend: bool,
    /// Suspends wait for this attempt, and will write only what changes from here on.
    pub ahead: bool,
    pub course: Course,
    /// The requests for it.
    pub(super) requests: Vec<CheckpointRequest>,
    pub phase: Phase,
    work: Work,
    pub times: Times,
    /// The time at which the attempt is given up, if it has not come to the commit by then.
    pub deadline: Option<Duration>,
    pub reports: Reports,
    /// The communicators that each rank has given up, by group: see `Progress::GivenUp`.
    given_up: BTreeMap<u64, (Rank, u64)>,
    /// The staging of its images, once they are staged.
    pub staging: Option<Staging>,
    pub pace: Pace,
}

impl Attempt {
    pub fn new(number: u64, epoch: Epoch, suspend: bool, ranks: usize, now: Duration) -> Attempt {
        Attempt {
            number,
            epoch,
            suspend,
            ahead: false,
            course: Course::Open { prepared: false },
            requests: vec![],
            phase: Phase::Flag,
            work: Work::StillPoint {
                safe: Box::new(SafeState::new(ranks)),
                absent: Absent::default(),
            },
            times: Times::new(now),
            deadline: None,
            reports: Reports::new(ranks),
            given_up: BTreeMap::new(),
            staging: None,
            pace: Pace::default(),
        }
    }

    /// Commands that want reports on the attempt.
    pub fn watchers(&self) -> Vec<u64> {
        let watchers = self.requests.iter().filter_map(|wanted| wanted.watcher);
        watchers.collect()
    }

    /// Whether there will be no epoch.
    pub fn is_given_up(&self) -> bool {
        matches!(self.course, Course::GivenUp)
    }

    /// Whether the epoch's directory has been made.
    pub fn is_prepared(&self) -> bool {
        matches!(self.course, Course::Open { prepared: true })
    }

    /// The path of the committed epoch; empty before the commit.
    pub fn directory(&self) -> &str {
        match &self.course {
            Course::Committed { directory, .. } => directory,
            _ => "",
        }
    }

    /// Goes on to the next phase.
    pub fn enter(&mut self, phase: Phase, now: Duration) {
        let ended = PastPhase {
            phase: self.phase,
            began: self.times.phase_began,
            ended: now,
            ranks: self.reports.enter(),
        };
        self.times.enter(phase, ended, now);
        self.phase = phase;
        // Descriptions of long activities belong to the phase before. Only those of the copy stay, since it goes on in the next phase.
        if phase != Phase::Write {
            self.reports.nobody_waits();
        }
        match phase {
            Phase::Flag | Phase::Reach => {}
            Phase::Drain => self.work = Work::Drain(Drain::new(self.reports.size())),
            _ => self.work = Work::Reports,
        }
        self.pace = Pace::default();
    }

    /// Takes what a rank tells of its clocks, on the way to the still point.
    pub fn on_clocks(&mut self, event: safe_state::Event) -> Vec<safe_state::Action> {
        match &mut self.work {
            Work::StillPoint { safe, .. } => safe.on(event),
            _ => vec![],
        }
    }

    /// The questions about operations of late ranks, on the way to the still point.
    pub fn absent(&mut self) -> Option<&mut Absent> {
        match &mut self.work {
            Work::StillPoint { absent, .. } => Some(absent),
            _ => None,
        }
    }

    /// Takes a rank's counts of messages, while they are drained.
    pub fn on_counts(
        &mut self,
        rank: Rank,
        round: u32,
        sent: u64,
        received: u64,
    ) -> Option<drain::Action> {
        match &mut self.work {
            Work::Drain(drain) => drain.counts(rank.index(), round, sent, received),
            _ => None,
        }
    }

    /// Delays an order to all ranks.
    pub fn delay(&mut self, order: Order, now: Duration) {
        self.pace.delay(order, now);
    }

    /// Every activity that takes long once, with its ranks.
    pub fn late(&self) -> Vec<Refusal> {
        let late = self.reports.late().into_iter();
        late.map(|(what, ranks)| refusal!(RankComputes, "{ranks} {what}"))
            .collect()
    }

    /// Takes a rank's sums of the communicators that it has given up. If several threads give up communicators, the numbers may be equal on all ranks but not
    /// the communicators. Then this is no still point.
    pub fn gave_up(&mut self, rank: Rank, sums: Vec<(u64, u64)>) {
        for (ggid, sum) in sums {
            let (other, before) = *self.given_up.entry(ggid).or_insert((rank, sum));
            if before != sum {
                let reason = refusal!(
                    CommunicatorFreed,
                    "a communicator has been freed only here or only on rank {other}"
                );
                self.reports.refuse(rank, vec![reason]);
            }
        }
    }

    /// Whether the phase waits for a rank.
    pub fn awaits(&self, rank: Rank) -> bool {
        match (&self.work, self.phase) {
            (Work::StillPoint { safe, .. }, Phase::Flag) => {
                safe.clocks_missing().any(|missing| missing == rank.0)
            }
            (Work::StillPoint { safe, .. }, _) => {
                safe.not_parked().any(|(running, _)| running == rank.0)
            }
            _ => self.reports.is_missing(rank),
        }
    }

    /// Describes what the phase waits for, to explain a timeout.
    pub fn waits_for(&self) -> String {
        let reports = &self.reports;
        match (&self.work, self.phase) {
            (Work::StillPoint { safe, .. }, Phase::Flag) => {
                let missing: Vec<Rank> = safe.clocks_missing().map(Rank).collect();
                format!("{} did not answer", ranks_in_words(&missing, reports.size()))
            }
            (Work::StillPoint { safe, .. }, _) => {
                let running = safe.not_parked().map(|(rank, activity)| {
                    let rank = Rank(rank);
                    let words = match activity {
                        Some(Activity::Running) => "still running",
                        Some(Activity::InCollective) => "inside a collective operation",
                        Some(Activity::Waiting) => "waiting for a message",
                        Some(Activity::Parked) | None => "silent since the last order",
                    };
                    (reports.late_of(rank).unwrap_or(words), rank)
                });
                reports.in_words(running)
            }
            (Work::Drain(drain), _) => {
                let (sent, received) = drain.totals();
                format!("the ranks have sent {sent} messages and received {received}")
            }
            (_, Phase::Seal) if reports.all_done() => {
                "the coordinator is still creating the epoch's directory (is the file system busy?)".to_owned()
            }
            (_, Phase::Commit) => {
                "the coordinator is still writing the manifest and the epoch's name to the disk (is the file system busy?)".to_owned()
            }
            (_, Phase::End) => "the ranks have not ended yet".to_owned(),
            (_, Phase::Copy | Phase::Write) => reports.missing("still writing"),
            _ => reports.missing("did not answer"),
        }
    }

    /// The committed epoch, for people. The time of the phase under way counts up to `now`.
    pub fn outcome(&self, now: Duration) -> CommittedEpoch {
        let past = self.times.past.iter();
        let past = past.map(|past| (past.phase, past.length()));
        let under_way = (self.phase, now.saturating_sub(self.times.phase_began));
        let written = || self.reports.written().flatten();
        CommittedEpoch {
            epoch: self.epoch,
            directory: self.directory().to_owned(),
            bytes: written().map(|w| w.bytes).sum(),
            stored_bytes: written().map(|w| w.stored_bytes).sum(),
            phases: past
                .chain([under_way])
                .map(|(phase, time)| (phase.name().to_owned(), time.as_secs_f64()))
                .collect(),
            stopped: self
                .times
                .stop(now)
                .map_or(0.0, |(_, length)| length.as_secs_f64()),
            suspended: self.suspend,
            ahead: self.requests.iter().find_map(|wanted| wanted.ahead),
            staging: self.staging,
        }
    }
}
