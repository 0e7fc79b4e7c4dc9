//! The times of an epoch's phases, and when each rank had done its part: one line of JSON for `stillpoint timeline`.

use std::time::Duration;

use serde_json::{Value, json};
use stillpoint_ids::{Epoch, Rank};
use stillpoint_protocol::agent::{Doing, Progress};

use super::attempt::{Attempt, Course, PastPhase};
use super::{Job, Output};

/// Seconds since the attempt began, in microseconds.
fn since(began: Duration, moment: Duration) -> f64 {
    (moment.saturating_sub(began).as_secs_f64() * 1e6).round() / 1e6
}

impl Attempt {
    /// Notes that a rank has reported its part of the phase.
    pub fn heard(&mut self, rank: Rank, progress: &Progress, now: Duration) {
        self.reports.set_heard(rank, |before| match progress {
            // A rank that stands where it is to stand is asked again and again.
            Progress::State(state) if state.doing == Doing::Parked => before.or(Some(now)),
            Progress::State(_) => None,
            Progress::Clocks { .. }
            | Progress::CheckResult { .. }
            | Progress::Counts { .. }
            | Progress::Sealed
            | Progress::Sized(_)
            | Progress::Apart
            | Progress::Written(_)
            | Progress::Staged(..)
            | Progress::Released => Some(now),
            _ => before,
        });
    }

    fn traced(&self, now: Duration, hosts: Vec<String>) -> Value {
        let began = self.times.began;
        let under_way = PastPhase {
            phase: self.phase,
            began: self.times.phase_began,
            ended: now,
            ranks: self.reports.heard(),
        };
        let phases = self.times.past.iter().chain([&under_way]).map(|past| {
            json!({
                "name": past.phase.name(),
                "began": since(began, past.began),
                "ended": since(began, past.ended),
                "ranks": past.ranks.iter().map(|at| at.map(|at| since(began, at))).collect::<Vec<_>>(),
            })
        });
        let written = self.reports.written().map(|written| {
            written.map(|written| {
                json!({
                    "stored_bytes": written.stored_bytes,
                    "bytes": written.bytes,
                    "seconds": written.seconds,
                })
            })
        });
        json!({
            "epoch": self.epoch,
            "suspend": self.suspend,
            "seconds": since(began, now),
            "hosts": hosts,
            "phases": phases.collect::<Vec<_>>(),
            "stop": self.times.stop(now).map(|(from, length)| json!({
                "began": since(began, from),
                "seconds": length.as_secs_f64(),
            })),
            "written": written.collect::<Vec<_>>(),
            "staging": self.staging.map(|staging| json!({
                "seconds": staging.blocking,
                "local_bytes": staging.moved.local,
                "peer_bytes": staging.moved.peers,
                "slow_bytes": staging.moved.slow,
                "copy_bytes": staging.moved.copies,
            })),
        })
    }
}

impl Job {
    /// Records the times of an epoch that has been written.
    pub(super) fn trace(&mut self, attempt: &mut Attempt, now: Duration) {
        match &mut attempt.course {
            Course::Committed { traced, .. } if !*traced => *traced = true,
            _ => return,
        }
        let hosts = self.roster.iter().map(|(_, member)| {
            let hello = member.hello.as_ref();
            hello.map_or_else(String::new, |hello| hello.host.clone())
        });
        let text = attempt.traced(now, hosts.collect()).to_string();
        self.outputs.push(Output::Trace(text));
    }

    /// Records the times of the epoch under way before the job's end is recorded: whoever sees the end finds them.
    pub(super) fn trace_at_the_end(&mut self, now: Duration) {
        if let Some(mut attempt) = self.attempt.take() {
            self.trace(&mut attempt, now);
            self.attempt = Some(attempt);
        }
    }

    /// Records how long the flush of a staged epoch has taken.
    pub(super) fn trace_flush(&mut self, epoch: Epoch, seconds: f64) {
        let text = json!({ "epoch": epoch, "flush": seconds }).to_string();
        self.outputs.push(Output::Trace(text));
    }
}
