//! Single numbers that the kernel keeps for each thread or for the process, and that a program can set. An image saves those that the
//! program has changed since it was launched, and a restart sets them again.
//!
//! Each is one line of a table: whether it belongs to a thread or to the process, how it is read and how it is set. Only the thread itself
//! can read and set a thread's number (`gate::errand`).

use std::sync::OnceLock;
use stillpoint_part::Kind;

use serde::{Deserialize, Serialize};

use crate::arch::syscall::{failed, syscall3, syscall6};
use crate::gate::errand;
use crate::threads::Thread;

/// The payload of an image with these numbers: JSON, [`Saved`].
pub const KIND: Kind = Kind {
    name: "attributes",
    version: 1,
    always: true,
};

/// How an attribute is read and set. System calls are made without the C library, because threads with the upper FS make them, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// `prctl(get)` returns it, `prctl(set, value)` sets it.
    Returned { get: i32, set: i32 },
    /// `prctl(get, &value)` writes it.
    Written { get: i32, set: i32 },
    /// `prctl(get, which)` and `prctl(set, which, value)`; a bit beside the value says that it can be set.
    Speculation(usize),
    /// `prctl(PR_MCE_KILL_GET)`, `prctl(PR_MCE_KILL, PR_MCE_KILL_SET, value)`.
    MachineCheck,
    /// `personality`.
    Personality,
    /// `set_mempolicy`: mode and flags, with the nodes above them.
    MemoryPolicy,
    /// A number in a file of `/proc/self`, in this base.
    File(&'static core::ffi::CStr, u32),
}

/// An attribute.
#[derive(Debug, PartialEq, Eq)]
pub struct Attribute {
    pub name: &'static str,
    how: How,
}

const PR_GET_MEMORY_MERGE: i32 = 68;
const PR_SET_MEMORY_MERGE: i32 = 67;
const PR_GET_IO_FLUSHER: i32 = 58;
const PR_SET_IO_FLUSHER: i32 = 57;
const PR_GET_MDWE: i32 = 66;
const PR_SET_MDWE: i32 = 65;
const PR_GET_SPECULATION_CTRL: usize = 52;
const PR_SET_SPECULATION_CTRL: usize = 53;
/// The bit beside the value: the program may set it.
const PR_SPEC_PRCTL: u64 = 1;

const fn attribute(name: &'static str, how: How) -> Attribute {
    Attribute { name, how }
}

/// The attributes of a thread. Images contain these names.
#[rustfmt::skip]
pub const OF_THREADS: [Attribute; 9] = [
    attribute("signal at its parent's death", How::Written { get: libc::PR_GET_PDEATHSIG, set: libc::PR_SET_PDEATHSIG }),
    attribute("time-stamp counter", How::Written { get: libc::PR_GET_TSC, set: libc::PR_SET_TSC }),
    attribute("machine check policy", How::MachineCheck),
    attribute("personality", How::Personality),
    attribute("memory policy", How::MemoryPolicy),
    attribute("I/O flusher", How::Returned { get: PR_GET_IO_FLUSHER, set: PR_SET_IO_FLUSHER }),
    attribute("speculative store bypass", How::Speculation(0)),
    attribute("indirect branch speculation", How::Speculation(1)),
    attribute("cache flush on switches", How::Speculation(2)),
];

/// The attributes of the process.
#[rustfmt::skip]
pub const OF_PROCESS: [Attribute; 6] = [
    attribute("transparent huge pages switched off", How::Returned { get: libc::PR_GET_THP_DISABLE, set: libc::PR_SET_THP_DISABLE }),
    attribute("merging of equal pages", How::Returned { get: PR_GET_MEMORY_MERGE, set: PR_SET_MEMORY_MERGE }),
    attribute("out-of-memory score", How::File(c"/proc/self/oom_score_adj", 10)),
    attribute("what a core dump holds", How::File(c"/proc/self/coredump_filter", 16)),
    attribute("writable or executable memory", How::Returned { get: PR_GET_MDWE, set: PR_SET_MDWE }),
    // A change of users resets it, so it is set after that.
    attribute("dumpable", How::Returned { get: libc::PR_GET_DUMPABLE, set: libc::PR_SET_DUMPABLE }),
];

fn prctl(what: usize, first: usize, second: usize) -> Option<u64> {
    let call = [what, first, second, 0, 0, 0];
    // SAFETY: the kernel writes at most the one word that an argument here leads to.
    let result = unsafe { syscall6(libc::SYS_prctl, call) };
    (!failed(result)).then_some(result as u64)
}

/// Bits of a memory policy's mode with its flags; the nodes lie above them.
const MODE_BITS: u32 = 16;
/// The number of nodes that a policy may name: as many as fit above the mode in a positive number. The kernel counts one less.
const NODES: usize = 63 - MODE_BITS as usize;

/// Returns the memory policy, or `None` if the kernel refuses, or a node has a higher number.
fn memory_policy() -> Option<i64> {
    let (mut mode, mut nodes) = (0i32, [0u64; 16]);
    let call = [
        &raw mut mode as usize,
        nodes.as_mut_ptr() as usize,
        size_of_val(&nodes) * 8,
        0,
        0,
        0,
    ];
    // SAFETY: the kernel writes the mode and at most as many bits.
    let result = unsafe { syscall6(libc::SYS_get_mempolicy, call) };
    let small = nodes[0] >> NODES == 0 && nodes[1..].iter().all(|word| *word == 0);
    (!failed(result) && small).then(|| (nodes[0] << MODE_BITS) as i64 | i64::from(mode as u16))
}

fn set_memory_policy(value: i64) -> bool {
    let (mode, nodes) = (value as u16, value as u64 >> MODE_BITS);
    let (list, count) = match nodes {
        0 => (0, 0),
        _ => (&raw const nodes as usize, NODES + 1),
    };
    // SAFETY: the kernel reads one word.
    !failed(unsafe { syscall3(libc::SYS_set_mempolicy, mode.into(), list, count) })
}

impl Attribute {
    /// Returns the value of the calling thread or its process, or `None` if this kernel has none.
    pub fn get(&self) -> Option<i64> {
        match self.how {
            How::Returned { get, .. } => prctl(get as usize, 0, 0).map(|value| value as i64),
            How::Written { get, .. } => {
                let mut value = 0i32;
                prctl(get as usize, &raw mut value as usize, 0)?;
                Some(value.into())
            }
            How::Speculation(which) => {
                let value = prctl(PR_GET_SPECULATION_CTRL, which, 0)?;
                (value & PR_SPEC_PRCTL != 0).then_some((value & !PR_SPEC_PRCTL) as i64)
            }
            How::MachineCheck => {
                prctl(libc::PR_MCE_KILL_GET as usize, 0, 0).map(|value| value as i64)
            }
            How::Personality => {
                // SAFETY: the call takes a number and touches no memory; this number only asks.
                let value = unsafe { syscall3(libc::SYS_personality, 0xffff_ffff, 0, 0) };
                (!failed(value)).then_some(value as i64)
            }
            How::MemoryPolicy => memory_policy(),
            How::File(path, base) => {
                let text = std::fs::read_to_string(path.to_str().ok()?).ok()?;
                i64::from_str_radix(text.trim(), base).ok()
            }
        }
    }

    /// Sets the value of the calling thread or its process. Returns false if the kernel refuses.
    pub fn set(&self, value: i64) -> bool {
        let number = value as usize;
        match self.how {
            How::Returned { set, .. } | How::Written { set, .. } => {
                prctl(set as usize, number, 0).is_some()
            }
            How::Speculation(which) => prctl(PR_SET_SPECULATION_CTRL, which, number).is_some(),
            How::MachineCheck => {
                let set = libc::PR_MCE_KILL_SET as usize;
                prctl(libc::PR_MCE_KILL as usize, set, number).is_some()
            }
            How::Personality => {
                // SAFETY: the call takes a number and touches no memory.
                !failed(unsafe { syscall3(libc::SYS_personality, number, 0, 0) })
            }
            How::MemoryPolicy => set_memory_policy(value),
            How::File(path, base) => {
                let text = match base {
                    16 => format!("{value:#x}"),
                    _ => value.to_string(),
                };
                let path = path.to_str().unwrap_or_default();
                std::fs::write(path, text).is_ok()
            }
        }
    }
}

type OfThread = [Option<i64>; OF_THREADS.len()];
type OfProcess = [Option<i64>; OF_PROCESS.len()];

fn of_this_thread() -> OfThread {
    OF_THREADS.each_ref().map(Attribute::get)
}

fn of_this_process() -> OfProcess {
    OF_PROCESS.each_ref().map(Attribute::get)
}

/// The values that the process was launched with.
static LAUNCHED: OnceLock<(OfThread, OfProcess)> = OnceLock::new();

/// Notes the values of the calling thread and its process, before the application runs.
pub fn remember() {
    launched();
}

fn launched() -> &'static (OfThread, OfProcess) {
    LAUNCHED.get_or_init(|| (of_this_thread(), of_this_process()))
}

/// The variable that tells a program that the application executes what the process was launched with.
pub const VARIABLE: &str = "STILLPOINT_ATTRIBUTES";

/// Returns that variable.
pub fn variable() -> Option<String> {
    let launched = serde_json::to_string(launched()).ok()?;
    Some(format!("{VARIABLE}={launched}"))
}

/// Takes over the knowledge of the program that executed this one.
pub fn inherit() {
    let told = std::env::var(VARIABLE).unwrap_or_default();
    if let Ok(known) = serde_json::from_str(&told) {
        LAUNCHED.get_or_init(|| known);
    }
}

/// The numbers that the application has chosen, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    pub process: Vec<(String, i64)>,
    /// A thread's numbers, with the id that the application knows.
    pub threads: Vec<(u32, Vec<(String, i64)>)>,
}

/// Returns the numbers that have changed since the process was launched.
fn own(table: &[Attribute], now: &[Option<i64>], launched: &[Option<i64>]) -> Vec<(String, i64)> {
    let both = table.iter().zip(now.iter().zip(launched));
    let own = both.filter(|(_, (now, launched))| now != launched);
    own.filter_map(|(attribute, (now, _))| Some((attribute.name.to_owned(), (*now)?)))
        .collect()
}

/// Reads the calling thread's numbers, as an errand.
///
/// # Safety
/// `argument` must lead to an `OfThread` that nothing else uses until this returns.
unsafe fn look(argument: usize) -> isize {
    // SAFETY: the agent gave a pointer to an `OfThread`, waits in `errand::send` until this ends, and does not touch it before.
    unsafe { (argument as *mut OfThread).write(of_this_thread()) };
    0
}

/// Returns the numbers that the application has chosen, for the process and for these threads, or `None` if a thread does not answer.
///
/// # Safety
/// The threads must be stopped, and stay so.
pub unsafe fn survey(threads: &[Thread]) -> Option<Saved> {
    let unknown = ([None; OF_THREADS.len()], [None; OF_PROCESS.len()]);
    let launched = LAUNCHED.get().unwrap_or(&unknown);
    let mut saved = Saved {
        process: own(&OF_PROCESS, &of_this_process(), &launched.1),
        threads: Vec::new(),
    };
    for thread in threads {
        let mut told = [None; OF_THREADS.len()];
        // SAFETY: the caller keeps the thread stopped; `look` expects a pointer to such an array, which lives on this stack until `send` returns.
        unsafe { errand::send(*thread, look, &raw mut told as usize)? };
        let own = own(&OF_THREADS, &told, &launched.0);
        if !own.is_empty() {
            saved.threads.push((thread.virtual_tid(), own));
        }
    }
    Some(saved)
}

/// Returns the attributes of a table that an image names, with their values.
pub fn named<'a>(
    table: &'static [Attribute],
    saved: &'a [(String, i64)],
) -> impl Iterator<Item = (&'static Attribute, i64)> + 'a {
    saved.iter().filter_map(|(name, value)| {
        let attribute = table.iter().find(|attribute| attribute.name == name)?;
        Some((attribute, *value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_changed_is_the_applications_own() {
        let launched = of_this_thread();
        assert_eq!(own(&OF_THREADS, &launched, &launched), []);
        let mut changed = launched;
        changed[0] = Some(23);
        let own = own(&OF_THREADS, &changed, &launched);
        assert_eq!(own, [(OF_THREADS[0].name.to_owned(), 23)]);
        let (attribute, value) = named(&OF_THREADS, &own).next().unwrap();
        assert!(attribute.set(value));
        assert_eq!(attribute.get(), Some(23));
    }

    #[test]
    fn every_attribute_can_be_set_to_what_it_is() {
        for attribute in OF_THREADS.iter().chain(&OF_PROCESS) {
            if let Some(value) = attribute.get() {
                // Only root may set some of them, and others only a program for which they are set.
                let _ = attribute.set(value);
                assert_eq!(attribute.get(), Some(value), "{}", attribute.name);
            }
        }
    }
}
