//! The credentials of each thread: users, groups, capabilities and the settings that govern them.
//!
//! The C library keeps them equal for all threads of the application; the kernel keeps them for each thread. Threads of the lower half keep
//! those that the process was launched with.

use std::collections::BTreeSet;
use stillpoint_part::Kind;

use serde::{Deserialize, Serialize};

use crate::gate::errand;
use crate::ground::proc_files;
use crate::threads::Thread;

/// The payload of an image with the credentials: JSON, [`Saved`].
pub const KIND: Kind = Kind {
    name: "credentials",
    version: 1,
    always: true,
};

/// One thread's credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// The real, effective, saved and file system ids.
    pub users: [u32; 4],
    pub groups: [u32; 4],
    pub supplementary: BTreeSet<u32>,
    pub capabilities: Capabilities,
    /// `PR_GET_SECUREBITS`, `SECBIT_KEEP_CAPS` among them.
    pub securebits: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    pub inheritable: u64,
    pub permitted: u64,
    pub effective: u64,
    pub bounding: u64,
    pub ambient: u64,
}

/// The credentials in an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// The credentials at launch, which a thread of the lower half still has.
    pub launched: Credentials,
    /// A thread's credentials, with the id that the application knows.
    pub threads: Vec<(u32, Credentials)>,
}

impl Credentials {
    /// Reads a thread's credentials. The kernel tells the securebits only to the thread itself, so the caller gives them.
    pub fn of(tid: u32, securebits: u32) -> Option<Credentials> {
        let status = proc_files::by(&format!("/proc/self/task/{tid}/status")).ok()?;
        Credentials::read(&status, securebits)
    }

    fn read(status: &str, securebits: u32) -> Option<Credentials> {
        let field = |key: &str| status.lines().find_map(|line| line.strip_prefix(key));
        let numbers = |key: &str| {
            let numbers = field(key)?.split_whitespace();
            numbers
                .map(|number| number.parse().ok())
                .collect::<Option<Vec<u32>>>()
        };
        let four = |key: &str| numbers(key)?.try_into().ok();
        let set = |key: &str| u64::from_str_radix(field(key)?.trim(), 16).ok();
        Some(Credentials {
            users: four("Uid:")?,
            groups: four("Gid:")?,
            supplementary: numbers("Groups:")?.into_iter().collect(),
            capabilities: Capabilities {
                inheritable: set("CapInh:")?,
                permitted: set("CapPrm:")?,
                effective: set("CapEff:")?,
                bounding: set("CapBnd:")?,
                ambient: set("CapAmb:").unwrap_or(0),
            },
            securebits,
        })
    }

    /// Reads the calling thread's credentials.
    pub fn here() -> Option<Credentials> {
        Credentials::of(crate::arch::syscall::gettid(), securebits_here())
    }
}

fn securebits_here() -> u32 {
    // SAFETY: the call touches no memory.
    let bits = unsafe { libc::prctl(libc::PR_GET_SECUREBITS) };
    u32::try_from(bits).unwrap_or(0)
}

/// Returns the calling thread's securebits, as an errand.
///
/// # Safety
/// Nothing is demanded: the argument is not used.
unsafe fn securebits(_argument: usize) -> isize {
    let get = libc::PR_GET_SECUREBITS as usize;
    // SAFETY: the call touches no memory.
    unsafe { crate::arch::syscall::syscall3(libc::SYS_prctl, get, 0, 0) }
}

/// Returns the credentials of these threads.
///
/// # Safety
/// The threads must be stopped, and stay so.
pub unsafe fn survey(threads: &[Thread]) -> Option<Saved> {
    let mut saved = Saved {
        launched: Credentials::here()?,
        threads: Vec::new(),
    };
    for thread in threads {
        // SAFETY: the caller keeps the thread stopped; `securebits` takes no argument.
        let bits = unsafe { errand::send(*thread, securebits, 0)? };
        let credentials = Credentials::of(thread.real_tid(), u32::try_from(bits).unwrap_or(0))?;
        saved.threads.push((thread.virtual_tid(), credentials));
    }
    Some(saved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_understood() {
        let status = "Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t30 10 20 \nCapInh:\t0000000000000001\n\
                      CapPrm:\t00000000000000ff\nCapEff:\t000000000000000f\nCapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000000\n";
        let read = Credentials::read(status, 16).unwrap();
        assert_eq!((read.users, read.groups), ([1, 2, 3, 4], [5, 6, 7, 8]));
        assert_eq!(read.supplementary, BTreeSet::from([10, 20, 30]));
        assert_eq!(
            read.capabilities,
            Capabilities {
                inheritable: 1,
                permitted: 0xff,
                effective: 0xf,
                bounding: 0x1ff_ffff_ffff,
                ambient: 0,
            }
        );
        assert_eq!(read.securebits, 16);
        assert!(Credentials::here().is_some());
    }
}
