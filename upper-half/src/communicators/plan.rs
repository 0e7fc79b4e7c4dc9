//! Making communicators again in a fresh lower half.
//!
//! Each is made by its members alone, out of a list of world ranks, one after the other in the order of
//! their identities. That order is the same everywhere. So the members of the first communicator that is not made yet
//! are all at it or still busy with earlier ones: some rank can always get on.

use std::sync::Arc;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::{Identity, Members, body, control, world};
use crate::communicators::topology;
use crate::ground::object::Object;
use crate::ground::{crossing, handle};
use crate::objects::group;
use crate::objects::outcome::{MpiResult, check, class};
use crate::operations::persistent;

/// A communicator that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub identity: Identity,
    pub members: Members,
    /// Our object; null if only other ranks still have one.
    pub object: *mut Object,
}

impl Plan {
    /// The numbers by which other ranks learn of a plan.
    fn encode(&self, into: &mut Vec<i32>) {
        let empty: &[i32] = &[];
        let remote = self.members.remote.as_deref();
        for part in 0..4 {
            into.push((self.identity.0 >> (32 * part)) as u32 as i32);
        }
        into.push(self.members.local.len() as i32);
        into.push(remote.map_or(-1, |remote| remote.len() as i32));
        into.extend_from_slice(&self.members.local);
        into.extend_from_slice(remote.unwrap_or(empty));
    }

    /// Reads the first plan of a list. Returns it with the rest of the list.
    fn decode(list: &[i32]) -> Option<(Self, &[i32])> {
        let (head, rest) = list.split_at_checked(6)?;
        let identity = (0..4).fold(0u128, |all, part| {
            all | u128::from(head.get(part).copied().unwrap_or(0) as u32) << (32 * part)
        });
        let (local, rest) = rest.split_at_checked(usize::try_from(*head.get(4)?).ok()?)?;
        let inter = *head.get(5)?;
        let (remote, rest) = rest.split_at_checked(usize::try_from(inter).unwrap_or(0))?;
        let members = Members {
            local: local.into(),
            remote: (inter >= 0).then(|| remote.into()),
        };
        let plan = Self {
            identity: Identity(identity),
            members,
            object: std::ptr::null_mut(),
        };
        Some((plan, rest))
    }

    /// The plan as a member of it sees it, with its own group as the local one, or `None` for a rank that is not a member.
    fn seen_by(mut self, rank: i32) -> Option<Self> {
        if self.members.local.contains(&rank) {
            return Some(self);
        }
        let remote = self.members.remote.take()?;
        if !remote.contains(&rank) {
            return None;
        }
        self.members.remote = Some(std::mem::replace(&mut self.members.local, remote));
        Some(self)
    }
}

/// Adds the plans that other ranks still hold to our own, in the order in which all are made.
fn merge(mut own: Vec<Plan>, others: Vec<Plan>, rank: i32) -> Vec<Plan> {
    for plan in others {
        if own.iter().all(|known| known.identity != plan.identity) {
            own.extend(plan.seen_by(rank));
        }
    }
    own.sort_by_key(|plan| plan.identity);
    own
}

/// The lower half's word for the communicator that these world ranks make on the control communicator.
///
/// # Safety
/// Inside MPI; all of them call it.
pub unsafe fn of_ranks(ranks: &Arc<[i32]>, tag: i32) -> MpiResult<Word> {
    // SAFETY: inside; the group is ours.
    unsafe {
        let object = group::create(ranks.clone());
        let of = group::word(object)?;
        let (base, mut word) = (control(), 0);
        let error = crossing::cross(|d| (d.comm_create_group)(base, of, tag, &raw mut word));
        handle::release(object);
        check(error)?;
        Ok(word)
    }
}

/// Makes one communicator with the others that plan it.
///
/// # Safety
/// Inside MPI, on the one thread that runs.
unsafe fn carry_out(plan: &Plan) -> MpiResult {
    let tag = plan.identity.tag();
    // SAFETY: inside; words are those of this launch.
    unsafe {
        let mut word = of_ranks(&plan.members.local, tag)?;
        let mut members = persistent::Members {
            local: word,
            inter: None,
        };
        if plan.members.remote.is_none() {
            agree(word, plan.object)?;
            persistent::agree(&members, plan.object)?;
        }
        if let Some(remote) = &plan.members.remote {
            let mut inter = 0;
            let (bridge, leader) = (control(), *remote.first().ok_or(class::INTERN)?);
            check(crossing::cross(|d| {
                (d.intercomm_create)(word, 0, bridge, leader, tag, &raw mut inter)
            }))?;
            members.inter = Some(inter);
            persistent::agree(&members, plan.object)?;
            crossing::cross(|d| (d.comm_free)(&raw mut word));
            word = inter;
        }
        let Some(body) = plan.object.as_ref().and_then(|_| body(plan.object)) else {
            // Other ranks needed us to make it.
            crossing::cross(|d| (d.comm_free)(&raw mut word));
            return Ok(());
        };
        if let Some(topology) = &body.topology {
            word = topology::construct(topology, word)?;
        }
        if let Some(name) = &body.notes.lock().name {
            let mut name = name.clone();
            name.push(0);
            let text = name.as_ptr().cast();
            crossing::cross(|d| (d.comm_set_name)(word, text));
        }
        (*plan.object).lower = word;
        Ok(())
    }
}

/// Tells every member of a communicator the newest of its nonblocking operations that any of them knows to be
/// over (see `collective`). A rank that has forgotten the communicator (a null object) knows all of them to be over.
///
/// # Safety
/// Inside MPI, on the one thread that runs; all members call it.
unsafe fn agree(word: Word, object: *mut Object) -> MpiResult {
    // SAFETY: inside; predefined handles have their words.
    unsafe {
        let int = (*crate::ground::abi::predefined(HandleKind::Datatype, INT)).lower;
        let max = (*crate::ground::abi::predefined(HandleKind::Operator, MAX)).lower;
        let known = object
            .as_ref()
            .map_or(i32::MAX, |object| object.told as i32);
        let mut newest = 0i32;
        let (from, to) = ((&raw const known).cast(), (&raw mut newest).cast());
        check(crossing::cross(|d| {
            (d.allreduce)(from, to, 1, int, max, word)
        }))?;
        if let Some(object) = object.as_mut() {
            object.told = newest as u32;
        }
        Ok(())
    }
}

/// Standard-ABI values of `MPI_INT` and `MPI_MAX`.
const INT: i32 = 521;
const MAX: i32 = 35;

/// Returns this rank's plans, and a list of those whose communicators the application has freed here: other ranks may have forgotten these.
fn own_plans() -> (Vec<Plan>, Vec<i32>) {
    let mut plans = Vec::new();
    let mut forgotten = Vec::new();
    for object in handle::live(HandleKind::Communicator) {
        // SAFETY: `live` gives live communicators; only a restart comes here, on the one thread that runs.
        let Some(body) = (unsafe { body(object) }) else {
            continue;
        };
        let Some(members) = body.members.clone() else {
            continue;
        };
        let plan = Plan {
            identity: body.identity,
            members,
            object,
        };
        if body.notes.lock().freed {
            plan.encode(&mut forgotten);
        }
        plans.push(plan);
    }
    (plans, forgotten)
}

/// Collects from all ranks the communicators that the application has freed and a rank still holds.
///
/// # Safety
/// Inside MPI; all ranks call it.
unsafe fn gather(own: &[i32]) -> MpiResult<Vec<Plan>> {
    // SAFETY: inside; the buffers are as long as said, the words are those of this launch.
    unsafe {
        let base = control();
        let int = (*crate::ground::abi::predefined(HandleKind::Datatype, INT)).lower;
        let size = (*world()).size.max(0);
        let mine = own.len() as i32;
        let mut counts = vec![0i32; size as usize];
        let (one, all) = ((&raw const mine).cast(), counts.as_mut_ptr().cast());
        check(crossing::cross(|d| {
            (d.allgather)(one, 1, int, all, 1, int, base)
        }))?;
        let total: i32 = counts.iter().sum();
        if total == 0 {
            return Ok(Vec::new());
        }
        let mut starts = Vec::with_capacity(counts.len());
        let mut next = 0;
        for count in &counts {
            starts.push(next);
            next += count;
        }
        let mut lists = vec![0i32; total as usize];
        let (from, to) = (own.as_ptr().cast(), lists.as_mut_ptr().cast());
        let (lengths, at) = (counts.as_ptr(), starts.as_ptr());
        check(crossing::cross(|d| {
            (d.allgatherv)(from, mine, int, to, lengths, at, int, base)
        }))?;
        let mut plans = Vec::new();
        let mut rest: &[i32] = &lists;
        while let Some((plan, after)) = Plan::decode(rest) {
            plans.push(plan);
            rest = after;
        }
        Ok(plans)
    }
}

/// Makes all communicators again. Collective over all ranks.
///
/// # Safety
/// Inside MPI, on the one thread that runs; predefined handles have their words, groups theirs.
pub unsafe fn rebuild() -> MpiResult {
    let (own, forgotten) = own_plans();
    // SAFETY: only this thread runs, on all ranks alike, by the caller's promise; predefined handles and groups have their words.
    unsafe {
        let others = gather(&forgotten)?;
        let local = (*world()).lower;
        agree(local, world())?;
        persistent::agree(&persistent::Members { local, inter: None }, world())?;
        for plan in merge(own, others, group::world_rank()) {
            carry_out(&plan)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::communicator::identity::Origin;

    fn plan(number: u128, local: &[i32], remote: Option<&[i32]>) -> Plan {
        Plan {
            identity: Identity(number),
            members: Members {
                local: local.into(),
                remote: remote.map(Into::into),
            },
            object: std::ptr::null_mut(),
        }
    }

    #[test]
    fn plans_travel_as_numbers() {
        let sent = [
            plan(7 << 100 | 3, &[4, 1], None),
            plan(9, &[0], Some(&[5, 6])),
        ];
        let mut list = Vec::new();
        sent.iter().for_each(|plan| plan.encode(&mut list));
        let (first, rest) = Plan::decode(&list).unwrap();
        let (second, rest) = Plan::decode(rest).unwrap();
        assert_eq!([first, second], sent);
        assert!(rest.is_empty());
        assert!(Plan::decode(&list[..7]).is_none());
    }

    #[test]
    fn everybody_sees_its_own_group_as_the_local_one() {
        let both = plan(1, &[0, 1], Some(&[2, 3]));
        let there = both.clone().seen_by(3).unwrap();
        assert_eq!(&*there.members.local, [2, 3]);
        assert_eq!(there.members.remote.as_deref(), Some(&[0, 1][..]));
        assert_eq!(both.clone().seen_by(0), Some(both.clone()));
        assert_eq!(both.seen_by(7), None);
    }

    /// Plays a restart: every rank makes its communicators in order, each waits for all members.
    fn everybody_finishes(communicators: &[Plan], ranks: i32) -> bool {
        let lists: Vec<Vec<Plan>> = (0..ranks)
            .map(|rank| {
                let own = communicators
                    .iter()
                    .filter_map(|p| p.clone().seen_by(rank))
                    .collect();
                merge(own, communicators.to_vec(), rank)
            })
            .collect();
        let mut done = vec![0usize; lists.len()];
        loop {
            let mut moved = false;
            for plan in communicators {
                let waits = |rank: usize| {
                    let next = lists.get(rank).and_then(|list| list.get(*done.get(rank)?));
                    next.is_some_and(|next| next.identity == plan.identity)
                };
                let remote = plan.members.remote.as_deref().unwrap_or(&[]);
                let mut all = plan.members.local.iter().chain(remote);
                if all.all(|rank| waits(*rank as usize)) {
                    for rank in plan.members.local.iter().chain(remote) {
                        done[*rank as usize] += 1;
                    }
                    moved = true;
                }
            }
            if done
                .iter()
                .zip(&lists)
                .all(|(done, list)| *done == list.len())
            {
                return true;
            }
            if !moved {
                return false;
            }
        }
    }

    #[test]
    fn no_order_of_creation_can_block_a_restart() {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for _ in 0..200 {
            let ranks = 2 + (next() % 6) as i32;
            let mut all = Vec::new();
            for made in 0..next() % 12 {
                let chosen: Vec<i32> = (0..ranks).filter(|_| next() % 2 == 0).collect();
                if chosen.is_empty() {
                    continue;
                }
                let split = (next() as usize) % chosen.len();
                let (one, two) = chosen.split_at(split);
                let members = match one.is_empty() {
                    true => plan(0, two, None).members,
                    false => plan(0, one, Some(two)).members,
                };
                let parent = Identity::predefined(1);
                let identity = Identity::new(Origin::All { parent, made }, &members);
                all.push(Plan {
                    identity,
                    members,
                    object: std::ptr::null_mut(),
                });
            }
            assert!(everybody_finishes(&all, ranks));
        }
    }
}
