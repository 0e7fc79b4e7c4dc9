//! Ranks whose processes have become programs that have not started MPI, or never will.

use stillpoint_ids::Rank;
use stillpoint_refusals::{Refusal, refusal};

use super::super::member::Life;
use super::Roster;

impl Roster {
    /// Notes that a rank's process becomes a program without an agent.
    pub fn becomes_unsplit(&mut self, rank: Rank, program: String) {
        if let Some(member) = self.members.get_mut(rank.index()) {
            member.unsplit = Some(program);
        }
    }

    /// The error that makes checkpoints impossible, if the process of a rank has become a program without an agent.
    pub fn unsplit(&self) -> Option<Refusal> {
        let mut all = self.iter();
        all.find_map(|(rank, member)| {
            let program = member.unsplit.as_ref()?;
            let named = self.named(rank);
            Some(refusal!(
                UnsplitProgram,
                "{named} has become {program}, a statically linked program: Stillpoint is not in it, and does not see an MPI \
                 program that it runs; the job runs on, as it would natively; start the MPI program without {program}"
            ))
        })
    }

    /// The reason why there can be no checkpoint for now, if a rank's process has become a program that has not started MPI.
    pub fn replaced(&self) -> Option<Refusal> {
        let mut starting = self.iter().filter(|(_, r)| r.life == Life::Starting);
        let (rank, _) = starting.find(|(_, r)| r.hello.is_some())?;
        let named = self.named(rank);
        Some(refusal!(
            RanksMissing,
            "{named} has become another program, which has not started MPI yet (an emulator never does: start the MPI program \
             without it)"
        ))
    }

    /// Describes the end of a rank that has become another program and has not started MPI.
    pub fn end_of_other_program(&self, rank: Rank) -> Option<String> {
        let known = self.get(rank)?;
        known.hello.as_ref()?;
        Some(match &known.unsplit {
            Some(_) => self.loss(rank),
            None => format!(
                "{} has ended as another program, which never started MPI",
                self.named(rank)
            ),
        })
    }

    /// Describes how a rank has been lost.
    pub fn loss(&self, rank: Rank) -> String {
        let named = self.named(rank);
        match self.get(rank).and_then(|member| member.unsplit.as_ref()) {
            Some(program) => format!(
                "{named} has ended as {program}, which Stillpoint was not in: it is not known whether it has done its work"
            ),
            None => format!("{named} died unexpectedly (killed?)"),
        }
    }
}
