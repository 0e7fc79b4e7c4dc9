//! Freeing communicators.

use std::ffi::{CStr, c_int};

use stillpoint_wrappers::neutral::Word;

use super::{Body, null, usable};
use crate::ground::abi::{self, CommHandle, PlaceOf};
use crate::ground::crossing::cross;
use crate::ground::handle;
use crate::ground::object::{Comm, Object};
use crate::objects::attribute;
use crate::objects::errhandler::run;
use crate::objects::outcome::{MpiResult, check, class};
#[cfg(not(application = "openmpi"))]
use crate::operations::buffered;
use crate::operations::clock::{collective, two_phase};
use crate::operations::request;

/// Takes the application's handle away: attributes are deleted, the clock counts.
///
/// # Safety
/// As the MPI functions.
unsafe fn give_up<'a>(place: PlaceOf<CommHandle>) -> MpiResult<(*mut Object, &'a Body)> {
    // SAFETY: the place is not null when it is read, so MPI demands a handle there, and `usable` looks at it; nothing is locked, so delete functions may call
    // MPI.
    unsafe {
        if place.is_null() {
            return Err(class::COMM);
        }
        let (comm, body) = usable(place.get())?;
        if (*comm).predefined() {
            return Err(class::COMM);
        }
        attribute::delete_all(comm).map_err(abi::error_to_neutral)?;
        Ok((comm, body))
    }
}

/// The communicator on which a free raises its error.
///
/// # Safety
/// `place` must be null or hold a handle.
unsafe fn named(place: PlaceOf<CommHandle>) -> Comm {
    if place.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the place is not null here, so it holds a handle, by the caller's promise.
    unsafe { place.get() }
}

/// `MPI_Comm_free`: pending work on the communicator still gets through; the lower half frees it when
/// nothing is pending any more.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_free(place: PlaceOf<CommHandle>) -> c_int {
    // SAFETY: `give_up` looks at the place and the handle; the application's holder of the communicator ends here, and no code uses it afterwards.
    unsafe {
        run(named(place), c"MPI_Comm_free", || {
            let (comm, body) = give_up(place)?;
            #[cfg(not(application = "openmpi"))]
            buffered::is_freed(comm);
            collective::bind_all(comm);
            collective::begin(body.group_clock);
            collective::note_given_up(body.group_clock, body.identity.0);
            body.notes.lock().freed = true;
            two_phase::freed(comm);
            place.set(null());
            handle::release(comm);
            Ok(())
        })
    }
}

/// `MPI_Comm_disconnect`: waits for all members.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_disconnect(place: PlaceOf<CommHandle>) -> c_int {
    // SAFETY: `give_up` looks at the place and the handle; the communicator is held until its last use here, and its word is the lower half's.
    unsafe {
        #[cfg(not(application = "openmpi"))]
        buffered::ends(buffered::BufferOwner::Communicator(named(place)));
        run(named(place), NAME, || {
            let (comm, body) = give_up(place)?;
            let clock = body.group_clock;
            collective::bind_all(comm);
            collective::note_given_up(clock, body.identity.0);
            body.notes.lock().freed = true;
            two_phase::freed(comm);
            place.set(null());
            request::light::unfold_all();
            if Object::held_by(comm) > 1 {
                // Something is pending that the application has not asked about. All members meet, and the lower
                // half frees the communicator later.
                let error =
                    collective::clocked_once(clock, || cross(|d| (d.barrier)((*comm).lower)));
                handle::release(comm);
                return check(error);
            }
            let place: *mut Word = &raw mut (*comm).lower;
            check(collective::clocked_once(clock, || {
                cross(|d| (d.comm_disconnect)(place))
            }))?;
            (*comm).lower = 0;
            handle::release(comm);
            Ok(())
        })
    }
}

const NAME: &CStr = c"MPI_Comm_disconnect";
