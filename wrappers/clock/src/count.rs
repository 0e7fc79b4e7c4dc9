//! A rank's counts of a group's operations, in three words that the application's threads write while the agent reads them.
//!
//! ```text
//! seq               operations begun
//! tentative         seq as the newest operation left it that does not bind when it is begun
//! committed_before  what bound before that one
//! ```
//!
//! A blocking operation binds the other members when it is begun. A nonblocking one that can be begun again after a restart binds when
//! the application is told of its end, and everything that was begun before it with it. Blocking operations are more frequent, so
//! they keep no account of that: one increment is all.
//!
//! Where several threads call MPI, the `_shared` functions take the places of the others. If threads mix their steps, these functions may let more operations
//! bind than necessary, but never fewer.
//!
//! The agent sets its flag, calls `membarrier`, and only then reads. If a thread does not see the flag after an increment, or after it has marked an operation,
//! whose end was told, as binding, the agent reads that change. If the thread sees the flag, it takes the increment back, or raises the target.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::steps::Steps;

/// A word that threads share.
pub trait Word {
    /// Acquires what was released with it.
    fn load(&self) -> u64;
    /// Releases everything done before.
    fn store(&self, value: u64);
    /// Adds, at once; returns the value before.
    fn add(&self, value: u64) -> u64;
    /// Subtracts, at once.
    fn subtract(&self, value: u64);
    /// Raises it to the value, at once, if it is smaller.
    fn raise_to(&self, value: u64);
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn load(&self) -> u64 {
        AtomicU64::load(self, Ordering::Acquire)
    }

    #[inline(always)]
    fn store(&self, value: u64) {
        AtomicU64::store(self, value, Ordering::Release);
    }

    #[inline(always)]
    fn add(&self, value: u64) -> u64 {
        self.fetch_add(value, Ordering::SeqCst)
    }

    #[inline(always)]
    fn subtract(&self, value: u64) {
        self.fetch_sub(value, Ordering::SeqCst);
    }

    #[inline(always)]
    fn raise_to(&self, value: u64) {
        self.fetch_max(value, Ordering::SeqCst);
    }
}

/// The three words of one group.
#[repr(C)]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Count<W> {
    seq: W,
    tentative: W,
    committed_before: W,
}

impl<W: Word> Count<W> {
    /// Operations that this rank has begun on the group.
    #[inline(always)]
    pub fn seq(&self) -> u64 {
        self.seq.load()
    }

    /// The number up to which `seq` binds the other members; targets are made of it. A read while others write returns at least the number that binds,
    /// and at most some operations more that have begun.
    pub fn committed(&self) -> u64 {
        // Writers write in the opposite order.
        let seq = self.seq.load();
        let tentative = self.tentative.load();
        let before = self.committed_before.load();
        if seq == tentative {
            before.min(seq)
        } else {
            seq
        }
    }

    /// [`Count::committed`] without the newest operation: one thread calls MPI and is inside it, so that it can be taken back.
    pub fn committed_before_newest(&self) -> u64 {
        let seq = self.seq.load().saturating_sub(1);
        let tentative = self.tentative.load();
        let before = self.committed_before.load();
        if seq == tentative {
            before.min(seq)
        } else {
            seq
        }
    }

    /// Resets the clock to no operations; no other thread may use it yet.
    pub fn clear(&self) {
        self.seq.store(0);
        self.tentative.store(0);
        self.committed_before.store(0);
    }

    /// Counts an operation that binds.
    #[inline(always)]
    pub fn begin(&self) {
        self.seq.store(self.seq.load() + 1);
    }

    /// [`Count::begin`] where several threads call MPI. Returns the operation's number.
    ///
    /// The number is noted too, because another thread may take an increment back to where a tentative operation has left `seq`.
    #[inline(always)]
    pub fn begin_shared(&self) -> u64 {
        let begun = self.seq.add(1) + 1;
        self.committed_before.raise_to(begun);
        begun
    }

    /// Takes back the newest operation, which binds: it has not begun after all.
    #[inline(always)]
    pub fn take_back(&self) {
        self.seq.subtract(1);
    }

    /// Counts an operation that does not bind yet, and returns its number.
    #[inline(always)]
    pub fn initiate<S: Steps>(&self) -> u64 {
        let seq = self.seq.load();
        if S::NOTE && self.tentative.load() != seq {
            self.committed_before.store(seq);
        }
        self.tentative.store(seq + 1);
        self.seq.store(seq + 1);
        seq + 1
    }

    /// [`Count::initiate`] where several threads call MPI.
    #[inline(always)]
    pub fn initiate_shared(&self) -> u64 {
        let begun = self.seq.add(1) + 1;
        if self.tentative.load() != begun - 1 {
            self.committed_before.raise_to(begun - 1);
        }
        self.tentative.raise_to(begun);
        begun
    }

    /// Lets everything that has begun bind from now on. Returns the number up to which it binds, if it did not before.
    #[inline(always)]
    pub fn bind(&self) -> Option<u64> {
        let seq = self.seq.load();
        let news = self.tentative.load() == seq && self.committed_before.load() < seq;
        news.then(|| {
            self.committed_before.store(seq);
            seq
        })
    }

    /// [`Count::bind`] where several threads call MPI. Always returns that number, because another thread may take back the operation that it has just let
    /// bind.
    #[inline(always)]
    pub fn bind_shared(&self) -> u64 {
        let seq = self.seq.load();
        self.committed_before.raise_to(seq);
        seq
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::Every;

    #[test]
    fn what_is_begun_binds_but_for_the_newest_that_can_be_begun_again() {
        let count = Count::<AtomicU64>::default();
        count.begin();
        count.begin();
        assert_eq!((count.seq(), count.committed()), (2, 2));
        assert_eq!(count.initiate::<Every>(), 3);
        assert_eq!(count.initiate::<Every>(), 4);
        assert_eq!((count.seq(), count.committed()), (4, 2));
        // One that binds, and the same taken back.
        count.begin();
        assert_eq!(count.committed(), 5);
        count.take_back();
        assert_eq!((count.seq(), count.committed()), (4, 2));
        // The application is told of one.
        assert_eq!(count.bind(), Some(4));
        assert_eq!(count.bind(), None);
        assert_eq!(count.committed(), 4);
        assert_eq!(count.initiate::<Every>(), 5);
        assert_eq!(count.committed(), 4);
        count.begin();
        assert_eq!(count.bind(), None);
        assert_eq!(count.committed(), 6);
    }

    #[test]
    fn what_a_thread_is_inside_can_be_left_out() {
        let count = Count::<AtomicU64>::default();
        assert_eq!(count.committed_before_newest(), 0);
        count.begin();
        count.begin();
        assert_eq!((count.committed(), count.committed_before_newest()), (2, 1));
        // An operation behind one that does not bind does not bind either.
        assert_eq!(count.initiate::<Every>(), 3);
        count.begin();
        assert_eq!((count.committed(), count.committed_before_newest()), (4, 2));
        // It is over: operations that were begun before bind with it.
        count.begin();
        assert_eq!((count.committed(), count.committed_before_newest()), (5, 4));
    }

    #[test]
    fn what_is_left_out_is_no_less_than_one_operation() {
        let count = Count::<AtomicU64>::default();
        count.initiate::<Every>();
        count.begin_shared();
        count.take_back();
        // An operation that was taken back was noted as binding, and is not counted.
        count.begin();
        assert_eq!((count.committed(), count.committed_before_newest()), (2, 1));
    }

    #[test]
    fn a_clock_that_is_cleared_has_counted_nothing() {
        let count = Count::<AtomicU64>::default();
        for _ in 0..3 {
            // The same operations are counted the same, whatever the clock had counted before.
            assert_eq!(count.initiate_shared(), 1);
            assert_eq!((count.seq(), count.committed()), (1, 0));
            assert_eq!(count.begin_shared(), 2);
            assert_eq!(count.initiate::<Every>(), 3);
            assert_eq!((count.seq(), count.committed()), (3, 2));
            count.clear();
            assert_eq!((count.seq(), count.committed()), (0, 0));
            assert_eq!(count.initiate::<Every>(), 1);
            assert_eq!(count.bind(), Some(1));
            count.clear();
        }
    }

    #[test]
    fn what_was_tentative_before_a_clock_was_cleared_is_not_afterwards() {
        let count = Count::<AtomicU64>::default();
        count.initiate::<Every>();
        count.clear();
        count.begin();
        assert_eq!((count.seq(), count.committed()), (1, 1));
    }

    #[test]
    fn what_another_thread_takes_back_neither_hides_nor_adds_what_binds() {
        let count = Count::<AtomicU64>::default();
        // Two operations begin; the increment that is taken back need not be the last one.
        count.begin_shared();
        count.initiate_shared();
        count.begin_shared();
        count.take_back();
        assert_eq!((count.seq(), count.committed()), (2, 2));
        // An operation that has not begun does not bind.
        let count = Count::<AtomicU64>::default();
        count.initiate_shared();
        count.begin_shared();
        count.take_back();
        assert_eq!((count.seq(), count.committed()), (1, 1));
    }

    #[test]
    fn what_one_thread_began_binds_when_another_begins_something_tentative() {
        let count = Count::<AtomicU64>::default();
        // These operations began before there was another thread.
        count.begin();
        count.begin();
        assert_eq!(count.initiate_shared(), 3);
        assert_eq!((count.seq(), count.committed()), (3, 2));
        assert_eq!(count.initiate_shared(), 4);
        assert_eq!((count.seq(), count.committed()), (4, 2));
    }

    #[test]
    fn threads_that_take_turns_count_as_one_does() {
        let count = Count::<AtomicU64>::default();
        assert_eq!(count.begin_shared(), 1);
        assert_eq!(count.initiate_shared(), 2);
        assert_eq!(count.initiate_shared(), 3);
        assert_eq!((count.seq(), count.committed()), (3, 1));
        assert_eq!(count.bind_shared(), 3);
        assert_eq!(count.initiate_shared(), 4);
        assert_eq!(count.committed(), 3);
        assert_eq!(count.begin_shared(), 5);
        assert_eq!(count.committed(), 5);
    }
}
