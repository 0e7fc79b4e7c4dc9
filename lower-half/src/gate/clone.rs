//! New threads and new processes of the upper half: `clone`, `fork`, `vfork`, and `exit`.
//!
//! Rules of this place: runs in the trap's handler, all signals blocked.
//!
//! A new thread must begin with the registers, vector state and mask of the thread that makes it, and with a record of its own behind GS before any signal can
//! reach it. So it starts in the lower half, with all signals blocked, on a copy of the trap's signal frame below its own stack, and returns into the
//! application through that copy.
//!
//! As soon as the application learns a thread's id, it may pass the id to the kernel. So the maker notes both ids, the kernel's and the application's, before
//! it returns the id, and the new thread waits for that. By then its record cannot have passed to another thread.

use core::sync::atomic::Ordering;

use stillpoint_wrappers::gate::page;

use crate::arch::frame::{RESULT, SP, sigreturn};
use crate::arch::syscall::{failed, syscall6};
use crate::arch::{enter, registers, syscall};
use crate::gate::call::{Call, errno};
use crate::gate::holdings::{self, Holding};
use crate::gate::{self, exec, exit, futex, identity, signals, sites, timers, user};
use crate::ground::{arriving, child_delay, ended_children};
use crate::threads::registry::{self, Thread, flag};
use crate::threads::{areas, direct_way};

const RED_ZONE: usize = 128;

/// The data at the bottom of a new thread's part of the stack.
#[repr(C)]
struct Beginning {
    frame: usize,
    thread: Thread,
    /// The address at which the kernel wrote the thread's id for the thread itself; 0: none.
    child_tid: usize,
}

/// `clone`.
pub fn on_clone(call: &mut Call) -> isize {
    let [flags, stack, parent_tid, child_tid, tls, _] = call.arguments();
    let flag = |flag: i32| flags & flag as usize != 0;
    if !flag(libc::CLONE_THREAD) && waits(call) {
        return 0;
    }
    if flag(libc::CLONE_VM) && flag(libc::CLONE_VFORK) && stack == 0 {
        return on_shared_stack(call, flags, parent_tid, child_tid, tls);
    }
    if !flag(libc::CLONE_VM) || stack == 0 {
        return on_fork(call, flags & !(libc::CLONE_VM as usize));
    }
    if flag(libc::CLONE_THREAD) {
        sites::before_threads();
        if !has_keeper() {
            return errno(libc::EAGAIN);
        }
    } else {
        sites::before_sharing();
        identity::step_over_taken();
    }
    let Some(thread) = Thread::take() else {
        return errno(libc::EAGAIN);
    };
    let same_process = flag(libc::CLONE_THREAD);
    if same_process && !(flag(libc::CLONE_FILES) && flag(libc::CLONE_FS)) {
        holdings::add(Holding::DescriptorTable);
    }
    let notes = thread.notes();
    if !same_process {
        notes.flags.store(flag::SHARES_MEMORY, Ordering::Relaxed);
    }
    if let Some(maker) = Thread::current() {
        signals::believe(thread, signals::believed(maker));
    }
    if flag(libc::CLONE_CHILD_CLEARTID) {
        notes.clear_tid.store(child_tid as u64, Ordering::Relaxed);
    }
    // SAFETY: the record has just been taken, and no thread has it yet.
    unsafe {
        thread.set_fs_upper(if flag(libc::CLONE_SETTLS) {
            tls as u64
        } else {
            registers::fs()
        })
    };

    let child_told = if flag(libc::CLONE_CHILD_SETTID) {
        child_tid
    } else {
        0
    };
    // SAFETY: `stack` is the end of a stack that the application gives to its new thread, so nothing else uses what lies below it.
    let beginning = unsafe { lay_beginning(call, thread, stack, child_told) };
    // After a restart, the kernel would write its own id, which is not the one for the application.
    let by_hand = if same_process && identity::restarted() {
        (libc::CLONE_PARENT_SETTID | libc::CLONE_CHILD_SETTID) as usize
    } else {
        0
    };
    // SAFETY: the application asks for this clone with these flags and addresses; the child begins in `begin`, which does not return, on its own stack and with
    // its own record.
    let result = unsafe {
        enter::clone_into(
            flags & !by_hand,
            beginning,
            parent_tid,
            child_tid,
            tls,
            begin,
            beginning,
        )
    };
    if failed(result) {
        thread.give_back();
        return result;
    }
    if !same_process && identity::is_taken(result as u32) {
        identity::discard(result as u32);
        thread.give_back();
        return on_clone(call);
    }
    if !same_process {
        if flag(libc::CLONE_VFORK) {
            child_has_gone(thread);
        }
        return result;
    }
    let id = identity::virtual_for(thread, result as u32);
    if flags & by_hand & libc::CLONE_PARENT_SETTID as usize != 0 {
        // The kernel also ignores an address that it cannot write to.
        user::write(parent_tid, id).ok();
    }
    thread.name(id, result as u32);
    id as isize
}

/// Whether a new thread of this process can borrow an area, if it needs one.
fn has_keeper() -> bool {
    let ours = |thread: &Thread| !exit::forked() && !thread.shares_memory();
    Thread::current()
        .filter(ours)
        .is_none_or(areas::before_threads)
}

/// Writes the beginning of a new thread below its stack: the frame through which it returns to where it was made.
///
/// # Safety
/// `stack` must be the end of a stack; what lies below the red zone is free.
unsafe fn lay_beginning(call: &Call, thread: Thread, stack: usize, child_tid: usize) -> usize {
    // SAFETY: the caller gives the end of a stack that is free below the red zone; frame and beginning lie there, one below the other.
    unsafe {
        let frame = call.frame().copy_below(stack.wrapping_sub(RED_ZONE));
        frame.set_register(RESULT, 0);
        frame.set_register(SP, stack);
        let beginning = (frame.address() - size_of::<Beginning>()) & !15;
        (beginning as *mut Beginning).write(Beginning {
            frame: frame.address(),
            thread,
            child_tid,
        });
        beginning
    }
}

/// A new thread's first steps: all signals blocked, its own upper FS in place, GS still its maker's.
unsafe extern "C" fn begin(beginning: usize) -> ! {
    // SAFETY: `on_clone` wrote the structure below this thread's stack, for this thread alone.
    let Beginning {
        frame,
        thread,
        child_tid,
    } = unsafe { (beginning as *const Beginning).read() };
    if thread.shares_memory() && identity::is_taken(syscall::getpid()) {
        // SAFETY: this child and its stack are not needed: its parent makes another one.
        unsafe { enter::exit_thread(0) }
    }
    if !thread.shares_memory() {
        let id = thread.named();
        if child_tid != 0 && identity::restarted() {
            user::write(child_tid, id).ok();
        }
    }
    // SAFETY: the record was taken for this thread, and `frame` is the copy that was made for it, with the FS that is in place.
    unsafe {
        thread.adopt();
        sigreturn(frame)
    }
}

/// With `CLONE_VFORK`, the child has left this memory when its parent continues: its record and its scratch memory are free.
fn child_has_gone(child: Thread) {
    let notes = child.notes();
    exec::give_back(
        notes.scratch.load(Ordering::Relaxed) as usize,
        notes.scratch_bytes.load(Ordering::Relaxed) as usize,
    );
    child.give_back();
}

/// Whether a new child process has to wait. If so, the call is made again later, and its thread can be stopped before it.
fn waits(call: &mut Call) -> bool {
    let own = !exit::forked() && !Thread::current().is_some_and(Thread::shares_memory);
    let waits = own && child_delay::wait();
    if waits {
        call.again();
    }
    waits
}

/// Answers `fork`.
pub fn on_plain_fork(call: &mut Call) -> isize {
    match waits(call) {
        true => 0,
        false => on_fork(call, libc::SIGCHLD as usize),
    }
}

/// `vfork`.
pub fn on_vfork(call: &mut Call) -> isize {
    if waits(call) {
        return 0;
    }
    let flags = (libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD) as usize;
    on_shared_stack(call, flags, 0, 0, 0)
}

/// Space for this handler's part of a stack: signal frames with every register that a processor has are below 16 KB.
const KEPT_BYTES: usize = 64 * 1024;

/// Makes a child that shares its parent's memory, stack included, until it executes another program or ends. It returns into the application through the trap's
/// own frame; its parent finds that frame, and this handler's, unchanged.
fn on_shared_stack(
    call: &mut Call,
    flags: usize,
    parent_tid: usize,
    child_tid: usize,
    tls: usize,
) -> isize {
    sites::before_sharing();
    identity::step_over_taken();
    let (alternate, stack) = (call.frame().alternate_stack(), call.frame().register(SP));
    let here = (&raw const alternate) as usize;
    let end = if alternate.contains(&here) && !alternate.contains(&stack) {
        alternate.end
    } else {
        stack.wrapping_sub(RED_ZONE)
    };
    // The handler's own frames below this one are small.
    if !(here..here + KEPT_BYTES / 2).contains(&end) {
        return on_fork(
            call,
            flags & !((libc::CLONE_VM | libc::CLONE_VFORK) as usize),
        );
    }
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let mapping = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: the kernel chooses a free address for this memory.
    let kept = unsafe {
        syscall6(
            libc::SYS_mmap,
            [0, KEPT_BYTES, protection, mapping, usize::MAX, 0],
        )
    };
    if failed(kept) {
        return kept;
    }
    let Some(thread) = Thread::take() else {
        exec::give_back(kept as usize, KEPT_BYTES);
        return errno(libc::EAGAIN);
    };
    thread
        .notes()
        .flags
        .store(flag::SHARES_MEMORY, Ordering::Relaxed);
    if let Some(maker) = Thread::current() {
        signals::believe(thread, signals::believed(maker));
    }
    let fs = if flags & libc::CLONE_SETTLS as usize != 0 {
        tls as u64
    } else {
        registers::fs()
    };
    // SAFETY: the record has just been taken, and no thread has it yet. The stack between here and the application's part of it is this handler's; it fits into
    // `kept`.
    let result = unsafe {
        thread.set_fs_upper(fs);
        enter::clone_onto(flags, parent_tid, child_tid, tls, end, kept as usize)
    };
    if result == 0 {
        if identity::is_taken(syscall::getpid()) {
            // SAFETY: this child is not needed: its parent makes another one.
            unsafe { enter::exit_thread(0) }
        }
        // SAFETY: the record was taken for this child, which runs here.
        unsafe { thread.adopt() };
        return 0;
    }
    exec::give_back(kept as usize, KEPT_BYTES);
    child_has_gone(thread);
    if !failed(result) && identity::is_taken(result as u32) {
        identity::discard(result as u32);
        return on_shared_stack(call, flags, parent_tid, child_tid, tls);
    }
    result
}

/// Makes a child with memory of its own, for every call that amounts to a `fork`.
pub fn on_fork(call: &mut Call, flags: usize) -> isize {
    let [_, stack, parent_tid, child_tid, tls, _] = call.arguments();
    let plain = call.number() != libc::SYS_clone;
    let arguments = if plain {
        [flags, 0, 0, 0, 0, 0]
    } else {
        [flags, 0, parent_tid, child_tid, tls, 0]
    };
    // Memory of the parent that has not come yet would be missing in the child.
    arriving::wait();
    identity::step_over_taken();
    // SAFETY: without CLONE_VM the child goes on with a copy of this very stack, and the other arguments are the application's.
    let result = gate::while_still(|| unsafe { syscall6(libc::SYS_clone, arguments) });
    if result == 0 && identity::is_taken(syscall::getpid()) {
        // SAFETY: this child is not needed: its parent makes another one.
        unsafe { enter::exit_thread(0) }
    }
    if !failed(result) && identity::is_taken(result as u32) {
        identity::discard(result as u32);
        return on_fork(call, flags);
    }
    if result == 0 {
        start_forked();
        if !plain && stack != 0 {
            call.frame().set_register(SP, stack);
        }
    }
    result
}

/// Starts a forked child: one thread, ids of its own, and no part in the job.
fn start_forked() {
    // SAFETY: the gate page is mapped and filled; this child has its own copy of it.
    let page = unsafe { page() };
    if page.mpi_active.load(Ordering::Relaxed) != 0 {
        exec::natively_from_now_on();
    }
    page.pending.store(0, Ordering::Relaxed);
    super::exit::start_forked();
    identity::start_forked();
    gate::processor_time::start_forked();
    signals::start_forked();
    timers::start_forked();
    gate::semaphores::start_forked();
    ended_children::start_forked();
    if let Some(thread) = Thread::current() {
        // A child that shared its parent's memory until now no longer does.
        let kept = flag::BELIEVES_SIGSYS | flag::BELIEVES_STOP;
        thread.notes().flags.fetch_and(kept, Ordering::Relaxed);
        registry::only(thread);
        thread
            .record()
            .virtual_tid
            .store(thread.real_tid(), Ordering::Relaxed);
    }
    direct_way::shut(false);
}

/// `exit`: the thread ends.
pub fn on_exit(call: &mut Call) -> isize {
    let status = call.argument(0);
    if let Some(thread) = Thread::current().filter(|thread| !thread.shares_memory()) {
        // SAFETY: an application runs, so the gate page is mapped and filled.
        let page = unsafe { page() };
        let record = thread.record();
        futex::owner_ends(thread);
        page.sent_before
            .fetch_add(record.sent.load(Ordering::Relaxed), Ordering::Relaxed);
        page.received_before
            .fetch_add(record.received.load(Ordering::Relaxed), Ordering::Relaxed);
        areas::give_back(thread);
        thread.give_back();
    }
    // SAFETY: the record is given back, and the thread is not needed any more: the application ends it.
    unsafe { enter::exit_thread(status) }
}
