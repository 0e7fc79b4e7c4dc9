//! The ids by which an application knows its ranks, told to each other at a restart: those that were born in one namespace may know each other's.

use std::collections::BTreeMap;

use stillpoint_ids::Rank;
use stillpoint_protocol::agent::{KnownAs, Neighbour, ToAgent};
use stillpoint_protocol::namespace::PidScope;

use super::{Job, Output};

impl Job {
    /// A rank says as what it is known. When all have said so, each hears of its neighbours.
    pub(super) fn on_known_as(&mut self, rank: Rank, known: KnownAs) {
        let size = self.roster.size();
        self.known_as.insert(rank, known);
        if self.known_as.len() < size {
            return;
        }
        let mut by_place: BTreeMap<PidScope, Vec<(Rank, Neighbour)>> = BTreeMap::new();
        for (rank, known) in std::mem::take(&mut self.known_as) {
            let hello = self.roster.get(rank).and_then(|it| it.hello.as_ref());
            let Some(hello) = hello.filter(|_| !known.born.is_unknown()) else {
                continue;
            };
            let neighbour = Neighbour {
                known: known.pid,
                pid: hello.pid,
                namespace: hello.namespace,
            };
            let place = by_place.entry(known.born.place()).or_default();
            place.push((rank, neighbour));
        }
        for all in by_place.into_values() {
            for (rank, _) in &all {
                let others = all.iter().filter(|(other, _)| other != rank);
                let others = others.map(|(_, neighbour)| *neighbour).collect();
                self.outputs.push(Output::Send {
                    rank: *rank,
                    message: ToAgent::Neighbours(others),
                });
            }
        }
    }
}
