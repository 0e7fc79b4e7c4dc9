//! The meaning of the other system calls: those that only some processors have, mostly older calls that have been replaced, or calls about the processor
//! itself. `arch` lists which ones exist.

use super::Class::*;
use super::When::*;
use super::commands::{self, ARCH_PRCTL_FREE};
use super::entries::{LATER_PATH, NEVER, NOTHING, PATH, PATH_AT};
use super::{Meaning, call, every, restarted, told};
use crate::arch::springboard::Piece;
use crate::gate::holdings::{self, Holding};
use crate::gate::{clone, descriptors, naming, paths, signals, sleep};

#[rustfmt::skip]
pub const SOMEWHERE: &[Meaning] = &[
    call("open", MakesDescriptor, &[every(Always, |call| paths::on_open(call, 0))]),
    call("stat", Path, PATH),
    call("lstat", Path, LATER_PATH),
    call("poll", Waits, &[every(Beyond(2, NOTHING), |call| sleep::on_milliseconds(call, 2))]),
    call("access", Path, PATH),
    call("pipe", MakesDescriptor, &[every(Always, |call| descriptors::on_pair(call, 0))]),
    call("select", Waits, NEVER),
    call("dup2", MakesDescriptor, &[every(Always, descriptors::on_duplicate_onto)]),
    call("pause", Waits, &[every(Always, |call| call.redirect_plain())]),
    call("alarm", Timers, NEVER),
    call("fork", Threads, &[every(Always, clone::on_plain_fork)]),
    call("vfork", Threads, &[every(Always, clone::on_vfork)]),
    call("getdents", Descriptor, NEVER),
    call("rename", Files, NEVER),
    call("mkdir", Files, NEVER),
    call("rmdir", Files, NEVER),
    call("creat", MakesDescriptor, &[every(Always, |call| paths::on_open(call, 0))]),
    call("link", Files, NEVER),
    call("unlink", Files, NEVER),
    call("symlink", Files, NEVER),
    call("readlink", Path, &[every(Always, |call| paths::on_readlink(call, 0))]),
    call("chmod", Path, PATH),
    call("chown", Path, PATH),
    call("lchown", Files, NEVER),
    call("getpgrp", Identity, &[restarted(Always, naming::on_process_result)]),
    call("utime", Path, PATH),
    call("mknod", Files, NEVER),
    call("uselib", Absent, NEVER),
    call("ustat", Asks, NEVER),
    call("sysfs", Asks, NEVER),
    told("modify_ldt", Holds, &[every(Among(0, &[1, 0x11]), holdings::on_segments)], ""),
    call("_sysctl", Absent, NEVER),
    told("arch_prctl", Settings, &[every(Beyond(0, ARCH_PRCTL_FREE), commands::on_arch_prctl)], "see [arch_prctl](#arch_prctl)"),
    call("iopl", Holds, &[every(Given(0), |call| holdings::held(call, Holding::Ports))]),
    call("ioperm", Holds, &[every(Given(2), |call| holdings::held(call, Holding::Ports))]),
    call("create_module", Absent, NEVER),
    call("get_kernel_syms", Absent, NEVER),
    call("query_module", Absent, NEVER),
    call("getpmsg", Absent, NEVER),
    call("putpmsg", Absent, NEVER),
    call("afs_syscall", Absent, NEVER),
    call("tuxcall", Absent, NEVER),
    call("security", Absent, NEVER),
    call("time", Asks, NEVER),
    call("set_thread_area", Absent, NEVER),
    call("get_thread_area", Absent, NEVER),
    call("epoll_create", MakesDescriptor, NEVER),
    call("epoll_ctl_old", Absent, NEVER),
    call("epoll_wait_old", Absent, NEVER),
    call("epoll_wait", Waits, &[every(Beyond(3, NOTHING), |call| sleep::on_milliseconds(call, 3))]),
    call("utimes", Path, PATH),
    call("vserver", Absent, NEVER),
    call("inotify_init", MakesDescriptor, NEVER),
    call("futimesat", Path, PATH_AT),
    call("signalfd", MakesDescriptor, &[every(Always, |call| signals::on_mask_argument(call, 1, Piece::CallMask1Noting))]),
    call("eventfd", MakesDescriptor, NEVER),
];
