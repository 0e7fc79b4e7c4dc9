//! A lock for code that lives in the application's threads.
//!
//! No futex of a libc, no thread-local owner: a flag, spinning, and the processor given away while
//! it is taken. Held only inside stubs (`gs:inside` set) or on the parked driver thread, so no
//! thread is ever stopped with one in its hands. Not recursive.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

/// A value that one thread at a time may touch.
pub struct SpinLock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the flag lets one thread in at a time.
unsafe impl<T> Sync for SpinLock<T> {}
// SAFETY: everything kept behind these locks is plain data of the process, tied to no thread.
unsafe impl<T> Send for SpinLock<T> {}

impl<T> SpinLock<T> {
    pub const fn new(value: T) -> Self {
        Self {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits until the value is free and takes it.
    #[inline]
    pub fn lock(&self) -> SpinGuard<'_, T> {
        while self.taken.swap(true, Ordering::Acquire) {
            self.wait();
        }
        SpinGuard { lock: self }
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..64 {
            if !self.taken.load(Ordering::Relaxed) {
                return;
            }
            core::hint::spin_loop();
        }
        crate::ground::arch::yield_processor();
    }
}

/// The value, until dropped.
pub struct SpinGuard<'a, T> {
    lock: &'a SpinLock<T>,
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard has set the flag, so no other guard exists while it lives.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard has set the flag, and it is borrowed exclusively here.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::SpinLock;

    #[test]
    fn one_thread_at_a_time_changes_the_value() {
        static COUNT: SpinLock<u64> = SpinLock::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        *COUNT.lock() += 1;
                    }
                });
            }
        });
        assert_eq!(*COUNT.lock(), 40_000);
    }
}
