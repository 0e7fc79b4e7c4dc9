//! Questions about windows, and settings of them.

use std::ffi::{CString, c_char, c_int, c_void};

use stillpoint_wrappers::neutral::constants::PROC_NULL;

use super::body::{Body, Flavor, MemberPart, usable};
use super::uncarried::{below, word_of};
use crate::ground::abi::{self, Aint, GroupHandle, InfoHandle, PlaceOf};
use crate::ground::handle;
use crate::ground::object::{Info, Win};
use crate::objects::datatype::{give_name, name_below, take_name};
use crate::objects::errhandler::run;
use crate::objects::outcome::{MpiResult, class, give};
use crate::objects::{group, info};
use crate::operations::clock::collective;

/// `MPI_Win_get_group`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_get_group(window: Win, place: PlaceOf<GroupHandle>) -> c_int {
    // SAFETY: `usable` looks at the window; the place is not null when it is written; a group from the lower half is ours.
    unsafe {
        run(window, c"MPI_Win_get_group", || {
            let (window, body) = usable(window)?;
            if place.is_null() {
                return Err(class::ARG);
            }
            if let Some(body) = body {
                return give(place, group::create(body.members.clone()));
            }
            let mut new = 0;
            let at = &raw mut new;
            below(window, |d, word| (d.win_get_group)(word, at))?;
            give(place, group::adopt(new)?)
        })
    }
}

/// The part of a window's member that this process reaches by loads and stores. If the members share no memory, only its own part.
fn reached(body: &Body, rank: i32) -> MpiResult<MemberPart> {
    let nothing = MemberPart {
        bytes: 0,
        unit: body.unit,
        at: 0,
    };
    if rank == PROC_NULL {
        let first = body.parts.iter().find(|part| part.bytes > 0);
        return Ok(first.copied().unwrap_or(nothing));
    }
    let place = usize::try_from(rank).map_err(|_| class::RANK)?;
    if place >= body.members.len() {
        return Err(class::RANK);
    }
    let own = MemberPart {
        bytes: body.size,
        unit: body.unit,
        at: body.base,
    };
    Ok(match body.parts.get(place) {
        Some(part) => *part,
        None if body.own_place() == Some(place) => own,
        None => nothing,
    })
}

/// `MPI_Win_shared_query`: an answer that the application has been given stays, whatever library lies below. The library decides whether the application may
/// ask this of a window whose members share no memory.
///
/// # Safety
/// As the MPI function: `base` is the address of a pointer.
pub unsafe fn win_shared_query(
    window: Win,
    rank: c_int,
    size: *mut Aint,
    unit: *mut c_int,
    base: *mut c_void,
) -> c_int {
    // SAFETY: `usable` looks at the window; MPI demands writable places, and that `base` is the address of a pointer.
    unsafe {
        run(window, c"MPI_Win_shared_query", || {
            let (window, body) = usable(window)?;
            let rank = abi::rank_to_neutral(rank);
            if body.is_none_or(|body| body.flavor != Flavor::Shared) {
                below(window, |d, word| {
                    (d.win_shared_query)(word, rank, size, unit, base)
                })?;
            }
            if let Some(body) = body {
                let part = reached(body, rank)?;
                give(size, part.bytes)?;
                give(unit, part.unit)?;
                give(base.cast::<usize>(), part.at)?;
            }
            Ok(())
        })
    }
}

/// `MPI_Win_get_info`: the hints that the real MPI knows. A hint that the application has given has the application's value, even if the real MPI was told
/// another one.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_get_info(window: Win, place: PlaceOf<InfoHandle>) -> c_int {
    // SAFETY: `usable` looks at the window; the place is not null when it is written; the info from the lower half is ours, and is let go of.
    unsafe {
        run(window, c"MPI_Win_get_info", || {
            let (window, body) = usable(window)?;
            if place.is_null() {
                return Err(class::ARG);
            }
            let mut new = 0;
            let at = &raw mut new;
            below(window, |d, word| (d.win_get_info)(word, at))?;
            let known = info::adopt(new)?;
            let Some(body) = body else {
                return give(place, known);
            };
            let pairs = info::pairs_of(known);
            handle::release(known);
            let mut pairs = pairs?;
            for (key, value) in body.notes.lock().hints.iter() {
                pairs.update(key, value);
            }
            give(place, info::create(pairs))
        })
    }
}

/// `MPI_Win_set_info`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_set_info(window: Win, hints: Info) -> c_int {
    // SAFETY: `usable` looks at the window, and `word_of` or `pairs_of` at the info.
    unsafe {
        run(window, c"MPI_Win_set_info", || {
            let (window, body) = usable(window)?;
            let Some(body) = body else {
                let hints = word_of(hints)?;
                return below(window, |d, word| (d.win_set_info)(word, hints));
            };
            let pairs = info::pairs_of(hints)?;
            let mut notes = body.notes.lock();
            for (key, value) in pairs.iter() {
                notes.hints.set(key, value);
            }
            Ok(())
        })
    }
}

/// `MPI_Win_get_name`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_get_name(window: Win, text: *mut c_char, length: *mut c_int) -> c_int {
    // SAFETY: `valid` looks at the window; MPI demands room for its longest name at `text`, and `give_name` refuses null places.
    unsafe {
        run(window, c"MPI_Win_get_name", || {
            if !handle::valid(window, stillpoint_wrappers::gate::HandleKind::Window) {
                return Err(class::WIN);
            }
            if let Some(name) = super::body(window).and_then(|it| it.notes.lock().name.clone()) {
                return give_name(&name, text, length);
            }
            let word = (*window).lower;
            let name = name_below(|d, text, length| (d.win_get_name)(word, text, length))?;
            give_name(&name, text, length)
        })
    }
}

/// `MPI_Win_set_name`: the lower half is told too, for its error messages.
///
/// # Safety
/// As the MPI function.
pub unsafe fn win_set_name(window: Win, text: *const c_char) -> c_int {
    // SAFETY: `usable` looks at the window; MPI demands that `text` is a C string, and `for_below` outlives the call.
    unsafe {
        run(window, c"MPI_Win_set_name", || {
            let (window, body) = usable(window)?;
            let name = take_name(text)?;
            let for_below = CString::new(name.clone()).map_err(|_| class::ARG)?;
            let text = for_below.as_ptr();
            below(window, |d, word| (d.win_set_name)(word, text))?;
            if let Some(body) = body {
                collective::call_clock(body.clock, &name);
                body.notes.lock().name = Some(name);
            }
            Ok(())
        })
    }
}
