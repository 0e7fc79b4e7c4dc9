//! The standard library of Rust through a checkpoint: a thread blocked in a receive of MPI's and one in a channel's, a
//! lock held, thread-locals, a parked thread; and panics that are caught, before and afterwards.
//! trial: ranks=2,4

use std::cell::Cell;
use std::panic;
use std::process::ExitCode;
use std::sync::mpsc;
use std::sync::{Barrier, Condvar, Mutex};
use std::thread;

use mpi::Threading;
use mpi::traits::*;
use trial::{Trial, check};

thread_local! {
    static OWN: Cell<u64> = const { Cell::new(0) };
}

/// Unwinds through some frames, and drops their values.
fn panics(depth: u32, dropped: &Cell<u32>) {
    struct Counts<'a>(&'a Cell<u32>);
    impl Drop for Counts<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let _counts = Counts(dropped);
    if depth == 0 {
        panic::resume_unwind(Box::new("the bottom"));
    }
    panics(depth - 1, dropped);
}

fn check_unwinding(trial: &Trial, when: &str) {
    let dropped = Cell::new(0);
    let caught = panic::catch_unwind(panic::AssertUnwindSafe(|| panics(9, &dropped)));
    let text = caught
        .err()
        .and_then(|what| what.downcast_ref::<&str>().copied());
    check!(trial, text == Some("the bottom"), "{when}: caught {text:?}");
    check!(
        trial,
        dropped.get() == 10,
        "{when}: {} frames were left",
        dropped.get()
    );
}

/// The threads' shared state: a gate with its lock and its bell, and the place where all meet first.
struct Shared {
    gate: Mutex<bool>,
    opened: Condvar,
    all_there: Barrier,
}

/// Blocks in a receive of MPI's.
fn in_mpi(trial: &Trial, shared: &Shared) -> (u64, Vec<u64>) {
    OWN.set(2);
    shared.all_there.wait();
    let world = trial.world();
    let (numbers, status) = world.any_process().receive_vec_with_tag::<u64>(5);
    check!(
        trial,
        status.source_rank() == trial.neighbour(-1),
        "{status:?}"
    );
    (OWN.get(), numbers)
}

/// Blocks in a receive of the channel's.
fn in_channel(shared: &Shared, receiver: mpsc::Receiver<Vec<u64>>) -> (u64, Vec<u64>) {
    OWN.set(3);
    shared.all_there.wait();
    let numbers: Vec<u64> = receiver.iter().flatten().collect();
    (OWN.get(), numbers)
}

/// Waits for the gate, and then parks.
fn in_condition(shared: &Shared) -> u64 {
    OWN.set(4);
    shared.all_there.wait();
    let mut open = shared.gate.lock().expect("nobody panicked");
    while !*open {
        open = shared.opened.wait(open).expect("nobody panicked");
    }
    thread::park();
    OWN.get()
}

/// Checks the numbers that have come by both ways, and that every thread still has its own.
fn check_threads(
    trial: &Trial,
    numbers: &[u64],
    heard: (u64, Vec<u64>),
    received: (u64, Vec<u64>),
) {
    let (own, heard) = heard;
    check!(trial, own == 3, "the channel's thread's own is {own}");
    check!(
        trial,
        heard == numbers,
        "{} numbers through the channel",
        heard.len()
    );
    let (own, received) = received;
    let expected = (0..1000).map(|i| i * i + trial.neighbour(-1) as u64);
    check!(trial, own == 2, "the receiving thread's own is {own}");
    check!(
        trial,
        received.into_iter().eq(expected),
        "wrong numbers through MPI"
    );
}

fn main() -> ExitCode {
    let trial = Trial::start_threads(Threading::Multiple);
    check_unwinding(&trial, "before");
    OWN.set(1);
    let (sender, receiver) = mpsc::channel::<Vec<u64>>();
    let shared = Shared {
        gate: Mutex::new(false),
        opened: Condvar::new(),
        all_there: Barrier::new(4),
    };
    thread::scope(|scope| {
        let (trial, shared) = (&trial, &shared);
        let in_mpi = scope.spawn(move || in_mpi(trial, shared));
        let in_channel = scope.spawn(move || in_channel(shared, receiver));
        let in_condition = scope.spawn(move || in_condition(shared));
        shared.all_there.wait();
        let numbers: Vec<u64> = (0..1000).map(|i| i * i + trial.rank as u64).collect();
        sender
            .send(numbers[..500].to_vec())
            .expect("somebody receives");
        {
            let _held = shared.gate.lock().expect("nobody panicked");
            trial.hold();
        }

        check_unwinding(trial, "afterwards");
        check!(
            trial,
            OWN.get() == 1,
            "the main thread's own is {}",
            OWN.get()
        );
        sender
            .send(numbers[500..].to_vec())
            .expect("somebody receives");
        drop(sender);
        *shared.gate.lock().expect("nobody panicked") = true;
        shared.opened.notify_one();
        in_condition.thread().unpark();
        let world = trial.world();
        world
            .process_at_rank(trial.neighbour(1))
            .send_with_tag(&numbers[..], 5);

        let heard = in_channel.join().expect("the channel's thread ends");
        let received = in_mpi.join().expect("the receiving thread ends");
        check_threads(trial, &numbers, heard, received);
        let own = in_condition.join().expect("the parked thread ends");
        check!(trial, own == 4, "the parked thread's own is {own}");
    });
    trial.world().barrier();
    trial.finish()
}
