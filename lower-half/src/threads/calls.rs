//! Which system calls a signal's handler ends with EINTR (signal(7)).

use crate::arch::calls::OLDER_WAITS;
use crate::arch::frame::{ARGUMENTS, Frame, PC, RESULT};
use crate::arch::springboard;

/// When a handler that has run ends a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    Always,
    /// Unless it was installed with SA_RESTART.
    UnlessRestarted,
    /// Unless its signal is in the mask there, which holds while the call lasts.
    UnlessMasked(*const u64),
    /// Never, or it is not known to wait.
    Never,
}

/// What ends the call that `frame` stands before.
pub fn ends(frame: Frame) -> Ends {
    let always = |yes| if yes { Ends::Always } else { Ends::Never };
    match frame.register(RESULT) as i64 {
        older if OLDER_WAITS.contains(&older) => Ends::Always,
        libc::SYS_rt_sigtimedwait
        | libc::SYS_io_getevents
        | libc::SYS_semop
        | libc::SYS_semtimedop
        | libc::SYS_msgsnd
        | libc::SYS_msgrcv => Ends::Always,
        // What is left of the sleep must stand where it is wanted already.
        libc::SYS_nanosleep => {
            always([0, frame.register(ARGUMENTS[0])].contains(&frame.register(ARGUMENTS[1])))
        }
        libc::SYS_clock_nanosleep => always(
            frame.register(ARGUMENTS[1]) != 0
                || [0, frame.register(ARGUMENTS[2])].contains(&frame.register(ARGUMENTS[3])),
        ),
        libc::SYS_rt_sigsuspend => masked(frame, frame.register(ARGUMENTS[0])),
        libc::SYS_ppoll => masked(frame, frame.register(ARGUMENTS[3])),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
            masked(frame, frame.register(ARGUMENTS[4]))
        }
        libc::SYS_pselect6 => masked_behind(frame, frame.register(ARGUMENTS[5])),
        libc::SYS_read
        | libc::SYS_readv
        | libc::SYS_write
        | libc::SYS_writev
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_recvmmsg
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_accept
        | libc::SYS_accept4
        | libc::SYS_connect
        | libc::SYS_wait4
        | libc::SYS_waitid
        | libc::SYS_flock
        | libc::SYS_fcntl
        | libc::SYS_futex => Ends::UnlessRestarted,
        _ => Ends::Never,
    }
}

/// A call with a mask is made by the springboard, which keeps the mask; without one it is made where it stands.
fn masked(frame: Frame, mask: usize) -> Ends {
    if springboard::holds(frame.register(PC)) && mask != 0 {
        Ends::UnlessMasked(mask as *const u64)
    } else {
        Ends::Always
    }
}

/// As [`masked`]; the mask's address is the first word of a structure.
fn masked_behind(frame: Frame, structure: usize) -> Ends {
    if springboard::holds(frame.register(PC)) && structure != 0 {
        // SAFETY: the springboard keeps the structure too, on the thread's stack.
        masked(frame, unsafe { *(structure as *const usize) })
    } else {
        Ends::Always
    }
}
