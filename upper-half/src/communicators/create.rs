//! The functions that make communicators out of one other.

use std::ffi::{CStr, c_int};

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::make::{New, anticipate, finish, next_of_all, next_of_some};
use super::{Body, Identity, Members, control, null, usable};
use crate::ground::abi::{self, CommHandle, PlaceOf, RequestHandle};
use crate::ground::object::{Comm, Group, Info, Object};
use crate::ground::{crossing, handle};
use crate::objects::communicator::Topology;
use crate::objects::errhandler::run;
use crate::objects::info::pairs::Pairs;
use crate::objects::outcome::{MpiResult, check, class, give, live};
use crate::objects::{attribute, group, info};
use crate::operations::clock::collective;
use crate::operations::request::{self, Kind};

/// Has all members of `parent` make a communicator: clocked on the parent's group.
///
/// # Safety
/// Inside a stub, nothing locked; `parent` must be a live communicator; `call` does nothing but call the lower half, and takes words of handles from their
/// objects.
pub unsafe fn together(
    parent: *mut Object,
    topology: Option<Topology>,
    pairs: Pairs,
    call: impl Fn(&'static Dispatch, *mut Word) -> i32,
) -> MpiResult<*mut Object> {
    let mut word = 0;
    // SAFETY: `parent` is a live communicator, and `call` only calls the lower half, by the caller's promise; the word is ours once `call` has succeeded.
    unsafe {
        let place = &raw mut word;
        check(collective::clocked((*parent).clock, |d| call(d, place)))?;
        let new = New {
            parent,
            origin: next_of_all(parent),
            topology,
            info: pairs,
        };
        finish(word, new)
    }
}

/// Gives a copy its attributes, or ends it.
///
/// # Safety
/// Inside a stub, nothing locked; both must be live communicators, and `new` not known to the application yet.
unsafe fn copy_attributes(parent: *mut Object, new: *mut Object) -> MpiResult {
    // SAFETY: both communicators are alive, by the caller's promise; `new` is known to this call only, so it may be ended.
    unsafe {
        attribute::copy_all(parent, new).map_err(|error| {
            handle::release(new);
            abi::error_to_neutral(error)
        })
    }
}

/// # Safety
/// As the MPI function of that name.
unsafe fn duplicate(
    comm: Comm,
    pairs: Pairs,
    place: PlaceOf<CommHandle>,
    name: &'static CStr,
) -> c_int {
    // SAFETY: `usable` looks at the communicator; the place is not null when it is written; the copy is known to this call only until it is given out.
    unsafe {
        run(comm, name, || {
            let (comm, body) = usable(comm)?;
            if place.is_null() {
                return Err(class::ARG);
            }
            let new = together(comm, body.topology.clone(), pairs, |d, word| {
                (d.comm_dup)((*comm).lower, word)
            })?;
            // The value that a failed copy leaves in the application's place.
            give(place, null())?;
            copy_attributes(comm, new)?;
            give(place, new)
        })
    }
}

/// `MPI_Comm_dup`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_dup(comm: Comm, place: PlaceOf<CommHandle>) -> c_int {
    // SAFETY: `duplicate` looks at the communicator and at the place.
    unsafe { duplicate(comm, Pairs::new(), place, c"MPI_Comm_dup") }
}

/// `MPI_Comm_dup_with_info`: the hints are kept here. The real MPI gets none of them, because the drain could not keep its
/// assertions (`mpi_assert_no_any_source`).
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_dup_with_info(comm: Comm, hints: Info, place: PlaceOf<CommHandle>) -> c_int {
    let name = c"MPI_Comm_dup_with_info";
    let mut pairs = Pairs::new();
    // SAFETY: `pairs_of` looks at the info, and `duplicate` at the communicator and the place.
    unsafe {
        let code = run(comm, name, || {
            pairs = info::pairs_of(hints)?;
            Ok(())
        });
        if code != 0 {
            return code;
        }
        duplicate(comm, pairs, place, name)
    }
}

/// `MPI_Comm_idup`: the copy exists at once; the lower half fills in its word while the request is pending.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_idup(
    comm: Comm,
    place: PlaceOf<CommHandle>,
    request: PlaceOf<RequestHandle>,
) -> c_int {
    // SAFETY: `usable` looks at the communicator, and neither place is null. The lower half writes to the new object's word, which stays where it is and is
    // held for it.
    unsafe {
        run(comm, c"MPI_Comm_idup", || {
            let (comm, body) = usable(comm)?;
            if place.is_null() || request.is_null() {
                return Err(class::ARG);
            }
            collective::begin((*comm).clock);
            let new = anticipate(New {
                parent: comm,
                origin: next_of_all(comm),
                topology: body.topology.clone(),
                info: Pairs::new(),
            })?;
            copy_attributes(comm, new)?;
            let (word, mut pending) = (&raw mut (*new).lower, 0);
            let error = crossing::cross(|d| (d.comm_idup)((*comm).lower, word, &raw mut pending));
            if error != 0 {
                handle::release(new);
                return Err(error);
            }
            let pending = request::adopt(Kind::Collective, comm, pending);
            // The lower half writes into the copy: it stays until the request is over.
            handle::retain(new);
            request::on_completion(pending, let_go, None, new.cast());
            give(place, new)?;
            give(request, pending)
        })
    }
}

/// The request of an `MPI_Comm_idup` is over.
unsafe fn let_go(context: *mut ()) -> i32 {
    // SAFETY: held since the request was made.
    unsafe { handle::release(context.cast()) };
    0
}

/// `MPI_Comm_split`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_split(
    comm: Comm,
    color: c_int,
    key: c_int,
    place: PlaceOf<CommHandle>,
) -> c_int {
    // SAFETY: `usable` looks at the communicator; `together` takes its word when the call is made, and `give` refuses a null place.
    unsafe {
        run(comm, c"MPI_Comm_split", || {
            let (comm, _) = usable(comm)?;
            let new = together(comm, None, Pairs::new(), |d, word| {
                (d.comm_split)((*comm).lower, color, key, word)
            })?;
            give(place, new)
        })
    }
}

/// `MPI_Comm_split_type`: the ranks that share memory are found once. The members stay the same ever after, even
/// if a restart has put them on other nodes.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_split_type(
    comm: Comm,
    split_type: c_int,
    key: c_int,
    hints: Info,
    place: PlaceOf<CommHandle>,
) -> c_int {
    // SAFETY: `usable` looks at the communicator, `pairs_of` and `info::word` at the info; MPI demands that the info lives until the call returns.
    unsafe {
        run(comm, c"MPI_Comm_split_type", || {
            let (comm, _) = usable(comm)?;
            info::pairs_of(hints)?;
            // For some kinds the hints name the resource. The word is read when the call is made: a restart may come before that.
            info::word(hints)?;
            let kind = abi::split_to_neutral(split_type);
            let new = together(comm, None, Pairs::new(), |d, word| {
                (d.comm_split_type)((*comm).lower, kind, key, (*hints).lower, word)
            })?;
            give(place, new)
        })
    }
}

/// `MPI_Comm_create`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_create(comm: Comm, members: Group, place: PlaceOf<CommHandle>) -> c_int {
    // SAFETY: `usable` looks at the communicator and `live` at the group; MPI demands that the group lives until the call returns.
    unsafe {
        run(comm, c"MPI_Comm_create", || {
            let (comm, _) = usable(comm)?;
            let members = live(members, HandleKind::Group)?;
            group::word(members)?;
            let new = together(comm, None, Pairs::new(), |d, word| {
                (d.comm_create)((*comm).lower, (*members).lower, word)
            })?;
            give(place, new)
        })
    }
}

/// `MPI_Comm_create_group`: collective over the group, so clocked on the group.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_create_group(
    comm: Comm,
    members: Group,
    tag: c_int,
    place: PlaceOf<CommHandle>,
) -> c_int {
    // SAFETY: `among` looks at the communicator and the group, and `give` refuses a null place.
    unsafe {
        run(comm, c"MPI_Comm_create_group", || {
            give(place, among(comm, members, tag)?)
        })
    }
}

/// The communicator that the members of a group make out of one that they are in; null for a rank that is not a member.
///
/// # Safety
/// Inside a stub, nothing locked; handles are checked before they are used.
pub unsafe fn among(comm: Comm, members: Group, tag: c_int) -> MpiResult<*mut Object> {
    // SAFETY: `usable` and `live` look at the communicator and the group before they are used; `word` is a local variable.
    unsafe {
        let (comm, body) = usable(comm)?;
        let members = live(members, HandleKind::Group)?;
        group::word(members)?;
        if (*members).rank == abi::UNDEFINED {
            return Ok(null());
        }
        let (clock, origin) = of_group(comm, body, members, tag)?;
        let mut word = 0;
        let at = &raw mut word;
        let ours = group::members(members).filter(|_| body.members.is_some());
        let foreign = ours.is_none();
        // Other threads may meanwhile make communicators of other parents with the same tag, on the control communicator too.
        let tag = match ours {
            None => abi::tag_to_neutral(tag),
            Some(local) => {
                let members = Members {
                    local,
                    remote: None,
                };
                Identity::new(origin, &members).tag()
            }
        };
        check(collective::clocked(clock, |d| {
            let base = if foreign { (*comm).lower } else { control() };
            (d.comm_create_group)(base, (*members).lower, tag, at)
        }))?;
        let new = New {
            parent: comm,
            origin,
            topology: None,
            info: Pairs::new(),
        };
        finish(word, new)
    }
}

/// The clock of a group, and how a communicator of its members comes about.
///
/// # Safety
/// Inside a stub; live objects.
unsafe fn of_group(
    comm: *mut Object,
    body: &Body,
    members: *mut Object,
    tag: c_int,
) -> MpiResult<(u32, super::identity::Origin)> {
    // SAFETY: the objects are alive, by the caller's promise, and `body` is the communicator's.
    unsafe {
        let Some(local) = group::members(members) else {
            return Ok(((*comm).clock, next_of_all(comm)));
        };
        let members = Members {
            local,
            remote: None,
        };
        next_of_some(body, &members, tag)
    }
}
