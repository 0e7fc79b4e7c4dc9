//! System calls that name processes and threads to the kernel: translates the application's ids into the kernel's, and the kernel's results into the
//! application's.
//!
//! Rules of this place: runs in the trap's handler; after a restart only, except for calls that make a descriptor, and `ptrace`.

use super::call::Call;
use super::{ended_children, identity, user};
use crate::arch::springboard::Piece;
use crate::arch::syscall::failed;

/// Returns the thread that the application means (0: the caller) by the argument with this number.
fn thread(call: &Call, argument: usize) -> usize {
    identity::real_thread(call.argument(argument) as u32) as usize
}

/// Returns the process, process group or session that the application means by the argument with this number.
fn process(call: &Call, argument: usize) -> usize {
    identity::real_process(call.argument(argument) as u32) as usize
}

/// As [`process`], where negative ids are groups; -1 means all processes, even if some process has the id 1.
fn process_or_group(id: i32, real: impl Fn(u32) -> u32) -> i32 {
    let real = |id| real(id) as i32;
    match id {
        -1 => -1,
        0.. => real(id as u32),
        group => real(group.unsigned_abs()).wrapping_neg(),
    }
}

/// Makes the call with some of its arguments replaced.
fn make_with<const COUNT: usize>(call: &Call, replaced: [(usize, usize); COUNT]) -> isize {
    let mut arguments = call.arguments();
    for (at, value) in replaced {
        if let Some(argument) = arguments.get_mut(at) {
            *argument = value;
        }
    }
    call.make_with(arguments)
}

/// Translates a result that is a process, process group or session.
fn known(result: isize) -> isize {
    if failed(result) {
        result
    } else {
        identity::known_process(result as u32) as isize
    }
}

/// The first argument is a thread.
pub fn on_thread(call: &mut Call) -> isize {
    make_with(call, [(0, thread(call, 0))])
}

/// The second argument is a thread: `ptrace`.
pub fn on_traced(call: &Call) -> isize {
    make_with(call, [(1, thread(call, 1))])
}

/// The first two arguments are threads: `kcmp`.
pub fn on_two_threads(call: &mut Call) -> isize {
    make_with(call, [(0, thread(call, 0)), (1, thread(call, 1))])
}

/// `kill`.
pub fn on_kill(call: &mut Call) -> isize {
    let ended = ended_children::signalled(call.argument(0) as i32, call.argument(1));
    ended.unwrap_or_else(|| on_process_or_group(call))
}

/// The first argument is a process, or a group: `kill`, `rt_sigqueueinfo`.
pub fn on_process_or_group(call: &mut Call) -> isize {
    let real = process_or_group(call.argument(0) as i32, identity::real_process);
    make_with(call, [(0, real as usize)])
}

/// Process and thread: `tgkill`, `rt_tgsigqueueinfo`.
pub fn on_process_and_thread(call: &mut Call) -> isize {
    make_with(call, [(0, process(call, 0)), (1, thread(call, 1))])
}

/// No argument, and the result is a group or session: `getpgrp`, `setsid`.
pub fn on_process_result(call: &mut Call) -> isize {
    known(call.make())
}

/// The group or session of a process: `getpgid`, `getsid`.
pub fn on_group_of(call: &mut Call) -> isize {
    known(on_thread(call))
}

/// `setpgid`.
pub fn on_setpgid(call: &mut Call) -> isize {
    make_with(call, [(0, process(call, 0)), (1, process(call, 1))])
}

/// The first argument selects the meaning of the second: one value a thread, another a group, and a third a user.
fn on_which(call: &Call, a_thread: u32, a_group: u32) -> isize {
    let real = match call.argument(0) as u32 {
        which if which == a_thread => thread(call, 1),
        which if which == a_group => process(call, 1),
        _ => call.argument(1),
    };
    make_with(call, [(1, real)])
}

/// `getpriority`, `setpriority`.
pub fn on_priority(call: &mut Call) -> isize {
    on_which(call, libc::PRIO_PROCESS, libc::PRIO_PGRP)
}

/// `ioprio_get`, `ioprio_set`.
pub fn on_io_priority(call: &mut Call) -> isize {
    const IOPRIO_WHO_PROCESS: u32 = 1;
    const IOPRIO_WHO_PGRP: u32 = 2;
    on_which(call, IOPRIO_WHO_PROCESS, IOPRIO_WHO_PGRP)
}

/// Returns the kernel's number of a clock. A clock of a process's or thread's processor time contains its id, inverted. The three bits below that say whether
/// it is a thread and what is counted; the value 3 in the lower two is a clock behind a descriptor.
pub fn real_clock(clock: i32) -> i32 {
    const OF_THREAD: i32 = 4;
    const COUNTED: i32 = 3;
    const KIND: u32 = 3;
    if clock >= 0 || clock & COUNTED == COUNTED {
        return clock;
    }
    let id = !(clock >> KIND) as u32;
    let real = if clock & OF_THREAD == 0 {
        identity::real_process(id)
    } else {
        identity::real_thread(id)
    };
    (!real << KIND) as i32 | clock & (OF_THREAD | COUNTED)
}

/// The first argument is a clock: `clock_gettime`, `clock_getres`.
pub fn on_clock(call: &mut Call) -> isize {
    let clock = real_clock(call.argument(0) as i32);
    make_with(call, [(0, clock as usize)])
}

/// `pidfd_open`.
pub fn on_pidfd_open(call: &mut Call) -> isize {
    // With PIDFD_THREAD it may be any thread.
    call.redirect(Piece::CallArgument0Noting, thread(call, 0))
}

/// `perf_event_open`.
pub fn on_perf_event_open(call: &mut Call) -> isize {
    call.redirect(Piece::CallArgument1Noting, thread(call, 1))
}

pub const F_SETOWN_EX: i32 = 15;
pub const F_GETOWN_EX: i32 = 16;

/// `struct f_owner_ex`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Owner {
    kind: i32,
    id: i32,
}

// SAFETY: it consists of two integers without padding, for which any bits are valid.
unsafe impl user::Plain for Owner {}

impl Owner {
    const A_THREAD: i32 = 0;

    fn with(self, name: fn(u32) -> u32, name_of_thread: fn(u32) -> u32) -> Owner {
        let name = if self.kind == Owner::A_THREAD {
            name_of_thread
        } else {
            name
        };
        Owner {
            kind: self.kind,
            id: name(self.id as u32) as i32,
        }
    }
}

/// Answers an `fcntl` about the receiver of a descriptor's signals.
pub fn on_owner(call: &mut Call) -> isize {
    let argument = call.argument(2);
    match call.argument(1) as i32 {
        libc::F_SETOWN => {
            let real = process_or_group(argument as i32, identity::real_process);
            make_with(call, [(2, real as usize)])
        }
        F_SETOWN_EX => match user::read::<Owner>(argument) {
            Ok(owner) => {
                let real = owner.with(identity::real_process, identity::real_thread);
                make_with(call, [(2, &raw const real as usize)])
            }
            Err(error) => error,
        },
        F_GETOWN_EX => {
            let mut owner = Owner { kind: 0, id: 0 };
            let result = make_with(call, [(2, &raw mut owner as usize)]);
            if failed(result) {
                return result;
            }
            let known = owner.with(identity::known_process, identity::known_thread);
            user::write(argument, known).map_or_else(|error| error, |()| result)
        }
        // A group is negative, like an error, so only the process's own group is translated.
        _ => match call.make() {
            result if result == -(identity::real_pid() as isize) => {
                -(identity::virtual_pid() as isize)
            }
            result => known(result),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{process_or_group, real_clock};

    #[test]
    fn everybody_is_no_group() {
        // As if the application's parent had the id 1.
        let real = |id| if id == 0 { 0 } else { id + 70 };
        let named = [0, 1, 5, -5, -1].map(|id| process_or_group(id, real));
        assert_eq!(named, [0, 71, 75, -75, -1]);
    }

    #[test]
    fn clocks_without_an_id_keep_their_names() {
        // The caller's own, a descriptor's, and the caller's by the id 0.
        for clock in [
            libc::CLOCK_MONOTONIC,
            libc::CLOCK_THREAD_CPUTIME_ID,
            -5,
            -6,
            -2,
        ] {
            assert_eq!(real_clock(clock), clock);
        }
    }
}
