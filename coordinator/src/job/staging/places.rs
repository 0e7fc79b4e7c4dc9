//! The destinations of all blocks: the exact scheduler decides them from the ranks' reports.

use stillpoint_ids::Rank;
use stillpoint_multilevel::placement::{Member, Placement, TierRoom, place};
use stillpoint_protocol::tier::{Announced, Assignment, Rates, Sized};

use super::Staging;

impl Staging {
    /// The node of each rank, as the first rank of that node, once every rank has announced its tier.
    fn nodes(&self) -> Option<Vec<Rank>> {
        let announced: Vec<&Announced> = self
            .announced
            .iter()
            .map(Option::as_ref)
            .collect::<Option<_>>()?;
        let first = |mine: &&Announced| {
            let first = announced.iter().position(|other| other.same_node(mine));
            first.map(Rank::at)
        };
        announced.iter().map(first).collect()
    }

    /// Decides the destinations of all blocks, once every rank has announced its tier and reported its size and rates.
    pub(super) fn place(&self) -> Option<Result<(Placement, Vec<Assignment>), String>> {
        let rules = self.rules?;
        let sized: Vec<Sized> = self.sized.iter().copied().collect::<Option<_>>()?;
        let rates: Vec<Rates> = self.rates.iter().copied().collect::<Option<_>>()?;
        let of_rank = self.nodes()?;
        let mut hosts = of_rank.clone();
        hosts.sort_unstable();
        hosts.dedup();
        let node = |rank: Rank| {
            let first = of_rank[rank.index()];
            hosts.iter().position(|host| *host == first)
        };
        let members: Vec<Member> = Rank::of_each(sized.iter().zip(&rates))
            .map(|(rank, (sized, rates))| Member {
                node: node(rank).unwrap_or(0),
                bytes: sized.bytes,
                fast: rates.fast,
                slow: rates.slow,
                peers: rates.peers,
            })
            .collect();
        let fast_room = |host: &Rank| sized[host.index()].fast_room;
        let room = TierRoom {
            fast: hosts.iter().map(fast_room).collect(),
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
