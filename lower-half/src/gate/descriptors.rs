//! The owner of each descriptor: one bit each, set for the upper half's.
//!
//! Rules of this place: runs in the trap's handler; the bits lie in the gate region, where the springboard sets them too. The gate does not see the lower half
//! make descriptors. So a descriptor without a bit belongs to the lower half, or is closed; to the application it is not open.

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
    // SAFETY: the gate region is mapped as long as the process lives, zero at first, and this part of it holds nothing but these words.
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

/// Notes a fresh descriptor for a thread that stands in `frame`, between the springboard's call and its note, where it would be missed. This is called before a
/// thread can be stopped there, or in a handler on top of that frame.
pub fn note_behind(frame: Frame) {
    let result = frame.register(RESULT);
    if let Standing::Called(piece) = springboard::standing(frame.register(PC))
        && piece.notes_result()
        && !failed(result as isize)
    {
        note(result);
    }
}

/// Notes that the upper half has lost this descriptor.
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

/// Whether descriptors of the caller are neither noted nor restricted. A forked child has a descriptor table of its own and no part in the job. A child that
/// shares our memory until it execs would corrupt its parent's bits.
fn elsewhere() -> bool {
    exit::forked() || Thread::current().is_some_and(Thread::shares_memory)
}

/// Notes a descriptor that the upper half has been given, and returns it.
pub fn noted(result: isize) -> isize {
    if !failed(result) && !elsewhere() {
        note(result as usize);
    }
    result
}

/// Answers `userfaultfd`: the application handles its own page faults.
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
        // SAFETY: the call has succeeded, so the kernel has just written both numbers there.
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

/// Answers `getsockopt` with an option number that, for sockets, returns a descriptor.
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

/// Answers `io_uring_setup`: operations of the ring make descriptors, unseen.
pub fn on_ring(call: &mut Call) -> isize {
    /// `struct io_uring_params`: the flags are its third word.
    const FLAGS: usize = 8;
    /// With this flag, the result would not be a descriptor.
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

/// Whether a descriptor that the application names is its own: noted, or received unseen.
fn belongs(fd: usize) -> bool {
    is_upper(fd) || unseen::is_new(fd)
}

fn is_open(fd: usize) -> bool {
    // SAFETY: F_GETFD only reads a flag; the call takes numbers and touches no memory.
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
    // The piece forgets the descriptor before the call: another thread may get the same number at once.
    call.redirect(Piece::CallClose, 0)
}

/// Flags of `close_range`.
const UNSHARE: usize = libc::CLOSE_RANGE_UNSHARE as usize;
const CLOEXEC: usize = libc::CLOSE_RANGE_CLOEXEC as usize;

/// Answers `close_range`: closes the upper half's descriptors, one by one.
pub fn on_close_range(call: &mut Call) -> isize {
    let [first, last, flags, ..] = call.arguments();
    let (first, last) = (first as u32 as usize, last as u32 as usize);
    if elsewhere() || first > last || flags & !(UNSHARE | CLOEXEC) != 0 {
        return call.make();
    }
    // If a program has one thread, its table already is its own, as far as the program can tell.
    if flags & UNSHARE != 0 && registry::each().nth(1).is_some() {
        return holdings::held(call, Holding::DescriptorTable);
    }
    if flags & CLOEXEC != 0 {
        return call.make_with([first, last, CLOEXEC, 0, 0, 0]);
    }
    for fd in first..=last.min(DESCRIPTOR_LIMIT - 1) {
        if belongs(fd) {
            forget(fd);
            // SAFETY: the number is the application's, which asked for it to be closed.
            unsafe { syscall3(libc::SYS_close, fd, 0, 0) };
        }
    }
    if last >= DESCRIPTOR_LIMIT {
        // SAFETY: the numbers from DESCRIPTOR_LIMIT on all belong to the application, which asked for them to be closed.
        unsafe { syscall3(libc::SYS_close_range, first.max(DESCRIPTOR_LIMIT), last, 0) };
    }
    0
}
