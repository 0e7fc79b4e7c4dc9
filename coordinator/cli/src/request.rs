//! A request for a checkpoint or a suspend, from the first message to the coordinator to its last.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use nix::unistd::getuid;
use stillpoint_ids::Epoch;
use stillpoint_protocol::command::{CommittedEpoch, FromCommand, Requester, ToCommand};
use stillpoint_refusals::Refusal;

use super::Failure;
use super::target::{Coordinator, Target};
use stillpoint_coordinator::door::Visit;
use stillpoint_coordinator::job::Phase;
use stillpoint_coordinator::names::name_of;

/// The time added to a request's limit once the commit has begun: for the commit and, after a suspend, for the ranks' end.
pub const FOR_THE_COMMIT: Duration = Duration::from_secs(120);
/// The time added to it before that: for the answer that the limit is over.
pub const FOR_AN_ANSWER: Duration = Duration::from_secs(5);

/// The shortest limit of a request.
const SHORTEST: Duration = Duration::from_secs(1);

/// Phases in which a checkpoint cannot be aborted any more.
const PAST_RETURN: [&str; 3] = [
    Phase::Commit.name(),
    Phase::Release.name(),
    Phase::End.name(),
];

/// The request.
#[derive(Clone, Debug)]
pub struct CheckpointRequest {
    pub suspend: bool,
    pub timeout: Option<Duration>,
    /// Whether it waits for hindrances to pass.
    pub waits: bool,
    pub asked: Option<Requester>,
}

/// A report on the way.
pub enum ProgressReport<'a> {
    /// The coordinator has received the request.
    Asked,
    Phase {
        epoch: Epoch,
        phase: &'a str,
        /// The checkpoint cannot be given up any more.
        committing: bool,
    },
    Hindered(&'a [Refusal]),
}

impl ProgressReport<'_> {
    /// Whether this is an answer of the coordinator.
    pub fn is_an_answer(&self) -> bool {
        !matches!(self, ProgressReport::Asked)
    }
}

/// Asks the job's coordinator and waits for the result.
pub fn carry_out(
    target: &mut Target,
    wanted: &CheckpointRequest,
    tell: &mut dyn FnMut(ProgressReport),
) -> Result<CommittedEpoch, Failure> {
    carry_out_by(None, target, wanted, tell)
}

/// The same with a visit, if the caller has already knocked at the job's door for the request.
pub fn carry_out_by(
    visit: Option<Visit>,
    target: &mut Target,
    wanted: &CheckpointRequest,
    tell: &mut dyn FnMut(ProgressReport),
) -> Result<CommittedEpoch, Failure> {
    let asked = Instant::now();
    let deadline = wanted.timeout.map(|timeout| asked + timeout);
    let connected = match visit {
        // A door stays open even if its coordinator does not answer any more, so this connects to the serving one first.
        Some(visit) => target
            .connect_to_whoever_serves(wanted.timeout)
            .map(|_| Coordinator::Visited(visit)),
        None => target.connect_to_whoever_serves(wanted.timeout),
    };
    let target = &*target;
    let lost = |failure| target.lost(failure, deadline);
    let mut coordinator = connected.map_err(lost)?;
    converse(&mut coordinator, wanted, asked, &lost, tell).or_else(|failure| {
        // In a container every process ends with the first one, and the coordinator may not have finished its message.
        let done = wanted.suspend.then(|| target.suspended_meanwhile());
        done.flatten().ok_or(failure)
    })
}

/// Sends the request, and reads answers until the result.
pub fn converse(
    coordinator: &mut Coordinator,
    wanted: &CheckpointRequest,
    asked: Instant,
    lost: &dyn Fn(Failure) -> Failure,
    tell: &mut dyn FnMut(ProgressReport),
) -> Result<CommittedEpoch, Failure> {
    let request = FromCommand::Checkpoint {
        suspend: wanted.suspend,
        timeout: wanted.timeout.map(|timeout| timeout.max(SHORTEST).into()),
        waits: wanted.waits,
        asked: wanted.asked.clone(),
    };
    coordinator.ask(&request).map_err(lost)?;
    tell(ProgressReport::Asked);
    let (mut beyond, mut past_return) = (FOR_AN_ANSWER, false);
    loop {
        let limit = wanted.timeout.map(|timeout| timeout + beyond);
        let patience = limit.map(|limit| limit.saturating_sub(asked.elapsed()));
        match coordinator.answer(patience).map_err(lost)? {
            ToCommand::Phase { epoch, phase } => {
                let committing = PAST_RETURN.contains(&phase.as_str());
                past_return = committing;
                beyond = match committing {
                    true => FOR_THE_COMMIT,
                    false => FOR_AN_ANSWER,
                };
                let phase = &phase;
                tell(ProgressReport::Phase {
                    epoch,
                    phase,
                    committing,
                });
            }
            ToCommand::Hindered { reasons } => {
                if let Some(timeout) = wanted.timeout.filter(|_| past_return) {
                    // The epoch is committed, and the batch system is waited for.
                    beyond = asked.elapsed().saturating_sub(timeout) + FOR_THE_COMMIT;
                }
                tell(ProgressReport::Hindered(&reasons));
            }
            ToCommand::Committed(outcome) => return Ok(outcome),
            ToCommand::Refused { reasons } => {
                let words = "cannot checkpoint the job now, and it runs on";
                return Err(Failure::refused(Failure::REFUSED, words, reasons));
            }
            ToCommand::Aborted { reason, ahead } => {
                let words = match ahead {
                    None => "the checkpoint failed; older epochs are unchanged".to_owned(),
                    Some(epoch) => format!(
                        "epoch {epoch} was committed while the application ran, but the suspend failed"
                    ),
                };
                return Err(Failure::refused(Failure::FAILED, &words, vec![reason]));
            }
            ToCommand::Status(_) => {}
        }
    }
}

/// The user and the reason for the job's records. The job's own user without a reason is not recorded.
pub fn wish_of(target: &Target, reason: Option<String>) -> Option<Requester> {
    let owner = std::fs::metadata(&target.directory);
    let own = owner.is_ok_and(|about| about.uid() == getuid().as_raw());
    (!own || reason.is_some()).then(|| Requester {
        by: name_of(getuid().as_raw()),
        reason,
    })
}
