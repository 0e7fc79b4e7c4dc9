//! `execve`: programs that the upper half executes.
//!
//! Rules of this place: runs in the trap's handler, perhaps in a child that shares its parent's memory, so all data built here lies in memory that is mapped
//! for it.
//!
//! Before MPI runs in the process, the new program may be the MPI program (`#!/bin/sh` ... `exec app`). It is therefore started in a split process of its own,
//! through the lower half's executable. A program that cannot be split, such as a static one, becomes the rank for good: the lower half's executable tells
//! the coordinator, and starts it as it is. Once MPI runs, a new program is a helper (`system`, `popen`), and is started as it is. A helper inherits the
//! filter, which matches nothing in a process without an arena.

mod lists;

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use stillpoint_wrappers::gate;

use super::call::Call;
use super::{paths, signals, user};
use crate::arch::syscall::{self, failed, syscall3, syscall4, syscall6};
use crate::gate::{exit, stop};
use crate::ground::{elf, wake};
use crate::threads::registry::Thread;
use lists::{ExecLists, preloads, sound};

/// The argument that makes the lower half's executable start a program on behalf of `execve`.
pub const VERB: &CStr = c"exec";
/// The same for a program that cannot be split.
pub const UNSPLIT: &CStr = c"unsplit";

/// NUL-terminated path of the lower half's executable; null: programs start as they are.
static LOWER: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());
/// The library that every program preloads, as it stands in LD_PRELOAD.
static LIBRARY: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());
/// Environment strings that the lower half wants back, and their number.
static KEPT: AtomicPtr<*const c_char> = AtomicPtr::new(core::ptr::null_mut());
static KEPT_COUNT: AtomicUsize = AtomicUsize::new(0);
static NATIVELY: AtomicBool = AtomicBool::new(false);

/// Says how programs are to be started; everything given here lives as long as the process.
pub fn configure(
    lower: &'static CStr,
    library: Option<&'static CStr>,
    kept: &'static [*const c_char],
) {
    LOWER.store(lower.as_ptr().cast_mut(), Ordering::Relaxed);
    LIBRARY.store(
        library.map_or(core::ptr::null_mut(), |path| path.as_ptr().cast_mut()),
        Ordering::Relaxed,
    );
    KEPT.store(kept.as_ptr().cast_mut(), Ordering::Relaxed);
    KEPT_COUNT.store(kept.len(), Ordering::Relaxed);
}

/// Has programs started as they are from now on: called when MPI is started; a forked child inherits it.
pub fn natively_from_now_on() {
    NATIVELY.store(true, Ordering::Relaxed);
}

fn natively() -> bool {
    // SAFETY: an application runs, so the gate page is mapped and filled.
    if unsafe { gate::page() }.mpi_active.load(Ordering::Relaxed) != 0 {
        natively_from_now_on();
    }
    NATIVELY.load(Ordering::Relaxed) || LOWER.load(Ordering::Relaxed).is_null()
}

/// `execve`.
pub fn on_execve(call: &mut Call) -> isize {
    let [path, arguments, environment, ..] = call.arguments();
    let path = if paths::names_executable(libc::AT_FDCWD, path) {
        crate::arch::layout::EXE_PATH
    } else {
        path
    };
    start(
        call,
        path,
        arguments,
        environment,
        |path, arguments, environment| {
            // SAFETY: the path and the lists are what the application gave, or were built from that in a room that is still mapped; the kernel checks them.
            unsafe { syscall3(libc::SYS_execve, path, arguments, environment) }
        },
    )
}

/// Answers `execveat`: for a path relative to a descriptor, the program is started as it is.
pub fn on_execveat(call: &mut Call) -> isize {
    let [directory, path, arguments, environment, flags, _] = call.arguments();
    let (directory, path) = if paths::names_executable(directory as i32, path) {
        (libc::AT_FDCWD as usize, crate::arch::layout::EXE_PATH)
    } else {
        (directory, path)
    };
    if directory as i32 == libc::AT_FDCWD && flags == 0 {
        return start(
            call,
            path,
            arguments,
            environment,
            |path, arguments, environment| {
                // SAFETY: the path and the lists are what the application gave, or were built from that in a room that is still mapped; the kernel checks them.
                unsafe { syscall3(libc::SYS_execve, path, arguments, environment) }
            },
        );
    }
    if !sound(environment) {
        return with_own_mask(call, 0, || call.make());
    }
    let Some(mut room) = ExecLists::map(0, 0, environment) else {
        return super::call::errno(libc::ENOMEM);
    };
    let environment = room.environment(environment, None);
    // SAFETY: the environment was built in a room that is still mapped; the other arguments are the application's, and the kernel checks them.
    let result = with_own_mask(call, 0, || unsafe {
        syscall6(
            libc::SYS_execveat,
            [directory, path, arguments, environment, flags, 0],
        )
    });
    room.unmap();
    result
}

fn start(
    call: &Call,
    path: usize,
    arguments: usize,
    environment: usize,
    exec: impl Fn(usize, usize, usize) -> isize,
) -> isize {
    let natively = natively();
    if natively && !preloads(environment) {
        return with_own_mask(call, 0, || exec(path, arguments, environment));
    }
    if user::text(path).is_none() || !sound(arguments) || !sound(environment) {
        // The kernel reports the error.
        return with_own_mask(call, 0, || call.make());
    }
    let verb = match natively {
        true => None,
        false => verb(path).filter(|verb| *verb == VERB || is_the_rank() && lasts(path)),
    };
    let split = verb == Some(VERB);
    let Some(mut room) = ExecLists::map(path, arguments, environment) else {
        return super::call::errno(libc::ENOMEM);
    };
    let (mut file, mut list) = (path, arguments);
    if let Some(verb) = verb {
        file = LOWER.load(Ordering::Relaxed) as usize;
        list = room.arguments(verb, path, arguments);
    }
    // If a suspend is requested meanwhile, the signal stays pending until the new program can handle it, and does not end it before.
    let held = match split && is_the_rank() {
        true => signals::suspending() & !believed(call),
        false => 0,
    };
    let environment = room.environment(environment, verb.map(|_| held));
    let result = with_own_mask(call, held, || {
        if let Some(signal) = wake::asked_for_suspend().filter(|_| held != 0) {
            // The suspend has not been announced yet: it waits in the kernel.
            // SAFETY: the call takes numbers; the signal is blocked here, so it only becomes pending.
            unsafe {
                syscall3(
                    libc::SYS_kill,
                    syscall::getpid() as usize,
                    signal as usize,
                    0,
                )
            };
        }
        exec(file, list, environment)
    });
    room.unmap();
    result
}

/// Returns the mask that the application believes it has.
fn believed(call: &Call) -> u64 {
    signals::as_believed(call.frame().mask())
}

/// Whether this process itself executes the program, rather than a child of it.
fn is_the_rank() -> bool {
    !exit::forked() && !Thread::current().is_some_and(Thread::shares_memory)
}

/// Runs an action with the mask that the new program inherits: the application's, not this handler's, and `held`.
fn with_own_mask(call: &Call, held: u64, action: impl FnOnce() -> isize) -> isize {
    let mask = syscall::set_mask(believed(call) | held);
    let child = !is_the_rank();
    if Thread::current().is_some_and(Thread::to_be_traced) {
        // SAFETY: the call touches no memory; it only has this process traced by its parent.
        unsafe { syscall3(libc::SYS_ptrace, libc::PTRACE_TRACEME as usize, 0, 0) };
    }
    let result = if child {
        // A child is never stopped, and must not wait on memory that it shares with its parent or has a copy of.
        action()
    } else {
        stop::without_stops(action)
    };
    syscall::set_mask(mask);
    result
}

/// Whether the path leads to the file in the next program of this process too: descriptors may be closed then.
fn lasts(path: usize) -> bool {
    let path = user::text(path).unwrap_or_default();
    !path.starts_with(b"/proc/") && !path.starts_with(b"/dev/fd/")
}

/// Returns how the lower half's executable starts a file that `execve` would accept: a script or a dynamically linked executable is split, a static one is
/// not. The kernel itself decides about all other files.
fn verb(path: usize) -> Option<&'static CStr> {
    let here = libc::AT_FDCWD as usize;
    // SAFETY: the path ends in NUL, as the caller has seen (`user::text`), or the kernel refuses it; the call makes a descriptor.
    let fd = unsafe {
        if failed(syscall3(
            libc::SYS_faccessat,
            here,
            path,
            libc::X_OK as usize,
        )) {
            return None;
        }
        syscall4(
            libc::SYS_openat,
            here,
            path,
            (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK) as usize,
            0,
        )
    };
    if failed(fd) {
        return None;
    }
    let mut head = [0u8; 1024];
    // SAFETY: the kernel writes at most `head.len()` bytes to this stack; the descriptor was opened above and is closed once.
    let bytes = unsafe {
        let bytes = syscall4(
            libc::SYS_pread64,
            fd as usize,
            head.as_mut_ptr() as usize,
            head.len(),
            0,
        );
        syscall3(libc::SYS_close, fd as usize, 0, 0);
        bytes
    };
    let head = head.get(..bytes.max(0) as usize)?;
    if head.starts_with(b"#!") || elf::is_dynamic(head) {
        return Some(VERB);
    }
    elf::header(head).is_ok().then_some(UNSPLIT)
}

/// Unmaps memory that an `execve` was prepared in.
pub fn give_back(start: usize, bytes: usize) {
    if start != 0 {
        // SAFETY: the caller has mapped exactly these bytes, and nothing uses them any more.
        unsafe { syscall3(libc::SYS_munmap, start, bytes, 0) };
    }
}
