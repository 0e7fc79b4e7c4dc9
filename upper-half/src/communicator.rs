//! Communicators: who is in them, how they were made, what hangs on them.
//!
//! Every member of a communicator knows it by the same [identity](identity), which needs no messages to agree
//! on. After a restart all communicators are made again in the order of their identities, which is the
//! same on every rank, so that nobody waits for somebody who waits (see `crate::rebuild`).

mod calls;
mod control;
mod create;
mod identity;
mod information;
mod intercommunicator;
mod make;
mod names;
mod plan;
mod queries;
mod rehearse;

use std::collections::BTreeMap;
use std::sync::Arc;

use stillpoint_clock::group::{Collision, ascending};
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

pub use calls::*;
pub use control::make as make_control;
pub use create::*;
pub use identity::Identity;
pub use information::*;
pub use intercommunicator::*;
pub use make::adopt;
pub use names::*;
pub use plan::{Plan, rebuild};
pub use queries::*;
pub use rehearse::rehearse;

use crate::info::pairs::Pairs;
use crate::lock::SpinLock;
use crate::object::Object;
use crate::persistent::clocks::{self, Operations};
use crate::stub::{Outcome, class, live};
use crate::topology::Topology;
use crate::{
    abi, attribute, collective, crossing, errhandler, fortran, group, handle, refuse, two_phase,
};

/// Who is in a communicator, in world ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// The (local) group, in rank order.
    pub local: Arc<[i32]>,
    /// The remote group of an intercommunicator.
    pub remote: Option<Arc<[i32]>>,
}

/// What a communicator keeps.
pub struct Body {
    pub identity: Identity,
    /// `None` where there are processes of other worlds: such a communicator is never in an image.
    pub members: Option<Members>,
    pub topology: Option<Topology>,
    /// The clock cell of the set of members; the communicator's own is in its object.
    pub group_clock: u32,
    pub notes: SpinLock<Notes>,
}

/// What changes in a communicator's life.
#[derive(Default)]
pub struct Notes {
    pub name: Option<Vec<u8>>,
    pub info: Pairs,
    /// Communicators that were made from it by all members together.
    pub made: u64,
    /// Communicators that were made from it by some members, by who they are and the tag.
    pub made_by: BTreeMap<(u128, i32), u64>,
    /// Persistent collective operations that were made on it.
    pub operations: Operations,
    /// The application has freed it; it lives on for what is pending.
    pub freed: bool,
}

/// `MPI_COMM_WORLD`.
pub fn world() -> *mut Object {
    abi::predefined(HandleKind::Communicator, 257)
}

/// `MPI_COMM_SELF`.
pub fn alone() -> *mut Object {
    abi::predefined(HandleKind::Communicator, 258)
}

/// `MPI_COMM_NULL`.
pub fn null() -> *mut Object {
    abi::predefined(HandleKind::Communicator, 256)
}

/// The body of a live communicator; `None` for the null one.
///
/// # Safety
/// `object` must be a live communicator.
pub unsafe fn body<'a>(object: *mut Object) -> Option<&'a Body> {
    // SAFETY: the body is a box of `finish`.
    unsafe { (*object).body.cast::<Body>().as_ref() }
}

/// A communicator that a function may be given, with its body.
///
/// # Safety
/// `object` must be null or a handle.
pub unsafe fn usable<'a>(object: *mut Object) -> Outcome<(*mut Object, &'a Body)> {
    // SAFETY: the caller's handle.
    unsafe {
        let object = live(object, HandleKind::Communicator)?;
        Ok((object, body(object).ok_or(class::COMM)?))
    }
}

/// The clock cell of the set of a communicator's members, for what may outlive the communicator.
///
/// # Safety
/// `object` must be a live communicator.
pub unsafe fn group_clock(object: *mut Object) -> u32 {
    // SAFETY: the caller's communicator.
    unsafe { body(object).map_or((*object).clock, |body| body.group_clock) }
}

/// Whether the members agree in a restart which of their pending operations are begun again: those of one
/// group within this world do.
///
/// # Safety
/// `object` must be a live communicator.
#[inline]
pub unsafe fn members_agree(object: *mut Object) -> bool {
    // SAFETY: the caller's communicator.
    let members = unsafe { body(object).and_then(|body| body.members.as_ref()) };
    members.is_some_and(|members| members.remote.is_none())
}

/// The union of both groups, ascending.
fn all_of(members: &Members) -> Vec<u32> {
    let remote = members.remote.iter().flat_map(|remote| remote.iter());
    ascending(members.local.iter().chain(remote).map(|rank| *rank as u32))
}

/// The cell of the clock of one persistent operation on a communicator; `None` where not all members are of this world.
///
/// # Safety
/// Inside a stub.
pub unsafe fn clock_within(body: &Body, number: u64) -> Option<Result<u32, Collision>> {
    let members = body.members.as_ref()?;
    let within = body.identity.operation(number);
    // SAFETY: the caller's.
    Some(unsafe { collective::cell_of(within, &all_of(members)) })
}

/// Gives an object, new or predefined, its body and what is answered from the object itself.
///
/// # Safety
/// `object` must be a communicator without a body; inside a stub.
unsafe fn equip(
    object: *mut Object,
    mut body: Body,
    rank: i32,
    sizes: (i32, Option<i32>),
) -> Outcome {
    // SAFETY: the caller's object.
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
        // The direct way is for communicators whose members count nonblocking operations alike.
        let alike = body
            .members
            .as_ref()
            .is_some_and(|members| members.remote.is_none());
        if alike && !two_phase::chosen() {
            (*object).cell = collective::cell((*object).clock);
        }
        (*object).rank = rank;
        (*object).size = sizes.0;
        (*object).body = Box::into_raw(Box::new(body)).cast();
        fortran::mirror_groups(object, sizes.0, sizes.1);
        Ok(())
    }
}

/// Called once when MPI has started.
///
/// # Safety
/// Inside a stub, on the one thread that is inside MPI.
pub unsafe fn initialise() -> Outcome {
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
            let notes = SpinLock::new(Notes {
                info: info.clone(),
                ..Notes::default()
            });
            let sizes = (local.len() as i32, None);
            let body = Body {
                identity: Identity::predefined(number),
                members: Some(Members {
                    local,
                    remote: None,
                }),
                topology: None,
                group_clock: 0,
                notes,
            };
            equip(object, body, rank, sizes)?;
        }
        control::make()
    }
}

/// Called once when MPI is about to end: from here on nothing is answered without it.
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

/// Runs `look` on every live communicator, the predefined ones first, then in order of creation; those that the
/// application has freed but that are still held are among them.
pub fn for_each_live(mut look: impl FnMut(*mut Object)) {
    for object in [world(), alone()] {
        // SAFETY: predefined objects; without a body before MPI has started.
        if unsafe { !(*object).body.is_null() } {
            look(object);
        }
    }
    for object in handle::live(HandleKind::Communicator) {
        look(object);
    }
}

/// Ends a communicator that nobody holds any more, in the lower half too.
///
/// # Safety
/// `object` must be a live communicator of the slab; inside a stub.
pub unsafe fn end(object: *mut Object) {
    // SAFETY: the caller's object; the word is ours.
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
            match body.members {
                Some(_) => {
                    clocks::retire_all(&mut body.notes.lock().operations);
                    collective::retire((*object).clock);
                }
                None => refuse::gone(refuse::Reason::DynamicProcess),
            }
        }
    }
}

/// Gives a new communicator the topology that was learnt only after it was made.
///
/// # Safety
/// `object` must be a live communicator that no other thread knows yet.
pub unsafe fn set_topology(object: *mut Object, topology: Topology) {
    // SAFETY: the caller's communicator.
    unsafe {
        if let Some(body) = (*object).body.cast::<Body>().as_mut() {
            body.topology = Some(topology);
        }
    }
}
