//! Stops those of the application's threads that are to stand still, and lets those run that must, so that the targets can be reached.
//!
//! A rank is parked when its driver thread is in `UpperHooks::park` and every other thread of the
//! application is stopped in a signal frame. As long as a target is ahead, all of them run: the driver
//! may need any of them to get there.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use stillpoint_clock::rank::Activity;
use stillpoint_refusals::{Refusal, refusal};
use stillpoint_wrappers::gate::{DriverState, Inside};

use crate::gate::{identity, stop};
use crate::ground::page::Page;
use crate::mpi::progress;
use crate::threads::{self, Thread};

/// The first time for which a driver that was allowed past a park point is left alone.
const FIRST_GRACE: Duration = Duration::from_millis(2);
/// The longest such time.
const LONGEST_GRACE: Duration = Duration::from_secs(1);

/// The threads' side of an attempt.
#[derive(Debug)]
pub struct Stopping {
    grace: Duration,
    left_alone_until: Option<Instant>,
}

impl Stopping {
    pub fn new() -> Self {
        Self {
            grace: FIRST_GRACE,
            left_alone_until: None,
        }
    }

    /// Notes that the driver may pass a park point: it is not stopped again at once, and each time a little later.
    pub fn advance(&mut self) {
        self.left_alone_until = Some(Instant::now() + self.grace);
        self.grace = (self.grace * 2).min(LONGEST_GRACE);
    }

    /// Stops or releases threads as the targets demand; if `held`, all are to stand still.
    pub fn tick(&mut self, page: &Page, held: bool) {
        if !held && (!page.all_reached() || page.advances() > 0) {
            if page.driver_state() != DriverState::Parked as u32 {
                stop::release_all();
            }
            return;
        }
        if self
            .left_alone_until
            .is_some_and(|until| Instant::now() < until)
        {
            return;
        }
        let to_ask = |thread: &Thread| !stands(thread) && inside(thread) == Inside::No as u32;
        let asked: Vec<Thread> = threads::list().into_iter().filter(to_ask).collect();
        stop::stop(&asked);
    }

    /// Returns this rank's activity, in the sense of `stillpoint_clock::rank::observe`.
    pub fn activity(page: &Page) -> Activity {
        match page.driver_state() {
            state if state == DriverState::Parked as u32 && threads::list().iter().all(stands) => {
                Activity::Parked
            }
            state if state == DriverState::Waiting as u32 => Activity::Waiting,
            state if state == DriverState::Running as u32 && driver_in_collective() => {
                Activity::InCollective
            }
            _ => Activity::Running,
        }
    }
}

/// Returns the messages that this rank has sent and received, over all its threads.
pub fn counts(page: &Page) -> (u64, u64) {
    threads::list().into_iter().map(Thread::record).fold(
        page.ended_counts(),
        |(sent, received), record| {
            (
                sent + record.sent.load(Ordering::SeqCst),
                received + record.received.load(Ordering::SeqCst),
            )
        },
    )
}

fn stands(thread: &Thread) -> bool {
    thread.stop_frame() != 0
}

fn inside(thread: &Thread) -> u32 {
    thread.record().inside.load(Ordering::SeqCst)
}

/// Returns the clocks of blocking operations that threads are inside, if no thread has returned from them and they can be begun again, as
/// `ThreadRecord::inside` has them.
pub fn inside_of() -> Vec<u32> {
    let threads = threads::list().into_iter();
    threads
        .map(|thread| inside(&thread))
        .filter(|inside| *inside > Inside::Collective as u32)
        .collect()
}

/// Returns whether a thread that waits inside a collective operation can stand still there: the real MPI calls back, and no other thread
/// calls it.
pub fn may_stand_inside() -> bool {
    progress::calls_back() && threads::list().len() == 1
}

/// Returns whether the driver thread is in the application: there it can be stopped, however long that takes on a busy machine.
pub fn driver_is_outside() -> bool {
    threads::list()
        .iter()
        .any(|thread| thread.is_driver() && inside(thread) == Inside::No as u32)
}

/// Returns why this rank cannot come to stand still, in words for people: a thread that an image needs has ended.
pub fn lacks_a_thread() -> Option<Refusal> {
    let threads = threads::list();
    let main = threads
        .iter()
        .any(|thread| thread.real_tid() == identity::real_pid());
    let lacking = match (main, threads.iter().any(|thread| thread.is_driver())) {
        (true, true) => return None,
        (false, _) => "main thread",
        (true, false) => "thread that has started MPI",
    };
    Some(refusal!(
        MainThreadEnded,
        "its {lacking} has ended (pthread_exit) while others run on, which cannot be restarted: have that thread wait for the others"
    ))
}

/// Returns whether the driver thread is in a blocking collective operation.
pub fn driver_in_collective() -> bool {
    threads::list()
        .iter()
        .any(|thread| thread.is_driver() && inside(thread) >= Inside::Collective as u32)
}
