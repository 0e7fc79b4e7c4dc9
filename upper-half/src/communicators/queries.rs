//! Questions about a communicator that are answered without crossing.

use std::ffi::c_int;

use stillpoint_wrappers::gate::HandleKind;

use super::{Members, body, usable};
use crate::ground::abi::{self, GroupHandle, PlaceOf};
use crate::ground::object::{Comm, Object};
use crate::ground::{crossing, handle};
use crate::objects::errhandler::run;
use crate::objects::group;
use crate::objects::group::algebra::{self, Comparison};
use crate::objects::outcome::{MpiResult, check, class, give};

/// Whether the head of a handle's object answers for itself: a live communicator other than the null one, after
/// MPI has started.
///
/// # Safety
/// `comm` must be null or a handle.
#[inline(always)]
unsafe fn answers(comm: *mut Object) -> bool {
    // SAFETY: `comm` is null or a handle, by the caller's promise; its rank is read only if it is alive.
    unsafe { handle::valid(comm, HandleKind::Communicator) && (*comm).rank >= 0 }
}

/// `MPI_Comm_rank`.
///
/// # Safety
/// As the MPI function.
#[inline]
pub unsafe fn comm_rank(comm: Comm, place: *mut c_int) -> c_int {
    // SAFETY: `answers` and `usable` look at the communicator, and a place that is not null is writable, as MPI demands. Nothing here can be interrupted
    // half-way, so it needs no stay inside MPI.
    unsafe {
        if answers(comm) && !place.is_null() {
            *place = (*comm).rank;
            return 0;
        }
        run(comm, c"MPI_Comm_rank", || {
            give(place, (*usable(comm)?.0).rank)
        })
    }
}

/// `MPI_Comm_size`.
///
/// # Safety
/// As the MPI function.
#[inline]
pub unsafe fn comm_size(comm: Comm, place: *mut c_int) -> c_int {
    // SAFETY: `answers` has found the communicator alive before its size is read; a place that is not null is writable, as MPI demands.
    unsafe {
        if answers(comm) && !place.is_null() {
            *place = (*comm).size;
            return 0;
        }
        run(comm, c"MPI_Comm_size", || {
            give(place, (*usable(comm)?.0).size)
        })
    }
}

/// `MPI_Comm_remote_size`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_remote_size(comm: Comm, place: *mut c_int) -> c_int {
    // SAFETY: `usable` looks at the communicator; the lower half writes to a local variable, and `give` refuses a null place.
    unsafe {
        run(comm, c"MPI_Comm_remote_size", || {
            let (comm, body) = usable(comm)?;
            if let Some(members) = &body.members {
                let remote = members.remote.as_ref().ok_or(class::COMM)?;
                return give(place, remote.len() as c_int);
            }
            let (word, mut size) = ((*comm).lower, 0);
            check(crossing::cross(|d| {
                (d.comm_remote_size)(word, &raw mut size)
            }))?;
            give(place, size)
        })
    }
}

/// `MPI_Comm_test_inter`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_test_inter(comm: Comm, flag: *mut c_int) -> c_int {
    // SAFETY: `usable` looks at the communicator; the lower half writes to a local variable, and `give` refuses a null flag.
    unsafe {
        run(comm, c"MPI_Comm_test_inter", || {
            let (comm, body) = usable(comm)?;
            if let Some(members) = &body.members {
                return give(flag, c_int::from(members.remote.is_some()));
            }
            let (word, mut inter) = ((*comm).lower, 0);
            check(crossing::cross(|d| {
                (d.comm_test_inter)(word, &raw mut inter)
            }))?;
            give(flag, inter)
        })
    }
}

/// `MPI_Comm_group`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_group(comm: Comm, place: PlaceOf<GroupHandle>) -> c_int {
    // SAFETY: `usable` looks at the communicator; the group that the lower half makes is ours, and `give` refuses a null place.
    unsafe {
        run(comm, c"MPI_Comm_group", || {
            let (comm, body) = usable(comm)?;
            if let Some(members) = &body.members {
                let made = group::create(members.local.clone());
                return give(place, group::of_session(made, body.session));
            }
            let (word, mut new) = ((*comm).lower, 0);
            check(crossing::cross(|d| (d.comm_group)(word, &raw mut new)))?;
            give(place, group::adopt(new)?)
        })
    }
}

/// `MPI_Comm_remote_group`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_remote_group(comm: Comm, place: PlaceOf<GroupHandle>) -> c_int {
    // SAFETY: `usable` looks at the communicator; the group that the lower half makes is ours, and the place is looked at before it is written.
    unsafe {
        run(comm, c"MPI_Comm_remote_group", || {
            let (comm, body) = usable(comm)?;
            if let Some(members) = &body.members {
                let remote = members.remote.clone().ok_or(class::COMM)?;
                return give(
                    place,
                    group::of_session(group::create(remote), body.session),
                );
            }
            let (word, mut new) = ((*comm).lower, 0);
            check(crossing::cross(|d| {
                (d.comm_remote_group)(word, &raw mut new)
            }))?;
            give(place, group::adopt(new)?)
        })
    }
}

/// How two communicators of this world compare, in the standard ABI's values.
fn compare(one: &Members, two: &Members) -> i32 {
    let empty: &[i32] = &[];
    let remote = |members: &Members| members.remote.clone().unwrap_or_else(|| empty.into());
    if one.remote.is_some() != two.remote.is_some() {
        return 204;
    }
    let local = algebra::compare(&one.local, &two.local);
    let remote = algebra::compare(&remote(one), &remote(two));
    match (local, remote) {
        (Comparison::Ident, Comparison::Ident) => 202,
        (Comparison::Unequal, _) | (_, Comparison::Unequal) => 204,
        _ => 203,
    }
}

/// # Safety
/// Inside a stub; live communicators.
unsafe fn compare_objects(one: *mut Object, two: *mut Object) -> MpiResult<i32> {
    if one == two {
        return Ok(201);
    }
    // SAFETY: both are live communicators, by the caller's promise; the result is a local variable.
    unsafe {
        let members = |object| body(object).and_then(|body| body.members.as_ref());
        if let (Some(one), Some(two)) = (members(one), members(two)) {
            return Ok(compare(one, two));
        }
        let (one, two, mut result) = ((*one).lower, (*two).lower, 0);
        check(crossing::cross(|d| {
            (d.comm_compare)(one, two, &raw mut result)
        }))?;
        Ok(result)
    }
}

/// `MPI_Comm_compare`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_compare(one: Comm, two: Comm, place: *mut c_int) -> c_int {
    // SAFETY: `usable` looks at both communicators, and `give` refuses a null place.
    unsafe {
        run(one, c"MPI_Comm_compare", || {
            let (one, two) = (usable(one)?.0, usable(two)?.0);
            give(
                place,
                abi::comparison_from_neutral(compare_objects(one, two)?),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(local: &[i32], remote: Option<&[i32]>) -> Members {
        Members {
            local: local.into(),
            remote: remote.map(Into::into),
        }
    }

    #[test]
    fn both_groups_count() {
        let one = members(&[0, 1], Some(&[2, 3]));
        assert_eq!(compare(&one, &one), 202);
        assert_eq!(compare(&one, &members(&[1, 0], Some(&[2, 3]))), 203);
        assert_eq!(compare(&one, &members(&[0, 1], Some(&[2]))), 204);
        assert_eq!(compare(&one, &members(&[0, 1], None)), 204);
        assert_eq!(
            compare(&members(&[0, 1], None), &members(&[1, 0], None)),
            203
        );
    }
}
