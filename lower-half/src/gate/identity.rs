//! Process and thread ids: the application keeps its original ids, whatever the kernel's ids are in this launch.
//!
//! Rules of this place: runs in the trap's handler. Ids that are not known as virtual pass through unchanged.

use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use stillpoint_wrappers::gate::page;

use super::SavedStateError;
use super::call::{Call, errno};
use super::neighbours;
use crate::arch::enter;
use crate::arch::layout::{Slot, slot};
use crate::arch::syscall::{self, failed};
use crate::ground::hidden_child::LOWEST;
use crate::threads::registry::{self, Thread};

/// In a forked child: the parent's ids, real in the high half, virtual in the low.
static PARENT: AtomicU64 = AtomicU64::new(0);

/// The process id that the application sees; 0 until [`start`].
pub fn virtual_pid() -> u32 {
    read(Slot::KnownPid)
}

/// The process id that the kernel knows.
pub fn real_pid() -> u32 {
    read(Slot::RealPid)
}

fn read(id: Slot) -> u32 {
    // SAFETY: the gate region is mapped and the word is aligned; it is written at launch and after a fork only, before other threads read it.
    unsafe { (slot(id) as *const u64).read_volatile() as u32 }
}

fn write(id: Slot, pid: u32) {
    // SAFETY: the gate region is mapped and writable and the word is aligned; callers write it at launch and after a fork only, before other threads read it.
    unsafe { (slot(id) as *mut u64).write_volatile(u64::from(pid)) };
}

/// Notes the kernel's ids of this process; until a restart, the application sees the same ones.
pub fn start() {
    let pid = syscall::getpid();
    write(Slot::RealPid, pid);
    write(Slot::KnownPid, pid);
}

/// Notes that the process is a forked child with ids of its own.
pub fn start_forked() {
    PARENT.store(
        u64::from(real_pid()) << 32 | u64::from(virtual_pid()),
        Ordering::Relaxed,
    );
    start();
}

/// Returns the kernel's id for a process id that the application knows. A process group or session that the process leads has the same id.
pub fn real_process(id: u32) -> u32 {
    let parent = PARENT.load(Ordering::Relaxed);
    if id == 0 {
        0
    } else if id == virtual_pid() {
        real_pid()
    } else if id == parent as u32 {
        (parent >> 32) as u32
    } else {
        neighbours::real(id).unwrap_or(id)
    }
}

/// Returns the kernel's id for a thread (or process) id that the application knows.
pub fn real_thread(id: u32) -> u32 {
    if id == 0 {
        return 0;
    }
    registry::each()
        .find(|thread| thread.virtual_tid() == id)
        .map_or_else(|| real_process(id), Thread::real_tid)
}

/// Returns the application's id of a process (group, session) for the kernel's id.
pub fn known_process(real: u32) -> u32 {
    let parent = PARENT.load(Ordering::Relaxed);
    if real == 0 {
        0
    } else if real == real_pid() {
        virtual_pid()
    } else if u64::from(real) == parent >> 32 {
        parent as u32
    } else {
        neighbours::known(real).unwrap_or(real)
    }
}

/// Returns the application's id of a thread (or process) for the kernel's id.
pub fn known_thread(real: u32) -> u32 {
    registry::each()
        .find(|thread| real != 0 && thread.real_tid() == real)
        .map_or_else(|| known_process(real), Thread::virtual_tid)
}

/// Whether the application knows a thread by this id.
pub fn is_known_thread(id: u32) -> bool {
    id != 0 && registry::each().any(|thread| thread.virtual_tid() == id)
}

/// Whether a thread of the application has this id in the kernel.
pub fn is_real_thread(id: u32) -> bool {
    id != 0 && registry::each().any(|thread| thread.real_tid() == id)
}

/// Returns the id by which the application will know a new thread: the kernel's, unless an older thread has that id.
pub fn virtual_for(new: Thread, real: u32) -> u32 {
    /// Beyond every id that the kernel gives (PID_MAX_LIMIT).
    const BEYOND: u32 = 1 << 22;
    let taken = |id| {
        id == virtual_pid()
            || neighbours::real(id).is_some()
            || registry::each().any(|thread| thread != new && thread.virtual_tid() == id)
    };
    if taken(real) {
        (BEYOND..).find(|id| !taken(*id)).unwrap_or(real)
    } else {
        real
    }
}

/// Whether the application knows a process or thread by this id, but the kernel by another. A new process must not get such an id, or the two would be
/// confused. A child that gets one ends at once, and another child is made.
pub fn is_taken(real: u32) -> bool {
    let parent = PARENT.load(Ordering::Relaxed);
    let differs = |known: u32, kernels: u32| known == real && kernels != real;
    real != 0
        && (differs(virtual_pid(), real_pid())
            || differs(parent as u32, (parent >> 32) as u32)
            || neighbours::real(real).is_some()
            || registry::each().any(|thread| differs(thread.virtual_tid(), thread.real_tid())))
}

/// `/proc/sys/kernel/ns_last_pid`: the last id that the kernel has given; -1: not known.
static LAST: AtomicI32 = AtomicI32::new(-1);

fn watch_ids() {
    let path = c"/proc/sys/kernel/ns_last_pid".as_ptr() as usize;
    let (here, flags) = (libc::AT_FDCWD as usize, libc::O_RDONLY | libc::O_CLOEXEC);
    // SAFETY: the path ends in NUL; the descriptor that is closed was opened just before.
    unsafe {
        let opened = syscall::syscall4(libc::SYS_openat, here, path, flags as usize, 0);
        if failed(opened) {
            return;
        }
        let (opened, above) = (opened as usize, libc::F_DUPFD_CLOEXEC as usize);
        let kept = syscall::syscall3(libc::SYS_fcntl, opened, above, LOWEST as usize);
        syscall::syscall3(libc::SYS_close, opened, 0, 0);
        LAST.store(
            if failed(kept) { -1 } else { kept as i32 },
            Ordering::Relaxed,
        );
    }
}

fn last_id() -> Option<u32> {
    let file = usize::try_from(LAST.load(Ordering::Relaxed)).ok()?;
    let mut text = [0u8; 16];
    let place = text.as_mut_ptr() as usize;
    // SAFETY: the kernel writes at most `text.len()` bytes to the text, which lives on this stack.
    let bytes = unsafe { syscall::syscall4(libc::SYS_pread64, file, place, text.len(), 0) };
    let digits = text.get(..usize::try_from(bytes).ok()?)?;
    let number = core::str::from_utf8(digits).ok()?;
    number.trim_end().parse().ok()
}

/// Called before a process is made: uses up ids that are taken and that the kernel would give next. If others make processes at the same time, or the kernel
/// does not show its last id, [`is_taken`] catches the rest.
pub fn step_over_taken() {
    /// How far ahead this looks.
    const NEAR: u32 = 8;
    /// More ids in a row are not taken.
    const MOST: usize = 64;
    for _ in 0..MOST {
        let near = |last: u32| (1..=NEAR).any(|more| is_taken(last.wrapping_add(more)));
        if !last_id().is_some_and(near) {
            return;
        }
        let child = enter::take_id();
        if failed(child) {
            return;
        }
        reap(child as u32);
    }
}

fn reap(child: u32) {
    let (all, pid) = (libc::__WALL as usize, child as usize);
    // SAFETY: the call takes numbers; null says that neither status nor usage is asked for.
    while unsafe { syscall::syscall4(libc::SYS_wait4, pid, 0, all, 0) } == errno(libc::EINTR) {}
}

/// Reaps a child that had an id which is taken; the application does not learn of it, unless another of its threads has taken the signal.
pub fn discard(child: u32) {
    reap(child);
    let chld = 1u64 << (libc::SIGCHLD - 1);
    let (mut info, at_once) = ([0u32; 32], [0u64; 2]);
    // SAFETY: the kernel reads the mask of 8 bytes and the time, and writes at most the 128 bytes of `info`; all three live on this stack.
    let taken = unsafe {
        syscall::syscall4(
            libc::SYS_rt_sigtimedwait,
            &raw const chld as usize,
            info.as_mut_ptr() as usize,
            at_once.as_ptr() as usize,
            8,
        )
    };
    // Another child's signal may have been merged with this one.
    let ways = (libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT) as usize;
    let (mut other, any) = ([0u32; 32], libc::P_ALL as usize);
    let place = other.as_mut_ptr() as usize;
    // SAFETY: the kernel writes at most the 128 bytes of `other`, which lives on this stack; no usage is asked for.
    let found = unsafe { syscall::syscall6(libc::SYS_waitid, [any, 0, place, ways, 0, 0]) };
    if taken == libc::SIGCHLD as isize && (info[4] != child || found == 0 && other[4] != 0) {
        // SAFETY: the call takes numbers; the signal goes to this process.
        unsafe {
            syscall::syscall3(
                libc::SYS_kill,
                real_pid() as usize,
                libc::SIGCHLD as usize,
                0,
            )
        };
    }
}

/// Whether the caller is a child process that shares its parent's memory: this module's state is then its parent's.
fn is_sharing_child() -> bool {
    Thread::current().is_some_and(Thread::shares_memory)
}

/// `getpid`.
pub fn on_getpid() -> isize {
    let id = if is_sharing_child() {
        syscall::getpid()
    } else {
        virtual_pid()
    };
    id as isize
}

/// `gettid`.
pub fn on_gettid() -> isize {
    let id = match Thread::current() {
        Some(thread) if !thread.shares_memory() => thread.virtual_tid(),
        _ => syscall::gettid(),
    };
    id as isize
}

/// `getppid`: a child knows its parent by the parent's virtual id.
pub fn on_getppid(call: &mut Call) -> isize {
    let real = call.make();
    if is_sharing_child() && real as u64 == u64::from(real_pid()) {
        return virtual_pid() as isize;
    }
    known_process(real as u32) as isize
}

/// Whether the application's ids may differ from the kernel's.
pub fn restarted() -> bool {
    // SAFETY: an application runs, so the gate page is mapped and filled.
    unsafe { page() }.restarted.load(Ordering::Relaxed) != 0
}

/// `set_tid_address`.
pub fn on_set_tid_address(call: &mut Call) -> isize {
    if let Some(thread) = Thread::current() {
        thread
            .notes()
            .clear_tid
            .store(call.argument(0) as u64, Ordering::Relaxed);
    }
    call.make();
    on_gettid()
}

/// Returns what an image must hold: the application's ids of the process and its parent.
pub fn save() -> Vec<u8> {
    let parent = known_process(std::os::unix::process::parent_id());
    let words = [virtual_pid(), parent].map(u64::from);
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// Returns the process id that [`save`] noted: the one that the application knows.
pub fn saved_pid(saved: &[u8]) -> Result<u32, SavedStateError> {
    let words = super::words(saved, "identity", 2)?;
    let id = u32::try_from(words[0]).ok().filter(|id| *id != 0);
    id.ok_or(SavedStateError::Value { part: "identity" })
}

/// Takes over the state from [`save`] in another launch.
pub fn restore(saved: &[u8]) -> Result<(), SavedStateError> {
    let words = super::words(saved, "identity", 2)?;
    // The new parent stands for the old one, until it ends as the old one would have.
    let parent = u64::from(std::os::unix::process::parent_id());
    PARENT.store(parent << 32 | words[1] & 0xffff_ffff, Ordering::Relaxed);
    write(Slot::KnownPid, saved_pid(saved)?);
    watch_ids();
    Ok(())
}
