//! The groups as the job's side knows them: the members of each, and its target.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;

use crate::group::Ggid;
use crate::steps::Steps;

/// The groups by id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Targets<S> {
    groups: BTreeMap<Ggid, Group>,
    steps: PhantomData<S>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Group {
    target: u64,
    /// The ranks that have said that they know the group, each with the first number that it has said.
    members: Vec<(u32, u64)>,
}

impl<S: Steps> Targets<S> {
    /// Notes that a rank knows a group, and the number up to which operations bind the others there. Returns the target if that is ahead.
    pub fn join(&mut self, rank: u32, ggid: Ggid, seq: u64) -> Option<u64> {
        let group = self.groups.entry(ggid).or_default();
        group.members.push((rank, seq));
        group.target = match S::MAXIMUM {
            true => group.target.max(seq),
            false => seq,
        };
        (group.target > seq).then_some(group.target)
    }

    /// A rank has gone past a target. Returns the other ranks that know the group, unless the target was
    /// there already.
    pub fn raise(&mut self, rank: u32, ggid: Ggid, seq: u64) -> Option<Vec<u32>> {
        let group = self.groups.entry(ggid).or_default();
        if seq <= group.target {
            return None;
        }
        group.target = seq;
        let members = group.members.iter().map(|(member, _)| *member);
        Some(members.filter(|member| *member != rank).collect())
    }

    /// For every rank, the targets that are ahead of the numbers that it has said.
    pub fn ahead(&self, ranks: usize) -> Vec<Vec<(Ggid, u64)>> {
        let mut ahead = vec![vec![]; ranks];
        for (ggid, group) in &self.groups {
            for (rank, seq) in &group.members {
                if *seq < group.target
                    && let Some(of_rank) = ahead.get_mut(*rank as usize)
                {
                    of_rank.push((*ggid, group.target));
                }
            }
        }
        ahead
    }
}
