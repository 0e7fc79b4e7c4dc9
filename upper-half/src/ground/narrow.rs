//! Handles that are numbers of 32 bits: the number of each object, and the object of each number.
//!
//! The number has the bits of its kind, as the kind's null handle, two bits that no predefined handle has (MPICH's "indirect" handles), and the place
//! of the object's slot. So a handle leads to its object by an address from a table and a multiplication, and slots keep their places for ever.
//!
//! There is a shorter way to an object that has been asked for before. A second table holds, by a number's last bits, the object that such a number led to
//! last. Each object says its own number, so a reader sees there whether it is the right one, and no entry ever has to be taken out of that table ([`known`]).
//!
//! If no handle is such a number, nothing of this is done, and the tables take no room.
//!
//! Runs in the application's threads, inside stubs: no allocation, no lock.

use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, Ordering};

use stillpoint_wrappers::gate::HandleKind;

use crate::ground::description::narrow;
use crate::ground::handle::{SLOTS, STRIDE};
use crate::ground::object::{Object, ROOM};

/// Bits of every handle of an object that the program has made.
const MADE: u32 = 0xc000_0000;
/// Bits of the place.
const PLACE: u32 = 0x03ff_ffff;
/// Places of a chunk: as many as slots, rounded up.
const CHUNK: usize = SLOTS.next_power_of_two();
/// Chunks that may have places.
const CHUNKS: usize = (PLACE as usize + 1) / CHUNK;

/// The addresses of the chunks.
static TABLE: [AtomicPtr<u8>; CHUNKS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; CHUNKS];

/// Whether any handle is such a number.
const ANY: bool = narrow(HandleKind::Communicator).is_some();

/// Whether handles of a kind (a `HandleKind`) are such numbers: those of files never are.
#[inline(always)]
pub const fn are_narrow(kind: u16) -> bool {
    ANY && kind != HandleKind::File as u16
}

const _: () = assert!(narrow(HandleKind::File).is_none());

/// Whether requests are such numbers, and with them the descriptions of messages.
pub const NARROW: bool = are_narrow(HandleKind::Request as u16);

/// The record behind an object in its slot.
#[repr(C)]
pub(super) struct Numbered {
    place: u32,
    handle: i32,
}

/// Bytes of an object with its number behind it.
pub const NUMBERED: usize = ROOM + size_of::<Numbered>();

const _: () = assert!(NUMBERED <= STRIDE);

impl Numbered {
    const fn behind(object: *mut Object) -> *mut Numbered {
        object.wrapping_byte_add(ROOM).cast()
    }

    /// Notes a slot's place.
    ///
    /// # Safety
    /// `slot` must be that slot of that chunk.
    pub unsafe fn place(slot: *mut Object, chunk: usize, index: usize) {
        if ANY {
            let place = (chunk * CHUNK + index) as u32 & PLACE;
            // SAFETY: `slot` is that slot of that chunk, by the caller's promise; each slot has room behind the object.
            unsafe { Self::behind(slot).write(Numbered { place, handle: 0 }) };
        }
    }

    /// Notes the handle of a predefined object.
    ///
    /// # Safety
    /// [`NUMBERED`] bytes must be there, where handles are such numbers.
    pub unsafe fn predefined(object: *mut Object, handle: i32) {
        if ANY {
            // SAFETY: the caller promises that there are [`NUMBERED`] bytes behind the object.
            unsafe { Self::behind(object).write(Numbered { place: 0, handle }) };
        }
    }

    /// Notes the handle of an object that is being made.
    ///
    /// # Safety
    /// `object` must lie in a slot.
    pub unsafe fn of(object: *mut Object, kind: HandleKind) {
        if let Some(null) = narrow(kind) {
            // SAFETY: `object` lies in a slot, by the caller's promise, whose place was noted when the chunk was made.
            unsafe {
                let it = Self::behind(object);
                (*it).handle = (MADE | null.cast_unsigned() | (*it).place).cast_signed();
            }
        }
    }
}

/// The distance from an object to its number.
pub const NUMBER: usize = ROOM + offset_of!(Numbered, handle);

/// Places for the objects of a kind that numbers have led to: one for each value of a byte.
const REMEMBERED: usize = 256;
/// Kinds, which are numbered from 1.
const KINDS: usize = if ANY { HandleKind::Session as usize } else { 1 };

/// The objects that numbers have led to, for each kind by a number's last byte.
pub struct Known([[AtomicPtr<Object>; REMEMBERED]; KINDS]);

/// The stand-in for a place in which no object was noted yet.
#[repr(C, align(64))]
struct EmptySlot {
    room: [u64; ROOM / 8],
    numbered: Numbered,
}

// SAFETY: its fields are never written after it is made, so all threads may read them.
unsafe impl Sync for EmptySlot {}

impl EmptySlot {
    const fn with(handle: i32) -> Self {
        let numbered = Numbered { place: 0, handle };
        Self {
            room: [0; ROOM / 8],
            numbered,
        }
    }

    const fn object(&'static self) -> *mut Object {
        core::ptr::from_ref(self).cast_mut().cast()
    }
}

/// Their numbers end in 0 and in 1, and each stands in places of other last bytes: no number leads to one of them.
static NOTHING: [EmptySlot; 2] = [EmptySlot::with(0), EmptySlot::with(1)];

const _: () = assert!(offset_of!(EmptySlot, numbered) == ROOM);

pub static KNOWN: Known = Known([const { nothing_known() }; KINDS]);

const fn nothing_known() -> [AtomicPtr<Object>; REMEMBERED] {
    let mut places = [const { AtomicPtr::new(nothing()) }; REMEMBERED];
    places[0] = AtomicPtr::new(NOTHING[1].object());
    places
}

/// An object that stands for none; its number is not a handle.
pub const fn nothing() -> *mut Object {
    NOTHING[0].object()
}

/// The distance in [`KNOWN`] at which the objects of a kind stand.
pub const fn known_of(kind: HandleKind) -> usize {
    (if ANY { kind as usize - 1 } else { 0 }) * size_of::<[AtomicPtr<Object>; REMEMBERED]>()
}

fn remembered(kind: HandleKind, handle: i32) -> Option<&'static AtomicPtr<Object>> {
    KNOWN
        .0
        .get(kind as usize - 1)?
        .get(usize::from(handle as u8))
}

/// The object that a handle of a kind leads to, if the last handle with the same last byte was this one.
#[inline(always)]
pub fn known(kind: HandleKind, handle: i32) -> Option<*mut Object> {
    let object = remembered(kind, handle)?.load(Ordering::Acquire);
    // SAFETY: an object, alive or freed, or one of those that stand for none.
    unsafe { (number_of(object) == handle).then_some(object) }
}

/// Notes the object that a handle of a kind leads to.
#[inline(always)]
pub fn remember(kind: HandleKind, handle: i32, object: *mut Object) {
    if !object.is_null()
        && let Some(place) = remembered(kind, handle)
    {
        place.store(object, Ordering::Release);
    }
}

/// A new chunk of slots.
pub(super) fn chunk(number: usize, chunk: *mut u8) {
    if ANY && let Some(entry) = TABLE.get(number) {
        entry.store(chunk, Ordering::Release);
    }
}

/// The handle of an object.
///
/// # Safety
/// `object` must lie in a slot or be a predefined one, and its kind's handles be such numbers.
#[inline(always)]
pub unsafe fn number_of(object: *mut Object) -> i32 {
    // SAFETY: `object` lies in a slot or is predefined, by the caller's promise; in both cases its number was noted before any handle was given out.
    unsafe { (*Numbered::behind(object)).handle }
}

/// The place of the object that a handle of a kind leads to, if the program has made it. [`at`] tells whether there is one.
#[inline(always)]
pub fn place_of(kind: HandleKind, handle: i32) -> Option<u32> {
    let handle = handle.cast_unsigned();
    let bits = MADE | narrow(kind)?.cast_unsigned();
    (handle & !PLACE == bits).then_some(handle & PLACE)
}

/// The object there, alive or freed; null if there never was one.
#[inline(always)]
pub fn at(place: u32) -> *mut Object {
    let place = place as usize;
    let chunk = match TABLE.get(place / CHUNK) {
        Some(chunk) => chunk.load(Ordering::Acquire),
        None => core::ptr::null_mut(),
    };
    let index = place % CHUNK;
    if chunk.is_null() || index >= SLOTS {
        return nowhere();
    }
    chunk.wrapping_add(index * STRIDE).cast()
}

/// Kept out of the way of the objects that exist.
#[cold]
#[inline(never)]
fn nowhere() -> *mut Object {
    core::ptr::null_mut()
}

#[cfg(all(test, application = "mpich"))]
mod tests {
    use super::*;
    use crate::ground::abi::{Handle, RequestHandle};
    use crate::ground::handle;

    const KIND: HandleKind = HandleKind::Request;

    #[test]
    fn a_number_leads_to_its_object_whatever_was_asked_for_before() {
        let made: Vec<_> = (0..3 * REMEMBERED as u64)
            .map(|word| handle::create(KIND, word, core::ptr::null_mut()))
            .collect();
        // SAFETY: the objects are the test's own.
        unsafe {
            // Three objects for each last byte, in turn: none is taken for another.
            for _ in 0..2 {
                for object in &made {
                    let number = number_of(*object);
                    let known = known(KIND, number);
                    assert!(known.is_none() || known == Some(*object));
                    assert_eq!(RequestHandle::of(*object).object(), *object);
                    assert_eq!(super::known(KIND, number), Some(*object));
                    assert_eq!(super::known(HandleKind::Group, number), None);
                }
            }
            // An object of another kind in the slot of a freed one has another number.
            let (first, number) = (made[0], number_of(made[0]));
            assert_eq!(RequestHandle::of(first).object(), first);
            handle::recycle(first);
            let other = handle::create(HandleKind::Group, 0, core::ptr::null_mut());
            assert_eq!(other, first);
            assert_eq!(known(KIND, number), None);
            assert_ne!(number_of(other), number);
            handle::recycle(other);
            made[1..].iter().for_each(|object| handle::recycle(*object));
        }
    }

    #[test]
    fn no_number_leads_to_what_stands_for_nothing() {
        let kind = HandleKind::Info;
        let nothing = [NOTHING[0].object(), NOTHING[1].object()];
        for last in 0..REMEMBERED as i32 {
            assert!(!known(kind, last).is_some_and(|it| nothing.contains(&it)));
        }
    }
}
