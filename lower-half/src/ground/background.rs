//! Work behind the application: it is to get on where all processors are busy for ever, and to take little of them.
//!
//! The nice value decides how much it gets: beside one thread of the application's, a twentieth of a processor. Such a thread sleeps and wakes for every block
//! of memory, and the kernel has a woken one wait for a turn that is the later the longer the turn is (EEVDF). So its turns are short. Kernels before 6.12 do
//! not take that; there it gets less than its part.

use crate::arch::syscall::{self, syscall3};

/// Added to the nice value. It halves what the writer gets at 10, where an application was slowed by a quarter; at 19 an epoch would take ten times as long.
const NICER: i32 = 13;
const NICEST: i32 = 19;
/// The shortest turn that the kernel gives.
const TURN_NANOSECONDS: u64 = 100_000;
/// `SCHED_FLAG_KEEP_POLICY` of `linux/sched.h`.
const KEEP_POLICY: u64 = 8;

/// From here on this thread, and those that it starts, leave the processor to the application where both want it. System calls by hand and nothing else: a
/// process that holds memory as it was calls it too.
pub fn give_way() {
    let this_thread = libc::PRIO_PROCESS as usize;
    // SAFETY: the call touches no memory. It gives 20 less the nice value.
    let found = unsafe { syscall3(libc::SYS_getpriority, this_thread, 0, 0) };
    let before = if syscall::failed(found) {
        0
    } else {
        20 - found as i32
    };
    let nice = nicer(before);
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
    // SAFETY: the kernel reads the structure, and the other call touches no memory. Where either is refused - an older kernel, a real-time
    // policy - the thread only competes.
    unsafe {
        syscall3(libc::SYS_setpriority, this_thread, 0, nice as usize);
        let attributes = &raw const attributes as usize;
        syscall3(libc::SYS_sched_setattr, 0, attributes, 0);
    }
}

fn nicer(nice: i32) -> i32 {
    (nice + NICER).min(NICEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_nice_already_becomes_nicer() {
        assert_eq!(nicer(0), NICER);
        assert_eq!(nicer(-20), NICER - 20);
        assert_eq!(nicer(10), NICEST);
        let thread = std::thread::spawn(|| {
            // SAFETY: the call touches no memory.
            let nice = || unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
            let before = nice();
            give_way();
            assert_eq!(nice(), nicer(before));
        });
        thread.join().unwrap();
    }
}
