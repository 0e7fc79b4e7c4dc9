//! Stops the upper half's threads where they stand, and lets them continue.
//!
//! The agent (a thread of the lower half) sends the stop signal. Its handler stores the signal frame's address in the thread's record and sleeps, or runs the
//! upper half's `park` on the driver thread. A thread that is inside MPI is not stopped: it checks `GatePage::pending` when it leaves MPI and parks itself.
//!
//! Rules of this place: [`on_stop`] begins on the application's stack and waits on a stack of its own (`handler_stack`), with whatever FS the thread had; it
//! makes system calls directly.

use core::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use stillpoint_wrappers::gate::{self, Inside, UpperHooks};

use crate::arch::frame::Frame;
use crate::arch::syscall::{failed, futex_wait, futex_wake, syscall3, syscall4, yield_now};
use crate::arch::{registers, short};
use crate::gate::{descriptors, identity, signals};
use crate::threads::registry::{self, State, Thread, flag};
use crate::threads::{beneath, deadlines, handler_stack, interrupted};

/// The value of the agent's stop signal: `"stopping"`.
const MAGIC: usize = usize::from_le_bytes(*b"stopping");

/// 1 while stopped threads have to wait.
static HOLD: AtomicU32 = AtomicU32::new(0);

/// The stop signal's handler.
///
/// # Safety
/// For the kernel to call.
pub unsafe extern "C" fn on_stop(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) {
    // SAFETY: the kernel passes this handler a structure that stays until the handler returns.
    let frame = unsafe { Frame::new(context) };
    // SAFETY: the kernel passes this handler a structure that stays until the handler returns; with this code it holds the sender's value.
    let agents = unsafe {
        (*info).si_code == libc::SI_QUEUE && (*info).si_value().sival_ptr as usize == MAGIC
    };
    let mut asked = false;
    let thread = Thread::current().filter(|thread| {
        let flag = if agents { flag::STOP } else { flag::STOP_SELF };
        asked = thread.notes().flags.fetch_and(!flag, Ordering::AcqRel) & flag != 0;
        asked || agents
    });
    let Some(thread) = thread else {
        signals::deliver_here(signal, info, context);
        return;
    };
    short::settle(frame);
    interrupted::make_again(thread, frame);
    let since = deadlines::now();
    // A thread that is asked twice gets two signals; the second may arrive after the thread was let go, and the thread may be let go before the first has come.
    let late = !asked || HOLD.load(Ordering::Acquire) == 0;
    if agents && late {
        return;
    }
    let record = thread.record();
    if record.inside.load(Ordering::Relaxed) != Inside::No as u32 || beneath::in_stub(frame) {
        return;
    }
    let fs = registers::fs();
    if fs != 0 && fs == thread.fs_lower() {
        // On its way into or out of MPI, with `inside` not yet or no longer set: treated as inside.
        return;
    }
    beneath::set_back(frame);
    if !beneath::stays(frame) {
        // In the kernel's vDSO, which a restart places elsewhere, on its way into a handler or out of one, about to stop by itself, or within a piece of the
        // springboard. It will be elsewhere when the agent asks again.
        return;
    }
    if beneath::blocks(thread, frame) {
        beneath::put_off(thread);
        return;
    }
    match agents {
        true => thread
            .notes()
            .flags
            .fetch_or(flag::OUTSIDE, Ordering::AcqRel),
        false => thread
            .notes()
            .flags
            .fetch_and(!flag::OUTSIDE, Ordering::AcqRel),
    };
    descriptors::note_behind(frame);
    // Only the thread itself can read this from the kernel.
    thread.note_timer_slack(timer_slack());
    // SAFETY: the record is this thread's own.
    unsafe { thread.set_fs_upper(fs) };
    record
        .stop_frame
        .store(frame.address() as u64, Ordering::Release);
    futex_wake(&STOPPED);
    let wait = if thread.is_driver() { park } else { hold };
    // SAFETY: the thread works on no other stack of its own, since traps leave nothing there; this handler returns through the frame, in this launch or in
    // another.
    unsafe { handler_stack::aside(thread, frame, wait, 0) };
    interrupted::goes_on(frame, deadlines::now() - since);
    record.stop_frame.store(0, Ordering::Release);
}

/// Returns the calling thread's timer slack in nanoseconds; 0: not known.
fn timer_slack() -> u64 {
    // SAFETY: prctl with this argument only reads a number, and touches no memory.
    let slack = unsafe { syscall3(libc::SYS_prctl, libc::PR_GET_TIMERSLACK as usize, 0, 0) };
    if failed(slack) { 0 } else { slack as u64 }
}

/// Threads are woken through this word; a waiting thread then checks the records.
static STOPPED: AtomicU32 = AtomicU32::new(0);

/// The part of every thread except the driver: waits until the checkpoint is over.
unsafe extern "C" fn hold(_nothing: usize) {
    let may_run = || Thread::current().is_some_and(|thread| has(thread, flag::RUNS));
    loop {
        // Read before the flags: a thread that lets this one run changes the flags first, then this counter.
        let calls = CALLS.load(Ordering::Acquire);
        if HOLD.load(Ordering::Acquire) == 0 || may_run() {
            return;
        }
        futex_wait(&CALLS, calls, 0);
    }
}

/// How many times some of them have been let run; the threads sleep on this word.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// Wakes all waiting threads, so that they check whether they may run.
fn call() {
    CALLS.fetch_add(1, Ordering::AcqRel);
    futex_wake(&CALLS);
}

fn has(thread: Thread, flag: u64) -> bool {
    thread.notes().flags.load(Ordering::Acquire) & flag != 0
}

/// The driver thread's part: the upper half pulls messages in until the checkpoint is over.
unsafe extern "C" fn park(_nothing: usize) {
    // SAFETY: the gate page is mapped; the pointer is null or that of the hooks, which the upper half never frees.
    let hooks =
        unsafe { (gate::page().hooks.load(Ordering::Acquire) as *const UpperHooks).as_ref() };
    if let Some(park) = hooks.and_then(|hooks| hooks.park) {
        // SAFETY: the hook demands the driver thread with the upper FS in place, and this runs on that thread, stopped outside of the lower half.
        unsafe { park() };
    }
}

/// Asks threads to stop. One has stopped when [`Thread::stop_frame`] is not 0.
pub fn stop(threads: &[Thread]) {
    let can = |thread: &&Thread| {
        thread.state() == State::Alive && !beneath::too_early(**thread) && thread.real_tid() != 0
    };
    let asked: Vec<Thread> = threads.iter().filter(can).copied().collect();
    if asked.is_empty() {
        return;
    }
    HOLD.store(1, Ordering::Release);
    // A thread that has been asked and has not come to its handler yet keeps its note: the signal has ended the wait that the note is about.
    let blocked = asked.iter().filter(|thread| !has(**thread, flag::STOP));
    interrupted::note_calls(&blocked.copied().collect::<Vec<_>>());
    for thread in asked {
        let flags = &thread.notes().flags;
        let before = flags.fetch_or(flag::STOP, Ordering::AcqRel);
        if !signal_thread(thread.real_tid()) && before & flag::STOP == 0 {
            flags.fetch_and(!flag::STOP, Ordering::AcqRel);
        }
    }
}

/// Threads that are about to become another program.
static EXECUTING: AtomicU32 = AtomicU32::new(0);
/// Threads that are about to send the stop signal.
static SENDING: AtomicU32 = AtomicU32::new(0);

/// Runs `exec` while no thread sends the stop signal: a signal that came too late would wait for the new program, which has no handler for it yet and would be
/// ended by it. The calling thread must not block the signal, so that one that has already been sent comes before.
pub fn without_stops<R>(exec: impl FnOnce() -> R) -> R {
    EXECUTING.fetch_add(1, Ordering::SeqCst);
    while SENDING.load(Ordering::SeqCst) != 0 {
        yield_now();
    }
    // A signal that has been sent comes on the return from this call.
    yield_now();
    let result = exec();
    EXECUTING.fetch_sub(1, Ordering::SeqCst);
    result
}

/// Sends the stop signal with a value that no other sender uses, unless a thread is about to execute another program, which ends all others. Returns whether it
/// has sent it.
fn signal_thread(tid: u32) -> bool {
    SENDING.fetch_add(1, Ordering::SeqCst);
    let sent = EXECUTING.load(Ordering::SeqCst) == 0 && send(tid);
    SENDING.fetch_sub(1, Ordering::SeqCst);
    sent
}

/// Sends the stop signal. Returns `false` if the kernel has no room for it (`RLIMIT_SIGPENDING`).
fn send(tid: u32) -> bool {
    // struct siginfo: signal, error, code, (padding), sender's process and user, value.
    let mut info = [0u32; 32];
    info[0] = signals::stop_signal() as u32;
    info[2] = libc::SI_QUEUE as u32;
    info[4] = identity::real_pid();
    info[6] = MAGIC as u32;
    info[7] = (MAGIC >> 32) as u32;
    let (pid, signal) = (
        identity::real_pid() as usize,
        signals::stop_signal() as usize,
    );
    // SAFETY: the kernel reads the 128 bytes of the structure, which lives on this stack.
    let sent = unsafe {
        syscall4(
            libc::SYS_rt_tgsigqueueinfo,
            pid,
            tid as usize,
            signal,
            info.as_ptr() as usize,
        )
    };
    !failed(sent)
}

/// Asks every thread to stop and waits until all have, except for those inside MPI; returns `false` at the deadline.
pub fn stop_all(deadline: Duration) -> bool {
    let end = Instant::now() + deadline;
    let mut asked_again = Instant::now();
    stop(&registry::each().collect::<Vec<_>>());
    loop {
        if all_stopped() {
            return true;
        }
        let now = Instant::now();
        if now >= end {
            return false;
        }
        if now.duration_since(asked_again) > Duration::from_millis(20) {
            // Threads may have begun meanwhile, or may have been on their way through a stub.
            asked_again = now;
            let running: Vec<Thread> = registry::each().filter(|thread| running(*thread)).collect();
            stop(&running);
        }
        futex_wait(&STOPPED, 0, 1_000_000);
    }
}

/// Whether a thread is neither stopped nor inside MPI.
fn running(thread: Thread) -> bool {
    thread.stop_frame() == 0 && thread.record().inside.load(Ordering::Acquire) == Inside::No as u32
}

/// Whether every thread is stopped in a signal frame.
pub fn all_stopped() -> bool {
    registry::each().all(|thread| thread.stop_frame() != 0)
}

/// How long a thread may take to continue, or to stop again, if nothing delays it.
const PROMPTLY: Duration = Duration::from_secs(10);
const MOMENT: Duration = Duration::from_micros(50);

/// Lets one stopped thread run while the others stay stopped; returns `false` if it does not continue.
pub fn let_run(thread: Thread) -> bool {
    let flags = &thread.notes().flags;
    flags.fetch_or(flag::RUNS, Ordering::AcqRel);
    call();
    within(PROMPTLY, || thread.stop_frame() == 0)
}

/// Threads that run while the others stay stopped. When it is dropped, they are like the others, and are stopped with them next time.
pub struct OutsideMpi(());

impl Drop for OutsideMpi {
    fn drop(&mut self) {
        registry::each().for_each(joins);
    }
}

/// Lets all stopped threads run but for the driver, whose `park` returns by itself, and those that stand aside in a stub.
pub fn let_those_outside_mpi_run() -> OutsideMpi {
    let aside = |thread: &Thread| match thread.stop_frame() {
        0 => false,
        // SAFETY: the thread is stopped there, and only its agent, which calls this, lets it go on.
        frame => beneath::in_stubs_code(unsafe { Frame::at(frame) }),
    };
    for thread in registry::each().filter(|thread| !aside(thread)) {
        let flags = &thread.notes().flags;
        flags.fetch_or(flag::RUNS, Ordering::AcqRel);
        // A signal that is under way comes too late.
        flags.fetch_and(!flag::STOP, Ordering::AcqRel);
    }
    call();
    OutsideMpi(())
}

/// Makes it a thread like any other again: it runs, and is stopped with the others next time.
pub fn joins(thread: Thread) {
    let flags = &thread.notes().flags;
    flags.fetch_and(!flag::RUNS, Ordering::AcqRel);
}

/// Stops it again; returns `false` if it does not stop.
pub fn halt(thread: Thread) -> bool {
    joins(thread);
    let mut asked = None;
    within(PROMPTLY, || {
        if thread.stop_frame() != 0 {
            return true;
        }
        // It may have been in a place where it cannot stop.
        if asked.is_none_or(|when: Instant| when.elapsed() > Duration::from_millis(20)) {
            asked = Some(Instant::now());
            stop(&[thread]);
        }
        false
    })
}

/// Whether the thread was stopped in the application, and not by itself in a stub.
pub fn is_outside(thread: Thread) -> bool {
    has(thread, flag::OUTSIDE)
}

fn within(time: Duration, mut so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + time;
    while !so() {
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(MOMENT);
    }
    true
}

/// Lets every stopped thread continue, except for the driver, whose `park` returns by itself.
pub fn release_all() {
    HOLD.store(0, Ordering::Release);
    call();
}
