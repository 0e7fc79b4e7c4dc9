//! What a rank counts of a group's operations, in three words that the application's threads write and the agent reads meanwhile.
//!
//! ```text
//! seq               operations begun
//! tentative         seq as the newest operation left it that does not bind when it is begun
//! committed_before  what bound before that one
//! ```
//!
//! A blocking operation binds the other members when it is begun. A nonblocking one that can be begun again after a restart binds when
//! the application is told of its end, and everything that was begun before it with it. Blocking ones are the more frequent, so
//! they keep no account of that: one increment is all.
//!
//! Where several threads call MPI, the `_shared` functions take the places of the others. They let more bind than has to where threads
//! mix their steps, and never less.
//!
//! The agent sets its flag, calls `membarrier`, and only then reads. Who does not see the flag after an increment, or after what was
//! told was bound, has it read; who sees the flag takes the increment back, or raises the target.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::steps::Steps;

/// A word that threads share.
pub trait Word {
    /// Acquires what was released with it.
    fn load(&self) -> u64;
    /// Releases what was done before.
    fn store(&self, value: u64);
    /// Adds, at once; the value before.
    fn add(&self, value: u64) -> u64;
    /// Subtracts, at once.
    fn subtract(&self, value: u64);
    /// Makes it the larger one, at once.
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

    /// Up to where `seq` binds the other members: what targets are made of. Read while others write it is no less than what binds,
    /// and at most some operations more that have begun.
    pub fn committed(&self) -> u64 {
        // In this order: what is written is written in the other one.
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

    /// Nothing has begun; nobody else may use it yet.
    pub fn clear(&self) {
        self.seq.store(0);
        self.tentative.store(0);
        self.committed_before.store(0);
    }

    /// An operation begins that binds.
    #[inline(always)]
    pub fn begin(&self) {
        self.seq.store(self.seq.load() + 1);
    }

    /// [`Count::begin`] where several threads call MPI: its number.
    ///
    /// Noted too, because another thread may take an increment back to where a tentative operation has left `seq`.
    #[inline(always)]
    pub fn begin_shared(&self) -> u64 {
        let begun = self.seq.add(1) + 1;
        self.committed_before.raise_to(begun);
        begun
    }

    /// The operation that binds and was begun last is not begun yet, after all.
    #[inline(always)]
    pub fn take_back(&self) {
        self.seq.subtract(1);
    }

    /// An operation begins that does not bind yet: its number.
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

    /// Everything that has begun binds from now on: up to where, if it did not before.
    #[inline(always)]
    pub fn bind(&self) -> Option<u64> {
        let seq = self.seq.load();
        let news = self.tentative.load() == seq && self.committed_before.load() < seq;
        news.then(|| {
            self.committed_before.store(seq);
            seq
        })
    }

    /// [`Count::bind`] where several threads call MPI. Always says up to where: what another thread has just let bind it may take
    /// back.
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
        // Behind what does not bind either.
        assert_eq!(count.initiate::<Every>(), 3);
        count.begin();
        assert_eq!((count.committed(), count.committed_before_newest()), (4, 2));
        // Over: what was begun before binds with it.
        count.begin();
        assert_eq!((count.committed(), count.committed_before_newest()), (5, 4));
    }

    #[test]
    fn what_is_left_out_is_no_less_than_one_operation() {
        let count = Count::<AtomicU64>::default();
        count.initiate::<Every>();
        count.begin_shared();
        count.take_back();
        // What has been taken back was noted as binding, and is not counted.
        count.begin();
        assert_eq!((count.committed(), count.committed_before_newest()), (2, 1));
    }

    #[test]
    fn a_clock_that_is_cleared_has_counted_nothing() {
        let count = Count::<AtomicU64>::default();
        for _ in 0..3 {
            // Whatever it was cleared of, the same operations are counted the same.
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
        // Two begin; the increment that is taken back need not be the last one.
        count.begin_shared();
        count.initiate_shared();
        count.begin_shared();
        count.take_back();
        assert_eq!((count.seq(), count.committed()), (2, 2));
        // Nothing binds that has not begun.
        let count = Count::<AtomicU64>::default();
        count.initiate_shared();
        count.begin_shared();
        count.take_back();
        assert_eq!((count.seq(), count.committed()), (1, 1));
    }

    #[test]
    fn what_one_thread_began_binds_when_another_begins_something_tentative() {
        let count = Count::<AtomicU64>::default();
        // Before there was another thread.
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
