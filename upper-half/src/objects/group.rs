//! Groups: ordered sets of processes, kept and computed above the crossing.
//!
//! A group is the list of its members' ranks in `MPI_COMM_WORLD`. The lower half gets a group of its
//! own only when a function there asks for one ([`word`]). Groups with processes of another
//! `MPI_COMM_WORLD` (spawned or connected) have no such list: they exist in the lower half alone, and operations
//! on them are carried out there.

pub mod algebra;
mod calls;
mod lower;

use std::sync::Arc;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

pub use calls::*;
pub use lower::{adopt, members_of, read_and_free, rebuild, rehearse, word};

use crate::ground::object::Object;
use crate::ground::{abi, crossing, handle};

/// A group's members.
pub enum Members {
    /// World ranks in group order.
    World(Arc<[i32]>),
    /// Processes of other worlds are among them.
    Foreign,
}

/// The data of a group.
struct Body {
    members: Members,
    /// The number of the session that it comes from, 0 for none: communicators made of it belong to that session.
    session: u32,
}

/// This process's rank in `MPI_COMM_WORLD`.
pub fn world_rank() -> i32 {
    crossing::gate()
        .rank
        .load(std::sync::atomic::Ordering::Relaxed)
}

/// The predefined empty group.
pub fn empty() -> *mut Object {
    abi::predefined(HandleKind::Group, 265)
}

/// Makes a group of world ranks; the predefined one if there are none.
pub fn create(members: Arc<[i32]>) -> *mut Object {
    if members.is_empty() {
        return empty();
    }
    let rank = algebra::rank_of(&members, world_rank());
    let size = members.len() as i32;
    let object = handle::create(HandleKind::Group, 0, body(Members::World(members)));
    // SAFETY: the object was made just now. Fortran's layer calls no function for a group's number.
    unsafe {
        (*object).rank = rank.unwrap_or(abi::UNDEFINED);
        (*object).size = size;
        crate::ground::fortran::to_fortran(object);
    }
    object
}

fn body(members: Members) -> *mut () {
    let body = Body {
        members,
        session: 0,
    };
    Box::into_raw(Box::new(body)).cast()
}

/// The number of the session that a live group comes from; 0 for none.
///
/// # Safety
/// `object` must be a live group.
pub unsafe fn session(object: *mut Object) -> u32 {
    // SAFETY: a group's body is the box of `body`; the predefined empty group has none.
    unsafe { (*object).body.cast::<Body>().as_ref() }.map_or(0, |body| body.session)
}

/// Marks a group as coming from a session, and returns it.
///
/// # Safety
/// `object` must be a live group that no other thread knows yet.
pub unsafe fn of_session(object: *mut Object, session: u32) -> *mut Object {
    // SAFETY: the body is the box of `body`, or null; no other thread knows the group yet, by the caller's promise.
    if let Some(body) = unsafe { (*object).body.cast::<Body>().as_mut() } {
        body.session = session;
    }
    object
}

/// Makes a group that only the lower half knows.
///
/// # Safety
/// Inside a stub; `word` must be a group of the lower half's, which is ours from now on.
pub unsafe fn create_foreign(word: Word, rank: i32, size: i32) -> *mut Object {
    let object = handle::create(HandleKind::Group, word, body(Members::Foreign));
    // SAFETY: the object was made just now.
    unsafe {
        (*object).rank = rank;
        (*object).size = size;
        crate::ground::fortran::to_fortran(object);
    }
    object
}

/// The members of a live group, or `None` for a foreign one.
///
/// # Safety
/// `object` must be a live group.
pub unsafe fn members(object: *mut Object) -> Option<Arc<[i32]>> {
    // SAFETY: a group's body is the box of `create`; the predefined empty group has none.
    match unsafe { (*object).body.cast::<Body>().as_ref() }.map(|body| &body.members) {
        None => Some(Arc::from([])),
        Some(Members::World(members)) => Some(members.clone()),
        Some(Members::Foreign) => None,
    }
}

/// Fills in the facts that the predefined groups tell by themselves.
///
/// # Safety
/// No other thread may be inside MPI.
pub unsafe fn initialise() {
    // SAFETY: the empty group is a predefined object, and no other thread is inside MPI, by the caller's promise.
    unsafe {
        (*empty()).rank = abi::UNDEFINED;
        (*empty()).size = 0;
    }
}

/// Ends a group that has no holder any more.
///
/// # Safety
/// `object` must be a live group of the slab; inside a stub.
pub unsafe fn end(object: *mut Object) {
    // SAFETY: the body is the box of `create`; the word is ours.
    unsafe {
        lower::free(object);
        let body = (*object).body.cast::<Body>();
        if !body.is_null() {
            drop(Box::from_raw(body));
            (*object).body = std::ptr::null_mut();
        }
    }
}
