//! Threads that write an epoch while the application runs. They leave the processor to the application, for a limited time.
//!
//! The nice value decides how much processor time a thread gets. An unprivileged thread cannot lower its own again, so each turn has threads of its own
//! (`stillpoint_image::crew`). In the last turn they compete like the application's threads. Ranks may wait for messages without sleeping, and many of them on
//! a core would keep a nicer writer from ever finishing.
//!
//! A writer sleeps and wakes for every block of memory. The longer its time slice, the longer a woken thread waits for its turn (EEVDF), so these threads ask
//! for short slices. Kernels before 6.12 do not support that; there, the threads get less than their share.

use std::time::Duration;

use stillpoint_image::crew::Turn;

use crate::arch::syscall::{self, syscall3};

const NICEST: i32 = 19;
/// The shortest time slice that the kernel grants.
const TURN_NANOSECONDS: u64 = 100_000;
/// `SCHED_FLAG_KEEP_POLICY` of `linux/sched.h`.
const KEEP_POLICY: u64 = 8;

/// Beside one thread that computes, a writer gets a twentieth of a core, then a seventh, then three tenths, then half.
pub const TURNS: &[Turn] = &[
    turn(2, || give_way(13)),
    turn(4, || give_way(8)),
    turn(8, || give_way(4)),
];

const fn turn(seconds: u64, give_way: fn()) -> Turn {
    Turn {
        until: Duration::from_secs(seconds),
        give_way,
    }
}

/// Adds to this thread's nice value, and asks for short time slices.
fn give_way(more: i32) {
    let this_thread = libc::PRIO_PROCESS as usize;
    // SAFETY: the call takes numbers and touches no memory. It returns 20 minus the nice value.
    let found = unsafe { syscall3(libc::SYS_getpriority, this_thread, 0, 0) };
    let before = if syscall::failed(found) {
        0
    } else {
        20 - found as i32
    };
    let nice = nicer(before, more);
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: 0,
        sched_flags: KEEP_POLICY,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: TURN_NANOSECONDS,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel reads the structure, which lives on this stack, and the other call touches no memory. Where either is refused - an older kernel, a
    // real-time policy - the thread only competes.
    unsafe {
        syscall3(libc::SYS_setpriority, this_thread, 0, nice as usize);
        let attributes = &raw const attributes as usize;
        syscall3(libc::SYS_sched_setattr, 0, attributes, 0);
    }
}

fn nicer(nice: i32, more: i32) -> i32 {
    (nice + more).min(NICEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how much a turn adds to the nice value of a thread.
    fn added(turn: &Turn) -> i32 {
        let give_way = turn.give_way;
        // SAFETY: the call takes numbers and touches no memory.
        let nice = || unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        let thread = std::thread::spawn(move || {
            let before = nice();
            give_way();
            nice() - before
        });
        thread.join().unwrap()
    }

    #[test]
    fn each_turn_gives_less_way_than_the_one_before() {
        assert_eq!(nicer(-20, 13), -7);
        assert_eq!(nicer(10, 13), NICEST);
        let all: Vec<i32> = TURNS.iter().map(added).collect();
        assert_eq!(all, [13, 8, 4]);
        assert!(TURNS.is_sorted_by(|one, next| one.until < next.until));
    }
}
