//! `stillpoint status`: every job of this user on this host, or one in detail.

mod gpus;
mod interval;

use std::io::{IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use stillpoint_directory::RequiredOwner;
use stillpoint_gpu_plan::record::Newest;
use stillpoint_ids::{Epoch, Rank};
use stillpoint_protocol::command::{
    FromCommand, JobStatus, Requester, Tally, TierStatus, ToCommand,
};
use stillpoint_protocol::job_file::JobState;
use stillpoint_protocol::{Span, safe_text};
use stillpoint_refusals::{Code, Refusal};

use super::all::{Action, Asking, Everybody};
use super::mpi::over;
use super::target::Target;
use super::units::{bytes, parse_duration, span};
use super::{CommandResult, print, print_json};
use interval::ShownInterval;
use stillpoint_coordinator::epoch::{Epochs, seconds_since_1970};
use stillpoint_coordinator::log::utc;
use stillpoint_coordinator::registry::Registry;

/// Show all jobs of this user, or one in detail
///
/// With --json: {"jobs": [JOB...]}, or one JOB when TARGET is given.
/// JOB.state is running, suspended, finished or failed, also after the job has ended.
#[derive(Debug, Args)]
pub struct Status {
    /// Checkpoint directory or name of a job
    #[arg(conflicts_with = "all")]
    target: Option<String>,

    #[command(flatten)]
    everybody: Everybody,

    /// With --all: time limit [default: 30s]
    #[arg(long, env = "STILLPOINT_TIMEOUT", value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Span>,

    /// With --all: print the numbers in Prometheus's text format
    #[arg(
        long,
        env = "STILLPOINT_METRICS",
        requires = "all",
        conflicts_with = "json"
    )]
    metrics: bool,

    /// Show it again and again, every 2 s by default, until TARGET does not run any more
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "2s",
          value_parser = parse_duration, conflicts_with_all = ["all", "json"])]
    watch: Option<Span>,

    /// Print JSON
    #[arg(long, env = "STILLPOINT_JSON")]
    json: bool,
}

/// A job as `--json` shows it. Fields may be added, never renamed or removed.
#[derive(Debug, Serialize)]
struct Shown {
    name: String,
    directory: String,
    state: &'static str,
    /// The reason why it failed.
    reason: Option<String>,
    /// The application's exit status: 0, or the first other status of a rank.
    exit_status: Option<i32>,
    /// The user who had it suspended, if not its own user, and the reason.
    suspended_by: Option<Requester>,
    /// The reasons why a suspend that a signal asked for has not come about.
    not_suspended: Option<String>,
    /// The command by which the batch system starts the suspended job again.
    requeued: Option<String>,
    job: String,
    launch: String,
    ranks: u32,
    /// The binary interfaces of the application and of the library below it.
    mpi: String,
    library: String,
    command: Vec<String>,
    working_directory: String,
    /// The newest committed epoch.
    epoch: Option<Epoch>,
    /// Every committed epoch; with tiers: every durable one.
    epochs: Vec<Epoch>,
    /// The epoch that is partly on the fast tiers, and not durable yet.
    staged: Option<Epoch>,
    /// The times of the newest copies of GPUs' memory; null if none was staged.
    gpus: Option<Newest>,
    restarted_from: Option<Epoch>,
    /// The interval that was chosen; null without `--interval auto`.
    interval: Option<ShownInterval>,
    /// Seconds since 1970.
    started: u64,
    ended: Option<u64>,
    coordinator: ShownCoordinator,
    /// The knowledge of a coordinator that answers.
    live: Option<ShownLive>,
}

#[derive(Debug, Serialize)]
struct ShownCoordinator {
    host: String,
    pid: u32,
    /// Whether it answered; null when the job does not run.
    reachable: Option<bool>,
}

#[derive(Debug, Serialize)]
struct ShownLive {
    /// The phase of the checkpoint under way.
    phase: Option<String>,
    /// The reasons that hinder a request.
    waits_for: Vec<String>,
    waits_for_codes: Vec<Code>,
    /// Checkpoints of this launch.
    committed: u64,
    given_up: u64,
    last_failure: Option<String>,
    last_failure_code: Option<Code>,
    /// The totals of these checkpoints.
    tally: Tally,
    processes: Vec<ShownRank>,
    /// One for each rank, if the launch has tiers.
    tiers: Vec<ShownTier>,
}

#[derive(Debug, Serialize)]
struct ShownTier {
    host: String,
    directory: String,
    capacity: u64,
    /// The address at which the rank's agent accepts blocks of its peers.
    address: String,
    problem: Option<String>,
    /// Measured rates, in bytes per second.
    fast_bandwidth: Option<u64>,
    slow_bandwidth: Option<u64>,
    peer_bandwidth: Option<u64>,
}

#[derive(Debug, Serialize)]
struct ShownRank {
    rank: Rank,
    host: String,
    pid: u32,
    state: String,
    exit_status: Option<i32>,
}

impl From<TierStatus> for ShownTier {
    fn from(status: TierStatus) -> ShownTier {
        let TierStatus { announced, rates } = status;
        ShownTier {
            host: announced.host,
            directory: announced.directory,
            capacity: announced.capacity,
            address: announced.address,
            problem: announced.problem,
            fast_bandwidth: rates.fast,
            slow_bandwidth: rates.slow,
            peer_bandwidth: rates.peers,
        }
    }
}

impl ShownTier {
    fn in_words(&self) -> String {
        if let Some(problem) = &self.problem {
            return problem.clone();
        }
        let rate = |rate: Option<u64>| {
            rate.map_or("-".to_owned(), stillpoint_multilevel::units::show_bandwidth)
        };
        format!(
            "{} on {}, {}; writes {}, to peers {}, to the slow tier {}",
            self.directory,
            self.host,
            bytes(self.capacity),
            rate(self.fast_bandwidth),
            rate(self.peer_bandwidth),
            rate(self.slow_bandwidth)
        )
    }
}

impl Status {
    pub fn execute(self) -> CommandResult {
        if self.everybody.all {
            if self.metrics {
                return self.everybody.measure(self.timeout.map(Span::time));
            }
            let asking = Asking {
                timeout: self.timeout.map(Span::time),
                json: self.json,
                ..Asking::default()
            };
            return self.everybody.ask(Action::Status, asking);
        }
        if let Some(pause) = self.watch {
            return self.watched(pause.time());
        }
        if self.target.is_some() {
            let shown = Shown::of(&Target::find(self.target.as_deref())?);
            return match self.json {
                true => print_json(&shown),
                false => print(&shown.in_detail()),
            };
        }
        let jobs = jobs();
        match self.json {
            true => print_json(&serde_json::json!({ "jobs": jobs })),
            false => print(&table(&jobs)),
        }
    }

    /// Shows the jobs again and again: on a terminal in one place, otherwise one after the other.
    fn watched(&self, pause: Duration) -> CommandResult {
        let terminal = std::io::stdout().is_terminal();
        loop {
            let shown = self
                .target
                .as_deref()
                .map(|target| Target::find(Some(target)));
            let shown = shown.transpose()?.map(|target| Shown::of(&target));
            let text = match &shown {
                Some(shown) => shown.in_detail(),
                None => table(&jobs()),
            };
            if terminal {
                // Home, and clear from there. The text itself has no such codes.
                let mut out = std::io::stdout();
                let _ = out.write_all(b"\x1b[H\x1b[J").and_then(|()| out.flush());
            }
            print(&text)?;
            if shown.is_some_and(|shown| shown.state != JobState::Running.name()) {
                return Ok(());
            }
            std::thread::sleep(pause);
        }
    }
}

/// The running jobs of this user on this host.
fn jobs() -> Vec<Shown> {
    let running = Registry::of_this_user().running().into_iter();
    let targets = running.map(|(entry, job)| Target {
        directory: entry.directory,
        job,
    });
    targets.map(|target| Shown::of(&target)).collect()
}

/// A line for each job.
fn table(jobs: &[Shown]) -> String {
    if jobs.is_empty() {
        return "no job of yours runs on this host\n".to_owned();
    }
    let mut text = format!(
        "{:<20} {:<10} {:>6} {:>6}  DIRECTORY\n",
        "NAME", "STATE", "RANKS", "EPOCH"
    );
    for job in jobs {
        let epoch = job.epoch.map_or("-".to_owned(), |epoch| epoch.to_string());
        text.push_str(&format!(
            "{:<20} {:<10} {:>6} {epoch:>6}  {}\n",
            safe_text::line(&job.name),
            job.state,
            job.ranks,
            safe_text::line(&job.directory)
        ));
    }
    text
}

impl Shown {
    fn of(target: &Target) -> Shown {
        let live = live(target);
        // A coordinator that does not answer may just have written the job's end.
        let again = live
            .is_none()
            .then(|| Target::at(&target.directory).ok())
            .flatten();
        let target = again.as_ref().unwrap_or(target);
        let job = &target.job;
        let (mut state, mut reason) = (job.state, job.reason.clone());
        let reachable = (state == JobState::Running).then_some(live.is_some());
        if reachable == Some(false) && target.all_gone() {
            state = JobState::Failed;
            reason = Some("the coordinator and all ranks ended without a report".to_owned());
        }
        if job.state == JobState::Running && job.copied {
            state = JobState::Failed;
            reason = Some("this directory is a copy that was made while the job ran".to_owned());
        }
        let there = Epochs::at(&target.directory, RequiredOwner::Anyones).ok();
        let epochs = there.as_ref().and_then(|there| there.committed().ok());
        let epochs = epochs.unwrap_or_default();
        Shown {
            name: job.name.clone(),
            directory: target.directory.display().to_string(),
            state: state.name(),
            reason,
            exit_status: job.exit_status,
            suspended_by: job.suspended_by.clone(),
            not_suspended: job.not_suspended.clone(),
            requeued: job.requeued.clone(),
            job: job.job.clone(),
            launch: job.launch.clone(),
            ranks: job.ranks,
            mpi: job.mpi.clone(),
            library: job.library.clone(),
            command: job.command.clone(),
            working_directory: job.working_directory.display().to_string(),
            epoch: epochs.last().copied(),
            epochs,
            staged: there.and_then(|there| there.newest_staged().ok().flatten()),
            gpus: gpus::newest(&target.directory),
            restarted_from: job.restarted_from,
            interval: job.interval.map(ShownInterval::from),
            started: job.started,
            ended: job.ended,
            coordinator: ShownCoordinator {
                host: job.coordinator.host.clone(),
                pid: job.coordinator.pid,
                reachable,
            },
            live: live.map(|status| ShownLive {
                phase: status.phase,
                waits_for: status.waits_for.iter().map(Refusal::to_string).collect(),
                waits_for_codes: status.waits_for.iter().map(Refusal::code).collect(),
                committed: status.committed,
                given_up: status.aborted,
                last_failure: status.last_failure.as_ref().map(Refusal::to_string),
                last_failure_code: status.last_failure.as_ref().map(Refusal::code),
                tally: *status.tally,
                tiers: status.tiers.into_iter().map(ShownTier::from).collect(),
                processes: status
                    .ranks
                    .into_iter()
                    .map(|rank| ShownRank {
                        rank: rank.rank,
                        host: rank.host,
                        pid: rank.pid,
                        state: rank.state,
                        exit_status: rank.exit_status,
                    })
                    .collect(),
            }),
        }
    }

    fn in_detail(&self) -> String {
        let mut text = format!("{}: {}", safe_text::line(&self.name), self.state);
        if let Some(status) = self.exit_status {
            text.push_str(&format!(", exit status {status}"));
        }
        text.push('\n');
        let mut row = |name: &str, value: &str| {
            text.push_str(&format!("  {name:<12} {}\n", safe_text::line(value)));
        };
        if let Some(reason) = &self.reason {
            row("because", reason);
        }
        if let Some(asked) = &self.suspended_by {
            row("suspended", &asked.to_string());
        }
        if let Some(why) = &self.not_suspended {
            row("no suspend", &format!("a signal asked for one: {why}"));
        }
        if let Some(done) = &self.requeued {
            row("requeued", done);
        }
        row("directory", &self.directory);
        row("command", &self.command.join(" "));
        let mpi = over(&self.mpi, &self.library);
        row("ranks", &format!("{} ({mpi})", self.ranks));
        let end = self.ended.unwrap_or_else(seconds_since_1970);
        let length = span(end.saturating_sub(self.started));
        row("started", &format!("{} ({length})", utc(self.started)));
        if let Some(epoch) = self.restarted_from {
            row("from epoch", &epoch.to_string());
        }
        let epochs: Vec<String> = self.epochs.iter().map(ToString::to_string).collect();
        match epochs.is_empty() {
            true => row("epochs", "none"),
            false => row("epochs", &epochs.join(", ")),
        }
        if let Some(interval) = &self.interval {
            row("interval", &interval.in_words());
        }
        if let Some(staged) = self.staged {
            row("staged", &format!("{staged}, not durable yet"));
        }
        if let Some(newest) = &self.gpus {
            row("GPUs", &gpus::in_words(newest));
        }
        let place = format!(
            "process {} on {}",
            self.coordinator.pid, self.coordinator.host
        );
        match self.coordinator.reachable {
            Some(true) => row("coordinator", &place),
            Some(false) => row("coordinator", &format!("{place}, does not answer")),
            None => {}
        }
        if let Some(live) = &self.live {
            for reason in &live.waits_for {
                row("waits for", reason);
            }
            if let Some(phase) = &live.phase {
                row("checkpoint", &format!("under way, phase {phase}"));
            }
            row(
                "this launch",
                &format!("{} committed, {} given up", live.committed, live.given_up),
            );
            if let Some(failure) = &live.last_failure {
                row("last failure", failure);
            }
            for rank in &live.processes {
                row(
                    &format!("rank {}", rank.rank),
                    &format!("{}, process {} on {}", rank.state, rank.pid, rank.host),
                );
            }
            for (rank, tier) in live.tiers.iter().enumerate() {
                row(&format!("tier {rank}"), &tier.in_words());
            }
        }
        text
    }
}

/// A job as `--json` shows it.
pub fn as_json(target: &Target) -> serde_json::Value {
    // This fails for no value of this type.
    serde_json::to_value(Shown::of(target)).unwrap_or_default()
}

/// The coordinator's answer, if the job runs and it answers.
fn live(target: &Target) -> Option<JobStatus> {
    let mut coordinator = target.connect(None).ok()?;
    coordinator.ask(&FromCommand::Status).ok()?;
    match coordinator.answer(Some(Duration::from_secs(5))).ok()? {
        ToCommand::Status(status) => Some(status),
        _ => None,
    }
}
