//! Windows at the still point, and after a restart.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use stillpoint_refusals::Code;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::body::{Body, Flavor, body};
use super::groups;
use super::memory::Memory;
use super::open::open_again;
use super::passive::flush_all;
use super::uncarried::below;
use crate::communicators;
use crate::ground::object::{Object, Win};
use crate::ground::{crossing, handle};
use crate::objects::outcome::{MpiResult, check};
use crate::objects::rehearsal_outcome::{Tried, differs, failed};
use crate::objects::{attribute, errhandler, group};
use crate::operations::clock::collective;

/// The windows that are carried, and exist in the lower half.
fn carried<'a>() -> impl Iterator<Item = (Win, &'a Body)> {
    let windows = handle::live(HandleKind::Window).into_iter();
    // SAFETY: `live` gives live windows.
    let known = windows.filter_map(|window| Some((window, unsafe { body(window) }?)));
    known.filter(|(_, body)| body.locks() != 0)
}

/// Takes in the messages of windows. Returns whether there were any.
///
/// # Safety
/// Parked on the driver thread, every other thread stopped.
pub unsafe fn pull() -> bool {
    carried().fold(false, |any, (_, body)| {
        // SAFETY: the caller is parked on the driver thread, and every other thread is stopped.
        any | unsafe { groups::take_in(body) }.unwrap_or(false)
    })
}

/// Completes the operations that this rank has begun on its windows. The other ranks only have to make progress, as they do while they are parked. Returns
/// whether all is complete.
///
/// # Safety
/// Parked on the driver thread, every other thread stopped.
pub unsafe fn settle() -> bool {
    // SAFETY: the caller is parked on the driver thread; `carried` gives live windows with their own bodies.
    carried().all(|(window, body)| unsafe { flush_all(window, body) }.is_ok())
}

/// Compares the recipe of each window with the real MPI's answers about it.
///
/// # Safety
/// Parked on the driver thread, every other thread stopped.
pub unsafe fn rehearse() -> Tried {
    for (window, body) in carried() {
        let mut word = 0;
        let at = &raw mut word;
        // SAFETY: a live window; the group is ours until it is read.
        unsafe {
            let what = format!("window {}", (*window).id);
            let members = below(window, |d, window| (d.win_get_group)(window, at))
                .and_then(|()| group::read_and_free(word));
            if members.map_err(|error| failed(&what, error))?.as_deref() != Some(&*body.members) {
                return Err(differs(&what));
            }
        }
    }
    Ok(())
}

/// Makes all windows again, in the order of their identities, which is the same on all ranks, and takes again the locks that this rank
/// holds. No rank goes on before all members have theirs.
///
/// # Safety
/// Inside MPI, on the one thread that runs; communicators are there.
pub unsafe fn rebuild() -> Result<(), (Code, Cow<'static, str>, i32)> {
    let mut windows: Vec<(Win, &Body)> = carried().collect();
    windows.sort_by_key(|(_, body)| body.identity);
    for (window, body) in windows {
        // SAFETY: inside; words are those of this launch.
        unsafe {
            let on = communicators::of_ranks(&body.members, body.identity.tag())
                .map_err(|error| (Code::OtherLibrary, "a window's communicator".into(), error))?;
            make_again(on, window, body).map_err(|error| {
                let (code, what) = what(body);
                (code, what, error)
            })?;
        }
    }
    Ok(())
}

/// The code and the words for a window, in case it could not be made again.
fn what(body: &Body) -> (Code, Cow<'static, str>) {
    match &body.memory {
        Memory::Mapped(mapped) if body.flavor == Flavor::Shared => (Code::SeveralHosts, format!(
            "the {} bytes that ranks {:?} share in a window (MPI_Win_allocate_shared: they need one host, with room for it)",
            mapped.content().len(),
            &body.members[..]
        )
        .into()),
        _ => (Code::OtherLibrary, "a window".into()),
    }
}

/// # Safety
/// As [`rebuild`].
unsafe fn make_again(on: Word, window: Win, body: &Body) -> MpiResult {
    // SAFETY: `on` is the members' communicator in the lower half of this restart, by the caller's promise; the window is alive and has none there yet.
    unsafe {
        (*window).lower = open_again(on, body)?;
        lock_again(body)?;
        check(crossing::cross(|d| (d.barrier)(on)))
    }
}

/// # Safety
/// As [`rebuild`].
unsafe fn lock_again(body: &Body) -> MpiResult {
    let (held, all) = {
        let notes = body.notes.lock();
        (notes.held.clone(), notes.all)
    };
    let locks = body.locks();
    // SAFETY: inside; words are those of this launch.
    unsafe {
        for it in held {
            check(crossing::cross(|d| {
                (d.win_lock)(it.kind, it.rank, it.assertion, locks)
            }))?;
            check(crossing::cross(|d| (d.win_flush)(it.rank, locks)))?;
        }
        if let Some(assertion) = all {
            check(crossing::cross(|d| (d.win_lock_all)(assertion, locks)))?;
            check(crossing::cross(|d| (d.win_flush_all)(locks)))?;
        }
    }
    Ok(())
}

/// Ends a window that has no holder any more. The lower half has freed it before.
///
/// # Safety
/// `window` must be a live window of the slab; inside a stub.
pub unsafe fn end(window: *mut Object) {
    // SAFETY: the body is a box of `make`; memory of the window's goes with it.
    unsafe {
        attribute::forget(window);
        errhandler::forget(window);
        let body = (*window).body.cast::<Body>();
        (*window).body = std::ptr::null_mut();
        if body.is_null() {
            return;
        }
        let body = Box::from_raw(body);
        collective::retire(body.clock);
        debug_assert_eq!(body.locks.load(Ordering::Relaxed), 0);
    }
}
