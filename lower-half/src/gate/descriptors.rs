//! Whose a descriptor is: one bit each, set for the upper half's.
//!
//! Rules of this place: runs in the trap's handler; the bits lie in the gate region, where the springboard
//! sets them too. The lower half makes descriptors unseen, so what has no bit is the lower half's, or nobody's: to
//! the application it is not open.

pub mod unseen;

use core::sync::atomic::{AtomicU64, Ordering};

use super::call::{Call, errno};
use super::holdings::{self, Holding};
use super::user;
use crate::arch::frame::{Frame, PC, RESULT};
use crate::arch::layout::{DESCRIPTOR_LIMIT, DESCRIPTORS};
use crate::arch::springboard::{self, Piece, Standing};
use crate::arch::syscall::{failed, syscall3};
use crate::gate::exit;
use crate::ground::{arriving, faults};
use crate::threads::registry::{self, Thread};

fn bits() -> &'static [AtomicU64] {
    // SAFETY: the gate region is mapped, zero at first, and this part of it holds nothing else.
    unsafe { core::slice::from_raw_parts(DESCRIPTORS as *const AtomicU64, DESCRIPTOR_LIMIT / 64) }
}

/// Whether the descriptor belongs to the upper half (if it is open at all).
pub fn is_upper(fd: usize) -> bool {
    bits()
        .get(fd / 64)
        .is_none_or(|word| word.load(Ordering::Relaxed) & 1 << (fd % 64) != 0)
}

/// Notes that the upper half has this descriptor.
pub fn note(fd: usize) {
    if let Some(word) = bits().get(fd / 64) {
        word.fetch_or(1 << (fd % 64), Ordering::Relaxed);
    }
}

/// Between the springboard's call and its note a fresh descriptor would be missed: notes it, of a thread that stands there in `frame`. Whoever may be stopped there, or on
/// top of that, is looked at so before.
pub fn note_behind(frame: Frame) {
    let result = frame.register(RESULT);
    if let Standing::Called(piece) = springboard::standing(frame.register(PC))
        && piece.notes_result()
        && !failed(result as isize)
    {
        note(result);
    }
}

/// Notes that the upper half has this descriptor no more.
pub fn forget(fd: usize) {
    if let Some(word) = bits().get(fd / 64) {
        word.fetch_and(!(1 << (fd % 64)), Ordering::Relaxed);
    }
}

/// The upper half's descriptors, as far as the bits reach; some may have been closed by other means.
pub fn upper() -> Vec<i32> {
    (0..DESCRIPTOR_LIMIT)
        .filter(|fd| is_upper(*fd))
        .map(|fd| fd as i32)
        .collect()
}

/// A forked child has a descriptor table of its own and no part in the job: what it does to its descriptors is neither
/// noted nor restrained. (One that shares our memory until it execs would spoil its parent's bits.)
fn elsewhere() -> bool {
    exit::forked() || Thread::current().is_some_and(Thread::shares_memory)
}

/// Notes a descriptor that the upper half has been given; gives it.
pub fn noted(result: isize) -> isize {
    if !failed(result) && !elsewhere() {
        note(result as usize);
    }
    result
}

/// `userfaultfd`: the application's page faults are its own.
pub fn on_userfaultfd(call: &mut Call) -> isize {
    // Memory is registered with one such descriptor only.
    arriving::wait();
    if !elsewhere() {
        faults::give_way();
    }
    noted(call.make())
}

/// `pipe`, `pipe2`, `socketpair`: two descriptors come back in memory.
pub fn on_pair(call: &mut Call, argument: usize) -> isize {
    let result = call.make();
    if !failed(result) && !elsewhere() {
        let pair = call.argument(argument) as *const i32;
        // SAFETY: the kernel has just written both there.
        let (first, second) = unsafe { (pair.read_unaligned(), pair.add(1).read_unaligned()) };
        note(first as usize);
        note(second as usize);
    }
    result
}

/// A call whose result is a descriptor.
pub fn on_new(call: &mut Call) -> isize {
    if elsewhere() {
        return call.redirect_plain();
    }
    call.redirect(Piece::CallNoting, 0)
}

/// A call that writes a descriptor to this address.
pub fn on_new_within(call: &mut Call, address: usize) -> isize {
    let result = call.make();
    if !failed(result)
        && let Ok(fd) = user::read::<u32>(address)
    {
        noted(fd as isize);
    }
    result
}

/// `getsockopt` with the number of an option that, for sockets, gives a descriptor.
pub fn on_peer_option(call: &mut Call) -> isize {
    if call.argument(1) as i32 == libc::SOL_SOCKET {
        on_new_within(call, call.argument(3))
    } else {
        call.make()
    }
}

/// Commands of `bpf` whose result is a descriptor.
pub const MADE_BY_BPF: &[u32] = &[0, 5, 7, 13, 14, 17, 18, 19, 28, 30, 32, 33, 36];

/// `fanotify_init`: descriptors come with its events, unseen.
pub fn on_source(call: &mut Call) -> isize {
    noted(unseen::source(|| call.make()))
}

/// `io_uring_setup`: its operations make descriptors, unseen.
pub fn on_ring(call: &mut Call) -> isize {
    /// `struct io_uring_params`: the flags are its third word.
    const FLAGS: usize = 8;
    /// The result would be no descriptor.
    const REGISTERED_ONLY: u32 = 1 << 15;
    match user::read::<u32>(call.argument(1).wrapping_add(FLAGS)) {
        Ok(flags) if flags & REGISTERED_ONLY != 0 => errno(libc::EINVAL),
        _ => on_source(call),
    }
}

/// `dup` and `fcntl(F_DUPFD)`.
pub fn on_duplicate(call: &mut Call) -> isize {
    if !elsewhere() && !belongs(call.argument(0) as u32 as usize) {
        return errno(libc::EBADF);
    }
    noted(call.make())
}

/// `dup2` and `dup3`: never onto a descriptor of the lower half.
pub fn on_duplicate_onto(call: &mut Call) -> isize {
    let (old, new) = (
        call.argument(0) as u32 as usize,
        call.argument(1) as u32 as usize,
    );
    if elsewhere() {
        return call.make();
    }
    if !belongs(old) || (!belongs(new) && is_open(new)) {
        return errno(libc::EBADF);
    }
    noted(call.make())
}

/// Whether a descriptor that the application names is its own: noted, or one that came to it unseen.
fn belongs(fd: usize) -> bool {
    is_upper(fd) || unseen::is_new(fd)
}

fn is_open(fd: usize) -> bool {
    // SAFETY: F_GETFD only reads a flag.
    !failed(unsafe { syscall3(libc::SYS_fcntl, fd, libc::F_GETFD as usize, 0) })
}

/// `close`.
pub fn on_close(call: &mut Call) -> isize {
    let fd = call.argument(0) as u32 as usize;
    // Closing may wait, for a network file system.
    if elsewhere() {
        return call.redirect_plain();
    }
    if !belongs(fd) {
        return errno(libc::EBADF);
    }
    // The piece forgets it, before the call: another thread may be given the same number at once.
    call.redirect(Piece::CallClose, 0)
}

/// Flags of `close_range`.
const UNSHARE: usize = libc::CLOSE_RANGE_UNSHARE as usize;
const CLOEXEC: usize = libc::CLOSE_RANGE_CLOEXEC as usize;

/// `close_range`: the upper half's, one by one.
pub fn on_close_range(call: &mut Call) -> isize {
    let [first, last, flags, ..] = call.arguments();
    let (first, last) = (first as u32 as usize, last as u32 as usize);
    if elsewhere() || first > last || flags & !(UNSHARE | CLOEXEC) != 0 {
        return call.make();
    }
    // The one thread of a program has its table for itself already, as far as the program can tell.
    if flags & UNSHARE != 0 && registry::each().nth(1).is_some() {
        return holdings::held(call, Holding::DescriptorTable);
    }
    if flags & CLOEXEC != 0 {
        return call.make_with([first, last, CLOEXEC, 0, 0, 0]);
    }
    for fd in first..=last.min(DESCRIPTOR_LIMIT - 1) {
        if belongs(fd) {
            forget(fd);
            // SAFETY: the application asked for it to be closed.
            unsafe { syscall3(libc::SYS_close, fd, 0, 0) };
        }
    }
    if last >= DESCRIPTOR_LIMIT {
        // SAFETY: these all belong to the application.
        unsafe { syscall3(libc::SYS_close_range, first.max(DESCRIPTOR_LIMIT), last, 0) };
    }
    0
}
