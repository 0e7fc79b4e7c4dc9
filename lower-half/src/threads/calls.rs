//! Calls that wait: how each continues after a handler of ours has interrupted it, and which handlers of the application end it (signal(7)).
//!
//! A call ends when it would have ended without our handlers. An interrupted call is made again unchanged, with the rest of its time, or with the rest of its
//! bytes; a call that was carried out all the same is not made again. The gate's table does not compile if a call of a waiting class is missing here.

use crate::arch::calls;
use crate::arch::frame::{ARGUMENTS, Frame, PC, RESULT};
use crate::arch::springboard;

/// How a call continues after a handler of ours has ended it with EINTR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// Not at all: it does not wait, or it was carried out all the same.
    Never,
    Again,
    /// With the rest of its timeout in milliseconds, in this argument.
    Milliseconds(u8),
    /// With the rest of its timeout, a `timespec` that this argument points to and the kernel does not change.
    Interval(u8),
    /// The same with a timeout that the kernel changes to the remaining time: seconds, and a second word with units of so many nanoseconds.
    Left(u8, u64),
    /// A sleep: one argument points to its time, and the other to the place for the remaining time.
    Sleeps(u8, u8),
}

/// How a call transfers data, and whether a signal may cut it short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// All or nothing.
    Whole,
    /// A buffer, from one of the devices that have no end.
    FromDevice,
    /// A buffer, to a destination that may be full; the second and third argument.
    Buffer,
    /// The same in pieces (`iovec`).
    Vector,
    /// Buffers of a socket: sent, received.
    Sends,
    Receives,
    SendsMessage,
    ReceivesMessage,
    /// As many bytes as the fourth argument says.
    Count,
    /// Random bytes.
    Random,
}

/// When a handler that has run ends a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    Always,
    /// Unless it was installed with SA_RESTART.
    UnlessRestarted,
    /// Always, except by signals in the mask that this argument points to, if the springboard makes the call.
    Masked(u8),
    /// The same with a mask behind one more pointer.
    MaskedBehind(u8),
    /// A sleep: always, once the remaining time has been written to its place.
    Slept,
    /// Never, or the call is not known to wait.
    Never,
}

/// The properties of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    pub goes: Goes,
    pub moves: Moves,
    ends: Ends,
}

const fn waits(goes: Goes, ends: Ends) -> Wait {
    let moves = Moves::Whole;
    Wait { goes, moves, ends }
}

const fn moves(moves: Moves) -> Wait {
    Wait {
        goes: Goes::Again,
        moves,
        ends: Ends::UnlessRestarted,
    }
}

const fn again(ends: Ends) -> Wait {
    waits(Goes::Again, ends)
}

/// The properties of calls that are not listed: a file system may have waited for its server.
const OTHER: Wait = again(Ends::Never);

#[rustfmt::skip]
const LISTED: &[(&[&str], Wait)] = &[
    // Closed all the same: a second `close` would close another file.
    (&["close"], waits(Goes::Never, Ends::Never)),
    (&["poll"], waits(Goes::Milliseconds(2), Ends::Always)),
    (&["epoll_wait"], waits(Goes::Milliseconds(3), Ends::Always)),
    (&["epoll_pwait"], waits(Goes::Milliseconds(3), Ends::Masked(4))),
    (&["epoll_pwait2"], waits(Goes::Interval(3), Ends::Masked(4))),
    (&["ppoll"], waits(Goes::Left(2, 1), Ends::Masked(3))),
    (&["pselect6"], waits(Goes::Left(4, 1), Ends::MaskedBehind(5))),
    (&["select"], waits(Goes::Left(4, 1000), Ends::Always)),
    (&["rt_sigtimedwait"], waits(Goes::Interval(2), Ends::Always)),
    (&["rt_sigsuspend"], again(Ends::Masked(0))),
    (&["pause", "semop", "msgsnd", "msgrcv"], again(Ends::Always)),
    (&["semtimedop"], waits(Goes::Interval(3), Ends::Always)),
    (&["nanosleep"], waits(Goes::Sleeps(0, 1), Ends::Slept)),
    (&["clock_nanosleep"], waits(Goes::Sleeps(2, 3), Ends::Slept)),
    // The timeout of FUTEX_WAIT; other operations end at a fixed time.
    (&["futex"], waits(Goes::Interval(3), Ends::UnlessRestarted)),
    (&["io_getevents", "io_pgetevents"], waits(Goes::Interval(4), Ends::Always)),
    // Their timeouts, if any, are fixed times.
    (&["futex_wait", "futex_waitv", "mq_timedsend", "mq_timedreceive"], again(Ends::UnlessRestarted)),
    (&["wait4", "waitid", "accept", "accept4", "connect", "flock", "fcntl", "open", "openat", "openat2", "creat", "ioctl"], again(Ends::UnlessRestarted)),
    (&["read"], moves(Moves::FromDevice)),
    (&["readv"], again(Ends::UnlessRestarted)),
    (&["write"], moves(Moves::Buffer)),
    (&["writev"], moves(Moves::Vector)),
    (&["sendto"], moves(Moves::Sends)),
    (&["recvfrom"], moves(Moves::Receives)),
    (&["sendmsg"], moves(Moves::SendsMessage)),
    (&["recvmsg"], moves(Moves::ReceivesMessage)),
    (&["sendfile"], moves(Moves::Count)),
    (&["getrandom"], Wait { ends: Ends::Never, ..moves(Moves::Random) }),
    // Whole messages, or those that have come so far: the result is their number.
    (&["sendmmsg", "recvmmsg"], again(Ends::UnlessRestarted)),
    // The bytes that have gone so far, as without a signal.
    (&["splice", "tee", "vmsplice", "copy_file_range"], again(Ends::UnlessRestarted)),
    (&["io_uring_enter", "restart_syscall"], again(Ends::Never)),
    // Files wait only for their disk or server.
    (&["pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2", "fstat", "lseek", "getdents", "getdents64"], OTHER),
    // These wait for nothing.
    (&["pipe", "dup", "dup2", "socket", "socketpair", "epoll_create", "mq_open", "inotify_init", "signalfd", "timerfd_create", "eventfd", "signalfd4", "eventfd2",
       "epoll_create1", "dup3", "pipe2", "inotify_init1", "perf_event_open", "fanotify_init", "open_by_handle_at", "memfd_create", "bpf", "userfaultfd",
       "io_uring_setup", "open_tree", "fsopen", "fsmount", "fspick", "pidfd_open", "pidfd_getfd", "landlock_create_ruleset", "memfd_secret",
       "open_tree_attr"], OTHER),
    (&["shutdown", "bind", "listen", "getsockname", "getpeername", "setsockopt", "getsockopt", "io_submit", "io_cancel", "epoll_ctl", "mq_notify",
       "mq_getsetattr", "inotify_rm_watch", "timerfd_settime", "timerfd_gettime", "fanotify_mark", "pidfd_send_signal", "io_uring_register", "fsconfig",
       "close_range", "landlock_add_rule", "process_mrelease"], OTHER),
    (&["shmget", "shmctl", "semget", "semctl", "msgget", "msgctl"], OTHER),
    (&["rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "sigaltstack"], OTHER),
];

/// Whether a call of this name is listed.
pub const fn is_listed(name: &str) -> bool {
    listed(name).is_some()
}

const fn listed(name: &str) -> Option<Wait> {
    let mut line = 0;
    while line < LISTED.len() {
        let (names, wait) = LISTED[line];
        let mut at = 0;
        while at < names.len() {
            if same(names[at].as_bytes(), name.as_bytes()) {
                return Some(wait);
            }
            at += 1;
        }
        line += 1;
    }
    None
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

const fn numbered<const COUNT: usize>(names: [&str; COUNT]) -> [Wait; COUNT] {
    let mut all = [OTHER; COUNT];
    let mut at = 0;
    while at < COUNT {
        if let Some(wait) = listed(names[at]) {
            all[at] = wait;
        }
        at += 1;
    }
    all
}

static FIRST: [Wait; calls::FIRST.len()] = numbered(calls::FIRST);
static NEWER: [Wait; calls::NEWER.len()] = numbered(calls::NEWER);

/// Describes how an interrupted call continues; `None`: it does not wait, or only for a disk or a server.
#[cfg(test)]
pub fn in_words(number: usize) -> Option<&'static str> {
    let wait = wait(number);
    match wait.goes {
        Goes::Never => Some("not at all: it was carried out all the same"),
        Goes::Milliseconds(_) | Goes::Interval(_) | Goes::Left(..) | Goes::Sleeps(..) => {
            Some("with the rest of its time")
        }
        Goes::Again if wait.moves != Moves::Whole => Some("with the rest of its bytes"),
        Goes::Again if wait.ends != Ends::Never => Some("as it was"),
        Goes::Again => None,
    }
}

/// Returns the properties of the call with this number.
pub fn wait(number: usize) -> Wait {
    let newer = || NEWER.get(number.checked_sub(calls::NEWER_FROM)?);
    FIRST.get(number).or_else(newer).copied().unwrap_or(OTHER)
}

/// Whether a call receives from a socket; only for calls that transfer all or nothing.
pub fn receives(number: usize) -> bool {
    matches!(
        number as i64,
        libc::SYS_accept | libc::SYS_accept4 | libc::SYS_recvmmsg | libc::SYS_readv
    )
}

/// Whether a handler for `signal` that has run ends the call that `frame` stands before.
pub fn ends(frame: Frame, signal: i32, restarts: bool) -> bool {
    let wait = wait(frame.register(RESULT));
    match wait.ends {
        Ends::Always => true,
        // Every handler ends a wait on a futex with a timeout.
        Ends::UnlessRestarted => !restarts || argument(frame, wait.goes.time()) != 0,
        Ends::Masked(mask) => !is_masked(frame, signal, argument(frame, Some(mask))),
        Ends::MaskedBehind(structure) => {
            let structure = argument(frame, Some(structure));
            let mask = match held(frame) && structure != 0 {
                // SAFETY: the thread stands in a piece of the springboard, which keeps the structure on the thread's stack until the call is over.
                true => unsafe { *(structure as *const usize) },
                false => 0,
            };
            !is_masked(frame, signal, mask)
        }
        Ends::Slept => match wait.goes {
            // The remaining time of the sleep must already be in its place.
            Goes::Sleeps(time, rest) => {
                let until = time == 2 && argument(frame, Some(1)) != 0;
                let rest = argument(frame, Some(rest));
                until || [0, argument(frame, Some(time))].contains(&rest)
            }
            _ => true,
        },
        Ends::Never => false,
    }
}

impl Goes {
    /// Returns the argument that points to a timeout which only some of these waits have.
    fn time(self) -> Option<u8> {
        match self {
            Goes::Interval(argument) => Some(argument),
            _ => None,
        }
    }
}

/// Returns a register's value, or 0 if there is no such argument.
pub fn argument(frame: Frame, index: Option<u8>) -> usize {
    let register = index.and_then(|index| ARGUMENTS.get(usize::from(index)));
    register.map_or(0, |register| frame.register(*register))
}

/// Whether the springboard makes the call.
fn held(frame: Frame) -> bool {
    springboard::holds(frame.register(PC))
}

/// Whether a signal is in a call's mask. The springboard makes a call with a mask, and keeps the mask; a call without one is made where it stands.
fn is_masked(frame: Frame, signal: i32, mask: usize) -> bool {
    // SAFETY: the thread stands in a piece of the springboard, which has put the mask on the thread's stack and keeps it until the call is over.
    held(frame) && mask != 0 && 1u64 << (signal - 1) & unsafe { *(mask as *const u64) } != 0
}
