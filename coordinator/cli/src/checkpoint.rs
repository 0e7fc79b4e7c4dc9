//! `stillpoint checkpoint` and `stillpoint suspend`.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use stillpoint_ids::Epoch;
use stillpoint_protocol::Span;
use stillpoint_protocol::command::CommittedEpoch;
use stillpoint_protocol::job_file::JobFile;
use stillpoint_protocol::safe_text::{self, word};
use stillpoint_refusals::{Refusal, in_words};

use super::all::{self, Action, Everybody, Left};
use super::interrupt;
use super::patience::Patience;
use super::request::{CheckpointRequest, FOR_AN_ANSWER, ProgressReport, carry_out, wish_of};
use super::target::Target;
use super::units::{bytes, parse_duration};
use super::{print, print_json};

/// Write an epoch; the job carries on
///
/// Returns when the epoch is committed, and prints its number, its size and the time of each phase.
#[derive(Debug, Args)]
pub struct Checkpoint {
    #[command(flatten)]
    request: Request,
}

/// Write an epoch, then end the job
///
/// The job ends only when the epoch is committed. Its launcher then ends with the job's --suspended-status. If anything
/// fails before that, the job carries on.
#[derive(Debug, Args)]
pub struct Suspend {
    #[command(flatten)]
    request: Request,

    /// With --all: what to do with jobs that cannot be suspended
    #[arg(long, value_name = "WHAT", default_value = "leave")]
    left: Left,
}

#[derive(Debug, Args)]
struct Request {
    /// Checkpoint directory or name of the job; optional if you have only one running job
    #[arg(conflicts_with = "all")]
    target: Option<String>,

    #[command(flatten)]
    everybody: Everybody,

    /// Reason, for the job's records and for its user on its stderr
    #[arg(long, env = "STILLPOINT_REASON", value_name = "TEXT")]
    reason: Option<String>,

    /// Give up after this time; the job carries on. Until then, or for 10 s by default, passing hindrances are waited for
    #[arg(long, env = "STILLPOINT_TIMEOUT", value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Span>,

    /// Do not wait for hindrances to pass: end with status 5 at once
    #[arg(long, env = "STILLPOINT_NO_WAIT")]
    no_wait: bool,

    /// Print the result as JSON
    #[arg(long, env = "STILLPOINT_JSON")]
    json: bool,
}

impl Checkpoint {
    pub fn execute(self) -> super::CommandResult {
        self.request.execute(false, Left::Leave)
    }
}

impl Suspend {
    pub fn execute(self) -> super::CommandResult {
        self.request.execute(true, self.left)
    }
}

impl Request {
    fn execute(self, suspend: bool, left: Left) -> super::CommandResult {
        if self.everybody.all {
            let deed = if suspend {
                Action::Suspend
            } else {
                Action::Checkpoint
            };
            let asking = all::Asking {
                timeout: self.timeout.map(Span::time),
                waits: !self.no_wait,
                reason: self.reason,
                left,
                json: self.json,
            };
            return self.everybody.ask(deed, asking);
        }
        let limit = self.timeout.map(Span::time);
        let looking = self.patience(limit);
        let mut target = Target::find(self.target.as_deref())?;
        let wanted = CheckpointRequest {
            suspend,
            timeout: self.timeout.map(Span::time),
            waits: !self.no_wait,
            asked: wish_of(&target, self.reason.clone()),
        };
        drop(looking);
        let goes_on = goes_on(suspend, &target);
        // Until the commit begins: then it takes as long as the job's file system does.
        let patient = || self.patience(limit.map(|limit| limit + 2 * FOR_AN_ANSWER));
        let mut patience = Some(patient());
        let mut progress = Progress::new();
        let mut waited_for = BTreeSet::new();
        let outcome = carry_out(&mut target, &wanted, &mut |told| match told {
            ProgressReport::Asked => interrupt::ends_with(goes_on.clone()),
            ProgressReport::Phase {
                epoch,
                phase,
                committing,
            } => {
                patience = (!committing).then(|| patience.take().unwrap_or_else(patient));
                progress.phase(epoch, phase);
            }
            ProgressReport::Hindered(reasons) => {
                progress.hindered(reasons);
                waited_for.extend(reasons.iter().cloned());
            }
        });
        drop(patience);
        progress.end();
        let outcome = outcome.inspect_err(|failure| report_failure(self.json, failure))?;
        self.report(&target, &outcome, &waited_for)
    }

    /// Limits the time in which the checkpoint directory has to answer.
    fn patience(&self, limit: Option<Duration>) -> Patience {
        let place = self.target.clone();
        let place = place.unwrap_or_else(|| "the job's directory".to_owned());
        let json = self.json;
        Patience::with(limit, place, move |failure| report_failure(json, failure))
    }

    fn report(
        &self,
        target: &Target,
        outcome: &CommittedEpoch,
        waited_for: &BTreeSet<Refusal>,
    ) -> super::CommandResult {
        let end = if outcome.suspended {
            JobFile::read(&target.directory).ok()
        } else {
            None
        };
        let end = end.filter(|job| job.launch == target.job.launch);
        let requeued = end.as_ref().and_then(|job| job.requeued.as_deref());
        let not_requeued = end.as_ref().and_then(|job| job.reason.as_deref());
        let seconds: f64 = outcome.phases.iter().map(|(_, seconds)| seconds).sum();
        // If the coordinator went before it reported its times, the outcome has no phases and no size of memory.
        let told = !outcome.phases.is_empty();
        if self.json {
            let phases: serde_json::Map<String, serde_json::Value> = outcome
                .phases
                .iter()
                .map(|(name, seconds)| (name.clone(), json!(seconds)))
                .collect();
            return print_json(&json!({
                "epoch": outcome.epoch,
                "directory": outcome.directory,
                "bytes": outcome.stored_bytes,
                "memory_bytes": told.then_some(outcome.bytes),
                "seconds": told.then_some(seconds),
                "phases": phases,
                "stopped_seconds": told.then_some(outcome.stopped),
                "suspended": outcome.suspended,
                "requeued": requeued,
                "not_requeued": not_requeued,
                "ahead": outcome.ahead.map(|ahead| json!({
                    "epoch": ahead.epoch,
                    "seconds": ahead.seconds,
                })),
                "waited_for": waited_for.iter().map(Refusal::to_string).collect::<Vec<_>>(),
                "waited_for_codes": waited_for.iter().map(Refusal::code).collect::<Vec<_>>(),
                "staging": outcome.staging.map(|staging| json!({
                    "blocking_seconds": staging.blocking,
                    "predicted_seconds": staging.predicted,
                    "local_bytes": staging.moved.local,
                    "peer_bytes": staging.moved.peers,
                    "slow_bytes": staging.moved.slow,
                    "copy_bytes": staging.moved.copies,
                })),
            }));
        }
        let phases: Vec<String> = outcome
            .phases
            .iter()
            .map(|(name, seconds)| format!("{name} {seconds:.3} s"))
            .collect();
        let stored = bytes(outcome.stored_bytes);
        let mut text = format!("epoch {} committed: {stored} on disk", outcome.epoch);
        match told {
            true => text.push_str(&format!(
                " ({} of memory) in {seconds:.3} s, the application stood still for {:.3} s\n  {}\n",
                bytes(outcome.bytes),
                outcome.stopped,
                phases.join(", "),
            )),
            false => text.push_str("; the coordinator ended before it reported the times\n"),
        }
        text.push_str(&format!("  {}\n", safe_text::line(&outcome.directory)));
        if let Some(ahead) = outcome.ahead {
            text.push_str(&format!(
                "  epoch {} was written first, in {:.3} s while the application ran\n",
                ahead.epoch, ahead.seconds,
            ));
        }
        if let Some(staging) = outcome.staging {
            text.push_str(&format!(
                "  staged in {:.3} s ({:.3} s planned): {} on the nodes' own tiers, {} with peers, {} on the slow tier \
                 at once\n",
                staging.blocking,
                staging.predicted,
                bytes(staging.moved.local),
                bytes(staging.moved.peers),
                bytes(staging.moved.slow),
            ));
        }
        let resume = format!(
            "resume with: mpirun -n {} stillpoint restart {}",
            target.job.ranks,
            word(&target.directory.display().to_string())
        );
        match (requeued, not_requeued) {
            _ if !outcome.suspended => {}
            (Some(done), _) => text.push_str(&format!(
                "suspended; the batch system starts it again ({}), and you need not do anything\n",
                safe_text::line(done)
            )),
            (None, Some(why)) => text.push_str(&format!(
                "suspended, but {}; {resume}\n",
                safe_text::line(why)
            )),
            (None, None) => text.push_str(&format!("suspended; {resume}\n")),
        }
        print(&text)
    }
}

/// Prints a failure as JSON on stdout, if asked for. The line for people follows on stderr.
fn report_failure(json: bool, failure: &super::Failure) {
    if json {
        // If this cannot be printed, the line on stderr still tells of the failure.
        let _ = print_json(&failure.shown());
    }
}

/// Describes what happens to the request after an interrupt.
fn goes_on(suspend: bool, target: &Target) -> String {
    let end = if suspend {
        ", and ends when the epoch is committed"
    } else {
        ""
    };
    format!(
        "the job finishes the epoch{end}; see stillpoint status {}",
        word(&target.directory.display().to_string())
    )
}

/// Shows the phases on stderr: on a terminal in one line that changes, otherwise in one line each.
struct Progress {
    terminal: bool,
    shown: bool,
    hindered: Vec<Refusal>,
}

impl Progress {
    fn new() -> Progress {
        Progress {
            terminal: std::io::stderr().is_terminal(),
            shown: false,
            hindered: vec![],
        }
    }

    fn phase(&mut self, epoch: Epoch, phase: &str) {
        self.show(&format!("epoch {epoch}: {phase}"));
    }

    /// Shows the reasons to wait, if they have changed.
    fn hindered(&mut self, reasons: &[Refusal]) {
        if self.hindered != reasons {
            self.hindered = reasons.to_vec();
            self.show(&format!(
                "waiting until this has passed: {}",
                in_words(reasons)
            ));
        }
    }

    fn show(&mut self, text: &str) {
        let line = match self.terminal {
            true => format!("\r\x1b[K{}", safe_text::line(text)),
            false => format!("{}\n", safe_text::line(text)),
        };
        self.shown = true;
        // Progress that cannot be shown is no reason to stop.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    fn end(&mut self) {
        if self.terminal && self.shown {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }
}
