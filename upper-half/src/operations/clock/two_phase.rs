//! Two-phase commit around blocking collective operations on communicators (`--safe-state barrier`); the decisions are
//! the clock crate's (`stillpoint_clock::two_phase`).
//!
//! Whether it was chosen is settled when MPI starts, and goes into the image with everything else here. It costs nothing if the clock
//! is chosen; otherwise the direct way is closed to every operation on a communicator.
//! Making and freeing communicators and `MPI_Finalize` keep the clock. Nonblocking operations are counted on their
//! communicators by the clock; here that count makes a checkpoint refuse.
//!
//! Rules: runs in the application's threads, inside stubs; no panic, no allocation from the application's memory.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence};

use stillpoint_clock::rank::Pending;
use stillpoint_clock::steps::Every;
use stillpoint_clock::two_phase::{Step, has_safe_state, step};
use stillpoint_refusals::Code;
use stillpoint_wrappers::gate::{ClockCell, DriverState, HandleKind};
use stillpoint_wrappers::neutral::Word;

use crate::ground::crossing::{self, cross_near, gate};
use crate::ground::hindrances::Text;
use crate::ground::hooks::HOOKS;
use crate::ground::object::Object;
use crate::ground::{arch, handle};
use crate::objects::communicator;
use crate::operations::clock::collective::{self, all_reached};
use crate::operations::clock::points;

static CHOSEN: AtomicBool = AtomicBool::new(false);
/// Changes with every restart.
static LAUNCH: AtomicU32 = AtomicU32::new(0);
/// Nonblocking operations on communicators that have been freed.
static ON_FREED: AtomicU32 = AtomicU32::new(0);

/// Whether this job keeps to two-phase commit.
#[inline(always)]
pub fn chosen() -> bool {
    CHOSEN.load(Ordering::Relaxed)
}

/// Called once when MPI starts, before there is any communicator.
pub fn choose() {
    let wanted = gate().two_phase.load(Ordering::Relaxed) != 0;
    CHOSEN.store(wanted, Ordering::Relaxed);
    if wanted {
        // No blocking operation goes the direct way.
        HOOKS.long_way.fetch_add(1, Ordering::Relaxed);
        gate().direct.store(HOOKS.again, Ordering::Relaxed);
    }
}

/// Called in a restart: work that the lower half had begun is gone with it.
pub fn restarted() {
    LAUNCH.fetch_add(1, Ordering::SeqCst);
}

/// This rank's part of a trivial barrier.
struct Barrier {
    on: *mut Object,
    request: Word,
    /// The launch that it was begun in.
    launch: u32,
    over: bool,
}

impl Barrier {
    /// # Safety
    /// Inside a stub; `on` must be a live communicator as long as the barrier is.
    unsafe fn begin(on: *mut Object) -> Result<Barrier, i32> {
        let mut request = 0;
        let launch = LAUNCH.load(Ordering::SeqCst);
        // SAFETY: `on` is a live communicator, by the caller's promise; the request is a local variable until the barrier has it.
        let code = unsafe {
            let word = (*on).lower;
            cross_near(|lower| (lower.ibarrier)(word, &mut request))
        };
        match code {
            0 => Ok(Barrier {
                on,
                request,
                launch,
                over: false,
            }),
            code => Err(code),
        }
    }

    /// Finds out whether every member has entered; enters again if a restart has come between.
    ///
    /// # Safety
    /// As [`Barrier::begin`].
    unsafe fn test(&mut self) -> Result<(), i32> {
        // SAFETY: the communicator is the beginner's; the request is this launch's.
        unsafe {
            if self.launch != LAUNCH.load(Ordering::SeqCst) {
                *self = Barrier::begin(self.on)?;
            }
            let mut flag = 0;
            let request = &mut self.request;
            let code = cross_near(|lower| (lower.test)(request, &mut flag, core::ptr::null_mut()));
            self.over = flag != 0;
            match code {
                0 => Ok(()),
                code => Err(code),
            }
        }
    }
}

/// Both phases up to the operation itself. An error is the barrier's; the operation must not be carried out then.
///
/// # Safety
/// Inside a stub as `StayKind::Collective`, nothing locked; `on` must be a live communicator.
pub unsafe fn begin(on: *mut Object) -> Result<(), i32> {
    // SAFETY: `on` is a live communicator, by the caller's promise, and stays so until the operation is over; the thread may park.
    unsafe {
        let cell = collective::cell((*on).clock);
        let mut barrier = Barrier::begin(on)?;
        loop {
            if !barrier.over {
                barrier.test()?;
            }
            let bell = gate().bell.load(Ordering::SeqCst);
            let pending = Pending::from_word(gate().pending.load(Ordering::SeqCst));
            let reached = pending == Pending::Targeted && all_reached();
            let advances = gate().advances.load(Ordering::SeqCst);
            match step::<Every>(pending, barrier.over, reached, advances) {
                Step::AskAgain => {}
                Step::AwaitTargets => points::sleep(bell, points::SHORT),
                Step::Park => {
                    // An advance that the park point has used up lets the thread past.
                    if points::at_collective(bell) {
                        announce(cell);
                    }
                }
                Step::Announce { uses_advance } => {
                    run_on(uses_advance);
                    announce(cell);
                }
                Step::Commit => {
                    if commit(cell, pending) {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// Says that this thread has left its park point.
fn run_on(uses_advance: bool) {
    // SAFETY: the thread is inside a stub.
    if unsafe { arch::is_driver() } {
        let running = DriverState::Running as u32;
        gate().driver_state.store(running, Ordering::SeqCst);
    }
    if uses_advance {
        points::use_advance();
    }
}

/// Has the other members come to the operation that this rank is about to begin.
///
/// # Safety
/// Inside a stub.
unsafe fn announce(cell: &ClockCell) {
    // SAFETY: the caller is inside a stub.
    unsafe { collective::raise(cell, cell.count.seq() + 1) };
}

/// Counts the operation as begun, unless a checkpoint has been asked for meanwhile: its targets come first.
///
/// # Safety
/// Inside a stub.
unsafe fn commit(cell: &ClockCell, pending: Pending) -> bool {
    if pending != Pending::No {
        run_on(false);
    }
    let begun = cell.count.begin_shared();
    compiler_fence(Ordering::SeqCst);
    if pending != Pending::No {
        // SAFETY: the caller is inside a stub, and the operation is counted.
        unsafe { collective::raise(cell, begun) };
    } else if crossing::pending() {
        cell.count.take_back();
        return false;
    }
    true
}

/// Keeps count of the nonblocking operations of a communicator that is about to be freed.
///
/// # Safety
/// `on` must be a live communicator.
pub unsafe fn freed(on: *mut Object) {
    // SAFETY: `on` is a live communicator, by the caller's promise.
    ON_FREED.fetch_add(unsafe { (*on).begun }, Ordering::Relaxed);
}

/// Writes why there is no safe state, if there is none.
pub fn describe(text: &mut Text) {
    if !chosen() {
        return;
    }
    let live = handle::live(HandleKind::Communicator);
    let predefined = [communicator::world(), communicator::alone()];
    let begun = live.into_iter().chain(predefined).map(|on| {
        // SAFETY: live communicators; the driver thread is parked.
        unsafe { (*on).begun }
    });
    let begun = begun.sum::<u32>() + ON_FREED.load(Ordering::Relaxed);
    if !has_safe_state::<Every>(begun) {
        text.reason(
            Code::NoSafeState,
            format_args!(
                "{begun} nonblocking or persistent collective operation(s) have been begun, and --safe-state barrier \
                 has no safe state with them: run the program with --safe-state clock"
            ),
        );
    }
}
