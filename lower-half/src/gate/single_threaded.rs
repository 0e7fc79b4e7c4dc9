//! Calls that the kernel permits only to single-threaded processes: the lower half's threads must not prevent them.
//!
//! Rules of this place: runs in the trap's handler, on the thread's stack for handlers.

use super::call::{Call, errno};
use super::exit;
use crate::arch::syscall::syscall4;
use crate::ground::aside;
use crate::threads::registry::{self, Thread};

/// How many times such a call is made again, with pauses: a thread that has ended counts for a few moments more.
const TRIES: u32 = 200;
const PAUSE_NANOSECONDS: i64 = 500_000;

/// Makes the call. If the kernel refuses it and the application has one thread, the lower half's threads leave for the time of the call. Threads of a running
/// MPI stay: the program would have them natively too. Returns `None` if the call has to be made again, because a checkpoint is under way.
pub fn make(call: &mut Call) -> Option<isize> {
    let result = call.make();
    let refused = errno(libc::EINVAL);
    let thread = Thread::current().filter(|thread| !thread.shares_memory());
    let Some(thread) =
        thread.filter(|_| result == refused && !exit::forked() && registry::is_one())
    else {
        return Some(result);
    };
    if thread.fs_lower() == 0 {
        return Some(result);
    }
    if !aside::leave() {
        call.again();
        return None;
    }
    let mut result = call.make();
    for _ in 0..TRIES {
        if result != refused {
            break;
        }
        pause();
        result = call.make();
    }
    aside::come_back(thread.fs_lower());
    Some(result)
}

fn pause() {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: PAUSE_NANOSECONDS,
    };
    // SAFETY: the kernel reads the structure, which lives on this stack; null says that the rest of the time is not asked for.
    unsafe {
        syscall4(
            libc::SYS_clock_nanosleep,
            libc::CLOCK_MONOTONIC as usize,
            0,
            &raw const time as usize,
            0,
        )
    };
}
