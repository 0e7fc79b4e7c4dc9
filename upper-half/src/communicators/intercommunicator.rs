//! Intercommunicators: making one, and merging its two groups.
//!
//! The real call is collective over both groups, so the clock of their union must count it. But a process
//! learns the members on the other side only by asking. So the leaders first exchange their lists of members by
//! ordinary messages and tell their groups; then all go through the gate of the union's clock.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::make::{New, finish, next_of_all};
use super::{Identity, Members, all_of, control, create, usable};
use crate::ground::abi::{self, CommHandle, PlaceOf};
use crate::ground::handle;
use crate::ground::lock::SpinLock;
use crate::ground::object::{Comm, Object};
use crate::objects::communicator::identity::{Origin, of_meeting};
use crate::objects::errhandler::run;
use crate::objects::group;
use crate::objects::info::pairs::Pairs;
use crate::objects::outcome::{MpiResult, check, class, give};
use crate::operations::clock::collective;
use crate::operations::p2p;

/// Intercommunicators made of two communicators, whose leaders have met somewhere with a tag.
static MADE: SpinLock<BTreeMap<(u128, i32), u64>> = SpinLock::new(BTreeMap::new());

fn next(locals: [Identity; 2], peer: Identity, tag: i32) -> Origin {
    let mut made = MADE.lock();
    let count = made.entry((of_meeting(locals, peer), tag)).or_insert(0);
    *count += 1;
    Origin::Between {
        locals,
        peer,
        tag,
        made: *count,
    }
}

/// The application's `MPI_INT`.
fn int() -> *mut Object {
    abi::predefined(HandleKind::Datatype, 521)
}

/// The leader's part: tells the other leader our members and our communicator, and learns the same about the other side.
///
/// # Safety
/// Inside a stub, nothing locked; `peer` a communicator in which the other leader has that rank.
unsafe fn exchange(
    local: Identity,
    ours: &[i32],
    peer: Comm,
    leader: c_int,
    tag: c_int,
) -> MpiResult<(Identity, Vec<i32>)> {
    let [a, b, c, d] = local.words();
    let mut head = [0i32; 5];
    // SAFETY: the buffers are as long as said.
    unsafe {
        pass(
            &[ours.len() as i32, a, b, c, d],
            &mut head,
            peer,
            leader,
            tag,
        )?;
        let [count, a, b, c, d] = head;
        let mut theirs = vec![0; count.max(0) as usize];
        pass(ours, &mut theirs, peer, leader, tag)?;
        Ok((Identity::of_words([a, b, c, d]), theirs))
    }
}

/// # Safety
/// As [`exchange`].
unsafe fn pass(out: &[i32], back: &mut [i32], peer: Comm, leader: c_int, tag: c_int) -> MpiResult {
    let to: *const c_void = out.as_ptr().cast();
    let from: *mut c_void = back.as_mut_ptr().cast();
    let (sent, wanted) = (out.len() as c_int, back.len() as c_int);
    // SAFETY: the buffers are as long as said.
    let code = unsafe {
        p2p::sendrecv(
            to,
            sent,
            int(),
            leader,
            tag,
            from,
            wanted,
            int(),
            leader,
            tag,
            peer,
            std::ptr::null_mut(),
        )
    };
    check(abi::error_to_neutral(code))
}

/// Tells all of `local` what its leader knows.
///
/// # Safety
/// Inside a stub, nothing locked.
unsafe fn spread(local: *mut Object, root: c_int, list: &mut [i32]) -> MpiResult {
    let (buffer, count) = (list.as_mut_ptr().cast(), list.len() as c_int);
    // SAFETY: the buffer is as long as said; live objects.
    unsafe {
        check(collective::clocked((*local).clock, |d| {
            (d.bcast)(buffer, count, (*int()).lower, root, (*local).lower)
        }))
    }
}

/// The other side, as its leader describes it.
struct RemoteSide {
    local: Identity,
    members: Arc<[i32]>,
    /// The communicator on which the leaders have met.
    peer: Identity,
    /// The other leader's world rank.
    leader: i32,
}

/// A leader's message to its group.
enum LeaderMessage {
    Other(RemoteSide),
    /// The peer communicator has processes of other worlds: only the lower half can make this.
    Foreign,
}

/// The leader's part of [`other_side`].
///
/// # Safety
/// As the MPI function's arguments.
unsafe fn ask(
    local: Identity,
    ours: &[i32],
    peer: Comm,
    leader: c_int,
    tag: c_int,
) -> MpiResult<LeaderMessage> {
    // SAFETY: `peer` is null or a handle, as MPI demands of its arguments, and `usable` looks at it.
    unsafe {
        let (peer, body) = usable(peer)?;
        let Some(members) = &body.members else {
            return Ok(LeaderMessage::Foreign);
        };
        let group = members.remote.as_ref().unwrap_or(&members.local);
        let place = usize::try_from(leader).map_err(|_| class::RANK)?;
        let world = *group.get(place).ok_or(class::RANK)?;
        let (local, members) = exchange(local, ours, peer, leader, tag)?;
        Ok(LeaderMessage::Other(RemoteSide {
            local,
            members: members.into(),
            peer: body.identity,
            leader: world,
        }))
    }
}

/// Learns the members on the other side: the leader asks, and tells all of its group.
///
/// # Safety
/// As the MPI function's arguments.
unsafe fn other_side(
    local: *mut Object,
    identity: Identity,
    ours: &[i32],
    local_leader: c_int,
    peer: Comm,
    remote_leader: c_int,
    tag: c_int,
) -> MpiResult<LeaderMessage> {
    const FAILED: i32 = 0;
    const FOREIGN: i32 = 1;
    const KNOWN: i32 = 2;
    // SAFETY: `between` has found the local communicator usable; `peer` is looked at by the leader only, in `ask`.
    unsafe {
        let mut list = Vec::new();
        let mut told = [FOREIGN, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        if (*local).rank == local_leader {
            // A leader that failed tells its group so: no member is left waiting.
            match ask(identity, ours, peer, remote_leader, tag) {
                Ok(LeaderMessage::Foreign) => {}
                Ok(LeaderMessage::Other(other)) => {
                    list = other.members.to_vec();
                    let ([a, b, c, d], [e, f, g, h]) = (other.local.words(), other.peer.words());
                    let count = list.len() as i32;
                    told = [KNOWN, count, other.leader, a, b, c, d, e, f, g, h];
                }
                Err(error) => told[..2].copy_from_slice(&[FAILED, error]),
            }
        }
        spread(local, local_leader, &mut told)?;
        match told {
            [KNOWN, count, leader, a, b, c, d, e, f, g, h] => {
                list.resize(usize::try_from(count).unwrap_or(0), 0);
                spread(local, local_leader, &mut list)?;
                Ok(LeaderMessage::Other(RemoteSide {
                    local: Identity::of_words([a, b, c, d]),
                    members: list.into(),
                    peer: Identity::of_words([e, f, g, h]),
                    leader,
                }))
            }
            [FOREIGN, ..] => Ok(LeaderMessage::Foreign),
            [_, error, ..] => Err(error),
        }
    }
}

/// `MPI_Intercomm_create`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn intercomm_create(
    local: Comm,
    local_leader: c_int,
    peer: Comm,
    remote_leader: c_int,
    tag: c_int,
    place: PlaceOf<CommHandle>,
) -> c_int {
    // SAFETY: `between` looks at the handles, and the place is not null when it is written.
    unsafe {
        run(local, c"MPI_Intercomm_create", || {
            if place.is_null() {
                return Err(class::ARG);
            }
            let new = between(local, local_leader, peer, remote_leader, tag)?;
            give(place, new)
        })
    }
}

/// The intercommunicator of a communicator and another one, whose leader has that rank on the peer communicator. Only the local leader looks at
/// the peer's arguments.
///
/// # Safety
/// Inside a stub, nothing locked; handles are checked before they are used.
pub unsafe fn between(
    local: Comm,
    local_leader: c_int,
    peer: Comm,
    remote_leader: c_int,
    tag: c_int,
) -> MpiResult<*mut Object> {
    // SAFETY: `usable` looks at the handles before they are used; the peer's at the local leader only.
    unsafe {
        let (local, body) = usable(local)?;
        let Some(ours) = body
            .members
            .as_ref()
            .filter(|members| members.remote.is_none())
        else {
            return Err(class::COMM);
        };
        if !(0..(*local).size).contains(&local_leader) {
            return Err(class::ARG);
        }
        let me = body.identity;
        let side = other_side(
            local,
            me,
            &ours.local,
            local_leader,
            peer,
            remote_leader,
            tag,
        )?;
        let (word, origin) = match side {
            LeaderMessage::Foreign => {
                let leads = (*local).rank == local_leader;
                let peer = if leads { usable(peer)?.0 } else { local };
                let leader = abi::rank_to_neutral(remote_leader);
                let tag = abi::tag_to_neutral(tag);
                let mut word = 0;
                let at = &raw mut word;
                check(collective::clocked((*local).clock, |d| {
                    (d.intercomm_create)(
                        (*local).lower,
                        local_leader,
                        (*peer).lower,
                        leader,
                        tag,
                        at,
                    )
                }))?;
                (word, next_of_all(local))
            }
            LeaderMessage::Other(other) => {
                let origin = next([me, other.local], other.peer, tag);
                (
                    within(local, local_leader, &ours.local, other, origin)?,
                    origin,
                )
            }
        };
        let new = New {
            parent: local,
            origin,
            topology: None,
            info: Pairs::new(),
        };
        finish(word, new)
    }
}

/// The word of an intercommunicator within this world. Its leaders meet on a communicator of both groups that is made for this: on one where other threads'
/// leaders meet at the same time, Open MPI would mix up their messages.
///
/// # Safety
/// Inside a stub, nothing locked; a live communicator of ours.
unsafe fn within(
    local: *mut Object,
    local_leader: c_int,
    ours: &Arc<[i32]>,
    other: RemoteSide,
    origin: Origin,
) -> MpiResult<Word> {
    let members = Members {
        local: ours.clone(),
        remote: Some(other.members),
    };
    let all: Arc<[i32]> = all_of(&members).iter().map(|rank| *rank as i32).collect();
    let leader = all.iter().position(|rank| *rank == other.leader);
    let leader = leader.ok_or(class::RANK)? as i32;
    let tag = Identity::new(origin, &members).tag();
    let mut word = 0;
    let at = &raw mut word;
    // SAFETY: inside; the group is ours, and its word is looked for in each launch.
    unsafe {
        let clock = collective::cell_for(&all_of(&members)).map_err(|_| class::INTERN)?;
        let both = group::create(all);
        let made = group::word(both).and_then(|_| {
            check(collective::clocked(clock, |d| {
                let mut bridge = 0;
                let code = (d.comm_create_group)(control(), (*both).lower, tag, &mut bridge);
                if code != 0 {
                    return code;
                }
                let own = (*local).lower;
                let code = (d.intercomm_create)(own, local_leader, bridge, leader, tag, at);
                (d.comm_free)(&mut bridge);
                code
            }))
        });
        handle::release(both);
        made?;
    }
    Ok(word)
}

/// `MPI_Intercomm_merge`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn intercomm_merge(comm: Comm, high: c_int, place: PlaceOf<CommHandle>) -> c_int {
    // SAFETY: `usable` looks at the communicator; its word is taken when the call is made, and `give` refuses a null place.
    unsafe {
        run(comm, c"MPI_Intercomm_merge", || {
            let (comm, _) = usable(comm)?;
            let new = create::together(comm, None, Pairs::new(), |d, word| {
                (d.intercomm_merge)((*comm).lower, high, word)
            })?;
            give(place, new)
        })
    }
}
