//! Communicators: their members, how they were made, and the objects that depend on them.
//!
//! Every member of a communicator knows it by the same [identity](identity), on which the members agree without
//! messages. After a restart all communicators are made again in the order of their identities, which is the
//! same on every rank, so that ranks never wait for each other in a circle (see `crate::checkpoint::rebuild`).

mod calls;
mod control;
mod create;
mod information;
mod intercommunicator;
mod make;
mod names;
mod plan;
mod queries;
mod rehearse;
pub mod topology;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use stillpoint_wrappers::neutral::Word;

pub use crate::objects::communicator::*;
pub use calls::*;
pub use control::make as make_control;
pub use create::*;
pub use information::*;
pub use intercommunicator::*;
pub use make::{adopt, next_of_all};
pub use names::*;
pub use plan::{Plan, of_ranks, rebuild};
pub use queries::*;
pub use rehearse::rehearse;

use crate::ground::object::Object;
use crate::ground::{crossing, fortran};
use crate::objects::outcome::{MpiResult, class};
use crate::objects::{attribute, errhandler, group};
use crate::operations::clock::{collective, persistent as clocks, two_phase};

/// Gives an object, new or predefined, its body and the answers that come from the object itself.
///
/// # Safety
/// `object` must be a communicator without a body; inside a stub.
unsafe fn equip(
    object: *mut Object,
    mut body: Body,
    rank: i32,
    sizes: (i32, Option<i32>),
) -> MpiResult {
    // SAFETY: the object is a communicator without a body, by the caller's promise, so no other code uses it yet; cells stay mapped.
    unsafe {
        let known = match &body.members {
            Some(members) => all_of(members),
            None => vec![group::world_rank() as u32],
        };
        let cell = collective::cell_for(&known);
        body.group_clock = cell.map_err(|_| class::INTERN)?;
        let cell = match &body.members {
            Some(_) => collective::cell_of(body.identity.0, &known),
            None => cell,
        };
        (*object).clock = cell.map_err(|_| class::INTERN)?;
        // Only communicators whose members count nonblocking operations alike go the direct way.
        let alike = body
            .members
            .as_ref()
            .is_some_and(|members| members.remote.is_none());
        name_clocks(object, body.group_clock, &known);
        let cell: *const _ = collective::cell((*object).clock);
        (*object).counts = cell;
        if alike && !two_phase::chosen() {
            (*object).cell = cell;
        }
        if alike {
            (*cell).rank.store(rank, Ordering::SeqCst);
            (*cell).size.store(sizes.0, Ordering::SeqCst);
        }
        (*object).rank = rank;
        (*object).size = sizes.0;
        (*object).body = Box::into_raw(Box::new(body)).cast();
        fortran::mirror_groups(object, sizes.0, sizes.1);
        Ok(())
    }
}

/// Names a communicator's clock and that of the set of its members, for people to read, as long as the communicator has no name of its own.
///
/// # Safety
/// Inside a stub; `object` must be a communicator that has its clock.
unsafe fn name_clocks(object: *mut Object, set: u32, members: &[u32]) {
    // SAFETY: the object is a communicator with a clock, by the caller's promise; only its address and its clock's index are used.
    unsafe {
        let text = match object {
            it if it == world() => "MPI_COMM_WORLD".to_owned(),
            it if it == alone() => "MPI_COMM_SELF".to_owned(),
            _ => format!("a communicator of {} ranks", members.len()),
        };
        collective::call_clock((*object).clock, text.as_bytes());
        let text = format!("MPI_Comm_free among {} ranks", members.len());
        collective::call_clock(set, text.as_bytes());
    }
}

/// Called once when MPI has started.
///
/// # Safety
/// Inside a stub, on the one thread that is inside MPI.
pub unsafe fn initialise() -> MpiResult {
    // SAFETY: predefined objects; the world's rank and size are in place.
    unsafe {
        let size = crossing::gate()
            .size
            .load(std::sync::atomic::Ordering::Relaxed);
        let info = information::default_info()?;
        let me = group::world_rank();
        let groups: [(*mut Object, Arc<[i32]>, i32); 2] = [
            (world(), (0..size).collect(), me),
            (alone(), Arc::from([me]), 0),
        ];
        for (number, (object, local, rank)) in (1..).zip(groups) {
            let sizes = (local.len() as i32, None);
            let members = Members {
                local,
                remote: None,
            };
            let identity = Identity::predefined(number);
            let body = Body::new(identity, Some(members), None, info.clone());
            equip(object, body, rank, sizes)?;
        }
        control::make()
    }
}

/// Called once when MPI is about to end: from then on every answer needs the real MPI.
///
/// # Safety
/// Inside a stub.
pub unsafe fn finish_all() {
    // SAFETY: the control communicator is ours; live objects.
    unsafe {
        control::end();
        for_each_live(|object| (*object).rank = -1);
    }
}

/// Ends a communicator that has no holder any more, in the lower half too.
///
/// # Safety
/// `object` must be a live communicator of the slab; inside a stub.
pub unsafe fn end(object: *mut Object) {
    // SAFETY: the communicator has no holder any more, by the caller's promise, so no other code uses its body; its word is ours.
    unsafe {
        attribute::forget(object);
        errhandler::forget(object);
        let mut word: Word = std::mem::take(&mut (*object).lower);
        if word != 0 && word != (*null()).lower {
            crossing::cross(|d| (d.comm_free)(&raw mut word));
        }
        let body = (*object).body.cast::<Body>();
        (*object).body = std::ptr::null_mut();
        if !body.is_null() {
            let body = Box::from_raw(body);
            if body.members.is_some() {
                let mut notes = body.notes.lock();
                clocks::retire_all(&mut notes.operations);
                (notes.made_by.values()).for_each(|made| collective::retire(made.cell));
                collective::retire((*object).clock);
            }
        }
    }
}
