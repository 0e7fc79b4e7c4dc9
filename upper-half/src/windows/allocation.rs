//! Windows of memory that the real MPI gives: the way a new one gets it, and the way a restart gets it again.

use std::ffi::c_void;
use std::ops::Range;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::body::{Body, Flavor, MemberPart};
use super::memory::{Mapped, Memory, PAGE};
use super::open::of_own_memory;
use crate::ground::{abi, crossing};
use crate::objects::memory;
use crate::objects::outcome::{MpiResult, check, class};
use stillpoint_wrappers::standard;

/// A window of the lower half's memory, as the lower half describes it.
struct NewMemory {
    data: Word,
    /// The address of this member's part.
    base: usize,
    /// The bytes that are to be mapped a second time: those of all members, if they share them.
    content: Range<usize>,
    /// The part of each member, if they share memory.
    parts: Vec<MemberPart>,
}

impl NewMemory {
    /// # Safety
    /// As [`allocate`].
    unsafe fn of(on: Word, hints: Word, body: &Body) -> MpiResult<NewMemory> {
        let (mut data, mut base) = (0, 0usize);
        let (size, unit) = (body.size, body.unit);
        // SAFETY: `on` and `hints` are words of the lower half's, by the caller's promise; it writes to our variables, which have the types that MPI asks for.
        unsafe {
            let place = (&raw mut base).cast::<c_void>();
            check(crossing::cross(|d| match body.flavor {
                Flavor::Shared => {
                    (d.win_allocate_shared)(size, unit, hints, on, place, &raw mut data)
                }
                _ => (d.win_allocate)(size, unit, hints, on, place, &raw mut data),
            }))?;
            let mut fresh = NewMemory {
                data,
                base,
                content: base..base + size as usize,
                parts: Vec::new(),
            };
            if body.flavor == Flavor::Shared {
                for rank in 0..body.members.len() as i32 {
                    fresh.parts.push(part(data, rank)?);
                }
                fresh.content = extent(&fresh.parts);
            }
            Ok(fresh)
        }
    }

    /// Whether the parts have the same distances from each other as these, whose first byte is at `from`.
    fn is_laid_out_as(&self, parts: &[MemberPart], from: usize) -> bool {
        self.parts.iter().zip(parts).all(|(new, old)| {
            (new.bytes > 0) == (old.bytes > 0)
                && (old.bytes == 0 || new.at - self.content.start == old.at - from)
        })
    }

    /// # Safety
    /// Collective over the members; the window is used no more.
    unsafe fn free(mut self) -> MpiResult {
        // SAFETY: the window is used no more by any member, by the caller's promise, and `self.data` is its word.
        check(unsafe { crossing::cross(|d| (d.win_free)(&raw mut self.data)) })
    }
}

/// A member's part of a window of shared memory.
///
/// # Safety
/// Inside a stub; `data` must be the word of a live window of shared memory, `rank` one of its members.
unsafe fn part(data: Word, rank: i32) -> MpiResult<MemberPart> {
    let (mut bytes, mut unit, mut at) = (0isize, 0i32, 0usize);
    // SAFETY: `data` is a live window's word by the caller's promise; the lower half writes to our variables.
    unsafe {
        let place = (&raw mut at).cast::<c_void>();
        check(crossing::cross(|d| {
            (d.win_shared_query)(data, rank, &raw mut bytes, &raw mut unit, place)
        }))?;
    }
    Ok(MemberPart { bytes, unit, at })
}

/// The bytes from the first part to the last.
fn extent(parts: &[MemberPart]) -> Range<usize> {
    let there = parts.iter().filter(|part| part.bytes > 0);
    let all = there.map(|part| part.at..part.at + part.bytes as usize);
    all.reduce(|all, one| all.start.min(one.start)..all.end.max(one.end))
        .unwrap_or(0..0)
}

/// A window of the lower half's memory, if all members can map that a second time; otherwise, if it is not shared, of this library's.
///
/// # Safety
/// Inside a stub; `on` must be a communicator of the lower half's, and nothing of the body's be in the lower half. Collective over the members.
pub unsafe fn allocate(on: Word, hints: Word, body: &mut Body) -> MpiResult<Word> {
    // SAFETY: all members call this with the same kind of window, and `on` is their communicator below; `free` and `give_back` end what nothing refers to yet.
    unsafe {
        if body.flavor == Flavor::Shared && body.members.len() == 1 {
            return alone(on, hints, body);
        }
        let fresh = NewMemory::of(on, hints, body)?;
        if body.flavor == Flavor::Shared && fresh.content.is_empty() {
            return nothing(on, hints, body, fresh);
        }
        let mapped = Mapped::of(fresh.content.clone(), is_holder(body));
        if everybody(on, body.members.len(), mapped.is_some())?
            && let Some(mapped) = mapped
        {
            body.base = mapped.above(fresh.base, &fresh.content);
            let above = |address| mapped.above(address, &fresh.content);
            body.parts = fresh.parts.iter().map(|part| part.moved(above)).collect();
            body.memory = Memory::Mapped(mapped);
            return Ok(fresh.data);
        }
        fresh.free()?;
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

/// A window of shared memory with one member: no other process shares it, so it is this library's.
///
/// # Safety
/// As [`allocate`].
unsafe fn alone(on: Word, hints: Word, body: &mut Body) -> MpiResult<Word> {
    let block = memory::take(body.size as usize);
    if block.is_null() {
        return Err(class::NO_MEM);
    }
    body.base = block.expose_provenance();
    body.memory = Memory::Block(body.base, body.size as usize);
    body.parts = vec![MemberPart {
        bytes: body.size,
        unit: body.unit,
        at: body.base,
    }];
    // SAFETY: `on` and `hints` are the caller's words, and nothing of the body's is in the lower half yet.
    unsafe { of_own_memory(on, hints, body) }
}

/// A window of shared memory for which no member has asked for any bytes.
///
/// # Safety
/// As [`allocate`].
unsafe fn nothing(on: Word, hints: Word, body: &mut Body, fresh: NewMemory) -> MpiResult<Word> {
    body.parts = fresh.parts.iter().map(|part| part.moved(|_| 0)).collect();
    // SAFETY: the fresh window is used no more, and all members free it, because none has any bytes there.
    unsafe {
        fresh.free()?;
        of_own_memory(on, hints, body)
    }
}

/// [`allocate`] in a restart: the bytes go into the lower half's new memory, and that memory where the application had the old one.
///
/// # Safety
/// As [`allocate`].
pub unsafe fn allocate_again(
    on: Word,
    hints: Word,
    body: &Body,
    mapped: &Mapped,
) -> MpiResult<Word> {
    mapped.lend(0);
    // SAFETY: all members restart together with `on` as their communicator below, so each step is collective; a fresh window that does not fit is freed unused.
    unsafe {
        let fresh = NewMemory::of(on, hints, body)?;
        let fits = mapped.fits(&fresh.content)
            && fresh.is_laid_out_as(&body.parts, mapped.content().start);
        if everybody(on, body.members.len(), fits)? {
            refill(on, body, mapped, fresh.content.start / PAGE * PAGE)?;
            return Ok(fresh.data);
        }
        fresh.free()?;
        match body.flavor {
            Flavor::Shared => on_a_lender(on, hints, body, mapped),
            _ => of_own_memory(on, hints, body),
        }
    }
}

/// Makes a window of shared memory again whose parts the new library lays out differently. Another window lends whole pages, which are mapped where the
/// application had the old ones, and the window itself is made of memory that the lower half gets from us.
///
/// # Safety
/// As [`allocate`].
unsafe fn on_a_lender(on: Word, hints: Word, body: &Body, mapped: &Mapped) -> MpiResult<Word> {
    let pages = match is_holder(body) {
        true => mapped.bytes() + PAGE,
        false => 0,
    };
    let (mut lender, mut base) = (0, 0usize);
    // SAFETY: the info is a predefined object that always exists; the lower half writes to our variables; rank 0 lends a page more than is mapped, so enough
    // bytes are left from a page's beginning on.
    unsafe {
        let none = (*abi::predefined(HandleKind::Info, 304)).lower;
        let place = (&raw mut base).cast::<c_void>();
        check(crossing::cross(|d| {
            (d.win_allocate_shared)(pages as isize, 1, none, on, place, &raw mut lender)
        }))?;
        let first = part(lender, 0)?;
        refill(on, body, mapped, first.at.next_multiple_of(PAGE))?;
        mapped.lend(lender);
        of_own_memory(on, hints, body)
    }
}

/// Fills new pages of the lower half's, and maps them in the place of the application's old ones.
///
/// # Safety
/// As [`allocate`]; from `page` on there must be as many bytes as are mapped.
unsafe fn refill(on: Word, body: &Body, mapped: &Mapped, page: usize) -> MpiResult {
    let members = body.members.len();
    // SAFETY: the caller promises as many bytes from `page` on as are mapped.
    unsafe {
        mapped.fill(page);
        // No member's pages may go before all bytes are there: parts of several members may lie on one page.
        match everybody(on, members, true)? && everybody(on, members, mapped.map(page))? {
            true => Ok(()),
            false => Err(class::NO_MEM),
        }
    }
}

/// Whether this member's image has the bytes of the window's memory.
fn is_holder(body: &Body) -> bool {
    body.flavor != Flavor::Shared || body.own_place() == Some(0)
}

/// Whether all members say so.
///
/// # Safety
/// Collective over the members; `on` must be their communicator in the lower half, and `members` their number.
unsafe fn everybody(on: Word, members: usize, mine: bool) -> MpiResult<bool> {
    let mut all = vec![0u8; members];
    // SAFETY: `on` is the members' communicator below; one byte goes out, and `all` has a byte for each member.
    unsafe {
        let byte = (*abi::predefined(HandleKind::Datatype, standard::BYTE)).lower;
        let (from, to) = ((&raw const mine).cast(), all.as_mut_ptr().cast());
        check(crossing::cross(|d| {
            (d.allgather)(from, 1, byte, to, 1, byte, on)
        }))?;
    }
    Ok(all.iter().all(|one| *one != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(all: &[(isize, usize)]) -> Vec<MemberPart> {
        let part = |&(bytes, at)| MemberPart { bytes, unit: 1, at };
        all.iter().map(part).collect()
    }

    fn fresh(all: &[(isize, usize)]) -> NewMemory {
        let parts = parts(all);
        NewMemory {
            data: 0,
            base: 0,
            content: extent(&parts),
            parts,
        }
    }

    #[test]
    fn parts_without_bytes_say_nothing_of_where_the_memory_is() {
        assert_eq!(
            extent(&parts(&[(0, 0), (8, 104), (0, 7), (4, 100)])),
            100..112
        );
        assert_eq!(extent(&parts(&[(0, 0), (0, 50)])), 0..0);
    }

    #[test]
    fn a_layout_is_the_same_where_all_parts_are_as_far_apart() {
        let old = parts(&[(0, 0), (10, 5000), (20, 5010)]);
        let same = |all: &[(isize, usize)]| fresh(all).is_laid_out_as(&old, 5000);
        assert!(same(&[(0, 9), (10, 90), (20, 100)]));
        assert!(!same(&[(0, 0), (10, 90), (20, 101)]), "one lies apart");
        assert!(!same(&[(0, 0), (10, 110), (20, 100)]), "in another order");
        assert!(!same(&[(1, 89), (10, 90), (20, 100)]), "one more has bytes");
    }
}
