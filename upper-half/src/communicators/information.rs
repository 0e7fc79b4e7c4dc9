//! Hints on communicators, kept above the crossing.
//!
//! A communicator has the hints that the real MPI knows, with its defaults, and those that it was duplicated
//! with. A call that sets any other hint is ignored, as in Open MPI.

use std::ffi::c_int;

use super::{usable, world};
use crate::ground::abi::{InfoHandle, PlaceOf};
use crate::ground::crossing;
use crate::ground::lock::SpinLock;
use crate::ground::object::{Comm, Info};
use crate::objects::errhandler::run;
use crate::objects::info;
use crate::objects::info::pairs::Pairs;
use crate::objects::outcome::{MpiResult, check, give};

static DEFAULT: SpinLock<Option<Pairs>> = SpinLock::new(None);

/// The hints that every communicator has, as the lower half says of `MPI_COMM_WORLD`; asked for once.
pub fn default_info() -> MpiResult<Pairs> {
    let known = DEFAULT.lock().clone();
    if let Some(known) = known {
        return Ok(known);
    }
    let mut word = 0;
    // SAFETY: the callers are inside stubs; the info is ours until it is freed.
    let pairs = unsafe {
        let world = (*world()).lower;
        check(crossing::cross(|d| (d.comm_get_info)(world, &raw mut word)))?;
        let object = info::adopt(word)?;
        let pairs = info::pairs_of(object);
        crate::ground::handle::release(object);
        pairs?
    };
    *DEFAULT.lock() = Some(pairs.clone());
    Ok(pairs)
}

/// `MPI_Comm_get_info`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_get_info(comm: Comm, place: PlaceOf<InfoHandle>) -> c_int {
    // SAFETY: `usable` looks at the communicator, and `give` refuses a null place; the hints are copied under their lock.
    unsafe {
        run(comm, c"MPI_Comm_get_info", || {
            let (_, body) = usable(comm)?;
            let pairs = body.notes.lock().info.clone();
            give(place, info::create(pairs))
        })
    }
}

/// `MPI_Comm_set_info`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_set_info(comm: Comm, hints: Info) -> c_int {
    // SAFETY: `usable` looks at the communicator and `pairs_of` at the info; the hints are changed under their lock.
    unsafe {
        run(comm, c"MPI_Comm_set_info", || {
            let (_, body) = usable(comm)?;
            let pairs = info::pairs_of(hints)?;
            let mut notes = body.notes.lock();
            for (key, value) in pairs.iter() {
                notes.info.update(key, value);
            }
            Ok(())
        })
    }
}
