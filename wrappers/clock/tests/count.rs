//! Every order in which threads and the agent can take the steps of [`Count`], by `loom`.
//!
//! The agent's `membarrier` puts the steps of all threads in one order; here they are in one from the beginning.

use std::sync::Mutex;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use stillpoint_clock::count::{Count, Word};
use stillpoint_clock::steps::Every;

/// A word whose accesses see the effects of all earlier ones: loads and stores are read-modify-writes, which find the newest value.
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
    /// The number up to which operations bind: those that were begun, or that the application was told of, without a look that saw the flag.
    binds: Mutex<u64>,
    /// Whether the thread says that it is inside the clock's operation.
    inside: Shared,
    /// The number up to which the thread has told by itself.
    told: Mutex<u64>,
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

    /// [`Rank::tell`] for one of several threads; a thread that sees the flag raises the target.
    fn tell_shared(&self, number: u64) {
        self.count.bind_shared();
        if !self.sees_flag() {
            self.must_be_committed(number);
        }
    }

    /// Begins a blocking operation of one of several threads. Returns whether the thread goes on.
    fn begin_shared(&self) -> bool {
        self.count.begin_shared();
        let seen = self.sees_flag();
        if seen {
            self.count.take_back();
        }
        !seen
    }
}

/// How the stub of an operation that can be begun again goes wrong, if it does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    No,
    /// It does not tell first after it has taken back.
    Silent,
    /// It looks whether it has to tell while it says that it is inside.
    LooksInside,
}

impl Rank {
    /// Tells the number that binds so far, on a thread that has seen the flag.
    fn tell_committed(&self) {
        let committed = self.count.committed();
        let mut told = self.told.lock().unwrap();
        *told = committed.max(*told);
    }

    /// Begins a blocking operation that can be begun again. Returns whether the thread goes on.
    fn repeat(&self, fault: Fault) -> bool {
        self.inside.store(1);
        self.count.begin();
        if self.sees_flag() {
            self.count.take_back();
            self.inside.store(0);
            if fault != Fault::Silent {
                self.tell_committed();
            }
            return false;
        }
        let begun = self.count.seq();
        let mut seen = false;
        if fault == Fault::LooksInside {
            seen = self.sees_flag();
        }
        self.inside.store(0);
        if fault != Fault::LooksInside {
            seen = self.sees_flag();
        }
        self.must_be_committed(begun);
        if seen {
            self.tell_committed();
        }
        !seen
    }

    /// The thread stands still inside for an earlier checkpoint, and goes on.
    fn stand(&self) {
        self.inside.store(2);
        self.count.take_back();
        if self.sees_flag() {
            self.tell_committed();
        }
        self.inside.store(0);
        self.inside.store(2);
        self.count.begin();
        self.inside.store(1);
    }

    /// The agent's read, before which it has set its flag.
    fn read(&self) -> u64 {
        match self.inside.load() {
            1 => self.count.committed_before_newest(),
            _ => self.count.committed(),
        }
    }
}

/// Runs a thread beside an agent that leaves out the operation that the thread says it is inside. The larger of the numbers read and told covers every
/// operation that has returned.
fn leaving_out(before: fn(&Rank), thread: fn(&Rank)) {
    loom::model(move || {
        let rank = Arc::new(Rank::default());
        before(&rank);
        let other = rank.clone();
        let running = thread::spawn(move || thread(&other));
        rank.flag.store(1);
        let read = rank.read();
        running.join().unwrap();
        let (told, binds) = (*rank.told.lock().unwrap(), *rank.binds.lock().unwrap());
        assert!(
            read.max(told) >= binds,
            "{read} read and {told} told where {binds} bind"
        );
        assert!(read.max(told) <= rank.count.seq() + 1, "{read} {told}");
    });
}

#[test]
fn operations_that_bind_when_they_return() {
    leaving_out(
        |rank| {
            rank.repeat(Fault::No);
        },
        |rank| {
            let _ = rank.repeat(Fault::No) && rank.repeat(Fault::No);
        },
    );
}

#[test]
fn operations_that_bind_when_they_return_behind_tentative_ones() {
    leaving_out(
        |rank| {
            rank.count.initiate::<Every>();
            rank.repeat(Fault::No);
            rank.count.initiate::<Every>();
        },
        |rank| {
            rank.repeat(Fault::No);
        },
    );
}

#[test]
fn an_operation_that_a_thread_stands_still_inside() {
    leaving_out(
        |rank| {
            rank.repeat(Fault::No);
            rank.inside.store(1);
            rank.count.begin();
        },
        |rank| {
            rank.stand();
            rank.stand();
        },
    );
}

/// The check bites.
#[test]
#[should_panic(expected = "bind")]
fn who_takes_back_has_to_tell() {
    leaving_out(
        |rank| {
            rank.repeat(Fault::No);
        },
        |rank| {
            rank.repeat(Fault::Silent);
        },
    );
}

#[test]
#[should_panic(expected = "bind")]
fn who_returns_is_no_longer_inside_when_it_looks() {
    leaving_out(
        |_| {},
        |rank| {
            rank.repeat(Fault::LooksInside);
        },
    );
}

/// Runs the threads beside an agent that sets its flag and reads, in every order. `judge` gets the number that was read.
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

/// The agent read no less than what binds, and no operation that never began.
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

/// One thread begins an operation while another is told of the end of the earlier one.
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

/// Operations begun after that bind, although they have the number that the tentative one had.
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

/// The check bites: with the steps that are for one thread, two threads go wrong.
#[test]
#[should_panic(expected = "bind")]
fn steps_for_one_thread_are_not_for_two() {
    another_is_told_by(|rank| rank.tell(1));
}
