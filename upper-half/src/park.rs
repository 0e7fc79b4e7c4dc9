//! Where a thread stands still: the driver thread's loop while parked, and the points at which threads
//! that are inside MPI get there.
//!
//! A parked driver thread does not sleep: it pulls messages in and lets MPI make progress, so that
//! the sends of others get through. While memory is written it touches nothing.
//!
//! Rules: `driver` runs inside the stop signal's handler, on the application's stack, with the upper
//! half's FS.

use core::sync::atomic::{AtomicBool, Ordering};

use stillpoint_clock::rank::{self, Finish, Pending};
use stillpoint_wrappers::gate::{Command, DriverState};

use crate::collective::all_reached;
use crate::crossing::{Place, gate};
use crate::request::Pending as Requests;
use crate::{arch, communicator, drain, message, p2p, persistent, refusal, rehearsal, request};

/// Nanoseconds between two rounds of progress in which nothing moved.
const ROUND: u64 = 200_000;
/// Rounds without progress after which what may be begun again is left to that.
const PATIENCE: u32 = 10;
/// Nanoseconds that a thread waits for targets before it looks again.
pub const SHORT: u64 = 1_000_000;

/// Whether the last return of the driver thread's loop used up an advance.
static ADVANCED: AtomicBool = AtomicBool::new(false);

/// Sleeps until the bell rings, at most that many nanoseconds (0: for ever).
pub fn sleep(bell: u32, nanoseconds: u64) {
    match gate().services.futex_wait {
        // SAFETY: works with any FS; the word lies in the gate page.
        Some(wait) => unsafe { wait(&gate().bell, bell, nanoseconds) },
        None => arch::yield_processor(),
    }
}

/// Stops this thread in a signal frame. Returns when the checkpoint lets it go on.
///
/// # Safety
/// Inside a stub, with no lock held and nothing of the lower half on the stack that a restart would return to.
unsafe fn stand_still() {
    // SAFETY: the caller's thread has a record; at `inside == 0` the handler takes it.
    unsafe {
        let before = arch::inside();
        arch::set_inside(Place::No as u32);
        if let Some(park_self) = gate().services.park_self {
            park_self();
        }
        arch::set_inside(before);
    }
}

/// Lets a thread that is not the driver be stopped where it is, for a moment: it sleeps outside MPI until the bell
/// rings or a millisecond is over. The sleep is made here and not by the lower half's service, because
/// a restart returns to the instruction after it.
///
/// # Safety
/// As [`stand_still`].
unsafe fn stand_aside(bell: u32) {
    // SAFETY: the caller's thread has a record.
    unsafe {
        let before = arch::inside();
        arch::set_inside(Place::No as u32);
        arch::futex_wait(&gate().bell, bell, SHORT);
        arch::set_inside(before);
    }
}

/// Uses up one permission to pass a park point.
pub fn use_advance() {
    let _ = gate()
        .advances
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |advances| {
            advances.checked_sub(1)
        });
}

fn say(state: DriverState) {
    gate().driver_state.store(state as u32, Ordering::SeqCst);
}

fn pending() -> Pending {
    Pending::from_word(gate().pending.load(Ordering::SeqCst))
}

/// The park point at the end of every outermost stub, while a checkpoint is pending.
#[cold]
pub fn checkpoint_point() {
    // SAFETY: the thread has left its stub; nothing of it is on the stack but the return.
    unsafe {
        if !arch::is_driver() {
            // Out of MPI: the agent stops it where it stands, when that is due.
            return;
        }
        let advances = gate().advances.load(Ordering::SeqCst);
        match rank::commit_finish(pending(), all_reached(), advances) {
            Finish::Park => stand_still(),
            Finish::Return { uses_advance } => {
                say(DriverState::Running);
                if uses_advance {
                    use_advance();
                }
            }
        }
    }
}

/// The park point before a collective operation: every target is reached. Returns whether an advance
/// lets the thread pass; otherwise the decision is due again.
///
/// # Safety
/// As [`stand_still`].
pub unsafe fn at_collective(bell: u32) -> bool {
    // SAFETY: the caller's.
    unsafe {
        if arch::is_driver() {
            ADVANCED.store(false, Ordering::Relaxed);
            stand_still();
            return ADVANCED.swap(false, Ordering::Relaxed);
        }
        stand_aside(bell);
        false
    }
}

/// The park point within a call that waits for a message: called whenever an interruptible function has
/// given up. Returns for the caller to look at its own operation again.
///
/// # Safety
/// As [`stand_still`].
#[cold]
pub unsafe fn blocked() {
    let gate = gate();
    // SAFETY: the caller's.
    unsafe {
        let bell = gate.bell.load(Ordering::SeqCst);
        if !arch::is_driver() {
            if pending() == Pending::Targeted && all_reached() {
                stand_aside(bell);
            } else {
                arch::yield_processor();
            }
            return;
        }
        let pending = pending();
        if pending == Pending::Targeted && all_reached() {
            // An advance, if there is one, is used up inside.
            stand_still();
        } else if pending != Pending::No {
            say(DriverState::Waiting);
            if !drain::pull() {
                sleep(bell, ROUND / 4);
            }
        }
    }
}

/// Says that a call which was [`blocked`] has what it waited for.
#[cold]
pub fn unblocked() {
    // SAFETY: the thread is inside a stub.
    if unsafe { arch::is_driver() } {
        say(DriverState::Running);
    }
}

/// `UpperHooks::park`: the driver thread's loop while a checkpoint is pending.
///
/// # Safety
/// On the driver thread, in the stop handler, outside MPI, with the upper FS.
pub unsafe extern "C" fn driver() {
    // What the lower half calls from here on (an operator of the application's, say) may call MPI: that must
    // not find a park point in this one.
    // SAFETY: the driver thread has a record; it was stopped at 0.
    unsafe {
        arch::set_inside(Place::Stub as u32);
        stay();
        arch::set_inside(Place::No as u32);
    }
}

/// Follows the agent's commands until the driver thread may go on.
///
/// # Safety
/// As [`driver`].
unsafe fn stay() {
    let gate = gate();
    let mut idle = 0;
    loop {
        let bell = gate.bell.load(Ordering::SeqCst);
        let command = gate.command.load(Ordering::SeqCst);
        if pending() == Pending::No || command == Command::Run as u32 {
            break;
        }
        let active = gate.mpi_active.load(Ordering::SeqCst) != 0;
        let mut moved = false;
        // SAFETY: MPI is active; this is the parked driver thread, and past `Reach` every other thread
        // is stopped.
        unsafe {
            if command == Command::Reach as u32 {
                if !all_reached() {
                    break;
                }
                if gate.advances.load(Ordering::SeqCst) != 0 {
                    say(DriverState::Running);
                    use_advance();
                    ADVANCED.store(true, Ordering::Relaxed);
                    return;
                }
                say(DriverState::Parked);
                if active {
                    moved = drain::pull();
                }
            } else if command == Command::Check as u32 {
                let asked_anew =
                    gate.driver_state.load(Ordering::SeqCst) != DriverState::Checked as u32;
                if active {
                    if asked_anew {
                        rehearsal::everything();
                        drain::look_again();
                    }
                    moved = drain::pull();
                }
                refusal::answer();
                say(DriverState::Checked);
            } else if command == Command::Drain as u32 {
                if active {
                    moved = drain::round();
                }
                if drain::failed() {
                    refusal::answer();
                }
                say(DriverState::Draining);
                if !moved && p2p::parked_in_receive() {
                    // Whether that is over by now only the real MPI knows. The thread comes back at once.
                    sleep(bell, ROUND);
                    gate.rounds.fetch_add(1, Ordering::SeqCst);
                    return;
                }
            } else if command == Command::Seal as u32 {
                moved = !active || drain::round();
                idle = if moved { 0 } else { idle + 1 };
                if !active || sealed(idle) {
                    if gate.driver_state.load(Ordering::SeqCst) != DriverState::Sealed as u32 {
                        communicator::for_each_live(|on| persistent::clocks::at_still_point(on));
                        crate::inventory::refresh();
                    }
                    if drain::failed() {
                        refusal::answer();
                    }
                    say(DriverState::Sealed);
                    moved = false;
                }
            } else {
                say(DriverState::Held);
                sleep(bell, 0);
                continue;
            }
        }
        gate.rounds.fetch_add(1, Ordering::SeqCst);
        if !moved {
            sleep(bell, ROUND);
        }
    }
    say(DriverState::Running);
}

/// Whether nothing is left in the lower half that a restart could not begin again.
unsafe fn sealed(idle: u32) -> bool {
    let requests = match request::pending() {
        Requests::Nothing => true,
        // Finished here, they need not be begun again; but some member may not have begun them at all.
        Requests::Repeatable => idle >= PATIENCE,
        Requests::Unfinished => false,
    };
    // SAFETY: parked, all other threads stopped.
    unsafe { requests && !drain::still_arriving() && !message::still_arriving() }
}
