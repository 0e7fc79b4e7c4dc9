//! Restores the scheduling that the application had chosen for its threads (`capture::scheduling`). If this launch does not permit a setting (a lower nice
//! value, a real-time policy, processors that it does not have), the thread goes on without it, and a warning says so.

use std::collections::BTreeMap;
use std::io;

use super::back::Back;
use crate::capture::scheduling::{self, A_THREAD, Chosen, Own, Policy};

/// A setting that a thread does not get, and why.
type Lost = (String, String);

/// Restores the settings of all threads. Runs on the main thread, once the lower half starts no more threads from it: they would inherit the main thread's
/// settings.
pub fn give(saved: &[Own], back: &Back) {
    let mut lost = BTreeMap::<Lost, Vec<u32>>::new();
    let real = |own: &Own| {
        back.made
            .iter()
            .find(|thread| thread.virtual_tid() == own.virtual_tid)
            .map_or(0, |thread| thread.real_tid())
    };
    for own in saved {
        for loss in give_to(real(own), own) {
            lost.entry(loss).or_default().push(own.virtual_tid);
        }
    }
    for ((what, why), threads) in lost {
        back.say(&format!("{} without {what}: {why}", go_on(&threads)));
    }
}

fn go_on(threads: &[u32]) -> String {
    match threads {
        [one] => format!("thread {one} goes on"),
        [first, others @ ..] => format!("thread {first} and {} more go on", others.len()),
        [] => String::new(),
    }
}

/// Restores a thread's own settings; 0 is the caller.
fn give_to(tid: u32, own: &Own) -> Vec<Lost> {
    let given = [
        own.timer_slack.map(|slack| {
            let given = if tid == 0 {
                set_timer_slack(slack)
            } else {
                Ok(())
            };
            (format!("its timer slack of {slack} ns"), given)
        }),
        own.nice
            .map(|nice| (format!("its nice value {nice}"), set_nice(tid, nice))),
        own.policy.as_ref().map(|policy| {
            let what = format!(
                "its scheduling policy {}, priority {}",
                policy.policy, policy.priority
            );
            (what, set_policy(tid, policy))
        }),
        own.io_priority.map(|priority| {
            let what = format!("its I/O priority {priority:#x}");
            (what, set_io_priority(tid, priority))
        }),
        own.processors.as_ref().map(|chosen| {
            let what = format!("its processors {:?}", chosen.processors);
            (what, set_processors(tid, chosen))
        }),
    ];
    given
        .into_iter()
        .flatten()
        .filter_map(|(what, given)| Some((what, given.err()?.to_string())))
        .collect()
}

fn checked(result: libc::c_long) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn set_timer_slack(nanoseconds: u64) -> io::Result<()> {
    // SAFETY: the call takes numbers and touches no memory.
    checked(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanoseconds) }.into())
}

fn set_nice(tid: u32, nice: i32) -> io::Result<()> {
    if scheduling::nice(tid) == Some(nice) {
        return Ok(());
    }
    // SAFETY: the call takes numbers and touches no memory.
    checked(unsafe { libc::syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, tid, nice) })
}

fn set_policy(tid: u32, policy: &Policy) -> io::Result<()> {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: policy.policy,
        sched_flags: policy.flags,
        sched_nice: scheduling::nice(tid).unwrap_or(0),
        sched_priority: policy.priority,
        sched_runtime: policy.runtime,
        sched_deadline: policy.deadline,
        sched_period: policy.period,
    };
    // SAFETY: the kernel reads the structure, which lives on this stack and says how long it is.
    checked(unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attributes, 0) })
}

fn set_io_priority(tid: u32, priority: i32) -> io::Result<()> {
    if scheduling::io_priority(tid) == Some(priority) {
        return Ok(());
    }
    // SAFETY: the call takes numbers and touches no memory.
    checked(unsafe { libc::syscall(libc::SYS_ioprio_set, A_THREAD, tid, priority) })
}

/// Sets a thread's processors. If they were among the launcher's, they are restored only within those of this launch.
fn set_processors(tid: u32, chosen: &Chosen) -> io::Result<()> {
    let here = scheduling::launched().processors.unwrap_or_default();
    let elsewhere = || io::Error::other("this launch does not run on all of them");
    if !chosen.beyond && !scheduling::within(&chosen.processors, &here) {
        return Err(elsewhere());
    }
    let mask = scheduling::mask_of(&chosen.processors);
    // SAFETY: the kernel reads as many bytes as the set has.
    checked(unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            tid,
            size_of_val(mask.as_slice()),
            mask.as_ptr(),
        )
    })?;
    match scheduling::processors(tid) {
        Some(given) if given == chosen.processors => Ok(()),
        _ => Err(elsewhere()),
    }
}
