//! A window's counterparts in the lower half: how they are made, in the beginning and after a restart, and given up.

use std::ffi::{CString, c_void};
use std::ops::Range;
use std::sync::atomic::Ordering;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::body::{Body, Flavor, NO_CHECK};
use super::memory::{Mapped, Memory};
use crate::ground::object::Info;
use crate::ground::{abi, crossing, handle};
use crate::objects::info::pairs::Pairs;
use crate::objects::outcome::{Outcome, check, class};
use crate::objects::{info, memory};

/// The hint that a window is never locked: ours always is.
const NO_LOCKS: &[u8] = b"no_locks";
/// Standard-ABI value of `MPI_BYTE`.
const BYTE: i32 = 583;

/// A window's hints, as the lower half is given them.
struct Hints(Info);

impl Hints {
    /// # Safety
    /// Inside a stub.
    unsafe fn of(body: &Body) -> Outcome<(Hints, Word)> {
        let mut below = Pairs::new();
        let hints = body.notes.lock().hints.clone();
        for (key, value) in hints.iter().filter(|(key, _)| *key != NO_LOCKS) {
            below.set(key, value);
        }
        let hints = Hints(info::create(below));
        // SAFETY: inside; the info is ours.
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
pub unsafe fn open(on: Word, body: &mut Body) -> Outcome<Word> {
    // SAFETY: the caller's.
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
pub unsafe fn open_again(on: Word, body: &Body) -> Outcome<Word> {
    // SAFETY: the caller's.
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

/// A window of memory that the lower half is given.
unsafe fn of_own_memory(on: Word, hints: Word, body: &Body) -> Outcome<Word> {
    let mut data = 0;
    let base = std::ptr::with_exposed_provenance_mut(body.base);
    let (size, unit) = (body.size, body.unit);
    // SAFETY: the caller's.
    unsafe {
        check(crossing::cross(|d| match body.flavor {
            Flavor::Dynamic => (d.win_create_dynamic)(hints, on, &raw mut data),
            _ => (d.win_create)(base, size, unit, hints, on, &raw mut data),
        }))?;
    }
    Ok(data)
}

/// A window of the lower half's memory: its word, where this member's part is, and which bytes are to be mapped a second time.
unsafe fn of_its_memory(
    on: Word,
    hints: Word,
    body: &Body,
) -> Outcome<(Word, usize, Range<usize>)> {
    let (mut data, mut base) = (0, 0usize);
    let (size, unit) = (body.size, body.unit);
    // SAFETY: the caller's; the places are ours.
    unsafe {
        let place = (&raw mut base).cast::<c_void>();
        check(crossing::cross(|d| match body.flavor {
            Flavor::Shared => (d.win_allocate_shared)(size, unit, hints, on, place, &raw mut data),
            _ => (d.win_allocate)(size, unit, hints, on, place, &raw mut data),
        }))?;
        let own = base..base + size as usize;
        if body.flavor != Flavor::Shared {
            return Ok((data, base, own));
        }
        let mut all = own;
        for rank in 0..body.members.len() as i32 {
            let (mut bytes, mut unit, mut at) = (0isize, 0i32, 0usize);
            let place = (&raw mut at).cast::<c_void>();
            check(crossing::cross(|d| {
                (d.win_shared_query)(data, rank, &raw mut bytes, &raw mut unit, place)
            }))?;
            if bytes > 0 {
                all = match all.is_empty() {
                    true => at..at + bytes as usize,
                    false => all.start.min(at)..all.end.max(at + bytes as usize),
                };
            }
        }
        Ok((data, base, all))
    }
}

/// Whether this member's image has the bytes of the window's memory.
fn is_holder(body: &Body) -> bool {
    body.flavor != Flavor::Shared || body.own_place() == Some(0)
}

/// A window of the lower half's memory, if all members can map that a second time; otherwise of this library's.
unsafe fn allocate(on: Word, hints: Word, body: &mut Body) -> Outcome<Word> {
    // SAFETY: the caller's.
    unsafe {
        let (mut data, base, content) = of_its_memory(on, hints, body)?;
        let mapped = Mapped::of(content, is_holder(body));
        if everybody(on, body.members.len(), mapped.is_some())?
            && let Some(mapped) = mapped
        {
            body.base = mapped.above(base);
            body.memory = Memory::Mapped(mapped);
            return Ok(data);
        }
        check(crossing::cross(|d| (d.win_free)(&raw mut data)))?;
        if body.flavor == Flavor::Shared {
            return Err(class::NO_MEM);
        }
        let block = memory::take(body.size as usize);
        if !everybody(on, body.members.len(), !block.is_null())? {
            memory::give_back(block, body.size as usize);
            return Err(class::NO_MEM);
        }
        body.base = block.expose_provenance();
        body.memory = Memory::Block(body.base, body.size as usize);
        of_own_memory(on, hints, body)
    }
}

/// [`allocate`] in a restart: the bytes go into the lower half's new memory, and that where the application had the old one.
unsafe fn allocate_again(on: Word, hints: Word, body: &Body, mapped: &Mapped) -> Outcome<Word> {
    mapped.keep();
    // SAFETY: the caller's.
    unsafe {
        let (mut data, _, content) = of_its_memory(on, hints, body)?;
        let below = content.start;
        if everybody(on, body.members.len(), mapped.fits(&content))? {
            mapped.fill(&content);
            // Nobody's pages may go before all bytes are there: parts of several members may lie on one page.
            if everybody(on, body.members.len(), true)?
                && everybody(on, body.members.len(), mapped.map(below))?
            {
                return Ok(data);
            }
            return Err(class::NO_MEM);
        }
        check(crossing::cross(|d| (d.win_free)(&raw mut data)))?;
        if body.flavor == Flavor::Shared {
            return Err(class::NO_MEM);
        }
        of_own_memory(on, hints, body)
    }
}

/// What both ways have in common: the window that is locked, and what is known of the one with the data.
unsafe fn complete(on: Word, data: Word, body: &Body) -> Outcome {
    let mut locks = 0;
    let (name, attached) = {
        let notes = body.notes.lock();
        (notes.name.clone(), notes.attached.clone())
    };
    // SAFETY: inside; the memory is the application's.
    unsafe {
        let none = (*abi::predefined(HandleKind::Info, 304)).lower;
        let returning = (*abi::predefined(HandleKind::Errhandler, 323)).lower;
        check(crossing::cross(|d| {
            (d.win_create)(std::ptr::null_mut(), 0, 1, none, on, &raw mut locks)
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
pub unsafe fn close(mut data: Word, body: &Body) -> Outcome {
    let mut locks = body.locks.swap(0, Ordering::Relaxed);
    let mut on = body.communicator.swap(0, Ordering::Relaxed);
    // SAFETY: the words are ours, and used no more.
    unsafe {
        check(crossing::cross(|d| (d.win_unlock_all)(data)))?;
        check(crossing::cross(|d| (d.win_free)(&raw mut data)))?;
        check(crossing::cross(|d| (d.win_free)(&raw mut locks)))?;
        crossing::cross(|d| (d.comm_free)(&raw mut on));
    }
    Ok(())
}

/// Whether all members say so.
unsafe fn everybody(on: Word, members: usize, mine: bool) -> Outcome<bool> {
    let mut all = vec![0u8; members];
    // SAFETY: the caller's communicator; the buffers are as large as is said.
    unsafe {
        let byte = (*abi::predefined(HandleKind::Datatype, BYTE)).lower;
        let (from, to) = ((&raw const mine).cast(), all.as_mut_ptr().cast());
        check(crossing::cross(|d| {
            (d.allgather)(from, 1, byte, to, 1, byte, on)
        }))?;
    }
    Ok(all.iter().all(|one| *one != 0))
}
