//! PID namespaces, told apart across containers, hosts and boots.
//!
//! The kernel's number of a namespace is unique under one kernel only: the first namespace of every host has the same number. So a few bits of two ids stand
//! beside it. The boot's id is common to all processes under one kernel. The machine's id tells an earlier boot of this machine from another machine.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::codec::{Decode, Encode};

const INODE_BITS: u32 = 32;
const BOOT_BITS: u32 = 20;
const MACHINE_BITS: u32 = 12;
const _: () = assert!(INODE_BITS + BOOT_BITS + MACHINE_BITS == u64::BITS);

/// The number of every host's first namespace (`PROC_PID_INIT_INO`). A container with another one may end as a whole.
const OF_THE_HOST: u64 = 0xefff_fffc;

/// A PID namespace: its number, with some bits of its boot's id and of its machine's. 0: not known. Earlier releases wrote the number alone.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, Encode, Decode,
)]
pub struct Namespace(u64);

/// The range within which a process's number is unambiguous: see [`Namespace::place`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PidScope(u64);

impl Namespace {
    /// The namespace of the calling process.
    ///
    /// # Errors
    /// The reason why `/proc` does not show this process's namespace.
    pub fn own() -> Result<Namespace, Strange> {
        let this = fs::read_link("/proc/self").map_err(|_| Strange::Missing)?;
        let this = this.to_str().and_then(|number| number.parse().ok());
        if this != Some(std::process::id()) {
            return Err(Strange::Others);
        }
        Namespace::shown("self").ok_or(Strange::Missing)
    }

    /// [`Namespace::own`], or unknown.
    pub fn here() -> Namespace {
        Namespace::own().unwrap_or_default()
    }

    /// The namespace of a process that this one's `/proc` shows; `None`: it has gone, or this process may not look at it.
    pub fn of(pid: u32) -> Option<Namespace> {
        Namespace::shown(&pid.to_string())
    }

    fn shown(process: &str) -> Option<Namespace> {
        let inode = fs::metadata(format!("/proc/{process}/ns/pid")).ok()?.ino();
        // The ids stay the same, and every look at a process asks for them.
        static HERE: OnceLock<[String; 2]> = OnceLock::new();
        let [boot, machine] = HERE.get_or_init(|| {
            ["/proc/sys/kernel/random/boot_id", "/etc/machine-id"]
                .map(|path| fs::read_to_string(path).unwrap_or_default())
        });
        Some(Namespace::told_of(inode, boot, machine))
    }

    /// Makes a namespace of a number, a boot's id and a machine's. An empty id stands for an unknown one.
    pub fn told_of(inode: u64, boot: &str, machine: &str) -> Namespace {
        let number = inode & ((1 << INODE_BITS) - 1);
        let boot = digest(boot, BOOT_BITS) << INODE_BITS;
        let machine = digest(machine, MACHINE_BITS) << (INODE_BITS + BOOT_BITS);
        Namespace(number | boot | machine)
    }

    pub fn is_unknown(&self) -> bool {
        self.0 == 0
    }

    /// Whether it is the first namespace of its kernel.
    pub fn is_of_the_host(self) -> bool {
        self.number() == OF_THE_HOST
    }

    /// Whether both are the same, as far as their boots are known. The machine's id does not count: containers may have another than their host.
    pub fn is_same(self, other: Namespace) -> bool {
        self.number() == other.number() && !self.is_of_another_boot(other)
    }

    /// Whether both are known to be under different kernels.
    pub fn is_of_another_boot(self, other: Namespace) -> bool {
        self.boot() != other.boot() && self.boot() != 0 && other.boot() != 0
    }

    /// Whether it belongs to an earlier boot of this machine: then none of its processes lives.
    pub fn is_of_an_earlier_boot(self, now: Namespace) -> bool {
        let machine = self.machine() == now.machine() && now.machine() != 0;
        machine && self.is_of_another_boot(now)
    }

    /// A value that is equal for equal namespaces: number and boot.
    pub fn place(self) -> PidScope {
        PidScope(self.0 & ((1 << (INODE_BITS + BOOT_BITS)) - 1))
    }

    fn number(self) -> u64 {
        self.0 & ((1 << INODE_BITS) - 1)
    }

    fn boot(self) -> u64 {
        self.0 >> INODE_BITS & ((1 << BOOT_BITS) - 1)
    }

    fn machine(self) -> u64 {
        self.0 >> (INODE_BITS + BOOT_BITS)
    }

    /// The form in which an earlier release has written it.
    #[cfg(test)]
    pub(crate) fn unqualified(self) -> Namespace {
        Namespace(self.number())
    }
}

/// FNV-1a of the trimmed text, folded into `bits` bits. It is 0 for empty text only.
fn digest(text: &str, bits: u32) -> u64 {
    let text = text.trim();
    if text.is_empty() {
        return 0;
    }
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    (hash >> (u64::BITS - bits)).max(1)
}

/// The problem with `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Strange {
    #[error(
        "the container has no /proc: have it mount one (bwrap --proc /proc, unshare --mount-proc)"
    )]
    Missing,
    #[error(
        "/proc shows the processes of another PID namespace: have the container mount its own (bwrap --proc /proc, \
         unshare --mount-proc)"
    )]
    Others,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_is_that_of_proc() {
        assert_eq!(Namespace::own(), Ok(Namespace::here()));
        assert!(!Namespace::here().is_unknown());
        assert_eq!(Namespace::of(std::process::id()), Some(Namespace::here()));
    }

    #[test]
    fn hosts_of_one_name_are_told_apart() {
        let of = |inode, boot, machine| Namespace::told_of(inode, boot, machine);
        let here = of(OF_THE_HOST, "8d2f", "ab01");
        assert!(here.is_of_the_host());
        assert!(here.is_same(here));
        let other = of(OF_THE_HOST, "77aa", "c9d3");
        assert!(!other.is_same(here), "another machine");
        assert!(other.is_of_another_boot(here));
        assert!(!other.is_of_an_earlier_boot(here));
        assert_ne!(other.place(), here.place());
        let container = of(5, "8d2f", "");
        assert!(!container.is_same(here) && !container.is_of_another_boot(here));
        let without = of(OF_THE_HOST, "8d2f", "");
        assert!(without.is_same(here), "a container in the host's namespace");
        assert_eq!(without.place(), here.place());
        let before = of(OF_THE_HOST, "0001", "ab01\n");
        assert!(before.is_of_an_earlier_boot(here));
        let unknown = of(OF_THE_HOST, "", "");
        assert!(unknown.is_same(here) && !unknown.is_of_an_earlier_boot(here));
    }
}
