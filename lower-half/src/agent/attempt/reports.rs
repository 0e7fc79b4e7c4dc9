//! A rank's reports on itself in an attempt: what it does, and how far it has come.

use std::time::{Duration, Instant};

use stillpoint_clock::rank::{Activity, observe};
use stillpoint_clock::steps::Every;
use stillpoint_protocol::Sender;
use stillpoint_protocol::agent::{FromAgent, Progress, State};
use stillpoint_protocol::client::ClientError;

use super::Attempt;
use crate::executor::stopping::{self, Stopping};
use crate::ground::wake;

/// The longest time for which the answer to a poll waits for a rank that is about to stand still.
pub(super) const STANDS_SOON: Duration = Duration::from_secs(2);

impl Attempt {
    pub(super) fn applied(
        &mut self,
        version: u64,
        sender: &Sender<FromAgent>,
    ) -> Result<(), ClientError> {
        self.seen = version;
        self.report(0, sender)
    }

    pub(super) fn activity(&self) -> Activity {
        let before = Stopping::activity(&self.page);
        let advances = self.page.advances();
        let reached = self.page.all_reached();
        match observe::<Every>(before, reached, advances, Stopping::activity(&self.page)) {
            // It is about to park, as soon as it gets a processor. If it reported that it waits, ranks that stand still already would be
            // let on, and the operations that they go on with would bind.
            Activity::Waiting if reached => Activity::Running,
            seen => seen,
        }
    }

    /// Returns what the rank does after everything that it has raised. A raise happened before the state that followed it: the report must
    /// not overtake it.
    fn settled(&mut self, sender: &Sender<FromAgent>) -> Result<Activity, ClientError> {
        loop {
            let activity = self.activity();
            self.join(sender)?;
            let raises = wake::take_raises();
            if raises.is_empty() {
                return Ok(activity);
            }
            self.raise(raises, sender)?;
        }
    }

    /// Answers the poll, but waits for a while if the rank is about to stand still inside a collective operation. On a busy machine that
    /// takes longer than two polls; ranks that stand already would be let on, and the operations that they go on with would bind.
    pub(super) fn answer(&mut self, sender: &Sender<FromAgent>) -> Result<(), ClientError> {
        let Some((poll, until)) = self.unanswered else {
            return Ok(());
        };
        let stands_soon = stopping::may_stand_inside()
            && self.activity() == Activity::InCollective
            && self.page.all_reached()
            && self.page.is_beyond_target(&stopping::inside_of());
        if stands_soon && Instant::now() < until {
            return Ok(());
        }
        self.unanswered = None;
        self.report(poll, sender)
    }

    pub(super) fn report(
        &mut self,
        poll: u32,
        sender: &Sender<FromAgent>,
    ) -> Result<(), ClientError> {
        let activity = self.settled(sender)?;
        let (sent, received) = stopping::counts(&self.page);
        self.said = Some((activity, self.seen));
        self.say(
            Progress::State(State {
                doing: activity.into(),
                seen: self.seen,
                poll,
                sent,
                received,
                begun: self.page.begun(),
            }),
            sender,
        )
    }
}

/// Returns whether the coordinator needs an unasked report: from a parked rank at once, from a waiting one if that lasts. A running rank
/// has reported when it was ordered to run; ranks on their way to their targets would report every millisecond.
pub(super) fn worth_saying(activity: Activity, lasts: bool) -> bool {
    match activity {
        Activity::Parked => true,
        Activity::Running => false,
        Activity::InCollective | Activity::Waiting => lasts,
    }
}
