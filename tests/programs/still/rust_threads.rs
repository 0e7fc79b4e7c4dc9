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

/// Unwinds through some frames, and drops what they hold.
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

fn main() -> ExitCode {
    let trial = Trial::start_threads(Threading::Multiple);
    check_unwinding(&trial, "before");
    OWN.set(1);
    let (sender, receiver) = mpsc::channel::<Vec<u64>>();
    let (gate, opened) = (Mutex::new(false), Condvar::new());
    let all_there = Barrier::new(4);
    thread::scope(|scope| {
        let (trial, gate, opened, all_there) = (&trial, &gate, &opened, &all_there);
        let in_mpi = scope.spawn(move || {
            OWN.set(2);
            all_there.wait();
            let world = trial.world();
            let (numbers, status) = world.any_process().receive_vec_with_tag::<u64>(5);
            check!(
                trial,
                status.source_rank() == trial.neighbour(-1),
                "{status:?}"
            );
            (OWN.get(), numbers)
        });
        let in_channel = scope.spawn(move || {
            OWN.set(3);
            all_there.wait();
            let numbers: Vec<u64> = receiver.iter().flatten().collect();
            (OWN.get(), numbers)
        });
        let in_condition = scope.spawn(move || {
            OWN.set(4);
            all_there.wait();
            let mut open = gate.lock().expect("nobody panicked");
            while !*open {
                open = opened.wait(open).expect("nobody panicked");
            }
            thread::park();
            OWN.get()
        });
        all_there.wait();
        let numbers: Vec<u64> = (0..1000).map(|i| i * i + trial.rank as u64).collect();
        sender
            .send(numbers[..500].to_vec())
            .expect("somebody receives");
        {
            let _held = gate.lock().expect("nobody panicked");
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
        *gate.lock().expect("nobody panicked") = true;
        opened.notify_one();
        in_condition.thread().unpark();
        let world = trial.world();
        world
            .process_at_rank(trial.neighbour(1))
            .send_with_tag(&numbers[..], 5);

        let (own, heard) = in_channel.join().expect("the channel's thread ends");
        check!(trial, own == 3, "the channel's thread's own is {own}");
        check!(
            trial,
            heard == numbers,
            "{} numbers through the channel",
            heard.len()
        );
        let (own, heard) = in_mpi.join().expect("the receiving thread ends");
        let expected = (0..1000).map(|i| i * i + trial.neighbour(-1) as u64);
        check!(trial, own == 2, "the receiving thread's own is {own}");
        check!(
            trial,
            heard.into_iter().eq(expected),
            "wrong numbers through MPI"
        );
        let own = in_condition.join().expect("the parked thread ends");
        check!(trial, own == 4, "the parked thread's own is {own}");
    });
    trial.world().barrier();
    trial.finish()
}
