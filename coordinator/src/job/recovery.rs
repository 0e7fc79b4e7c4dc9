//! A restart from an epoch whose blocks lie on fast tiers.
//!
//! Before the restore, the processes that are to become the ranks gather their blocks, each from the nearest place that has them. If the epoch was staged and
//! never became durable, they also make their images whole on the slow tier. If all are whole, the epoch is durable, and the job carries on from it.
//! Otherwise the job carries on from the newest durable epoch, or is refused if there is none.

use stillpoint_ids::{Epoch, Rank};
use stillpoint_protocol::agent::ToAgent;
use stillpoint_protocol::tier::Gathered;
use stillpoint_refusals::Refusal;

use super::{Job, Output};

/// The answers of the ranks so far.
#[derive(Debug, Default)]
pub struct Recovery {
    epoch: Option<Epoch>,
    /// By rank: whether it has answered, and its problem.
    answers: Vec<Option<Option<String>>>,
    gathered: Gathered,
}

impl Recovery {
    pub fn new(epoch: Option<Epoch>, ranks: u32) -> Recovery {
        Recovery {
            epoch,
            answers: vec![None; ranks as usize],
            gathered: Gathered::default(),
        }
    }

    /// The epoch that is being recovered.
    pub fn epoch(&self) -> Option<Epoch> {
        self.epoch
    }

    /// All problems, once every rank has answered.
    fn problems(&self) -> Option<Vec<String>> {
        let answers: Option<Vec<&Option<String>>> =
            self.answers.iter().map(Option::as_ref).collect();
        Some(answers?.into_iter().flatten().cloned().collect())
    }
}

impl Job {
    pub(super) fn on_recovered(
        &mut self,
        rank: Rank,
        epoch: Epoch,
        gathered: &Gathered,
        problem: Option<String>,
    ) {
        if self.recovery.epoch != Some(epoch) {
            return;
        }
        self.recovery.gathered.add(gathered);
        if let Some(answer) = self.recovery.answers.get_mut(rank.index()) {
            *answer = Some(problem.map(|problem| format!("rank {rank}: {problem}")));
        }
        let Some(problems) = self.recovery.problems() else {
            return;
        };
        let Gathered { near, peers, slow } = self.recovery.gathered;
        self.log(format!(
            "epoch {epoch}: {near} bytes are on the ranks' own hosts, {peers} came from peers, {slow} are on the slow \
             tier only"
        ));
        let durable = self.fate.newest_epoch.is_some_and(|newest| epoch <= newest);
        match problems.is_empty() {
            // Blocks that were not gathered are read from the slow tier.
            _ if durable => self.carry_on(Some(epoch), String::new()),
            true => self.outputs.push(Output::Secure { epoch }),
            false => self.fall_back(epoch, &problems.join("; ")),
        }
    }

    /// Handles the end of making the staged epoch durable.
    pub(super) fn on_recovered_epoch(&mut self, epoch: Epoch, result: Result<String, Refusal>) {
        if let Err(reason) = result {
            return self.fall_back(epoch, reason.details());
        }
        self.log(format!("epoch {epoch}: completed from the fast tiers"));
        self.fate.newest_epoch = Some(epoch);
        self.carry_on(Some(epoch), String::new());
    }

    fn fall_back(&mut self, epoch: Epoch, reason: &str) {
        let durable = self.fate.newest_epoch;
        let reason = match durable {
            Some(durable) => format!(
                "epoch {epoch} was only staged, and part of it is lost ({reason}): going back to epoch {durable}"
            ),
            None => format!(
                "epoch {epoch} was only staged, and part of it is lost ({reason}); there is no durable epoch to go \
                 back to: start the program from its beginning, in another directory or after removing this one"
            ),
        };
        self.log(reason.clone());
        if durable.is_some() {
            // The job goes another way from here, so a later restart must not find the epoch.
            self.outputs.push(Output::DiscardStaged { epoch });
        }
        self.carry_on(durable, reason);
    }

    fn carry_on(&mut self, epoch: Option<Epoch>, reason: String) {
        self.recovery.epoch = None;
        // The agents will have addresses of their own.
        self.staging.forget_peers();
        self.fate.restarted_from = epoch;
        self.outputs.push(Output::Record);
        self.outputs
            .push(Output::Broadcast(ToAgent::CarryOn { epoch, reason }));
    }
}
