//! Making an object of a communicator that the lower half has made.

use std::sync::Arc;

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::{Body, Members, equip, information, null};
use crate::ground::object::Object;
use crate::ground::{crossing, handle};
use crate::objects::communicator::identity::{Identity, Origin, of_groups};
use crate::objects::communicator::{self, MadeBySome, Topology, all_of};
use crate::objects::info::pairs::Pairs;
use crate::objects::outcome::{MpiResult, check, class};
use crate::objects::{errhandler, group};
use crate::operations::clock::collective;

/// Facts about a new communicator besides those from the lower half.
pub struct New {
    /// The communicator that it was made from.
    pub parent: *mut Object,
    pub origin: Origin,
    pub topology: Option<Topology>,
    /// Keys and values of the application's.
    pub info: Pairs,
}

/// The lower half's facts about a communicator.
struct Seen {
    rank: i32,
    size: i32,
    remote_size: Option<i32>,
    members: Option<Members>,
}

type AskGroup = unsafe extern "C" fn(Word, *mut Word) -> i32;

/// # Safety
/// Inside a stub; `word` must be a communicator of the lower half's.
unsafe fn ask_group(
    word: Word,
    ask: fn(&'static Dispatch) -> AskGroup,
) -> MpiResult<Option<Arc<[i32]>>> {
    let mut group = 0;
    // SAFETY: inside; the group is ours until it is freed here.
    unsafe {
        check(crossing::cross(|d| ask(d)(word, &raw mut group)))?;
        let members = group::members_of(group);
        crossing::cross(|d| (d.group_free)(&raw mut group));
        members
    }
}

/// # Safety
/// As [`ask_group`].
unsafe fn see(word: Word) -> MpiResult<Seen> {
    let (mut rank, mut size, mut inter, mut remote_size) = (0, 0, 0, 0);
    // SAFETY: `word` is a communicator of the lower half's, by the caller's promise; the numbers go into local variables.
    unsafe {
        check(crossing::cross(|d| (d.comm_rank)(word, &raw mut rank)))?;
        check(crossing::cross(|d| (d.comm_size)(word, &raw mut size)))?;
        check(crossing::cross(|d| {
            (d.comm_test_inter)(word, &raw mut inter)
        }))?;
        let local = ask_group(word, |d| d.comm_group)?;
        if inter == 0 {
            let members = local.map(|local| Members {
                local,
                remote: None,
            });
            return Ok(Seen {
                rank,
                size,
                remote_size: None,
                members,
            });
        }
        check(crossing::cross(|d| {
            (d.comm_remote_size)(word, &raw mut remote_size)
        }))?;
        let remote = ask_group(word, |d| d.comm_remote_group)?;
        let members = local.zip(remote).map(|(local, remote)| Members {
            local,
            remote: Some(remote),
        });
        Ok(Seen {
            rank,
            size,
            remote_size: Some(remote_size),
            members,
        })
    }
}

/// # Safety
/// Inside a stub; `object` must be new, `seen` must be true of it.
unsafe fn complete(
    object: *mut Object,
    seen: Seen,
    identity: Identity,
    topology: Option<Topology>,
    own_info: &Pairs,
) -> MpiResult {
    let mut info = own_info.clone();
    for (key, value) in information::default_info()?.iter() {
        if info.get(key).is_none() {
            info.set(key, value);
        }
    }
    let body = Body::new(identity, seen.members, topology, info);
    // SAFETY: `object` is new, by the caller's promise, so it has no body yet and no other thread knows it.
    unsafe { equip(object, body, seen.rank, (seen.size, seen.remote_size)) }
}

/// Makes the application's handle of the communicator that the lower half has made: the null handle if that
/// gave none. The new communicator has its parent's error handler.
///
/// # Safety
/// Inside a stub; `word` must be the lower half's communicator, which is ours from now on.
pub unsafe fn finish(word: Word, new: New) -> MpiResult<*mut Object> {
    // SAFETY: `word` is the lower half's communicator, and ours, by the caller's promise; the null communicator is predefined.
    unsafe {
        if word == (*null()).lower {
            return Ok(null());
        }
        let seen = see(word)?;
        finish_as(word, seen, new)
    }
}

/// # Safety
/// As [`finish`].
unsafe fn finish_as(word: Word, seen: Seen, new: New) -> MpiResult<*mut Object> {
    let identity = match &seen.members {
        Some(members) => Identity::new(new.origin, members),
        None => Identity(0),
    };
    // SAFETY: `word` is ours, by the caller's promise, and the new object owns it from here on.
    unsafe {
        let object = handle::create(HandleKind::Communicator, word, std::ptr::null_mut());
        if let Err(error) = complete(object, seen, identity, new.topology, &new.info) {
            handle::release(object);
            return Err(error);
        }
        let session = super::body(new.parent).map_or(0, |parent| parent.session);
        communicator::set_session(object, session);
        errhandler::inherit(object, new.parent);
        Ok(object)
    }
}

/// Makes an object that will be like its parent, once the lower half has written its word into it
/// (`MPI_Comm_idup`).
///
/// # Safety
/// Inside a stub; the parent must be a live communicator with a body.
pub unsafe fn anticipate(new: New) -> MpiResult<*mut Object> {
    // SAFETY: the parent is a live communicator with a body, by the caller's promise; the null word stands for one that is yet to come.
    unsafe {
        let parent = new.parent;
        let members = super::body(parent).and_then(|body| body.members.clone());
        let remote = members.as_ref().and_then(|members| members.remote.as_ref());
        let seen = Seen {
            rank: (*parent).rank,
            size: (*parent).size,
            remote_size: remote.map(|remote| remote.len() as i32),
            members,
        };
        finish_as((*null()).lower, seen, new)
    }
}

/// Makes an object of a communicator that the lower half has made by itself: one with processes of
/// other worlds, as a rule.
///
/// # Safety
/// As [`finish`].
pub unsafe fn adopt(word: Word) -> MpiResult<*mut Object> {
    let mut known = std::ptr::null_mut();
    // SAFETY: `word` is the lower half's communicator, and ours, by the caller's promise; the loop gets live communicators only.
    unsafe {
        super::for_each_live(|object| {
            if (*object).lower == word {
                known = object;
            }
        });
        if !known.is_null() {
            return Ok(known);
        }
        if word == (*null()).lower {
            return Ok(null());
        }
        let seen = see(word)?;
        let object = handle::create(HandleKind::Communicator, word, std::ptr::null_mut());
        complete(object, seen, Identity(0), None, &Pairs::new())
            .inspect_err(|_| handle::release(object))?;
        Ok(object)
    }
}

/// The origin of the next communicator that all members of `parent` make together.
///
/// # Safety
/// `parent` must be a live communicator.
pub unsafe fn next_of_all(parent: *mut Object) -> Origin {
    // SAFETY: `parent` is a live communicator, by the caller's promise.
    let body = unsafe { super::body(parent) };
    let Some(body) = body else {
        return Origin::All {
            parent: Identity(0),
            made: 0,
        };
    };
    let mut notes = body.notes.lock();
    notes.made += 1;
    Origin::All {
        parent: body.identity,
        made: notes.made,
    }
}

/// The origin of the next communicator that these members of `parent` make with that tag, and their clock.
///
/// # Safety
/// Inside a stub.
pub unsafe fn next_of_some(parent: &Body, members: &Members, tag: i32) -> MpiResult<(u32, Origin)> {
    let key = (of_groups(members), tag);
    let known = parent.notes.lock().made_by.get(&key).copied();
    let before = match known {
        Some(before) => before,
        None => {
            let first = Origin::Some {
                parent: parent.identity,
                tag,
                made: 0,
            };
            let name = Identity::new(first, members).0;
            // SAFETY: the caller is inside a stub.
            let cell = unsafe { collective::cell_of(name, &all_of(members)) };
            let cell = cell.map_err(|_| class::INTERN)?;
            MadeBySome { times: 0, cell }
        }
    };
    let made = before.times + 1;
    let now = MadeBySome {
        times: made,
        ..before
    };
    parent.notes.lock().made_by.insert(key, now);
    let origin = Origin::Some {
        parent: parent.identity,
        tag,
        made,
    };
    Ok((before.cell, origin))
}
