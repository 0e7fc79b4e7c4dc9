//! The coordinator: its real machine, in one thread that takes its time for every message.

use std::time::Instant;

use stillpoint_clock::safe_state::{self, Report};

use super::engine::{Engine, Event};
use super::wire::{AgentInput, AgentReport};

impl Engine {
    /// The coordinator's word goes to an agent.
    pub(super) fn send(&mut self, rank: u32, word: AgentInput) {
        self.outcome.down += 1;
        self.outcome.down_bytes += word.bytes();
        self.works();
        let arrives = self.busy_until + self.times.latency;
        self.at(arrives, Event::ToRank(rank, Box::new(word)));
    }

    /// The coordinator handles one message more.
    fn works(&mut self) {
        self.busy_until = self.busy_until.max(self.now) + self.times.handling;
        self.outcome.busy_seconds += self.times.handling as f64 * 1e-9;
    }

    pub(super) fn coordinate(&mut self, rank: u32, said: AgentReport) {
        self.works();
        let event = match said {
            AgentReport::Clocks(clocks) => safe_state::Event::Clocks { rank, clocks },
            AgentReport::Raise(ggid, seq) => safe_state::Event::Raise { rank, ggid, seq },
            AgentReport::Report(activity, seen, poll, [sent, received, begun]) => {
                let report = Report {
                    activity,
                    seen,
                    poll,
                    sent,
                    received,
                    begun,
                };
                safe_state::Event::Report { rank, report }
            }
        };
        let begun = Instant::now();
        let actions = self.safe.on(event);
        self.outcome.machine_seconds += begun.elapsed().as_secs_f64();
        for action in actions {
            self.carry_out(action);
        }
    }

    fn carry_out(&mut self, action: safe_state::Action) {
        match action {
            safe_state::Action::Targets {
                rank,
                version,
                targets,
            } => {
                if rank == 0 {
                    let all = self.layout.shared_clocks().map(|ggid| (ggid, 99));
                    let table = AgentInput::Targets(version, all.collect());
                    self.outcome.whole_tables = table.bytes() * u64::from(self.layout.ranks);
                }
                self.send(rank, AgentInput::Targets(version, targets));
            }
            safe_state::Action::Raised {
                ranks,
                version,
                ggid,
                target,
            } => {
                self.repeats = 0;
                for rank in ranks {
                    self.send(rank, AgentInput::Raised(version, ggid, target));
                }
            }
            safe_state::Action::Advance { ranks, version } => {
                self.repeats = 0;
                for rank in ranks {
                    self.send(rank, AgentInput::Advance(version));
                }
            }
            safe_state::Action::Poll { poll, patience } => {
                self.outcome.polls += 1;
                let milliseconds = match patience {
                    0 => 1 << self.repeats.min(5),
                    _ => 250 << (patience - 1).min(6),
                };
                self.repeats += u32::from(patience == 0);
                let due = self.busy_until + milliseconds * 1_000_000;
                self.at(due, Event::Poll(poll));
            }
            safe_state::Action::SafeStateFound => self.found = Some(self.busy_until),
        }
    }
}
