//! The objects that the application's handles lead to.
//!
//! Under Open MPI's ABI a handle *is* the address of an [`Object`] (predefined ones live in the data
//! symbols that this library defines in Open MPI's stead). Under the standard's it is that too, except for predefined ones, which are
//! small numbers. Open MPI's Fortran layer stays unchanged beside the application. It reads and writes some fields of
//! the objects, which it takes for Open MPI's own; `crate::ground::fortran` keeps those (see `fortran::mirror`).
//! For that reason this head ends at byte 80, the Fortran handle lies at byte 24, and objects have room
//! for [`ROOM`] bytes.

use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use stillpoint_wrappers::gate::{ClockCell, ClockRoom, HandleKind};
use stillpoint_wrappers::neutral::Word;

use crate::ground::description::internals;

/// `magic` of an object that is alive.
pub const ALIVE: u32 = 0x5354_4c50;
/// `magic` of an object that has been freed and not yet reused.
pub const FREED: u32 = 0xdead_5354;
/// Bytes that every object has at least (groups, infos, messages and null handles: 256).
pub const ROOM: usize = internals::OBJECT_BYTES;

/// The head of every MPI object of the application: at most 80 bytes.
#[repr(C)]
pub struct Object {
    /// The word that crosses to the lower half. Refreshed at a restart.
    pub lower: Word,
    /// [`ALIVE`] or [`FREED`].
    pub magic: u32,
    /// `stillpoint_wrappers::gate::HandleKind`.
    pub kind: u16,
    /// Standard-ABI value of a predefined handle, else 0.
    pub standard: u16,
    /// Creation number on this rank; predefined objects have their standard-ABI value.
    pub id: u32,
    /// Holders: the application's handle, attached recipes, pending operations. Changed with
    /// `handle::retain` and `handle::release` only.
    pub references: u32,
    /// Fortran handle (f2c/c2f index), -1 until it is asked for.
    pub fortran: i32,
    /// The collective-clock cell: a communicator's own, and for windows and files that of the set of their members. A request has none, and keeps here what the
    /// short way needs to know of it (`operations::request::light`).
    pub clock: u32,
    /// The kind's own part (recipe, name, attributes, error handler): a `Box` of the kind's module, or null.
    pub body: *mut (),
    /// Communicators and groups: this process's rank and the (local) group's size, so that questions for both are
    /// answered here.
    pub rank: i32,
    /// Predefined datatypes: bytes of an element, once MPI has started.
    pub size: i32,
    /// Communicators: nonblocking collective operations begun, and the newest of them that the
    /// application knows to be over (or that cannot be begun again): see `collective`.
    pub begun: u32,
    pub told: u32,
    /// Communicators: the clock's cell itself, or null if nonblocking collective operations may not go the direct way.
    pub cell: *const ClockCell,
    /// The counts of a blocking collective operation that goes the direct way: a communicator's own cell, otherwise [`NOT_COUNTED`].
    pub counts: *const ClockCell,
    /// Predefined datatypes whose elements have no gaps: bytes from one element to the next, once MPI has started. Otherwise `u64::MAX`.
    pub between: u64,
}

/// A cell for objects without a clock: the real MPI refuses the operation. Never null, so that no check is needed.
pub static NOT_COUNTED: NotCounted = NotCounted([const { AtomicU64::new(0) }; ROOM_WORDS]);

/// Words of a [`ClockRoom`].
const ROOM_WORDS: usize = size_of::<ClockRoom>() / 8;

/// A [`ClockRoom`] that no code reads.
#[repr(C, align(64))]
pub struct NotCounted([AtomicU64; ROOM_WORDS]);

impl NotCounted {
    /// Its address.
    pub const fn cell(&'static self) -> *const ClockCell {
        const { assert!(size_of::<ClockRoom>() <= size_of::<NotCounted>()) };
        core::ptr::from_ref(self).cast()
    }
}

/// A communicator, where a signature says so.
pub type Comm = *mut Object;
/// A group.
pub type Group = *mut Object;
/// A datatype.
pub type Datatype = *mut Object;
/// An error handler.
pub type Errhandler = *mut Object;
/// An info.
pub type Info = *mut Object;
/// A window.
pub type Win = *mut Object;
/// A file.
pub type File = *mut Object;

const _: () = assert!(core::mem::size_of::<Object>() <= internals::OBJECT_HEAD);

impl Object {
    /// Whether this is a live object of the given kind.
    #[inline]
    pub fn is(&self, kind: HandleKind) -> bool {
        self.magic == ALIVE && self.kind == kind as u16
    }

    /// Whether the handle is one of the predefined ones (null handles included).
    #[inline]
    pub fn predefined(&self) -> bool {
        self.standard != 0
    }

    /// The Fortran handle, which any thread may ask for at any moment: see `fortran::to_fortran`.
    ///
    /// # Safety
    /// `object` must point to an object.
    pub unsafe fn number<'a>(object: *mut Object) -> &'a AtomicI32 {
        // SAFETY: the field lies in an object, and objects are never unmapped; only the thread that makes or ends one touches it in another way.
        unsafe { AtomicI32::from_ptr(&raw mut (*object).fortran) }
    }

    /// The kind's own part, for kinds that get one when it is first needed, by any thread.
    ///
    /// # Safety
    /// `object` must point to an object.
    pub unsafe fn own_part<'a>(object: *mut Object) -> &'a AtomicPtr<()> {
        // SAFETY: the field lies in an object, and objects are never unmapped; only the thread that makes or ends one touches it in another way.
        unsafe { AtomicPtr::from_ptr(&raw mut (*object).body) }
    }

    /// Gives an object the own part that `make` makes, if it has none. If two threads make one at once, the second one's is dropped.
    ///
    /// # Safety
    /// `object` must point to a live object, of a kind whose own part is a box of a `T`.
    #[cold]
    pub unsafe fn own_part_or<'a, T, E>(
        object: *mut Object,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<&'a T, E> {
        // SAFETY: `object` is alive, by the caller's promise, so its own part is null or such a box, which stays as long as the object. A box that no other
        // thread has seen is this one's to drop.
        unsafe {
            let part = Self::own_part(object);
            let there = part.load(Ordering::Acquire).cast::<T>();
            if let Some(there) = there.as_ref() {
                return Ok(there);
            }
            let made: *mut T = Box::into_raw(Box::new(make()?));
            let none = core::ptr::null_mut();
            match part.compare_exchange(none, made.cast(), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => Ok(&*made),
                Err(other) => {
                    drop(Box::from_raw(made));
                    Ok(&*other.cast::<T>())
                }
            }
        }
    }

    /// The word that crosses, for kinds that get one when it is first needed, by any thread.
    ///
    /// # Safety
    /// `object` must point to an object.
    pub unsafe fn word<'a>(object: *mut Object) -> &'a AtomicU64 {
        // SAFETY: the field lies in an object, and objects are never unmapped; only the thread that makes, rebuilds or ends one touches it in another way.
        unsafe { AtomicU64::from_ptr(&raw mut (*object).lower) }
    }

    /// The holders, for counting up and down from any thread.
    ///
    /// # Safety
    /// `object` must point to an object.
    pub unsafe fn holders<'a>(object: *mut Object) -> &'a AtomicU32 {
        // SAFETY: the field lies in a live object and is only ever touched through this.
        unsafe { AtomicU32::from_ptr(&raw mut (*object).references) }
    }

    /// The number of holders that the object has now.
    ///
    /// # Safety
    /// `object` must point to an object.
    pub unsafe fn held_by(object: *mut Object) -> u32 {
        // SAFETY: `object` points to an object, by the caller's promise; its holders are an atomic number.
        unsafe { Self::holders(object).load(Ordering::Acquire) }
    }
}
