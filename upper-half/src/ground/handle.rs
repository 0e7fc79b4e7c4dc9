//! The slab in which the application's MPI objects live, and the count of their holders.
//!
//! An [`Object`] never moves: under Open MPI's ABI its address is the handle. Slots are mapped in
//! chunks, freed ones are handed out again last in, first out. An object lives until its last holder
//! (the application's handle, a recipe, a pending operation) lets go of it.
//!
//! Runs in the application's threads, inside stubs: memory comes from this library's allocator.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::sync::atomic::{AtomicU32, Ordering};

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use crate::ground::fortran;
use crate::ground::lock::SpinLock;
use crate::ground::narrow::{self, Numbered};
use crate::ground::object::{ALIVE, FREED, NOT_COUNTED, Object, ROOM};
use crate::ground::upward_calls::above;

/// Distance of two slots: [`ROOM`] and one cache line more, so that the heads of neighbours do not
/// all fall into the same cache sets.
pub(super) const STRIDE: usize = ROOM + 64;
pub(super) const SLOTS: usize = 113;

/// A chunk of slots.
struct Chunk(*mut u8);

struct Slab {
    chunks: Vec<Chunk>,
    /// The newest freed slot, each linked to the next by its `body`.
    free: *mut Object,
    /// Slots of the newest chunk that were never used.
    unused: usize,
}

static SLAB: SpinLock<Slab> = SpinLock::new(Slab {
    chunks: Vec::new(),
    free: std::ptr::null_mut(),
    unused: 0,
});

/// Creation numbers: above every standard-ABI value.
static NEXT_ID: AtomicU32 = AtomicU32::new(0x1_0000);

impl Slab {
    fn take(&mut self) -> *mut Object {
        if !self.free.is_null() {
            let slot = self.free;
            // SAFETY: a freed slot is ours and holds the link.
            self.free = unsafe { (*slot).body.cast() };
            return slot;
        }
        if self.unused == 0 {
            let layout = chunk_layout();
            // SAFETY: the layout is that of a chunk, which is not empty.
            let chunk = unsafe { alloc_zeroed(layout) };
            if chunk.is_null() {
                handle_alloc_error(layout);
            }
            narrow::chunk(self.chunks.len(), chunk);
            self.chunks.push(Chunk(chunk));
            self.unused = SLOTS;
        }
        let chunk = self.chunks.last().map_or(std::ptr::null_mut(), |c| c.0);
        let index = SLOTS - self.unused;
        let slot = chunk.wrapping_add(index * STRIDE).cast();
        self.unused -= 1;
        // SAFETY: a slot of a chunk that lies there for ever.
        unsafe { Numbered::place(slot, self.chunks.len() - 1, index) };
        slot
    }
}

/// A chunk is larger than the allocator's pools: it gets pages of its own.
fn chunk_layout() -> Layout {
    const { assert!(STRIDE * SLOTS > 32 * 1024) };
    // SAFETY: 64 is a power of two and the size is far from overflowing.
    unsafe { Layout::from_size_align_unchecked(STRIDE * SLOTS, 64) }
}

/// Makes an object with one holder. `body` is the data that the kind's module keeps with it, or null.
pub fn create(kind: HandleKind, lower: Word, body: *mut ()) -> *mut Object {
    let object = SLAB.lock().take();
    // SAFETY: the slot has room for an object, and no other code has it.
    unsafe {
        object.write(Object {
            lower,
            magic: ALIVE,
            kind: kind as u16,
            standard: 0,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            references: 1,
            fortran: -1,
            clock: 0,
            body,
            rank: -1,
            size: 0,
            begun: 0,
            told: 0,
            cell: std::ptr::null(),
            counts: NOT_COUNTED.cell(),
            between: u64::MAX,
        });
        Numbered::of(object, kind);
        fortran::mirror(object);
    }
    object
}

/// Adds one holder.
///
/// # Safety
/// `object` must point to a live object.
#[inline]
pub unsafe fn retain(object: *mut Object) {
    // SAFETY: `object` is alive, by the caller's promise, so its holders are counted there.
    unsafe { Object::holders(object).fetch_add(1, Ordering::Relaxed) };
}

/// Adds one holder to an object that another thread may be about to end. Fails if the object has no holder any more, or is not of that kind (another object
/// may lie there by now).
///
/// # Safety
/// `object` must point to an object, alive or freed; the thread must be inside a stub.
pub unsafe fn retain_if_alive(object: *mut Object, kind: HandleKind) -> bool {
    // SAFETY: objects are never unmapped.
    unsafe {
        let holders = Object::holders(object);
        let more = |held: u32| (held > 0).then(|| held + 1);
        if holders
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
            .is_err()
        {
            return false;
        }
        let wanted = (*object).is(kind);
        if !wanted {
            release(object);
        }
        wanted
    }
}

/// Removes one holder; the last one ends the object and its counterpart in the lower half. Predefined
/// objects never end.
///
/// # Safety
/// `object` must point to a live object that the caller holds; the thread must be inside a stub.
pub unsafe fn release(object: *mut Object) {
    // SAFETY: the caller holds `object`, so it is alive until the last holder is counted off; only the thread that counts it off goes on.
    unsafe {
        if (*object).kind == HandleKind::Communicator as u16 && Object::held_by(object) == 1 {
            (above().given_up)();
        }
        if Object::holders(object).fetch_sub(1, Ordering::AcqRel) != 1 || (*object).predefined() {
            return;
        }
        (above().end)(object);
        recycle(object);
    }
}

/// Gives an object's slot back, without regard to its holders or its counterpart in the lower half.
///
/// # Safety
/// `object` must point to a live object of the slab that no code uses any more.
pub unsafe fn recycle(object: *mut Object) {
    // SAFETY: no code uses `object` any more, by the caller's promise; it is a slot of the slab, whose list is locked.
    unsafe {
        fortran::forget(object);
        (*object).magic = FREED;
        // Directly called functions look at these alone.
        (*object).lower = 0;
        (*object).cell = std::ptr::null();
        (*object).counts = NOT_COUNTED.cell();
        let mut slab = SLAB.lock();
        (*object).body = slab.free.cast();
        slab.free = object;
    }
}

/// Whether a handle leads to a live object of the given kind (a null one included).
///
/// # Safety
/// `object` must be null or point to readable memory, as a handle does that MPI gave.
#[inline]
pub unsafe fn valid(object: *const Object, kind: HandleKind) -> bool {
    // SAFETY: a pointer that is not null leads to readable memory, by the caller's promise.
    !object.is_null() && unsafe { (*object).is(kind) }
}

/// The live objects of a kind, predefined ones left out, in order of creation.
pub fn live(kind: HandleKind) -> Vec<*mut Object> {
    let slab = SLAB.lock();
    let mut found = Vec::new();
    for (number, chunk) in slab.chunks.iter().enumerate() {
        let last = number + 1 == slab.chunks.len();
        let used = if last { SLOTS - slab.unused } else { SLOTS };
        for slot in 0..used {
            let object: *mut Object = chunk.0.wrapping_add(slot * STRIDE).cast();
            // SAFETY: a slot that was used holds an object, alive or freed.
            if unsafe { (*object).is(kind) } {
                found.push(object);
            }
        }
    }
    drop(slab);
    // SAFETY: slots are never unmapped; each of these held a live object a moment ago.
    found.sort_by_key(|object| unsafe { (**object).id });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_distinct_listed_in_order_and_reused() {
        let made: Vec<_> = (0..300)
            .map(|n| create(HandleKind::Message, n, std::ptr::null_mut()))
            .collect();
        assert!(made.iter().all(|o| (*o as usize).is_multiple_of(64)));
        assert_eq!(live(HandleKind::Message), made);
        // SAFETY: the objects are the test's own.
        unsafe {
            recycle(made[7]);
            recycle(made[9]);
            assert!(!valid(made[7], HandleKind::Message));
            assert!(valid(made[8], HandleKind::Message));
            assert!(!valid(made[8], HandleKind::Request));
        }
        assert_eq!(live(HandleKind::Message).len(), 298);
        let again = create(HandleKind::Message, 1000, std::ptr::null_mut());
        assert_eq!(again, made[9]);
        assert_eq!(live(HandleKind::Message).last(), Some(&again));
    }
}
