//! The shortest way down to MPI, shut on every thread while a checkpoint is pending.
//!
//! A call on this way checks at its beginning whether the way is open, and does not check for a checkpoint at its end. So a thread that calls MPI again and
//! again parks at the next call, and one that does not is stopped where it computes.

use core::sync::atomic::{AtomicBool, Ordering};

use stillpoint_wrappers::gate::SHUT;

use super::registry::{self, Thread};

/// The latest state, for threads that are still to be made.
static IS_SHUT: AtomicBool = AtomicBool::new(false);

/// Shuts the way, or opens it again.
pub fn shut(shut: bool) {
    IS_SHUT.store(shut, Ordering::SeqCst);
    registry::each().for_each(follow);
}

/// Updates a thread's record to the latest state. The maker of a thread calls this too, and both check afterwards that the state is still the one that they
/// have written.
pub fn follow(thread: Thread) {
    let reach = &thread.record().reach;
    loop {
        let shut = IS_SHUT.load(Ordering::SeqCst);
        match shut {
            true => reach.fetch_or(SHUT, Ordering::SeqCst),
            false => reach.fetch_and(!SHUT, Ordering::SeqCst),
        };
        if IS_SHUT.load(Ordering::SeqCst) == shut {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use stillpoint_wrappers::gate::Reach;

    use super::*;

    fn word(thread: Thread) -> u32 {
        thread.record().reach.load(Ordering::SeqCst)
    }

    #[test]
    fn threads_that_are_there_and_threads_that_come_are_shut_until_it_is_over() {
        let there = Thread::take().unwrap();
        let unknown = Reach::Unknown as u32;
        assert_eq!(word(there), unknown);
        shut(true);
        let comes = Thread::take().unwrap();
        assert_eq!((word(there), word(comes)), (unknown | SHUT, unknown | SHUT));
        // How a thread reaches the lower half is independent, and may be determined meanwhile.
        there.set_reach(Reach::Near);
        assert_eq!(word(there), Reach::Near as u32 | SHUT);
        shut(false);
        assert_eq!((word(there), word(comes)), (Reach::Near as u32, unknown));
        there.give_back();
        comes.give_back();
    }
}
