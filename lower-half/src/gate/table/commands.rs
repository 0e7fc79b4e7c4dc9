//! System calls that are many in one: each command of `prctl`, `arch_prctl`, `fcntl` and `ioctl` that leaves something in the kernel, and how that is treated.
//!
//! Rules of this place: as the table's.

use super::super::call::{Call, errno};
use super::super::holdings::{self, Holding};
use super::super::{descriptors, naming};

/// The treatment of a command.
#[derive(Clone, Copy)]
pub enum Fate {
    /// Never trapped.
    Free,
    /// Its effect cannot be carried: it is noted, and the checkpoint refuses. With this value as its argument, the command has no effect.
    Holds(Holding, Option<usize>),
    /// Fails with this error at once, as on a kernel that does not have the command.
    Refused(i32),
}

/// A command.
pub struct Command {
    pub number: u32,
    #[cfg(test)]
    pub name: &'static str,
    pub fate: Fate,
    #[cfg(test)]
    pub at_a_checkpoint: &'static str,
}

const fn command(
    number: u32,
    name: &'static str,
    fate: Fate,
    at_a_checkpoint: &'static str,
) -> Command {
    // Only the generated page uses both.
    let _ = (name, at_a_checkpoint);
    Command {
        number,
        #[cfg(test)]
        name,
        fate,
        #[cfg(test)]
        at_a_checkpoint,
    }
}

/// Returns the numbers of the commands that are never trapped.
const fn free<const COUNT: usize>(commands: &[Command]) -> [u32; COUNT] {
    let mut numbers = [0; COUNT];
    let (mut from, mut to) = (0, 0);
    while from < commands.len() {
        if matches!(commands[from].fate, Fate::Free) {
            numbers[to] = commands[from].number;
            to += 1;
        }
        from += 1;
    }
    assert!(to == COUNT);
    numbers
}

const fn count_free(commands: &[Command]) -> usize {
    let (mut at, mut count) = (0, 0);
    while at < commands.len() {
        count += matches!(commands[at].fate, Fate::Free) as usize;
        at += 1;
    }
    count
}

/// Answers a trapped command: its number is the first argument, its value the second. A command that is not in the list is one of a newer kernel.
fn on_command(call: &Call, commands: &[Command]) -> isize {
    let number = call.argument(0) as u32;
    let fate = commands
        .iter()
        .find(|command| command.number == number)
        .map_or(Fate::Refused(libc::EINVAL), |command| command.fate);
    match fate {
        Fate::Holds(holding, nothing) if nothing != Some(call.argument(1)) => {
            holdings::held(call, holding)
        }
        Fate::Free | Fate::Holds(..) => call.make(),
        Fate::Refused(error) => errno(error),
    }
}

/// `prctl`.
pub fn on_prctl(call: &mut Call) -> isize {
    on_command(call, PRCTL)
}

/// `arch_prctl`.
pub fn on_arch_prctl(call: &mut Call) -> isize {
    on_command(call, ARCH_PRCTL)
}

use Fate::*;
use Holding::{ProcessSetting, SystemCallFilter};

const TELLS: &str = "tells something";
const CARRIED: &str = "carried";
const REFUSES: &str = "the checkpoint refuses";
const NOT_HERE: &str = "not on x86-64: fails";

#[rustfmt::skip]
pub const PRCTL: &[Command] = &[
    command(1, "PR_SET_PDEATHSIG", Free, CARRIED),
    command(2, "PR_GET_PDEATHSIG", Free, TELLS),
    command(3, "PR_GET_DUMPABLE", Free, TELLS),
    command(4, "PR_SET_DUMPABLE", Free, CARRIED),
    command(5, "PR_GET_UNALIGN", Free, NOT_HERE),
    command(6, "PR_SET_UNALIGN", Free, NOT_HERE),
    command(7, "PR_GET_KEEPCAPS", Free, TELLS),
    command(8, "PR_SET_KEEPCAPS", Free, CARRIED),
    command(9, "PR_GET_FPEMU", Free, NOT_HERE),
    command(10, "PR_SET_FPEMU", Free, NOT_HERE),
    command(11, "PR_GET_FPEXC", Free, NOT_HERE),
    command(12, "PR_SET_FPEXC", Free, NOT_HERE),
    command(13, "PR_GET_TIMING", Free, TELLS),
    command(14, "PR_SET_TIMING", Free, "the kernel has but one value"),
    command(15, "PR_SET_NAME", Free, "carried, for every thread"),
    command(16, "PR_GET_NAME", Free, TELLS),
    command(19, "PR_GET_ENDIAN", Free, NOT_HERE),
    command(20, "PR_SET_ENDIAN", Free, NOT_HERE),
    command(21, "PR_GET_SECCOMP", Free, TELLS),
    command(22, "PR_SET_SECCOMP", Holds(SystemCallFilter, None), REFUSES),
    command(23, "PR_CAPBSET_READ", Free, TELLS),
    command(24, "PR_CAPBSET_DROP", Free, "carried with the credentials"),
    command(25, "PR_GET_TSC", Free, TELLS),
    command(26, "PR_SET_TSC", Free, CARRIED),
    command(27, "PR_GET_SECUREBITS", Free, TELLS),
    command(28, "PR_SET_SECUREBITS", Free, "carried with the credentials"),
    command(29, "PR_SET_TIMERSLACK", Free, "carried, for every thread"),
    command(30, "PR_GET_TIMERSLACK", Free, TELLS),
    command(31, "PR_TASK_PERF_EVENTS_DISABLE", Free, "is about descriptors that make the checkpoint refuse"),
    command(32, "PR_TASK_PERF_EVENTS_ENABLE", Free, "is about descriptors that make the checkpoint refuse"),
    command(33, "PR_MCE_KILL", Free, CARRIED),
    command(34, "PR_MCE_KILL_GET", Free, TELLS),
    command(35, "PR_SET_MM", Holds(ProcessSetting, None), REFUSES),
    command(36, "PR_SET_CHILD_SUBREAPER", Free, CARRIED),
    command(37, "PR_GET_CHILD_SUBREAPER", Free, TELLS),
    command(38, "PR_SET_NO_NEW_PRIVS", Free, "always set"),
    command(39, "PR_GET_NO_NEW_PRIVS", Free, TELLS),
    command(40, "PR_GET_TID_ADDRESS", Free, TELLS),
    command(41, "PR_SET_THP_DISABLE", Free, CARRIED),
    command(42, "PR_GET_THP_DISABLE", Free, TELLS),
    command(43, "PR_MPX_ENABLE_MANAGEMENT", Free, "no kernel has it any more"),
    command(44, "PR_MPX_DISABLE_MANAGEMENT", Free, "no kernel has it any more"),
    command(45, "PR_SET_FP_MODE", Free, NOT_HERE),
    command(46, "PR_GET_FP_MODE", Free, NOT_HERE),
    command(47, "PR_CAP_AMBIENT", Free, "carried with the credentials"),
    command(50, "PR_SVE_SET_VL", Free, NOT_HERE),
    command(51, "PR_SVE_GET_VL", Free, NOT_HERE),
    command(52, "PR_GET_SPECULATION_CTRL", Free, TELLS),
    command(53, "PR_SET_SPECULATION_CTRL", Free, CARRIED),
    command(54, "PR_PAC_RESET_KEYS", Free, NOT_HERE),
    command(55, "PR_SET_TAGGED_ADDR_CTRL", Free, NOT_HERE),
    command(56, "PR_GET_TAGGED_ADDR_CTRL", Free, NOT_HERE),
    command(57, "PR_SET_IO_FLUSHER", Free, CARRIED),
    command(58, "PR_GET_IO_FLUSHER", Free, TELLS),
    command(59, "PR_SET_SYSCALL_USER_DISPATCH", Holds(ProcessSetting, Some(0)), REFUSES),
    command(60, "PR_PAC_SET_ENABLED_KEYS", Free, NOT_HERE),
    command(61, "PR_PAC_GET_ENABLED_KEYS", Free, NOT_HERE),
    command(62, "PR_SCHED_CORE", Holds(ProcessSetting, Some(0)), "the checkpoint refuses (but for `PR_SCHED_CORE_GET`)"),
    command(63, "PR_SME_SET_VL", Free, NOT_HERE),
    command(64, "PR_SME_GET_VL", Free, NOT_HERE),
    command(65, "PR_SET_MDWE", Free, CARRIED),
    command(66, "PR_GET_MDWE", Free, TELLS),
    command(67, "PR_SET_MEMORY_MERGE", Free, CARRIED),
    command(68, "PR_GET_MEMORY_MERGE", Free, TELLS),
    command(78, "PR_FUTEX_HASH", Free, "how fast futexes are found: the kernel's own choice again"),
    command(0x4155_5856, "PR_GET_AUXV", Free, TELLS),
    command(0x5356_4d41, "PR_SET_VMA", Free, "names of mappings, which `/proc/self/maps` shows: lost"),
    command(0x5961_6d61, "PR_SET_PTRACER", Free, "who may debug this launch's process: lost, as the debugger is"),
];

pub const PRCTL_FREE: &[u32] = &free::<{ count_free(PRCTL) }>(PRCTL);

#[rustfmt::skip]
pub const ARCH_PRCTL: &[Command] = &[
    command(0x1001, "ARCH_SET_GS", Refused(libc::EPERM), "GS is Stillpoint's"),
    command(0x1002, "ARCH_SET_FS", Free, "carried, for every thread"),
    command(0x1003, "ARCH_GET_FS", Free, TELLS),
    command(0x1004, "ARCH_GET_GS", Refused(libc::EPERM), "GS is Stillpoint's"),
    command(0x1011, "ARCH_GET_CPUID", Free, TELLS),
    command(0x1012, "ARCH_SET_CPUID", Holds(ProcessSetting, Some(1)), REFUSES),
    command(0x1021, "ARCH_GET_XCOMP_SUPP", Free, TELLS),
    command(0x1022, "ARCH_GET_XCOMP_PERM", Free, TELLS),
    command(0x1023, "ARCH_REQ_XCOMP_PERM", Free, "carried: asked for again before the threads are made again"),
    command(0x1024, "ARCH_GET_XCOMP_GUEST_PERM", Free, TELLS),
    command(0x1025, "ARCH_REQ_XCOMP_GUEST_PERM", Holds(ProcessSetting, None), REFUSES),
    command(0x2001, "ARCH_MAP_VDSO_X32", Refused(libc::EINVAL), "fails"),
    command(0x2002, "ARCH_MAP_VDSO_32", Refused(libc::EINVAL), "fails"),
    command(0x2003, "ARCH_MAP_VDSO_64", Refused(libc::EINVAL), "fails"),
    command(0x4001, "ARCH_GET_UNTAG_MASK", Free, TELLS),
    command(0x4002, "ARCH_ENABLE_TAGGED_ADDR", Holds(ProcessSetting, None), REFUSES),
    command(0x4003, "ARCH_GET_MAX_TAG_BITS", Free, TELLS),
    command(0x4004, "ARCH_FORCE_TAGGED_SVA", Holds(ProcessSetting, None), REFUSES),
    command(0x5001, "ARCH_SHSTK_ENABLE", Refused(libc::EINVAL), "fails: a restart returns through frames that no shadow stack knows"),
    command(0x5002, "ARCH_SHSTK_DISABLE", Refused(libc::EINVAL), "fails"),
    command(0x5003, "ARCH_SHSTK_LOCK", Refused(libc::EINVAL), "fails"),
    command(0x5004, "ARCH_SHSTK_UNLOCK", Refused(libc::EINVAL), "fails"),
    command(0x5005, "ARCH_SHSTK_STATUS", Refused(libc::EINVAL), "fails"),
];

pub const ARCH_PRCTL_FREE: &[u32] = &free::<{ count_free(ARCH_PRCTL) }>(ARCH_PRCTL);

pub const DUPLICATE: &[u32] = &[libc::F_DUPFD as u32, libc::F_DUPFD_CLOEXEC as u32];
pub const OWNER: &[u32] = &[
    libc::F_SETOWN as u32,
    libc::F_GETOWN as u32,
    naming::F_SETOWN_EX as u32,
    naming::F_GETOWN_EX as u32,
];
pub const NOTIFY: &[u32] = &[libc::F_NOTIFY as u32];

/// `fcntl(F_NOTIFY)`.
pub fn on_directory_notices(call: &mut Call) -> isize {
    if call.argument(2) as u32 == 0 {
        call.make()
    } else {
        holdings::held(call, Holding::DirectoryNotices)
    }
}

/// Commands of `fcntl`: what happens at a checkpoint.
#[cfg(test)]
#[rustfmt::skip]
pub const FCNTL: &[(&str, &str)] = &[
    ("F_DUPFD F_DUPFD_CLOEXEC", "the new descriptor is the application's; what shares offset and flags does so again"),
    ("F_GETFD F_SETFD", "carried"),
    ("F_GETFL F_SETFL", "carried"),
    ("F_SETOWN F_GETOWN F_SETOWN_EX F_GETOWN_EX F_SETSIG F_GETSIG", "carried; ids are translated after a restart"),
    ("F_GETLK F_SETLK F_SETLKW F_OFD_GETLK F_OFD_SETLK F_OFD_SETLKW", "locks are taken again"),
    ("F_SETLEASE F_GETLEASE", "see [descriptors](../users/restart.md#descriptors)"),
    ("F_NOTIFY", "the checkpoint refuses from then on"),
    ("F_SETPIPE_SZ F_GETPIPE_SZ", "carried"),
    ("F_ADD_SEALS F_GET_SEALS", "carried"),
    ("F_GET_RW_HINT F_SET_RW_HINT F_GET_FILE_RW_HINT F_SET_FILE_RW_HINT", "hints to the disk: lost, nothing but speed depends on them"),
    ("F_DUPFD_QUERY F_CREATED_QUERY", "tells something"),
    ("F_CANCELLK", "the kernel's own"),
];

/// Requests of `ioctl` whose result is a descriptor.
#[rustfmt::skip]
const NEW_RESULT: &[u32] = &[
    0x5441, // TIOCGPTPEER
    0x894c, // SIOCGSKNS
    0xaa00, // USERFAULTFD_IOC_NEW
    0xae01, 0xae41, 0xaece, 0xc040_aed4, // KVM_CREATE_VM, KVM_CREATE_VCPU, KVM_GET_STATS_FD, KVM_CREATE_GUEST_MEMFD
    0xb701, 0xb702, 0x8010_b70b, 0x8010_b70c, // NS_GET_USERNS, NS_GET_PARENT, NS_MNT_GET_NEXT, NS_MNT_GET_PREV
    0x3b6a, // VFIO_GROUP_GET_DEVICE_FD
    0x4018_7542, 0x4008_7543, // UDMABUF_CREATE, UDMABUF_CREATE_LIST
    0xff01, 0xff02, 0xff03, 0xff04, 0xff05, 0xff06, 0xff07, 0xff08, 0xff09, 0xff0a, // PIDFD_GET_*_NAMESPACE
];

/// Requests of `ioctl` that write a descriptor into their structure, and where.
#[rustfmt::skip]
const NEW_WITHIN: [(u32, usize); 5] = [
    (0xc00c_642d, 8), // DRM_IOCTL_PRIME_HANDLE_TO_FD
    (0xc010_64c1, 8), // DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD
    (0xc018_4800, 8), // DMA_HEAP_IOCTL_ALLOC
    (0xc030_3e03, 36), // SYNC_IOC_MERGE
    (0xc00c_aee0, 4), // KVM_CREATE_DEVICE
];

/// The requests of both kinds.
pub const NEW_BY_IOCTL: &[u32] = &{
    let mut requests = [0; NEW_RESULT.len() + NEW_WITHIN.len()];
    let mut at = 0;
    while at < requests.len() {
        requests[at] = match at.checked_sub(NEW_RESULT.len()) {
            None => NEW_RESULT[at],
            Some(within) => NEW_WITHIN[within].0,
        };
        at += 1;
    }
    requests
};

/// `ioctl` that makes a descriptor.
pub fn on_ioctl(call: &mut Call) -> isize {
    let request = call.argument(1) as u32;
    let within = NEW_WITHIN.iter().find(|(other, _)| *other == request);
    match within {
        Some((_, offset)) => descriptors::on_new_within(call, call.argument(2) + offset),
        None => descriptors::on_new(call),
    }
}

/// Requests of `ioctl`: what happens at a checkpoint.
#[cfg(test)]
#[rustfmt::skip]
pub const IOCTL: &[(&str, &str)] = &[
    ("TIOCGPTPEER SIOCGSKNS NS_GET_* NS_MNT_GET_* PIDFD_GET_* USERFAULTFD_IOC_NEW UDMABUF_CREATE* KVM_CREATE_* KVM_GET_STATS_FD VFIO_GROUP_GET_DEVICE_FD DRM_IOCTL_*_HANDLE_TO_FD DMA_HEAP_IOCTL_ALLOC SYNC_IOC_MERGE", "the new descriptor is the application's; it is carried by what it is, or the checkpoint refuses and names it"),
    ("FIONBIO FIOCLEX FIONCLEX", "flags of the descriptor: carried"),
    ("FIOASYNC FIOSETOWN SIOCSPGRP", "as `fcntl`'s `O_ASYNC` and `F_SETOWN`: carried"),
    ("TCSETS* TIOCSWINSZ TIOCSPGRP TIOCSCTTY", "the terminal's, which the next launch finds or does not"),
    ("FS_IOC_* FICLONE* FIDEDUPERANGE BLK*", "the file's or the file system's"),
    ("UFFDIO_* KVM_* VHOST_* TUN* PERF_EVENT_IOC_* requests of device drivers", "is about descriptors that make the checkpoint refuse"),
];
