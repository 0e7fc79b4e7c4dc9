//! Restores the attributes that the application had chosen for its process and threads (`capture::attributes`). If this launch or this kernel does not permit
//! one, the process goes on without it, and a warning says so.

use std::sync::atomic::{AtomicU64, Ordering};

use super::back::Back;
use crate::capture::attributes::{Attribute, OF_PROCESS, OF_THREADS, Saved, named};

/// The attributes that a thread sets for itself.
pub type OfThread = Vec<(&'static Attribute, i64)>;

/// Returns a thread's attributes, by the thread id that the application knows.
pub fn of_thread(saved: &Saved, virtual_tid: u32) -> OfThread {
    let mut threads = saved.threads.iter();
    threads
        .find(|(tid, _)| *tid == virtual_tid)
        .map(|(_, own)| named(&OF_THREADS, own).collect())
        .unwrap_or_default()
}

/// The attributes that some thread did not get: bits, by place in the table.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Sets the calling thread's attributes. Makes its system calls directly and allocates nothing, because a thread with the upper FS calls this.
pub fn give_thread(own: &OfThread) {
    for (attribute, value) in own {
        if attribute.get() != Some(*value) && !attribute.set(*value) {
            let mut places = OF_THREADS.iter();
            let place = places.position(|other| core::ptr::eq(other, *attribute));
            LOST.fetch_or(1 << place.unwrap_or(0), Ordering::Relaxed);
        }
    }
}

/// Sets the process's attributes. Returns the names of all that could not be set, those of threads included: every thread must have set its own.
pub fn give_process(saved: &Saved) -> Vec<&'static str> {
    let lost = LOST.load(Ordering::Relaxed);
    let of_threads = OF_THREADS.iter().enumerate();
    let mut names: Vec<&'static str> = of_threads
        .filter(|(place, _)| lost >> place & 1 != 0)
        .map(|(_, attribute)| attribute.name)
        .collect();
    for (attribute, value) in named(&OF_PROCESS, &saved.process) {
        if attribute.get() != Some(value) && !attribute.set(value) {
            names.push(attribute.name);
        }
    }
    names
}

/// Prints which attributes this launch does not permit.
pub fn tell(lost: &[&str], back: &Back) {
    if !lost.is_empty() {
        back.say(&format!(
            "the program goes on without settings that this launch may not make: {}",
            lost.join(", ")
        ));
    }
}

/// Whether the process may be dumped and looked into: its own choice again, after the change of users that has reset it.
pub fn dumpable_again(saved: &Saved) {
    let own = saved.process.iter().find(|(name, _)| name == "dumpable");
    let dumpable = own.map_or(1, |(_, value)| *value);
    // 2 is what the kernel itself sets at such a change.
    if matches!(dumpable, 0 | 1) {
        // SAFETY: the call takes a number and touches no memory.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, dumpable) };
    }
}
