//! A window's counterparts in the lower half: made in the beginning and after a restart, and given up.

use std::ffi::{CString, c_void};
use std::sync::atomic::Ordering;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::allocation::{allocate, allocate_again};
use super::body::{Body, Flavor, NO_CHECK};
use super::memory::Memory;
use crate::ground::object::Info;
use crate::ground::{abi, crossing, handle};
use crate::objects::info;
use crate::objects::info::pairs::Pairs;
use crate::objects::outcome::{MpiResult, check};

/// Hints that the lower half does not get: that a window is never locked - ours always is -, and that its memory has one address on all ranks. The
/// lower half does not decide on the application's addresses.
const NOT_BELOW: [&[u8]; 2] = [b"no_locks", b"symheap_required"];

/// A window's hints, as the lower half gets them.
struct Hints(Info);

impl Hints {
    /// # Safety
    /// Inside a stub.
    unsafe fn of(body: &Body) -> MpiResult<(Hints, Word)> {
        let mut below = Pairs::new();
        let hints = body.notes.lock().hints.clone();
        for (key, value) in (hints.iter()).filter(|(key, _)| !NOT_BELOW.contains(key)) {
            below.set(key, value);
        }
        let hints = Hints(info::create(below));
        // SAFETY: the info was made just now, and `Hints` ends it when it is dropped.
        let word = unsafe { info::word(hints.0)? };
        Ok((hints, word))
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        // SAFETY: a live info, which is ours.
        unsafe { handle::release(self.0) };
    }
}

/// Makes the lower half's two windows of a new window. Collective over the members.
///
/// # Safety
/// Inside a stub; `on` must be a communicator of the lower half's, and nothing of the body's be in the lower half.
pub unsafe fn open(on: Word, body: &mut Body) -> MpiResult<Word> {
    // SAFETY: `on` is the members' communicator below, and nothing of the body's is there yet, by the caller's promise; the hints live until the windows are
    // made.
    unsafe {
        let (_hints, word) = Hints::of(body)?;
        let data = match body.flavor {
            Flavor::Create | Flavor::Dynamic => of_own_memory(on, word, body)?,
            Flavor::Allocate | Flavor::Shared => allocate(on, word, body)?,
        };
        complete(on, data, body)?;
        Ok(data)
    }
}

/// Makes them again in a restart.
///
/// # Safety
/// As [`open`].
pub unsafe fn open_again(on: Word, body: &Body) -> MpiResult<Word> {
    // SAFETY: `on` is the members' communicator in the new lower half, by the caller's promise; the body's memory is in place again.
    unsafe {
        let (_hints, word) = Hints::of(body)?;
        let data = match &body.memory {
            Memory::Given | Memory::Block(..) => of_own_memory(on, word, body)?,
            Memory::Mapped(mapped) => allocate_again(on, word, body, mapped)?,
        };
        complete(on, data, body)?;
        Ok(data)
    }
}

/// A window of memory that the lower half gets from us.
///
/// # Safety
/// As [`open`].
pub unsafe fn of_own_memory(on: Word, hints: Word, body: &Body) -> MpiResult<Word> {
    let mut data = 0;
    let base = std::ptr::with_exposed_provenance_mut(body.base);
    let (size, unit) = (body.size, body.unit);
    // SAFETY: `on` and `hints` are words of the lower half's, by the caller's promise; the body's memory is at `base` as long as the window exists.
    unsafe {
        check(crossing::cross(|d| match body.flavor {
            Flavor::Dynamic => (d.win_create_dynamic)(hints, on, &raw mut data),
            _ => (d.win_create)(base, size, unit, hints, on, &raw mut data),
        }))?;
    }
    Ok(data)
}

/// The steps that both ways have in common: the window that is locked, and the settings of the one with the data.
unsafe fn complete(on: Word, data: Word, body: &Body) -> MpiResult {
    let mut locks = 0;
    let (name, attached) = {
        let notes = body.notes.lock();
        (notes.name.clone(), notes.attached.clone())
    };
    // SAFETY: inside; the memory is the application's.
    unsafe {
        let none = (*abi::predefined(HandleKind::Info, 304)).lower;
        let returning = (*abi::predefined(HandleKind::Errhandler, 323)).lower;
        // Open MPI's way for its own memory, if the data is in such memory too: between processes of one host, its locks are faster.
        let is_its_memory = matches!(body.memory, Memory::Mapped(_));
        let mut nowhere: *mut c_void = std::ptr::null_mut();
        let place = (&raw mut nowhere).cast();
        check(crossing::cross(|d| match is_its_memory {
            true => (d.win_allocate)(0, 1, none, on, place, &raw mut locks),
            false => (d.win_create)(nowhere, 0, 1, none, on, &raw mut locks),
        }))?;
        crossing::cross(|d| (d.win_set_errhandler)(data, returning));
        crossing::cross(|d| (d.win_set_errhandler)(locks, returning));
        check(crossing::cross(|d| (d.win_lock_all)(NO_CHECK, data)))?;
        for (base, size) in attached {
            let base = std::ptr::with_exposed_provenance_mut(base);
            check(crossing::cross(|d| (d.win_attach)(data, base, size)))?;
        }
        if let Some(name) = name.and_then(|name| CString::new(name).ok()) {
            let text = name.as_ptr();
            crossing::cross(|d| (d.win_set_name)(data, text));
        }
    }
    body.communicator.store(on, Ordering::Relaxed);
    body.locks.store(locks, Ordering::Relaxed);
    Ok(())
}

/// Closes what [`open`] has made. Collective over the members.
///
/// # Safety
/// Inside a stub; `data` must be the window's word.
pub unsafe fn close(mut data: Word, body: &Body) -> MpiResult {
    let mut locks = body.locks.swap(0, Ordering::Relaxed);
    let mut on = body.communicator.swap(0, Ordering::Relaxed);
    // SAFETY: the words are ours, and used no more.
    unsafe {
        check(crossing::cross(|d| (d.win_unlock_all)(data)))?;
        check(crossing::cross(|d| (d.win_free)(&raw mut data)))?;
        check(crossing::cross(|d| (d.win_free)(&raw mut locks)))?;
        if let Memory::Mapped(mapped) = &body.memory {
            let mut lender = mapped.lend(0);
            if lender != 0 {
                check(crossing::cross(|d| (d.win_free)(&raw mut lender)))?;
            }
        }
        crossing::cross(|d| (d.comm_free)(&raw mut on));
    }
    Ok(())
}
