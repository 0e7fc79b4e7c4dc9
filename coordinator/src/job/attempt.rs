//! One attempt at an epoch: the messages that have come, and those that the phase still waits for.

use std::collections::BTreeMap;
use std::time::Duration;

use stillpoint_clock::drain::Drain;
use stillpoint_clock::rank::Activity;
use stillpoint_clock::safe_state::SafeState;
use stillpoint_ids::Epoch;
use stillpoint_protocol::agent::{Order, Written};
use stillpoint_protocol::command::{CommittedEpoch, Staging};
use stillpoint_refusals::{Refusal, refusal};

use super::CheckpointRequest;
use super::late_ranks::Absent;
use super::phase::Phase;
use super::rank_names::ranks_in_words;
use super::trace::TracedPhase;

/// An attempt under way.
#[derive(Debug)]
pub struct Attempt {
    /// The number that every message of the attempt carries.
    pub number: u64,
    pub epoch: Epoch,
    pub suspend: bool,
    /// Suspends wait for this attempt, and will write only what changes from here on.
    pub ahead: bool,
    /// The path of the committed epoch; empty before the commit.
    pub directory: String,
    /// The requests for it.
    pub(super) requests: Vec<CheckpointRequest>,
    pub phase: Phase,
    began: Duration,
    phase_began: Duration,
    phases: Vec<(Phase, Duration)>,
    /// The time at which the attempt is given up, if it has not come to the commit by then.
    pub deadline: Option<Duration>,
    pub safe: SafeState,
    pub drain: Drain,
    /// The ranks that have done their part of the phase.
    done: Vec<bool>,
    /// The time of each rank's report on its part of the phase, and the phases before.
    pub(super) heard: Vec<Option<Duration>>,
    pub(super) traced: Vec<TracedPhase>,
    /// Whether these times have been recorded.
    pub(super) is_traced: bool,
    refusals: Vec<Vec<Refusal>>,
    /// A description of each rank's activity that takes long on its way to the still point; empty if there is none.
    late: Vec<String>,
    /// The questions about operations of late ranks that may be carried out in advance.
    pub absent: Absent,
    /// The communicators that each rank has given up, by group: see `Progress::GivenUp`.
    given_up: BTreeMap<u64, (u32, u64)>,
    pub written: Vec<Option<Written>>,
    /// Whether the application has been told to run on, with images that are not written yet.
    pub ran_on: bool,
    /// The time since which every rank stood still, and the time for which they did.
    stood_since: Option<Duration>,
    stood: Option<Duration>,
    /// The staging of its images, once they are staged.
    pub staging: Option<Staging>,
    /// Whether the epoch's directory has been made.
    pub prepared: bool,
    /// An order for all ranks, and the time to send it.
    pub delayed: Option<(Duration, Order)>,
    /// The number of repetitions without progress, with which pauses grow.
    repeats: u32,
    /// There will be no epoch; the attempt waits for the ranks to be released.
    pub aborted: bool,
}

impl Attempt {
    pub fn new(number: u64, epoch: Epoch, suspend: bool, ranks: usize, now: Duration) -> Attempt {
        Attempt {
            number,
            epoch,
            suspend,
            ahead: false,
            directory: String::new(),
            requests: vec![],
            phase: Phase::Flag,
            began: now,
            phase_began: now,
            phases: vec![],
            deadline: None,
            safe: SafeState::new(ranks),
            drain: Drain::new(ranks),
            done: vec![false; ranks],
            heard: vec![None; ranks],
            traced: vec![],
            is_traced: false,
            refusals: vec![vec![]; ranks],
            late: vec![String::new(); ranks],
            absent: Absent::default(),
            given_up: BTreeMap::new(),
            written: vec![None; ranks],
            ran_on: false,
            stood_since: None,
            stood: None,
            staging: None,
            prepared: false,
            delayed: None,
            repeats: 0,
            aborted: false,
        }
    }

    /// Commands that want reports on the attempt.
    pub fn watchers(&self) -> Vec<u64> {
        let watchers = self.requests.iter().filter_map(|wanted| wanted.watcher);
        watchers.collect()
    }

    /// Goes on to the next phase.
    pub fn enter(&mut self, phase: Phase, now: Duration) {
        match phase {
            Phase::Check => self.stood_since = Some(now),
            Phase::Release | Phase::End => self.runs_on(now),
            _ => {}
        }
        self.phases
            .push((self.phase, now.saturating_sub(self.phase_began)));
        self.close_phase(now);
        self.phase = phase;
        // Descriptions of long activities belong to the phase before. Only those of the copy stay, since it goes on in the next phase.
        if phase != Phase::Write {
            self.late.fill(String::new());
        }
        self.phase_began = now;
        self.done.fill(false);
        self.delayed = None;
        self.repeats = 0;
    }

    /// Keeps the times of the phase that ends.
    pub fn close_phase(&mut self, now: Duration) {
        let ranks = self.heard.len();
        self.traced.push(TracedPhase {
            phase: self.phase,
            began: self.phase_began,
            ended: now,
            ranks: std::mem::replace(&mut self.heard, vec![None; ranks]),
        });
    }

    /// The application runs again, or has ended. If this is called twice, the first call counts.
    pub fn runs_on(&mut self, now: Duration) {
        if let (None, Some(since)) = (self.stood, self.stood_since) {
            self.stood = Some(now.saturating_sub(since));
        }
    }

    /// The time at which every rank stood still, and for how long, up to now if it still lasts.
    pub fn stop(&self, now: Duration) -> Option<(Duration, Duration)> {
        let since = self.stood_since?;
        Some((since, self.stood.unwrap_or(now.saturating_sub(since))))
    }

    pub fn has_written(&mut self, rank: u32, written: Written) {
        if let Some(slot) = self.written.get_mut(rank as usize) {
            *slot = Some(written);
        }
    }

    pub fn all_written(&self) -> bool {
        self.written.iter().all(Option::is_some)
    }

    /// The time from its beginning to its commit, once it is committed.
    pub fn until_committed(&self) -> Duration {
        let phases = self.phases.iter();
        let phases = phases.filter(|(phase, _)| *phase <= Phase::Commit);
        phases.map(|(_, time)| *time).sum()
    }

    pub fn began(&self) -> Duration {
        self.began
    }

    /// The time at which the phase began.
    pub fn phase_began(&self) -> Duration {
        self.phase_began
    }

    /// Records that a rank has done its part of the phase. Returns whether all have.
    pub fn done(&mut self, rank: u32) -> bool {
        if let Some(done) = self.done.get_mut(rank as usize) {
            *done = true;
        }
        self.all_done()
    }

    pub fn all_done(&self) -> bool {
        self.done.iter().all(|done| *done)
    }

    /// Delays an order: by 1 ms at first, up to 32 ms while the phase only repeats itself.
    pub fn delay(&mut self, order: Order, now: Duration) {
        let pause = Duration::from_millis(1 << self.repeats.min(5));
        self.repeats += 1;
        self.delayed = Some((now + pause, order));
    }

    /// Delays a poll. Without patience this is the delay of any order. Otherwise it is a quarter of a second, doubled with each step of patience up to 16 s.
    pub fn delay_poll(&mut self, poll: u32, patience: u32, now: Duration) {
        let order = Order::Poll { poll };
        match patience {
            0 => self.delay(order, now),
            _ => {
                let pause = Duration::from_millis(250 << (patience - 1).min(6));
                self.delayed = Some((now + pause, order));
            }
        }
    }

    /// The ranks have been told to move, so the next pause is short again.
    pub fn moved(&mut self) {
        self.repeats = 0;
        self.delayed = None;
    }

    pub fn refuse(&mut self, rank: u32, reasons: Vec<Refusal>) {
        if let Some(refusals) = self.refusals.get_mut(rank as usize) {
            refusals.extend(reasons);
        }
    }

    /// Every reason once, with the ranks that gave it.
    pub fn refusals(&self) -> Vec<Refusal> {
        let reasons = (0u32..).zip(&self.refusals);
        let reasons = reasons.flat_map(|(rank, reasons)| reasons.iter().map(move |it| (rank, it)));
        by_ranks(reasons, self.refusals.len())
            .map(|(reason, ranks)| {
                let reason = Refusal::clone(reason);
                reason.reworded(|reason| format!("{ranks}: {reason}"))
            })
            .collect()
    }

    /// Records a rank's activity that takes long.
    pub fn waits(&mut self, rank: u32, what: String) {
        if let Some(late) = self.late.get_mut(rank as usize) {
            *late = what;
        }
    }

    /// Every activity that takes long once, with its ranks.
    pub fn late(&self) -> Vec<Refusal> {
        let late = (0u32..)
            .zip(&self.late)
            .filter(|(_, what)| !what.is_empty());
        by_ranks(late, self.late.len())
            .map(|(what, ranks)| refusal!(RankComputes, "{ranks} {what}"))
            .collect()
    }

    /// Takes a rank's sums of the communicators that it has given up. If several threads give up communicators, the numbers may be equal on all ranks but not
    /// the communicators. Then this is no still point.
    pub fn gave_up(&mut self, rank: u32, sums: Vec<(u64, u64)>) {
        for (ggid, sum) in sums {
            let (other, before) = *self.given_up.entry(ggid).or_insert((rank, sum));
            if before != sum {
                let reason = refusal!(
                    CommunicatorFreed,
                    "a communicator has been freed only here or only on rank {other}"
                );
                self.refuse(rank, vec![reason]);
            }
        }
    }

    /// Whether the phase waits for a rank.
    pub fn awaits(&self, rank: u32) -> bool {
        match self.phase {
            Phase::Flag => self.safe.clocks_missing().any(|missing| missing == rank),
            Phase::Reach => self.safe.not_parked().any(|(running, _)| running == rank),
            _ => self.done.get(rank as usize) == Some(&false),
        }
    }

    /// Describes what the phase waits for, to explain a timeout.
    pub fn waits_for(&self) -> String {
        let size = self.done.len();
        match self.phase {
            Phase::Flag => {
                let missing: Vec<u32> = self.safe.clocks_missing().collect();
                format!("{} did not answer", ranks_in_words(&missing, size))
            }
            Phase::Reach => {
                let mut by_activity: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
                for (rank, activity) in self.safe.not_parked() {
                    let words = match activity {
                        Some(Activity::Running) => "still running",
                        Some(Activity::InCollective) => "inside a collective operation",
                        Some(Activity::Waiting) => "waiting for a message",
                        Some(Activity::Parked) | None => "silent since the last order",
                    };
                    let words = match self.late.get(rank as usize) {
                        Some(late) if !late.is_empty() => late,
                        _ => words,
                    };
                    by_activity.entry(words).or_default().push(rank);
                }
                by_activity
                    .into_iter()
                    .map(|(words, ranks)| format!("{} {words}", ranks_in_words(&ranks, size)))
                    .collect::<Vec<_>>()
                    .join("; ")
            }
            Phase::Drain => {
                let (sent, received) = self.drain.totals();
                format!("the ranks have sent {sent} messages and received {received}")
            }
            Phase::Seal if self.all_done() => {
                "the coordinator is still creating the epoch's directory (is the file system busy?)".to_owned()
            }
            Phase::Commit => {
                "the coordinator is still writing the manifest and the epoch's name to the disk (is the file system busy?)".to_owned()
            }
            Phase::End => "the ranks have not ended yet".to_owned(),
            Phase::Copy | Phase::Write => self.missing("still writing"),
            _ => self.missing("did not answer"),
        }
    }

    /// Ranks that are not done, by their reported activities, or with the given words if they have reported none.
    fn missing(&self, otherwise: &str) -> String {
        let mut by_words: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (rank, (done, late)) in (0u32..).zip(self.done.iter().zip(&self.late)) {
            let words = match late.as_str() {
                "" => otherwise,
                late => late,
            };
            if !done {
                by_words.entry(words).or_default().push(rank);
            }
        }
        let all = by_words.into_iter();
        all.map(|(words, ranks)| format!("{} {words}", ranks_in_words(&ranks, self.done.len())))
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// The committed epoch, for people. The time of the phase under way counts up to `now`.
    pub fn outcome(&self, now: Duration) -> CommittedEpoch {
        let under_way = (self.phase, now.saturating_sub(self.phase_began));
        let phases = self.phases.iter().copied().chain([under_way]);
        let written = || self.written.iter().flatten();
        CommittedEpoch {
            epoch: self.epoch,
            directory: self.directory.clone(),
            bytes: written().map(|w| w.bytes).sum(),
            stored_bytes: written().map(|w| w.stored_bytes).sum(),
            phases: phases
                .map(|(phase, time)| (phase.name().to_owned(), time.as_secs_f64()))
                .collect(),
            stopped: self
                .stood
                .or_else(|| Some(now.saturating_sub(self.stood_since?)))
                .unwrap_or_default()
                .as_secs_f64(),
            suspended: self.suspend,
            ahead: self.requests.iter().find_map(|wanted| wanted.ahead),
            staging: self.staging,
        }
    }
}

/// Every item once, with its ranks.
fn by_ranks<'a, T: Ord + 'a>(
    texts: impl Iterator<Item = (u32, &'a T)>,
    size: usize,
) -> impl Iterator<Item = (&'a T, String)> {
    let mut ranks_of: BTreeMap<&T, Vec<u32>> = BTreeMap::new();
    for (rank, text) in texts {
        ranks_of.entry(text).or_default().push(rank);
    }
    ranks_of.into_iter().map(move |(text, mut ranks)| {
        ranks.dedup();
        (text, ranks_in_words(&ranks, size))
    })
}
