//! One request for a checkpoint or a suspend, from the first word to the coordinator to its last.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use nix::unistd::getuid;
use stillpoint_protocol::command::{Asked, FromCommand, Outcome, ToCommand};

use super::Failure;
use super::target::{Coordinator, Target};
use stillpoint_coordinator::door::Visit;
use stillpoint_coordinator::job::Phase;
use stillpoint_coordinator::names::name_of;

/// What a request with a limit is given beyond it once the commit has begun: for that and, after a suspend, the ranks' end.
pub const FOR_THE_COMMIT: Duration = Duration::from_secs(120);
/// What it is given beyond it before: for the word that the limit is over.
pub const FOR_AN_ANSWER: Duration = Duration::from_secs(5);

/// The shortest limit of a request.
const SHORTEST: Duration = Duration::from_secs(1);

/// Phases in which nothing aborts a checkpoint any more.
const PAST_RETURN: [&str; 3] = [
    Phase::Commit.name(),
    Phase::Release.name(),
    Phase::End.name(),
];

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub suspend: bool,
    pub timeout: Option<Duration>,
    /// Whether what hinders it is waited for.
    pub waits: bool,
    pub asked: Option<Asked>,
}

/// What is told on the way.
pub enum Told<'a> {
    /// The coordinator has heard it.
    Asked,
    Phase {
        epoch: u64,
        phase: &'a str,
        /// Nothing gives it up any more.
        committing: bool,
    },
    Hindered(&'a [String]),
}

impl Told<'_> {
    /// Whether the coordinator has said it.
    pub fn is_an_answer(&self) -> bool {
        !matches!(self, Told::Asked)
    }
}

/// Asks the job's coordinator and waits for what comes of it.
pub fn carry_out(
    target: &mut Target,
    wanted: &Wanted,
    tell: &mut dyn FnMut(Told),
) -> Result<Outcome, Failure> {
    carry_out_by(None, target, wanted, tell)
}

/// The same, where somebody has knocked at the job's door for it already.
pub fn carry_out_by(
    visit: Option<Visit>,
    target: &mut Target,
    wanted: &Wanted,
    tell: &mut dyn FnMut(Told),
) -> Result<Outcome, Failure> {
    let asked = Instant::now();
    let deadline = wanted.timeout.map(|timeout| asked + timeout);
    let connected = match visit {
        // A door stands also where nobody answers any more: whoever serves says so first.
        Some(visit) => target
            .connect_to_whoever_serves(wanted.timeout)
            .map(|_| Coordinator::Visited(visit)),
        None => target.connect_to_whoever_serves(wanted.timeout),
    };
    let target = &*target;
    let lost = |failure| target.lost(failure, deadline);
    let mut coordinator = connected.map_err(lost)?;
    converse(&mut coordinator, wanted, asked, &lost, tell).or_else(|failure| {
        // In a container everything ends with its first process, the coordinator perhaps in the middle of a word.
        let done = wanted.suspend.then(|| target.suspended_meanwhile());
        done.flatten().ok_or(failure)
    })
}

/// Says what is wanted, and hears what comes of it.
pub fn converse(
    coordinator: &mut Coordinator,
    wanted: &Wanted,
    asked: Instant,
    lost: &dyn Fn(Failure) -> Failure,
    tell: &mut dyn FnMut(Told),
) -> Result<Outcome, Failure> {
    let request = FromCommand::Checkpoint {
        suspend: wanted.suspend,
        timeout: wanted.timeout.map(|timeout| timeout.max(SHORTEST).into()),
        waits: wanted.waits,
        asked: wanted.asked.clone(),
    };
    coordinator.ask(&request).map_err(lost)?;
    tell(Told::Asked);
    let mut beyond = FOR_AN_ANSWER;
    loop {
        let limit = wanted.timeout.map(|timeout| timeout + beyond);
        let patience = limit.map(|limit| limit.saturating_sub(asked.elapsed()));
        match coordinator.answer(patience).map_err(lost)? {
            ToCommand::Phase { epoch, phase } => {
                let committing = PAST_RETURN.contains(&phase.as_str());
                beyond = match committing {
                    true => FOR_THE_COMMIT,
                    false => FOR_AN_ANSWER,
                };
                let phase = &phase;
                tell(Told::Phase {
                    epoch,
                    phase,
                    committing,
                });
            }
            ToCommand::Hindered { reasons } => tell(Told::Hindered(&reasons)),
            ToCommand::Committed(outcome) => return Ok(outcome),
            ToCommand::Refused { reasons } => {
                let reasons = reasons.join("; ");
                let text = format!("the job cannot be checkpointed now and runs on: {reasons}");
                return Err(Failure::new(Failure::REFUSED, text));
            }
            ToCommand::Aborted { reason, ahead } => {
                return Err(Failure::failed(match ahead {
                    None => format!("no epoch was written, older ones are as they were: {reason}"),
                    Some(epoch) => format!(
                        "epoch {epoch} was committed while the application ran, and no other one: {reason}"
                    ),
                }));
            }
            ToCommand::Status(_) => {}
        }
    }
}

/// What goes into the job's records: who asks, unless that is the job's own user who gives no reason.
pub fn wish_of(target: &Target, reason: Option<String>) -> Option<Asked> {
    let owner = std::fs::metadata(&target.directory);
    let own = owner.is_ok_and(|about| about.uid() == getuid().as_raw());
    (!own || reason.is_some()).then(|| Asked {
        by: name_of(getuid().as_raw()),
        reason,
    })
}
