//! State that several threads of the application may reach, at no cost if only one does.
//!
//! Below `MPI_THREAD_SERIALIZED` only one thread calls MPI, and it is the driver thread that parks; so
//! nothing needs a lock. From that level on every access takes one.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::ground::lock::{SpinGuard, SpinLock};

static CONCURRENT: AtomicBool = AtomicBool::new(false);

/// Whether more than one thread may call MPI.
#[inline(always)]
pub fn concurrent() -> bool {
    CONCURRENT.load(Ordering::Relaxed)
}

/// Notes that more than one thread may call MPI. To be called before a second one does.
pub fn set_concurrent() {
    CONCURRENT.store(true, Ordering::Relaxed);
}

/// Threads beside the one that the program began with that have called MPI in this launch.
static OTHERS: AtomicU32 = AtomicU32::new(0);

/// Counts one more thread that has called MPI.
pub fn another_calls() {
    OTHERS.fetch_add(1, Ordering::SeqCst);
}

/// Called in a restart: threads are counted anew as they call.
pub fn restarted() {
    OTHERS.store(0, Ordering::SeqCst);
}

/// Whether more than one thread has called MPI: many programs ask for that and never do it.
#[inline]
pub fn several() -> bool {
    concurrent() && OTHERS.load(Ordering::SeqCst) != 0
}

/// A value behind a lock that is taken only if threads can meet.
pub struct Shared<T> {
    lock: SpinLock<()>,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time gets at the value: by the lock, or because there is only one.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub const fn new(value: T) -> Self {
        Self {
            lock: SpinLock::new(()),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the value. Not recursive.
    #[inline(always)]
    pub fn take(&self) -> SharedGuard<'_, T> {
        let guard = if concurrent() {
            Some(self.lock.lock())
        } else {
            None
        };
        SharedGuard {
            value: self.value.get(),
            _lock: guard,
        }
    }

    /// The value, if no other thread calls MPI.
    ///
    /// # Safety
    /// Not [`concurrent`]; the value must not be taken.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "the caller is the only one who has it")]
    pub unsafe fn alone(&self) -> &mut T {
        // SAFETY: no other thread calls MPI, and the value is not taken, by the caller's promise, so this is the only reference.
        unsafe { &mut *self.value.get() }
    }
}

/// The value, until dropped.
pub struct SharedGuard<'a, T> {
    value: *mut T,
    _lock: Option<SpinGuard<'a, ()>>,
}

impl<T> Deref for SharedGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only way to the value while it lives.
        unsafe { &*self.value }
    }
}

impl<T> DerefMut for SharedGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only way to the value while it lives.
        unsafe { &mut *self.value }
    }
}
