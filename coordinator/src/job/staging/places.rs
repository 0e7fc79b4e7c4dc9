//! The destinations of all blocks: the exact scheduler decides them from the ranks' reports.

use stillpoint_ids::Rank;
use stillpoint_multilevel::placement::{Member, Placement, TierRoom, place};
use stillpoint_protocol::tier::{Announced, Assignment, Rates, Sized};

use super::Staging;

impl Staging {
    /// The node of each rank, as the first rank of that node.
    fn nodes(&self) -> Vec<usize> {
        let announced: Vec<&Announced> = self.announced.iter().flatten().collect();
        announced
            .iter()
            .map(|mine| {
                let first = announced.iter().position(|other| other.same_node(mine));
                first.unwrap_or(0)
            })
            .collect()
    }

    /// Decides the destinations of all blocks, once every rank has reported its size and rates.
    pub(super) fn place(&self) -> Option<Result<(Placement, Vec<Assignment>), String>> {
        let rules = self.rules?;
        let sized: Vec<Sized> = self.sized.iter().copied().collect::<Option<_>>()?;
        let rates: Vec<Rates> = self.rates.iter().copied().collect::<Option<_>>()?;
        let of_rank = self.nodes();
        let mut hosts = of_rank.clone();
        hosts.sort_unstable();
        hosts.dedup();
        let node = |rank: usize| hosts.iter().position(|host| *host == of_rank[rank]);
        let members: Vec<Member> = (0..sized.len())
            .map(|rank| Member {
                node: node(rank).unwrap_or(0),
                bytes: sized[rank].bytes,
                fast: rates[rank].fast,
                slow: rates[rank].slow,
                peers: rates[rank].peers,
            })
            .collect();
        let room = TierRoom {
            fast: hosts.iter().map(|host| sized[*host].fast_room).collect(),
            slow: sized.iter().map(|sized| sized.slow_room).min().unwrap_or(0),
        };
        let placement = match place(&members, &room, rules) {
            Ok(placement) => placement,
            Err(error) => return Some(Err(error.to_string())),
        };
        let host = |node: usize| Rank::at(placement.hosts[node]);
        let partners: Vec<(Rank, Rank)> = placement
            .partners
            .iter()
            .enumerate()
            .map(|(node, partner)| (host(node), host(*partner)))
            .collect();
        let assign = |share: &stillpoint_multilevel::placement::Share| Assignment {
            local: share.local + share.slack,
            peers: share
                .peers
                .iter()
                .map(|(node, bytes)| (host(*node), *bytes))
                .collect(),
            slow: share.slow,
            partners: partners.clone(),
        };
        let assignments = placement.shares.iter().map(assign).collect();
        Some(Ok((placement, assignments)))
    }
}
