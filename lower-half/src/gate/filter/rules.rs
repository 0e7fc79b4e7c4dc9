//! Which system calls of the upper half are trapped.

use std::collections::BTreeMap;

use super::super::{futex, naming};

/// When a call with a rule's number is trapped.
#[derive(Clone, Copy, Debug)]
pub enum When {
    Always,
    /// The argument with this number is not null.
    Given(u8),
    /// The argument's low half has one of these values.
    Among(u8, &'static [u32]),
    /// The argument's low half is a negative number.
    Negative(u8),
    /// The argument is an address that belongs to neither half by address.
    Elsewhere(u8),
    /// Never trapped: fails with this error at once.
    Refuse(u32),
}

const DUPLICATE: &[u32] = &[libc::F_DUPFD as u32, libc::F_DUPFD_CLOEXEC as u32];
const OWNER: &[u32] = &[
    libc::F_SETOWN as u32,
    libc::F_GETOWN as u32,
    naming::F_SETOWN_EX as u32,
    naming::F_GETOWN_EX as u32,
];
/// `ARCH_SET_GS`, `ARCH_GET_GS`.
const GS: &[u32] = &[0x1001, 0x1004];

/// What is trapped in every launch; anything that is hot and makes no kernel state must not be here.
#[rustfmt::skip]
const RULES: &[(i64, When)] = &[
    // Placement of memory.
    (libc::SYS_mmap, When::Always),
    (libc::SYS_mremap, When::Always),
    (libc::SYS_brk, When::Always),
    (libc::SYS_shmat, When::Always),
    // What becomes of memory where whose it is must be written down.
    (libc::SYS_munmap, When::Elsewhere(0)),
    (libc::SYS_mprotect, When::Elsewhere(0)),
    (libc::SYS_pkey_mprotect, When::Elsewhere(0)),
    (libc::SYS_shmdt, When::Elsewhere(0)),
    // Signals: the stop signal and SIGSYS must stay deliverable.
    (libc::SYS_rt_sigaction, When::Always),
    (libc::SYS_rt_sigprocmask, When::Always),
    (libc::SYS_rt_sigsuspend, When::Always),
    (libc::SYS_rt_sigtimedwait, When::Always),
    (libc::SYS_ppoll, When::Given(3)),
    (libc::SYS_pselect6, When::Given(5)),
    (libc::SYS_epoll_pwait, When::Given(4)),
    (libc::SYS_epoll_pwait2, When::Given(4)),
    // Sleeps without a place for what is left of them.
    (libc::SYS_nanosleep, When::Among(1, &[0])),
    (libc::SYS_clock_nanosleep, When::Among(3, &[0])),
    // Processes and threads.
    (libc::SYS_clone, When::Always),
    (libc::SYS_clone3, When::Refuse(libc::ENOSYS as u32)),
    (libc::SYS_fork, When::Always),
    (libc::SYS_vfork, When::Always),
    (libc::SYS_exit, When::Always),
    (libc::SYS_exit_group, When::Always),
    (libc::SYS_execve, When::Always),
    (libc::SYS_execveat, When::Always),
    (libc::SYS_rseq, When::Refuse(libc::ENOSYS as u32)),
    (libc::SYS_arch_prctl, When::Among(0, GS)),
    // Identities.
    (libc::SYS_set_tid_address, When::Always),
    (libc::SYS_readlink, When::Always),
    (libc::SYS_readlinkat, When::Always),
    // Timers have ids.
    (libc::SYS_timer_create, When::Always),
    (libc::SYS_timer_settime, When::Always),
    (libc::SYS_timer_gettime, When::Always),
    (libc::SYS_timer_getoverrun, When::Always),
    (libc::SYS_timer_delete, When::Always),
    // What the kernel takes back when the process ends.
    (libc::SYS_semop, When::Always),
    (libc::SYS_semtimedop, When::Always),
    // Descriptors: whose they are.
    (libc::SYS_open, When::Always),
    (libc::SYS_openat, When::Always),
    (libc::SYS_openat2, When::Always),
    (libc::SYS_open_by_handle_at, When::Always),
    (libc::SYS_creat, When::Always),
    (libc::SYS_socket, When::Always),
    (libc::SYS_accept, When::Always),
    (libc::SYS_accept4, When::Always),
    (libc::SYS_socketpair, When::Always),
    (libc::SYS_pipe, When::Always),
    (libc::SYS_pipe2, When::Always),
    (libc::SYS_dup, When::Always),
    (libc::SYS_dup2, When::Always),
    (libc::SYS_dup3, When::Always),
    (libc::SYS_fcntl, When::Among(1, DUPLICATE)),
    (libc::SYS_epoll_create, When::Always),
    (libc::SYS_epoll_create1, When::Always),
    (libc::SYS_eventfd, When::Always),
    (libc::SYS_eventfd2, When::Always),
    (libc::SYS_timerfd_create, When::Always),
    (libc::SYS_signalfd, When::Always),
    (libc::SYS_signalfd4, When::Always),
    (libc::SYS_inotify_init, When::Always),
    (libc::SYS_inotify_init1, When::Always),
    (libc::SYS_fanotify_init, When::Always),
    (libc::SYS_memfd_create, When::Always),
    (libc::SYS_memfd_secret, When::Always),
    (libc::SYS_userfaultfd, When::Always),
    (libc::SYS_perf_event_open, When::Always),
    (libc::SYS_bpf, When::Always),
    (libc::SYS_io_uring_setup, When::Always),
    (libc::SYS_mq_open, When::Always),
    (libc::SYS_pidfd_open, When::Always),
    (libc::SYS_pidfd_getfd, When::Always),
    (libc::SYS_recvmsg, When::Always),
    (libc::SYS_ioctl, When::Among(1, &[libc::TIOCGPTPEER as u32])),
    (libc::SYS_close, When::Always),
    (libc::SYS_close_range, When::Always),
];

/// What is trapped besides in a restarted process. Before that the application knows every process and thread by the
/// kernel's own id. An id of 0 means the caller, whatever it is called.
#[rustfmt::skip]
const AFTER_RESTART: &[(i64, When)] = &[
    (libc::SYS_getpid, When::Always),
    (libc::SYS_getppid, When::Always),
    (libc::SYS_gettid, When::Always),
    (libc::SYS_getpgrp, When::Always),
    (libc::SYS_getpgid, When::Always),
    (libc::SYS_setpgid, When::Always),
    (libc::SYS_getsid, When::Always),
    (libc::SYS_setsid, When::Always),
    // Signals.
    (libc::SYS_kill, When::Always),
    (libc::SYS_tgkill, When::Always),
    (libc::SYS_tkill, When::Always),
    (libc::SYS_rt_sigqueueinfo, When::Always),
    (libc::SYS_rt_tgsigqueueinfo, When::Always),
    (libc::SYS_fcntl, When::Among(1, OWNER)),
    // Scheduling and limits.
    (libc::SYS_getpriority, When::Given(1)),
    (libc::SYS_setpriority, When::Given(1)),
    (libc::SYS_ioprio_get, When::Given(1)),
    (libc::SYS_ioprio_set, When::Given(1)),
    (libc::SYS_sched_setaffinity, When::Given(0)),
    (libc::SYS_sched_getaffinity, When::Given(0)),
    (libc::SYS_sched_setscheduler, When::Given(0)),
    (libc::SYS_sched_getscheduler, When::Given(0)),
    (libc::SYS_sched_setparam, When::Given(0)),
    (libc::SYS_sched_getparam, When::Given(0)),
    (libc::SYS_sched_setattr, When::Given(0)),
    (libc::SYS_sched_getattr, When::Given(0)),
    (libc::SYS_sched_rr_get_interval, When::Given(0)),
    (libc::SYS_prlimit64, When::Given(0)),
    (libc::SYS_clock_gettime, When::Negative(0)),
    (libc::SYS_clock_getres, When::Negative(0)),
    // Memory.
    (libc::SYS_get_robust_list, When::Given(0)),
    (libc::SYS_process_vm_readv, When::Given(0)),
    (libc::SYS_process_vm_writev, When::Given(0)),
    (libc::SYS_move_pages, When::Given(0)),
    (libc::SYS_migrate_pages, When::Given(0)),
    (libc::SYS_kcmp, When::Always),
    // Futexes whose words name their owner.
    (libc::SYS_futex, When::Among(1, futex::OPERATIONS)),
];

/// A call's number, and when such calls are trapped: in each of these cases.
pub type Rule = (i64, Vec<When>);

/// The rules of a launch, sorted.
pub fn of_launch(restarted: bool) -> Vec<Rule> {
    let more = if restarted { AFTER_RESTART } else { &[] };
    let mut rules = BTreeMap::<i64, Vec<When>>::new();
    for (number, when) in RULES.iter().chain(more) {
        rules.entry(*number).or_default().push(*when);
    }
    rules.into_iter().collect()
}
