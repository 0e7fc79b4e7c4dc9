//! Every order in which threads and the agent can take the steps of [`Count`], by `loom`.
//!
//! The agent's `membarrier` makes everybody's steps one order; here they are in one from the beginning.

use std::sync::Mutex;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use stillpoint_clock::count::{Count, Word};
use stillpoint_clock::steps::Every;

/// A word whose accesses see what all before them did: loads and stores are read-modify-writes, which find the newest value.
struct Shared(AtomicU64);

impl Default for Shared {
    fn default() -> Shared {
        Shared(AtomicU64::new(0))
    }
}

impl Word for Shared {
    fn load(&self) -> u64 {
        self.0.fetch_add(0, Ordering::AcqRel)
    }

    fn store(&self, value: u64) {
        self.0.swap(value, Ordering::AcqRel);
    }

    fn add(&self, value: u64) -> u64 {
        self.0.fetch_add(value, Ordering::AcqRel)
    }

    fn subtract(&self, value: u64) {
        self.0.fetch_sub(value, Ordering::AcqRel);
    }

    fn raise_to(&self, value: u64) {
        self.0.fetch_max(value, Ordering::AcqRel);
    }
}

/// One group's clock on one rank, and the agent's flag.
#[derive(Default)]
struct Rank {
    count: Count<Shared>,
    flag: Shared,
    /// Up to where operations bind that were begun, or that the application was told of, without a look at the flag that saw it.
    binds: Mutex<u64>,
}

impl Rank {
    fn sees_flag(&self) -> bool {
        self.flag.load() != 0
    }

    fn must_be_committed(&self, number: u64) {
        let mut binds = self.binds.lock().unwrap();
        *binds = number.max(*binds);
    }

    /// A blocking operation, by the only thread.
    fn begin(&self) {
        self.count.begin();
        let begun = self.count.seq();
        match self.sees_flag() {
            true => self.count.take_back(),
            false => self.must_be_committed(begun),
        }
    }

    /// The application is told of the operation with that number, by the only thread.
    fn tell(&self, number: u64) {
        if self.count.bind().is_none() || !self.sees_flag() {
            self.must_be_committed(number);
        }
    }

    /// As [`Rank::tell`], one of several threads; who sees the flag raises the target.
    fn tell_shared(&self, number: u64) {
        self.count.bind_shared();
        if !self.sees_flag() {
            self.must_be_committed(number);
        }
    }

    /// A blocking operation of one of several threads: whether it goes on.
    fn begin_shared(&self) -> bool {
        self.count.begin_shared();
        let seen = self.sees_flag();
        if seen {
            self.count.take_back();
        }
        !seen
    }
}

/// Runs the threads beside an agent that sets its flag and reads, in every order. What was read is given to `judge`.
fn in_every_order<const N: usize>(
    before: fn(&Rank),
    threads: [fn(&Rank); N],
    judge: fn(&Rank, u64),
) {
    loom::model(move || {
        let rank = Arc::new(Rank::default());
        before(&rank);
        let running: Vec<_> = threads
            .iter()
            .map(|thread| {
                let (rank, thread) = (rank.clone(), *thread);
                thread::spawn(move || thread(&rank))
            })
            .collect();
        rank.flag.store(1);
        let committed = rank.count.committed();
        for thread in running {
            thread.join().unwrap();
        }
        judge(&rank, committed);
    });
}

/// No less was read than binds, and nothing that never began.
fn is_sound(rank: &Rank, committed: u64) {
    let binds = *rank.binds.lock().unwrap();
    assert!(committed >= binds, "{committed} read where {binds} bind");
    assert!(rank.count.committed() >= binds, "{binds} bind");
}

#[test]
fn operations_of_one_thread() {
    in_every_order(
        |_| {},
        [|rank| {
            rank.count.initiate::<Every>();
            rank.begin();
            let number = rank.count.initiate::<Every>();
            rank.count.initiate::<Every>();
            rank.tell(number);
        }],
        |rank, committed| {
            is_sound(rank, committed);
            assert!(committed <= 4, "{committed}");
        },
    );
}

#[test]
fn operations_that_nobody_is_told_of() {
    in_every_order(
        |rank| rank.count.begin(),
        [|rank| {
            rank.count.initiate::<Every>();
            rank.tell(2);
            rank.count.initiate::<Every>();
            rank.begin();
            rank.count.initiate::<Every>();
        }],
        |rank, committed| {
            is_sound(rank, committed);
            assert!(committed >= 1, "{committed}");
        },
    );
}

/// One thread begins an operation while another is told of the one before.
fn another_is_told_by(tell: fn(&Rank)) {
    let begin = |rank: &Rank| {
        rank.count.initiate_shared();
    };
    in_every_order(begin, [begin, tell], is_sound);
}

#[test]
fn one_thread_begins_and_another_is_told() {
    another_is_told_by(|rank| rank.tell_shared(1));
}

#[test]
fn one_thread_takes_back_and_another_is_told() {
    in_every_order(
        |rank| {
            rank.count.initiate_shared();
        },
        [
            |rank| {
                if rank.begin_shared() {
                    rank.must_be_committed(2);
                }
            },
            |rank| rank.tell_shared(1),
        ],
        is_sound,
    );
}

#[test]
fn two_threads_begin() {
    in_every_order(
        |_| {},
        [
            |rank| {
                if rank.begin_shared() {
                    *rank.binds.lock().unwrap() += 1;
                }
            },
            |rank| {
                if rank.begin_shared() {
                    *rank.binds.lock().unwrap() += 1;
                }
            },
        ],
        is_sound,
    );
}

/// What is begun after that binds, although it has the number that the tentative one had.
#[test]
fn an_increment_is_taken_back_below_a_tentative_one() {
    loom::model(|| {
        let rank = Arc::new(Rank::default());
        let other = rank.clone();
        let takes_back = thread::spawn(move || {
            other.count.begin_shared();
            other.count.take_back();
        });
        rank.count.initiate_shared();
        rank.count.begin_shared();
        takes_back.join().unwrap();
        assert_eq!((rank.count.seq(), rank.count.committed()), (2, 2));
    });
}

/// The check bites: with the steps that are for one thread two go wrong.
#[test]
#[should_panic(expected = "bind")]
fn steps_for_one_thread_are_not_for_two() {
    another_is_told_by(|rank| rank.tell(1));
}
