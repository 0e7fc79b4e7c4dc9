//! The predefined handles as objects: their places, their contents, and the ways to find them.
//!
//! [`initialise_predefined`] runs when the library is loaded and again in every restart; until then the
//! symbols are zero. No allocation, no system call, no panic.

use core::cell::UnsafeCell;

use stillpoint_wrappers::gate::{HandleKind, Services};
use stillpoint_wrappers::neutral::Word;

use super::symbols::ADDRESSES;
pub use super::symbols::numbered;
use crate::ground::description::{Entry, PREDEFINED, null_handle as null_value};
use crate::ground::narrow::Numbered;
use crate::ground::object::{ALIVE, NOT_COUNTED, Object};

/// The memory of a data symbol of Open MPI's, or of a predefined object that has none.
#[repr(C, align(32))]
pub struct Symbol<const BYTES: usize>(UnsafeCell<[u8; BYTES]>);

// SAFETY: the head is written before MPI starts and by the driver thread of a restart, alone; fields that
// change while threads run are guarded by the modules that own them.
unsafe impl<const BYTES: usize> Sync for Symbol<BYTES> {}

impl<const BYTES: usize> Symbol<BYTES> {
    /// Zeroed memory.
    pub const fn new() -> Self {
        const { assert!(BYTES >= size_of::<Object>()) }
        Self(UnsafeCell::new([0; BYTES]))
    }
}

impl<const BYTES: usize> Default for Symbol<BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

/// The address of a symbol, filled in by the dynamic linker.
pub struct Address(*mut Object);

// SAFETY: a number; see `Symbol` for what it leads to.
unsafe impl Sync for Address {}

impl Address {
    /// The address of a symbol.
    pub const fn of<const BYTES: usize>(symbol: &'static Symbol<BYTES>) -> Self {
        Self(symbol.0.get().cast())
    }

    /// The object there.
    #[inline(always)]
    pub const fn object(&self) -> *mut Object {
        self.0
    }
}

/// An entry of the table from numbers to objects, if predefined handles are numbers: each number has a place of its own in it.
#[repr(C)]
pub struct Found {
    number: i32,
    /// The distance of its object from the first one.
    behind: u32,
}

impl Found {
    /// The entry for the object at `index`.
    pub const fn new<const BYTES: usize>(
        _objects: &[Symbol<BYTES>],
        index: usize,
        number: i32,
    ) -> Self {
        Self {
            number,
            behind: (index * size_of::<Symbol<BYTES>>()) as u32,
        }
    }

    /// A number's place in a table of that many bits: the highest bits of a product.
    #[inline(always)]
    pub const fn place(number: i32, factor: u32, bits: u32) -> usize {
        (number.cast_unsigned().wrapping_mul(factor) >> (32 - bits)) as usize
    }

    /// The object of a number that has this place; null if the place is another number's.
    #[inline(always)]
    pub fn object<const BYTES: usize>(
        &self,
        objects: &'static [Symbol<BYTES>],
        number: i32,
    ) -> *mut Object {
        if self.number != number {
            return core::ptr::null_mut();
        }
        let first = objects.as_ptr().cast_mut();
        first.wrapping_byte_add(self.behind as usize).cast()
    }
}

/// Standard-ABI values of the null handles.
const NULL_VALUES: [i32; 10] = [
    null_value(HandleKind::Communicator),
    null_value(HandleKind::Group),
    null_value(HandleKind::Datatype),
    null_value(HandleKind::Operator),
    null_value(HandleKind::Request),
    null_value(HandleKind::Errhandler),
    null_value(HandleKind::Info),
    null_value(HandleKind::Message),
    null_value(HandleKind::Window),
    null_value(HandleKind::File),
];

/// Every predefined handle with its object.
pub fn predefined_handles() -> impl Iterator<Item = (&'static Entry, *mut Object)> {
    PREDEFINED
        .iter()
        .zip(ADDRESSES.iter().map(|address| address.0))
}

/// The object of a predefined handle by its standard-ABI value; null if there is none.
pub fn predefined(kind: HandleKind, standard: i32) -> *mut Object {
    let key = (kind as u32, standard);
    match PREDEFINED.binary_search_by_key(&key, |entry| (entry.kind as u32, entry.standard)) {
        Ok(index) => ADDRESSES[index].0,
        Err(_) => core::ptr::null_mut(),
    }
}

/// The object of a kind's null handle; null for a kind that this ABI does not have.
pub fn null_handle(kind: HandleKind) -> *mut Object {
    predefined(kind, null_value(kind))
}

/// Whether an object is its kind's null handle.
///
/// # Safety
/// `object` must lead to an object.
#[inline(always)]
pub unsafe fn is_null_handle(object: *const Object) -> bool {
    // SAFETY: `object` leads to an object, by the caller's promise, and objects are never unmapped.
    let standard = i32::from(unsafe { (*object).standard });
    standard != 0 && NULL_VALUES.contains(&standard)
}

/// Whether a communicator, window or file has members, that is, is not a null handle. (The only predefined ones with members are the world
/// and the process alone.)
///
/// # Safety
/// `object` must lead to an object of such a kind.
#[inline(always)]
pub unsafe fn has_members(object: *const Object) -> bool {
    // SAFETY: `object` leads to an object of such a kind, by the caller's promise, and objects are never unmapped.
    let standard = unsafe { (*object).standard };
    standard == 0 || standard == WORLD || standard == SELF
}

/// Standard-ABI values of `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
const WORLD: u16 = 257;
const SELF: u16 = 258;

/// The word of a kind's null handle.
#[cold]
pub fn null_word(kind: HandleKind) -> Word {
    let object = null_handle(kind);
    if object.is_null() {
        return 0;
    }
    // SAFETY: the object of a predefined handle.
    unsafe { (*object).lower }
}

/// The predefined object that the lower half knows as `word`, or null.
pub fn predefined_from_word(kind: HandleKind, word: Word) -> *mut Object {
    predefined_handles()
        .filter(|(entry, _)| entry.kind == kind)
        // SAFETY: the objects of predefined handles.
        .find(|(_, object)| unsafe { (**object).lower == word })
        .map_or(core::ptr::null_mut(), |(_, object)| object)
}

/// Fills the head of every predefined object. If it is filled already, gives the object the word by which the
/// current lower half knows it.
///
/// # Safety
/// `services` must be those of a lower half whose MPI is loaded; no other thread may be inside MPI.
pub unsafe fn initialise_predefined(services: &Services) {
    for (entry, object) in predefined_handles() {
        // SAFETY: the service works with any FS: it looks into a table.
        let lower = services.predefined.map_or(0, |predefined| unsafe {
            predefined(entry.kind as u32, entry.standard)
        });
        // SAFETY: the symbols have room for an object, and this thread has them for itself.
        unsafe {
            if (*object).magic == ALIVE {
                (*object).lower = lower;
            } else {
                object.write(head(entry, lower));
                Numbered::predefined(object, entry.number());
            }
        }
    }
}

/// A predefined object without attachments.
fn head(entry: &Entry, lower: Word) -> Object {
    Object {
        lower,
        magic: ALIVE,
        kind: entry.kind as u16,
        standard: entry.standard as u16,
        id: entry.standard as u32,
        references: 1,
        body: core::ptr::null_mut(),
        clock: 0,
        fortran: entry.number(),
        rank: -1,
        size: 0,
        begun: 0,
        told: 0,
        cell: core::ptr::null(),
        counts: NOT_COUNTED.cell(),
        between: u64::MAX,
    }
}
