//! `MPI_Win_allocate_shared`.

use std::ffi::{c_int, c_void};

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::body::{Body, Flavor, body};
use super::make::{Wanted, carried, make};
use super::raw::{make as make_raw, word_of};
use super::shared;
use crate::ground::abi::{self, Aint, PlaceOf, WinHandle};
use crate::ground::crossing;
use crate::ground::object::{Comm, Info};
use crate::objects::errhandler::run;
use crate::objects::outcome::{Outcome, check, class};
use crate::objects::{communicator, info};
use crate::operations::clock::collective;

/// `MPI_Win_allocate_shared`. Whether the members can share memory says the real MPI, which is asked for none.
///
/// # Safety
/// As the MPI function: `base` is the address of a pointer.
pub unsafe fn win_allocate_shared(
    size: Aint,
    unit: c_int,
    hints: Info,
    comm: Comm,
    base: *mut c_void,
    place: PlaceOf<WinHandle>,
) -> c_int {
    // SAFETY: handles are checked before they are used.
    unsafe {
        run(comm, c"MPI_Win_allocate_shared", || {
            let (comm, known) = communicator::usable(comm)?;
            word_of(hints)?;
            if place.is_null() {
                return Err(class::WIN);
            }
            let call = |size, at, d: &'static Dispatch, word| {
                let hints = abi::word(HandleKind::Info, hints);
                (d.win_allocate_shared)(size, unit, hints, (*comm).lower, at, word)
            };
            let Some(members) = carried(known).filter(|_| !base.is_null()) else {
                place.set(make_raw(comm, |d, word| call(size, base, d, word))?);
                return Ok(());
            };
            try_once(comm, |d, word| {
                let mut nowhere: *mut c_void = std::ptr::null_mut();
                call(size.min(0), (&raw mut nowhere).cast(), d, word)
            })?;
            let wanted = Wanted {
                flavor: Flavor::Shared,
                base: 0,
                size,
                unit,
            };
            let pairs = info::pairs_of(hints)?;
            let Ok(window) = make(comm, known, members, pairs, &wanted) else {
                // The real MPI has a way of its own where processes share memory; where there is one process no other.
                place.set(make_raw(comm, |d, word| call(size, base, d, word))?);
                return Ok(());
            };
            let own = body(window).map_or(0, |body| body.base);
            base.cast::<usize>().write(own);
            place.set(window);
            Ok(())
        })
    }
}

/// Makes a window of the real MPI's, and frees it.
///
/// # Safety
/// As [`make_raw`].
unsafe fn try_once(comm: Comm, call: impl FnOnce(&'static Dispatch, *mut Word) -> i32) -> Outcome {
    // SAFETY: the caller's communicator; nobody has the window.
    unsafe {
        collective::clocked_once((*comm).clock, || {
            let mut word = 0;
            let place = &raw mut word;
            check(crossing::cross(|d| call(d, place)))?;
            check(crossing::cross(|d| (d.win_free)(place)))
        })
    }
}

/// Makes the memory of a window whose members share it.
///
/// # Safety
/// Inside a stub, MPI running; `on` must be a communicator of the lower half's, of the window's members.
pub unsafe fn share(on: Word, body: &mut Body) -> Outcome {
    if body.flavor != Flavor::Shared {
        return Ok(());
    }
    let me = body.own_place().ok_or(class::INTERN)?;
    let hints = body.notes.lock().hints.clone();
    // SAFETY: the caller's.
    let shared =
        unsafe { shared::allocate(on, &body.members, me, (body.size, body.unit), &hints)? };
    body.base = shared.part(Some(me)).map_or(0, |(address, ..)| address);
    body.shared = Some(shared);
    Ok(())
}
