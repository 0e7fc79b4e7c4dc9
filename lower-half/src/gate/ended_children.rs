//! `wait4` and `waitid` in a restarted process: the gate answers for children that had ended before the restart, and the kernel for all others.
//!
//! Rules of this place: runs in the trap's handler.

use super::call::{Call, errno};
use super::{exit, identity, user};
use crate::arch::syscall::syscall3;
use crate::ground::ended_children::{self, End, USAGE, Whom};
use crate::threads::registry::Thread;

// SAFETY: these are arrays of integers: any bits are a value, and there is no padding.
unsafe impl user::Plain for [u64; USAGE] {}
// SAFETY: these are arrays of integers: any bits are a value, and there is no padding.
unsafe impl user::Plain for [i32; 3] {}

/// True if the children from before the restart are this process's.
fn are_ours() -> bool {
    !exit::forked() && !Thread::current().is_some_and(Thread::shares_memory)
}

/// Returns the process group that the application means.
fn group(id: u32) -> Whom {
    // SAFETY: the call takes a number and touches no memory.
    let own = unsafe { syscall3(libc::SYS_getpgid, 0, 0, 0) };
    let own = identity::known_process(own as u32);
    match id == 0 || id == own {
        true => Whom::OwnGroup,
        false => Whom::Group(id),
    }
}

/// `wait4`.
pub fn on_wait4(call: &mut Call) -> isize {
    let [id, status, options, usage, ..] = call.arguments();
    let whom = match id as i32 {
        -1 => Whom::Any,
        0 => group(0),
        process @ 1.. => Whom::Process(process as u32),
        other => group(other.unsigned_abs()),
    };
    let Some(end) = found(whom, options as i32) else {
        return call.redirect_plain();
    };
    let written = write(status, |at| user::write(at, word(&end)))
        .and_then(|()| write(usage, |at| user::write(at, end.usage)));
    match written {
        Err(error) => error,
        Ok(()) if ended_children::take(&end) => end.pid as isize,
        Ok(()) => call.redirect_plain(),
    }
}

/// `waitid`.
pub fn on_waitid(call: &mut Call) -> isize {
    let [kind, id, information, options, usage, _] = call.arguments();
    let options = options as i32;
    let whom = match kind as libc::idtype_t {
        libc::P_ALL => Some(Whom::Any),
        libc::P_PID => Some(Whom::Process(id as u32)),
        libc::P_PGID => Some(group(id as u32)),
        _ => None,
    };
    let whom = whom.filter(|_| options & libc::WEXITED != 0);
    let Some(end) = whom.and_then(|whom| found(whom, options)) else {
        return call.redirect_plain();
    };
    // struct siginfo: signal, error, code, (padding), process, user, status.
    let first = [libc::SIGCHLD, 0, end.code];
    let second = [end.pid as i32, end.user as i32, end.status];
    let written = write(information, |at| {
        user::write(at, first)?;
        user::write(at + 16, second)
    });
    let written = written.and_then(|()| write(usage, |at| user::write(at, end.usage)));
    match written {
        Err(error) => error,
        Ok(()) if options & libc::WNOWAIT != 0 || ended_children::take(&end) => 0,
        Ok(()) => call.redirect_plain(),
    }
}

fn found(whom: Whom, options: i32) -> Option<End> {
    let of_clones_alone = options & libc::__WCLONE != 0 && options & libc::__WALL == 0;
    (are_ours() && !of_clones_alone).then(|| ended_children::find(whom))?
}

fn write(address: usize, value: impl FnOnce(usize) -> Result<(), isize>) -> Result<(), isize> {
    match address {
        0 => Ok(()),
        _ => value(address),
    }
}

/// The status as `wait4` gives it.
fn word(end: &End) -> i32 {
    const CORE: i32 = 0x80;
    match end.code {
        libc::CLD_EXITED => (end.status & 0xff) << 8,
        libc::CLD_DUMPED => end.status | CORE,
        _ => end.status,
    }
}

/// Answers a signal to a child that has ended: it does nothing and is not an error. Returns `None` if there is no such child.
pub fn signalled(id: i32, signal: usize) -> Option<isize> {
    let pid = u32::try_from(id).ok().filter(|pid| *pid != 0)?;
    if !are_ours() {
        return None;
    }
    ended_children::find(Whom::Process(pid))?;
    Some(match signal {
        0..=64 => 0,
        _ => errno(libc::EINVAL),
    })
}
