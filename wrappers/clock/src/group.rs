//! Global group ids (section 4.1 of the paper): the same number on every rank that has a clock.
//!
//! The paper has one clock for all communicators of the same members (`MPI_SIMILAR`). That is not enough if members may begin nonblocking
//! operations on two of them in different orders: three operations here and three
//! there need not be the same three. So every communicator has a clock of its own, named by the identity that all its
//! members know it by. Calls that the members make together without a communicator of theirs - making one, giving one up - are counted by the
//! clock of the set of members, which outlives them all. Those calls are blocking, so all members make them in one
//! order.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use xxhash_rust::xxh3::Xxh3;

use crate::cells::Cells;
use crate::steps::{Every, Steps};

/// Global group id. Never 0, which marks an unused clock cell.
pub type Ggid = u64;

/// The id of a group: xxh3 (64 bits) of its world ranks, ascending, each as a little-endian `u32`.
///
/// `members` must be ascending and without duplicates; [`ascending`] makes it so. An
/// intercommunicator's group is the union of both its groups.
pub fn ggid(members: &[u32]) -> Ggid {
    let mut hasher = Xxh3::new();
    for rank in members {
        hasher.update(&rank.to_le_bytes());
    }
    never_0(hasher.digest())
}

/// A hash as an id.
fn never_0(hash: u64) -> Ggid {
    hash.max(1)
}

/// The id of a communicator's own clock: xxh3 (64 bits) of its identity, which all members know, and of its members.
pub fn communicator_ggid(identity: u128, members: &[u32]) -> Ggid {
    let mut hasher = Xxh3::with_seed(1);
    hasher.update(&identity.to_le_bytes());
    hasher.update(&ggid(members).to_le_bytes());
    never_0(hasher.digest())
}

/// World ranks in the order that [`ggid`] wants.
pub fn ascending(ranks: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut members: Vec<u32> = ranks.into_iter().collect();
    members.sort_unstable();
    members.dedup();
    members
}

/// Two different clocks with one id: neither can be told from the other, so the second must not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collision {
    pub ggid: Ggid,
}

impl fmt::Display for Collision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "two different groups or communicators have the same group id {:016x}",
            self.ggid
        )
    }
}

impl core::error::Error for Collision {}

/// The owner of a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owner {
    Group(Vec<u32>),
    Communicator(u128),
}

/// The clocks that this rank has, by id, each with the one cell that belongs to it.
#[derive(Clone, Debug, Default)]
pub struct Groups<S: Steps = Every> {
    known: BTreeMap<Ggid, (Owner, u32)>,
    cells: Cells,
    steps: PhantomData<S>,
}

/// What [`Groups::register`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered {
    pub ggid: Ggid,
    /// Index of the clock cell.
    pub cell: u32,
    /// Whether the clock was not known before: its cell starts at `seq` 0. The number that the
    /// others have to reach comes when the agent has said that the rank knows the clock.
    pub new: bool,
}

impl<S: Steps> Groups<S> {
    pub const fn new() -> Self {
        Groups {
            known: BTreeMap::new(),
            cells: Cells::new(),
            steps: PhantomData,
        }
    }

    /// Cells in use, or used before.
    pub fn cells(&self) -> u32 {
        self.cells.used()
    }

    /// The clock of a set of members, as for [`ggid`]. A new one gets a cell that is no longer in use if
    /// `reuse` allows it, else the next one.
    pub fn register(&mut self, members: &[u32], reuse: bool) -> Result<Registered, Collision> {
        self.register_as(ggid(members), members, reuse)
    }

    /// [`Groups::register`] for an id computed by the caller, so that tests can make ids collide.
    pub fn register_as(
        &mut self,
        ggid: Ggid,
        members: &[u32],
        reuse: bool,
    ) -> Result<Registered, Collision> {
        self.enter(ggid, Owner::Group(members.to_vec()), reuse)
    }

    /// The clock of a communicator that its members know by that identity.
    pub fn register_communicator(
        &mut self,
        identity: u128,
        members: &[u32],
        reuse: bool,
    ) -> Result<Registered, Collision> {
        let ggid = communicator_ggid(identity, members);
        self.enter(ggid, Owner::Communicator(identity), reuse)
    }

    fn enter(&mut self, ggid: Ggid, owner: Owner, reuse: bool) -> Result<Registered, Collision> {
        if let Some((known, cell)) = self.known.get(&ggid) {
            return match *known == owner || !S::COLLISIONS {
                true => Ok(Registered {
                    ggid,
                    cell: *cell,
                    new: false,
                }),
                false => Err(Collision { ggid }),
            };
        }
        let cell = self.cells.take::<S>(reuse);
        self.known.insert(ggid, (owner, cell));
        Ok(Registered {
            ggid,
            cell,
            new: true,
        })
    }

    /// A communicator is gone: its cell may be used again.
    pub fn retire(&mut self, ggid: Ggid) {
        if let Some((_, cell)) = self.known.remove(&ggid) {
            self.cells.give_back(cell);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    #[test]
    fn similar_communicators_have_one_id() {
        assert_eq!(ggid(&ascending([3, 1, 2])), ggid(&ascending([2, 3, 1, 1])));
        assert_ne!(ggid(&[1, 2, 3]), ggid(&[1, 2, 4]));
        assert_ne!(ggid(&[0]), ggid(&[0, 1]));
    }

    #[test]
    fn the_id_is_the_same_in_every_build() {
        // An image holds ids that an earlier build computed.
        let bytes: Vec<u8> = [0u32, 1, 2, 3]
            .iter()
            .flat_map(|r| r.to_le_bytes())
            .collect();
        assert_eq!(ggid(&[0, 1, 2, 3]), xxhash_rust::xxh3::xxh3_64(&bytes));
        let mut bytes = 7u128.to_le_bytes().to_vec();
        bytes.extend(ggid(&[0, 1, 2, 3]).to_le_bytes());
        assert_eq!(
            communicator_ggid(7, &[0, 1, 2, 3]),
            xxhash_rust::xxh3::xxh3_64_with_seed(&bytes, 1)
        );
        assert_eq!([0, 1, 2, u64::MAX].map(never_0), [1, 1, 2, u64::MAX]);
    }

    #[test]
    fn members_are_put_in_order_and_counted_once() {
        assert_eq!(ascending([3, 1, 2, 3, 1]), [1, 2, 3]);
        assert_eq!(ascending([]), []);
    }

    #[test]
    fn a_collision_is_detected_and_changes_nothing() {
        let mut groups: Groups = Groups::new();
        let first = groups.register_as(7, &[0, 1], true).unwrap();
        assert_eq!(
            groups.register_as(7, &[0, 2], true),
            Err(Collision { ggid: 7 })
        );
        let again = groups.register_as(7, &[0, 1], true).unwrap();
        assert_eq!((again.cell, again.new), (first.cell, false));
        assert_eq!(groups.cells(), 1);
    }

    #[test]
    fn every_subset_of_sixteen_ranks_has_its_own_id() {
        let mut groups: Groups = Groups::new();
        for bits in 1u32..1 << 16 {
            let members: Vec<u32> = (0..16).filter(|r| bits & (1 << r) != 0).collect();
            assert!(groups.register(&members, true).unwrap().new);
        }
    }

    #[test]
    fn similar_communicators_have_clocks_of_their_own() {
        let mut groups: Groups = Groups::new();
        let group = groups.register(&[0, 1], true).unwrap();
        let one = groups.register_communicator(1, &[0, 1], true).unwrap();
        let other = groups.register_communicator(2, &[0, 1], true).unwrap();
        assert_eq!([group.cell, one.cell, other.cell], [0, 1, 2]);
        let again = groups.register_communicator(1, &[0, 1], true).unwrap();
        assert_eq!((again.cell, again.new), (1, false));
        // All ranks know their `MPI_COMM_SELF` by the same identity.
        assert_ne!(communicator_ggid(2, &[0]), communicator_ggid(2, &[1]));
    }

    #[test]
    fn a_retired_cell_is_used_again_only_when_that_is_allowed() {
        let mut groups: Groups = Groups::new();
        let first = groups.register_communicator(1, &[0], true).unwrap();
        groups.retire(first.ggid);
        let second = groups.register_communicator(2, &[0], false).unwrap();
        let third = groups.register_communicator(3, &[0], true).unwrap();
        assert_eq!((second.cell, third.cell, groups.cells()), (1, 0, 2));
    }

    proptest! {
        #[test]
        fn cells_are_handed_out_in_order(sets in proptest::collection::vec(
            proptest::collection::vec(0u32..64, 1..6), 1..40))
        {
            let mut groups: Groups = Groups::new();
            let mut order: Vec<Vec<u32>> = vec![];
            for set in sets {
                let members = ascending(set);
                let got = groups.register(&members, true).unwrap();
                let expected = match order.iter().position(|m| *m == members) {
                    Some(index) => index,
                    None => { order.push(members); order.len() - 1 }
                };
                prop_assert_eq!(got.cell as usize, expected);
            }
        }
    }
}
