//! The rehearsal of communicators: whether a restart would make the living ones again, with their members, order and topologies.

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::{Body, body, for_each_live};
use crate::communicators::topology;
use crate::ground::abi::predefined::null_word;
use crate::ground::crossing;
use crate::ground::object::Object;
use crate::objects::group;
use crate::objects::outcome::{MpiResult, check};
use crate::objects::rehearsal_outcome::{Tried, differs, failed};
use crate::operations::request;

/// Compares the recipe of each communicator with the real MPI's answers about it.
///
/// # Safety
/// Parked on the driver thread, every other thread stopped.
pub unsafe fn rehearse() -> Tried {
    let mut tried = Ok(());
    for_each_live(|object| {
        if tried.is_ok() {
            // SAFETY: `for_each_live` gives live communicators; every other thread is stopped, by the caller's promise.
            tried = unsafe { one(object) };
        }
    });
    tried
}

/// # Safety
/// As [`rehearse`]; `object` must be a live communicator.
unsafe fn one(object: *mut Object) -> Tried {
    // SAFETY: `object` is a live communicator, by the caller's promise, and every other thread is stopped.
    unsafe {
        let Some(body) = body(object) else {
            return Ok(());
        };
        let lower = (*object).lower;
        if lower == 0
            || lower == null_word(HandleKind::Communicator)
            || request::is_being_made(object.cast())
        {
            return Ok(());
        }
        let what = format!("communicator {}", (*object).id);
        match same(body, lower) {
            Ok(true) => Ok(()),
            Ok(false) => Err(differs(&what)),
            Err(error) => Err(failed(&what, error)),
        }
    }
}

/// # Safety
/// As [`rehearse`]; `lower` must be a communicator of the lower half's.
unsafe fn same(body: &Body, lower: Word) -> MpiResult<bool> {
    let Some(members) = &body.members else {
        // With processes of other worlds: refused as a connection.
        return Ok(true);
    };
    // SAFETY: `lower` is a communicator of the lower half's, by the caller's promise; the groups that it makes are ours, and freed once they are read.
    unsafe {
        let mut own = 0;
        check(crossing::cross(|d| (d.comm_group)(lower, &raw mut own)))?;
        if group::read_and_free(own)?.as_deref() != Some(&members.local[..]) {
            return Ok(false);
        }
        if let Some(remote) = &members.remote {
            let mut other = 0;
            check(crossing::cross(|d| {
                (d.comm_remote_group)(lower, &raw mut other)
            }))?;
            if group::read_and_free(other)?.as_deref() != Some(&remote[..]) {
                return Ok(false);
            }
        }
        match &body.topology {
            Some(recipe) => topology::is_of(recipe, lower),
            None => Ok(true),
        }
    }
}
