//! `stillpoint timeline`: where the time of an epoch went, and which rank the others waited for.

mod page;
mod perfetto;
mod recorded;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use stillpoint_ids::{Epoch, Rank};
use stillpoint_protocol::safe_text::line;

use super::units::bytes;
use super::{CommandResult, Failure, print};
use recorded::{Phase, RecordedEpoch};

/// Show where the time of an epoch went: its phases, and which rank the others waited for
///
/// The coordinator records the times as it writes an epoch, in DIR/timeline.jsonl.
#[derive(Debug, Args)]
pub struct Timeline {
    /// Checkpoint directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Epoch [default: the newest one that is recorded]
    #[arg(long, env = "STILLPOINT_EPOCH", value_name = "K")]
    epoch: Option<Epoch>,

    /// Write all recorded epochs, or the one of --epoch, into a file in Chrome's trace format, for ui.perfetto.dev
    #[arg(long, env = "STILLPOINT_TRACE", value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Write a page with a picture of the epoch into a file
    #[arg(long, env = "STILLPOINT_HTML", value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Timeline {
    pub fn execute(self) -> CommandResult {
        let epochs = recorded::read(&self.directory)?;
        let shown = match self.epoch {
            None => epochs.last(),
            Some(wanted) => epochs.iter().rfind(|epoch| epoch.epoch == wanted),
        };
        let Some(shown) = shown else {
            let there: Vec<String> = epochs.iter().map(|epoch| epoch.epoch.to_string()).collect();
            let there = match there.is_empty() {
                true => "there is no recorded epoch here".to_owned(),
                false => format!("this epoch is not recorded here, only {}", there.join(", ")),
            };
            let text = format!("{}: {there}", self.directory.display());
            return Err(Failure::new(Failure::MISSING, text));
        };
        if let Some(file) = &self.trace {
            let some = match self.epoch {
                Some(_) => std::slice::from_ref(shown),
                None => &epochs,
            };
            write(file, &perfetto::trace(some))?;
        }
        if let Some(file) = &self.html {
            write(file, &page::page(shown))?;
        }
        match self.trace.is_none() && self.html.is_none() {
            true => print(&in_words(shown)),
            false => Ok(()),
        }
    }
}

fn write(path: &Path, text: &str) -> CommandResult {
    let written =
        stillpoint_directory::create(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        Failure::because(&error, format!("{}: cannot write: {error}", path.display()))
    })
}

/// The rank that a phase waited for, and how much longer than for the one before it.
fn waited_for(epoch: &RecordedEpoch, phase: &Phase) -> Option<(Rank, f64)> {
    let mut there: Vec<(f64, Rank)> = Rank::of_each(&phase.ranks)
        .filter_map(|(rank, at)| Some(((*at)?, rank)))
        .collect();
    there.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (last, rank) = *there.last()?;
    let before = there
        .len()
        .checked_sub(2)
        .and_then(|place| there.get(place))?
        .0;
    let more = last - before;
    // Less than that is no wait that anybody would look for.
    (more >= 0.01 && more >= 0.01 * epoch.seconds).then_some((rank, more))
}

fn host(epoch: &RecordedEpoch, rank: Rank) -> String {
    let host = epoch.hosts.get(rank.index()).map_or("", String::as_str);
    line(host).into_owned()
}

fn in_words(epoch: &RecordedEpoch) -> String {
    let what = if epoch.suspend {
        "suspend"
    } else {
        "checkpoint"
    };
    let mut text = format!(
        "epoch {}: {what} of {} ranks in {:.3} s",
        epoch.epoch,
        epoch.hosts.len(),
        epoch.seconds
    );
    if let Some(stop) = &epoch.stop {
        text.push_str(&format!(
            ", the application stood still for {:.3} s",
            stop.seconds
        ));
    }
    text.push('\n');
    for phase in &epoch.phases {
        let seconds = phase.ended - phase.began;
        text.push_str(&format!("  {:<8} {seconds:>9.3} s", line(&phase.name)));
        if let Some((rank, more)) = waited_for(epoch, phase) {
            text.push_str(&format!(
                "  waited for rank {rank} on {}, {more:.3} s longer than for any other",
                host(epoch, rank)
            ));
        }
        text.push('\n');
    }
    if let Some(seconds) = epoch.flush {
        text.push_str(&format!("  {:<8} {seconds:>9.3} s\n", "flush"));
    }
    let written = epoch.written.iter().flatten();
    let stored: u64 = written.clone().map(|written| written.stored_bytes).sum();
    let slowest = written.map(|written| written.seconds).fold(0.0, f64::max);
    if slowest > 0.0 {
        let rate = (stored as f64 / slowest) as u64;
        text.push_str(&format!(
            "written: {} in {slowest:.3} s, {}/s\n",
            bytes(stored),
            bytes(rate)
        ));
    }
    if let Some(staging) = &epoch.staging {
        text.push_str(&format!(
            "staged in {:.3} s: {} on the nodes' own tiers, {} with peers, {} on the slow tier at once\n",
            staging.seconds,
            bytes(staging.local_bytes),
            bytes(staging.peer_bytes),
            bytes(staging.slow_bytes),
        ));
    }
    text
}
