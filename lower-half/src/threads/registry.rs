//! The table of the upper half's threads: one [`ThreadRecord`] each, which GS points to.
//!
//! Rules of this place: used inside signal handlers with either half's FS in place. So the table is a fixed piece of the lower half's own memory, and is used
//! without locks or allocation.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

use stillpoint_wrappers::gate::{Reach, SHUT, ThreadRecord};

use super::{direct_way, handler_stack};
use crate::arch::layout::HANDLER_STACK_AT;
use crate::arch::{registers, syscall};

/// The number of threads of the upper half that may be alive at once.
pub const MOST_THREADS: usize = 4096;

/// The lower half's notes in `ThreadRecord::private`.
#[repr(C)]
pub struct Notes {
    /// Bits of [`flag`].
    pub flags: AtomicU64,
    /// A [`State`].
    pub state: AtomicU64,
    /// The address at which the kernel clears the thread's id when the thread ends; 0: none.
    pub clear_tid: AtomicU64,
    /// The system call that the thread was blocked in when it was asked to stop: number + 1, 0: none;
    pub call: AtomicU64,
    /// ... and the address behind its instruction.
    pub call_end: AtomicU64,
    /// The borrowed thread area's number + 1; 0: none, or the process's own.
    pub area: AtomicU64,
    /// Memory to unmap when a `vfork`-like child has gone.
    pub scratch: AtomicU64,
    pub scratch_bytes: AtomicU64,
    /// The handler that prevents the thread from stopping, see [`super::beneath`]; 0: none.
    pub beneath: AtomicU64,
    /// When the thread may be asked again, while that handler runs (`CLOCK_MONOTONIC`, nanoseconds),
    pub ask_after: AtomicU64,
    /// ... and how long it is left alone this time.
    pub ask_pause: AtomicU64,
}

const _: () = assert!(size_of::<Notes>() == size_of::<[u64; 11]>());

/// Bits of [`Notes::flags`].
pub mod flag {
    /// The thread stops itself: the stop signal that it sends is not the application's. (The springboard sets bit 0.)
    pub const STOP_SELF: u64 = 1;
    /// The agent asks the thread to stop. If this is clear when the agent's stop signal comes, the signal is late.
    pub const STOP: u64 = 4;
    /// A child process that shares its parent's memory until it execs.
    pub const SHARES_MEMORY: u64 = crate::arch::layout::SHARES_MEMORY;
    /// The thread believes that it blocks SIGSYS, or the stop signal (`gate::signals`).
    pub const BELIEVES_SIGSYS: u64 = 8;
    pub const BELIEVES_STOP: u64 = 16;
    /// The thread may run while others are stopped.
    pub const RUNS: u64 = 32;
    /// The agent has stopped the thread in the code of the application or its libraries.
    pub const OUTSIDE: u64 = 64;
    /// A child that shares its parent's memory has asked to be traced by it: it is traced from its `execve` on.
    pub const TRACED: u64 = 128;
}

/// Values of [`Notes::state`].
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Free = 0,
    /// Taken; the thread has not run its first instruction yet.
    Starting = 1,
    Alive = 2,
}

#[repr(C)]
struct Slot {
    /// The first field: GS points to it.
    record: UnsafeCell<ThreadRecord>,
    /// The thread's timer slack, in nanoseconds, at its latest stop; 0: not known.
    timer_slack: AtomicU64,
    /// See [`super::handler_stack`]; it stays with the slot.
    handler_stack: AtomicUsize,
    /// The time since when the thread has waited in the noted call (`CLOCK_MONOTONIC`, nanoseconds); 0: not known.
    waits_since: AtomicU64,
    /// Processor time that the thread had used in earlier launches (`gate::processor_time`).
    used: [AtomicI64; 3],
}

const _: () = {
    // The assembly contains this offset.
    assert!(core::mem::offset_of!(Slot, handler_stack) == HANDLER_STACK_AT);
};

// SAFETY: a record's mutable fields are atomic, or written by its own thread only while it is alive, and by
// whoever has taken the slot (an atomic exchange) before that.
unsafe impl Sync for Slot {}

static TABLE: [Slot; MOST_THREADS] = [const {
    Slot {
        timer_slack: AtomicU64::new(0),
        handler_stack: AtomicUsize::new(0),
        waits_since: AtomicU64::new(0),
        used: [const { AtomicI64::new(0) }; 3],
        record: UnsafeCell::new(ThreadRecord {
            this: 0,
            fs_lower: 0,
            fs_upper: 0,
            inside: core::sync::atomic::AtomicU32::new(0),
            reach: core::sync::atomic::AtomicU32::new(Reach::Unknown as u32),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            virtual_tid: core::sync::atomic::AtomicU32::new(0),
            real_tid: core::sync::atomic::AtomicU32::new(0),
            stop_frame: AtomicU64::new(0),
            private: [0; 11],
            driver: core::sync::atomic::AtomicU32::new(0),
            reserved: 0,
            receive: AtomicU64::new(0),
        }),
    }
}; MOST_THREADS];

/// Slots beyond this one have never been used.
static USED: AtomicUsize = AtomicUsize::new(0);

/// A thread of the upper half: its record, which GS of that thread points to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Thread(&'static Slot);

impl PartialEq for Slot {
    fn eq(&self, other: &Slot) -> bool {
        core::ptr::eq(self, other)
    }
}
impl Eq for Slot {}

impl Thread {
    /// Takes a free record for a thread that is to be started; returns `None` if all are taken.
    pub fn take() -> Option<Thread> {
        for (index, slot) in TABLE.iter().enumerate() {
            let thread = Thread(slot);
            let taken = thread.notes().state.compare_exchange(
                State::Free as u64,
                State::Starting as u64,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if taken.is_err() {
                continue;
            }
            USED.fetch_max(index + 1, Ordering::AcqRel);
            let record = thread.record_pointer();
            // SAFETY: the slot has been taken by an atomic exchange, so it is this caller's alone until the thread is alive.
            unsafe {
                (*record).this = record as u64;
                (*record).fs_lower = 0;
                (*record).fs_upper = 0;
            }
            let record = thread.record();
            record.inside.store(0, Ordering::Relaxed);
            record.driver.store(0, Ordering::Relaxed);
            record.reach.store(Reach::Unknown as u32, Ordering::Relaxed);
            direct_way::follow(thread);
            record.receive.store(0, Ordering::Relaxed);
            record.sent.store(0, Ordering::Relaxed);
            record.received.store(0, Ordering::Relaxed);
            record.virtual_tid.store(0, Ordering::Relaxed);
            record.real_tid.store(0, Ordering::Relaxed);
            record.stop_frame.store(0, Ordering::Relaxed);
            thread.note_timer_slack(0);
            for word in thread.used() {
                word.store(0, Ordering::Relaxed);
            }
            handler_stack::provide(thread.handler_stack());
            let notes = thread.notes();
            for word in [
                &notes.flags,
                &notes.clear_tid,
                &notes.call,
                &notes.call_end,
                &notes.area,
                &notes.scratch,
                &notes.beneath,
                &notes.ask_after,
                &notes.ask_pause,
            ] {
                word.store(0, Ordering::Relaxed);
            }
            return Some(thread);
        }
        None
    }

    /// Notes the application's and the kernel's ids of a thread that has been made: from here on it can be named, and runs.
    pub fn name(self, known: u32, real: u32) {
        let record = self.record();
        record.real_tid.store(real, Ordering::Relaxed);
        record.virtual_tid.store(known, Ordering::Release);
        syscall::futex_wake(&record.virtual_tid);
    }

    /// Returns the application's id of this thread, as soon as its maker has noted it.
    pub fn named(self) -> u32 {
        let id = &self.record().virtual_tid;
        loop {
            match id.load(Ordering::Acquire) {
                0 => syscall::futex_wait(id, 0, 0),
                known => return known,
            }
        }
    }

    /// Gives the record back. The thread itself may do so as its last act.
    pub fn give_back(self) {
        self.record().real_tid.store(0, Ordering::Release);
        self.notes()
            .state
            .store(State::Free as u64, Ordering::Release);
    }

    /// Returns the calling thread's record, if it is a thread of the upper half.
    #[inline(always)]
    pub fn current() -> Option<Thread> {
        Thread::from_address(registers::gs() as usize)
    }

    fn from_address(address: usize) -> Option<Thread> {
        let start = TABLE.as_ptr() as usize;
        let offset = address.wrapping_sub(start);
        if !offset.is_multiple_of(size_of::<Slot>()) {
            return None;
        }
        TABLE.get(offset / size_of::<Slot>()).map(Thread)
    }

    /// Makes this record the calling thread's, and the thread alive.
    ///
    /// # Safety
    /// The record must have been taken for the calling thread.
    pub unsafe fn adopt(self) {
        // SAFETY: the caller says that the record was taken for the calling thread, so it is this thread's alone, and it is never freed.
        unsafe { registers::set_gs(self.record_pointer() as u64) };
        self.record()
            .real_tid
            .store(syscall::gettid(), Ordering::Release);
        self.notes()
            .state
            .store(State::Alive as u64, Ordering::Release);
    }

    pub fn record_pointer(self) -> *mut ThreadRecord {
        self.0.record.get()
    }

    pub fn record(self) -> &'static ThreadRecord {
        // SAFETY: the table is static; what changes behind this reference is atomic (see `Slot`), and the three plain words are written only by the thread
        // itself or before it is alive.
        unsafe { &*self.record_pointer() }
    }

    pub fn notes(self) -> &'static Notes {
        // SAFETY: `Notes` has the size and alignment of the words that it lies over, and is all atomic.
        unsafe { &*(&raw const (*self.record_pointer()).private).cast::<Notes>() }
    }

    pub fn state(self) -> State {
        match self.notes().state.load(Ordering::Acquire) {
            0 => State::Free,
            1 => State::Starting,
            _ => State::Alive,
        }
    }

    pub fn real_tid(self) -> u32 {
        self.record().real_tid.load(Ordering::Acquire)
    }

    pub fn virtual_tid(self) -> u32 {
        self.record().virtual_tid.load(Ordering::Acquire)
    }

    /// Whether this is a child process that shares its parent's memory until it execs.
    pub fn shares_memory(self) -> bool {
        self.notes().flags.load(Ordering::Relaxed) & flag::SHARES_MEMORY != 0
    }

    /// Notes that a child is to be traced when it execs; returns false if it does not share its parent's memory.
    pub fn traced_from_exec(self) -> bool {
        let shares = self.shares_memory();
        if shares {
            self.notes().flags.fetch_or(flag::TRACED, Ordering::Relaxed);
        }
        shares
    }

    /// Whether the child is to be traced when it execs.
    pub fn to_be_traced(self) -> bool {
        self.notes().flags.load(Ordering::Relaxed) & flag::TRACED != 0
    }

    /// Returns the signal frame that the thread stands in while it is stopped, otherwise 0.
    pub fn stop_frame(self) -> usize {
        self.record().stop_frame.load(Ordering::Acquire) as usize
    }

    /// Returns the timer slack (`PR_GET_TIMERSLACK`, nanoseconds) that the thread had at its latest stop; 0: not known.
    pub fn timer_slack(self) -> u64 {
        self.0.timer_slack.load(Ordering::Relaxed)
    }

    /// Notes the timer slack. For the thread itself, and for the code that has taken its record.
    pub fn note_timer_slack(self, nanoseconds: u64) {
        self.0.timer_slack.store(nanoseconds, Ordering::Relaxed);
    }

    /// Returns the address of its stack for signal handlers; 0: it has none.
    pub fn handler_stack(self) -> &'static AtomicUsize {
        &self.0.handler_stack
    }

    /// Returns the time that is added to the kernel's count of processor time.
    pub fn used(self) -> &'static [AtomicI64; 3] {
        &self.0.used
    }

    /// Returns the time since when it has waited in the call that the agent has noted; 0: not known.
    pub fn waits_since(self) -> &'static AtomicU64 {
        &self.0.waits_since
    }

    /// Sets how the thread reaches the lower half from here on. For the thread itself.
    pub fn set_reach(self, reach: Reach) {
        let reach_of = |was: u32| Some(was & SHUT | reach as u32);
        let word = &self.record().reach;
        let _ = word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, reach_of);
    }

    pub fn is_driver(self) -> bool {
        self.record().driver.load(Ordering::Relaxed) != 0
    }

    pub fn fs_upper(self) -> u64 {
        // SAFETY: the record is never freed; the word is aligned and written in one step, by the thread itself or before it is alive.
        unsafe { (&raw const (*self.record_pointer()).fs_upper).read_volatile() }
    }

    pub fn fs_lower(self) -> u64 {
        // SAFETY: the record is never freed; the word is aligned and written in one step, by the thread itself or before it is alive.
        unsafe { (&raw const (*self.record_pointer()).fs_lower).read_volatile() }
    }

    /// # Safety
    /// Only for the thread itself, or before it is alive.
    pub unsafe fn set_fs_upper(self, value: u64) {
        // SAFETY: the caller is the thread itself, or the thread is not alive yet, so nothing else writes the word; records are never freed.
        unsafe { (&raw mut (*self.record_pointer()).fs_upper).write_volatile(value) };
    }

    /// # Safety
    /// As [`Thread::set_fs_upper`]; the value must be a thread area that nothing else uses.
    pub unsafe fn set_fs_lower(self, value: u64) {
        // SAFETY: the caller is the thread itself, or the thread is not alive yet, so nothing else writes the word; records are never freed.
        unsafe { (&raw mut (*self.record_pointer()).fs_lower).write_volatile(value) };
    }
}

/// Returns every thread that is starting or alive, without memory-sharing children.
pub fn each() -> impl Iterator<Item = Thread> {
    let used = USED.load(Ordering::Acquire).min(MOST_THREADS);
    TABLE
        .iter()
        .take(used)
        .map(Thread)
        .filter(|thread| thread.state() != State::Free && !thread.shares_memory())
}

/// Whether there is exactly one thread, and no child process that shares its memory.
pub fn is_one() -> bool {
    let used = USED.load(Ordering::Acquire).min(MOST_THREADS);
    let all = TABLE.iter().take(used).map(Thread);
    all.filter(|thread| thread.state() != State::Free)
        .nth(1)
        .is_none()
}

/// Forgets every thread except one: the process is a forked child.
pub fn only(survivor: Thread) {
    let used = USED.load(Ordering::Acquire).min(MOST_THREADS);
    for thread in TABLE.iter().take(used).map(Thread) {
        if thread != survivor && thread.state() != State::Free {
            thread.give_back();
        }
    }
    survivor
        .record()
        .real_tid
        .store(syscall::gettid(), Ordering::Release);
}
