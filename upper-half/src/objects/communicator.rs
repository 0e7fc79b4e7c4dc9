//! A communicator's facts: its members, its identity, and the things that hang on it.
//!
//! The code that makes, frees and remakes communicators is further up (`crate::communicators`). Clocks and requests, which lie between, need
//! no more than this.

pub mod cartesian;
pub mod identity;
mod operations;
mod topology;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stillpoint_clock::group::ascending;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

pub use identity::Identity;
pub use operations::{Clock, Operations};
pub use topology::{Distributed, Graph, Topology};

use crate::ground::hindrances::{Alive, Reason};
use crate::ground::lock::SpinLock;
use crate::ground::object::Object;
use crate::ground::{abi, handle};
use crate::objects::info::pairs::Pairs;
use crate::objects::outcome::{MpiResult, class, live};

/// The members of a communicator, in world ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// The (local) group, in rank order.
    pub local: Arc<[i32]>,
    /// The remote group of an intercommunicator.
    pub remote: Option<Arc<[i32]>>,
}

/// The data of a communicator.
pub struct Body {
    pub identity: Identity,
    /// Absent if there are processes of other worlds: such a communicator is never in an image.
    pub members: Option<Members>,
    /// Present if the communicator is never in an image.
    _foreign: Option<Alive>,
    pub topology: Option<Topology>,
    /// The clock cell of the set of members; the communicator's own is in its object.
    pub group_clock: u32,
    /// The number of the session that it comes from, 0 for none.
    pub session: u32,
    pub notes: SpinLock<Notes>,
}

/// Communicators that some members of another have made with one tag. They are made one after the other, even if other threads make others meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct MadeBySome {
    pub times: u64,
    /// The clock that counts them.
    pub cell: u32,
}

/// The part of a communicator that changes in its life.
#[derive(Default)]
pub struct Notes {
    pub name: Option<Vec<u8>>,
    pub info: Pairs,
    /// Communicators that were made from it by all members together.
    pub made: u64,
    /// Communicators that were made from it by some members, by these members and the tag.
    pub made_by: BTreeMap<(u128, i32), MadeBySome>,
    /// Persistent collective operations that were made on it.
    pub operations: Operations,
    /// The application has freed it; it lives on for pending operations.
    pub freed: bool,
}

impl Body {
    /// The body of a new communicator, without a session and its clock. If the communicator has processes of other worlds, the body forbids a checkpoint as
    /// long as it lives.
    pub fn new(
        identity: Identity,
        members: Option<Members>,
        topology: Option<Topology>,
        info: Pairs,
    ) -> Self {
        Self {
            identity,
            _foreign: (members.is_none()).then(|| Alive::new(Reason::DynamicProcess)),
            members,
            topology,
            group_clock: 0,
            session: 0,
            notes: SpinLock::new(Notes {
                info,
                ..Notes::default()
            }),
        }
    }
}

/// The communicator of all ranks that only this library knows; 0 before it is made.
static CONTROL: AtomicU64 = AtomicU64::new(0);

/// The lower half's word for it.
pub fn control() -> Word {
    CONTROL.load(Ordering::Relaxed)
}

/// Gives it another word, and returns the old one.
pub fn set_control(word: Word) -> Word {
    CONTROL.swap(word, Ordering::Relaxed)
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

/// The body of a live communicator, or `None` for the null one.
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
pub unsafe fn usable<'a>(object: *mut Object) -> MpiResult<(*mut Object, &'a Body)> {
    // SAFETY: `object` is null or a handle, by the caller's promise; `live` looks at it before its body is read.
    unsafe {
        let object = live(object, HandleKind::Communicator)?;
        Ok((object, body(object).ok_or(class::COMM)?))
    }
}

/// The clock cell of the set of a communicator's members, for anything that may outlive the communicator.
///
/// # Safety
/// `object` must be a live communicator.
pub unsafe fn group_clock(object: *mut Object) -> u32 {
    // SAFETY: `object` is a live communicator, by the caller's promise.
    unsafe { body(object).map_or((*object).clock, |body| body.group_clock) }
}

/// Whether the members agree in a restart on the pending operations that are begun again. Members of one
/// group within this world do.
///
/// # Safety
/// `object` must be a live communicator.
#[inline]
pub unsafe fn members_agree(object: *mut Object) -> bool {
    // SAFETY: `object` is a live communicator, by the caller's promise; its members never change.
    let members = unsafe { body(object).and_then(|body| body.members.as_ref()) };
    members.is_some_and(|members| members.remote.is_none())
}

/// Whether a communicator is known to have two groups.
///
/// # Safety
/// `object` must be a live communicator.
pub unsafe fn is_inter(object: *mut Object) -> bool {
    // SAFETY: `object` is a live communicator, by the caller's promise; its members never change.
    let members = unsafe { body(object).and_then(|body| body.members.as_ref()) };
    members.is_some_and(|members| members.remote.is_some())
}

/// The union of both groups, ascending.
pub fn all_of(members: &Members) -> Vec<u32> {
    let remote = members.remote.iter().flat_map(|remote| remote.iter());
    ascending(members.local.iter().chain(remote).map(|rank| *rank as u32))
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

/// As [`for_each_live`], while other threads may free communicators: each is held during the look at it.
///
/// # Safety
/// Inside a stub.
pub unsafe fn for_each_held(mut look: impl FnMut(*mut Object)) {
    for_each_live(|object| {
        // SAFETY: an object, alive a moment ago.
        unsafe {
            if handle::retain_if_alive(object, HandleKind::Communicator) {
                look(object);
                handle::release(object);
            }
        }
    });
}

/// Notes the session that a new communicator comes from.
///
/// # Safety
/// As [`set_topology`].
pub unsafe fn set_session(object: *mut Object, session: u32) {
    // SAFETY: no other thread knows the communicator yet, by the caller's promise, so nothing else refers to its body.
    unsafe {
        if let Some(body) = (*object).body.cast::<Body>().as_mut() {
            body.session = session;
        }
    }
}

/// Gives a new communicator a topology that became known only after it was made.
///
/// # Safety
/// `object` must be a live communicator that no other thread knows yet.
pub unsafe fn set_topology(object: *mut Object, topology: Topology) {
    // SAFETY: no other thread knows the communicator yet, by the caller's promise, so its body may be changed.
    unsafe {
        if let Some(body) = (*object).body.cast::<Body>().as_mut() {
            body.topology = Some(topology);
        }
    }
}
