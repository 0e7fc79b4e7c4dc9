//! The driver thread's loop while it is parked, and the park point at the end of every stub.
//!
//! A parked driver thread does not sleep: it pulls messages in and lets MPI make progress, so that
//! the sends of others get through. While memory is written it touches nothing.
//!
//! Rules: `driver` runs inside the stop signal's handler, on the application's stack, with the upper
//! half's FS. It calls no function of MPI that waits for an event: the thread may stand in such a
//! function already, and with threads Open MPI lets the second wait sleep until the first one is over.

use core::sync::atomic::Ordering;

use stillpoint_clock::rank::{self, Finish, Pending};
use stillpoint_wrappers::gate::{Command, DriverState};

use crate::checkpoint::{answer, inventory, rehearsal};
use crate::communicators;
use crate::ground::arch;
use crate::ground::crossing::{StayKind, gate};
use crate::objects::file;
use crate::operations::ahead;
use crate::operations::clock::collective::all_reached;
use crate::operations::clock::persistent;
use crate::operations::clock::points::{self, pending, say, sleep, stand_still, use_advance};
use crate::operations::messages::{drain, message, taken};
use crate::operations::p2p;
use crate::operations::request::{self, Pending as Requests};
use crate::stubs::local;
use crate::windows;

/// Nanoseconds between two rounds of progress in which nothing moved.
const ROUND: u64 = 200_000;
/// Rounds without progress after which operations that can be begun again are left to the restart.
const PATIENCE: u32 = 10;

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

/// `UpperHooks::park`: the driver thread's loop while a checkpoint is pending.
///
/// # Safety
/// On the driver thread, in the stop handler, outside MPI, with the upper FS.
pub unsafe extern "C" fn driver() {
    // Functions that the lower half calls from here on (an operator of the application's, for example) may call MPI: they must
    // not find a park point in this call.
    // SAFETY: the driver thread has a record; it was stopped at 0.
    unsafe {
        arch::set_inside(StayKind::Stub as u32);
        stay();
        arch::set_inside(StayKind::No as u32);
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
                    points::ADVANCED.store(true, Ordering::Relaxed);
                    return;
                }
                say(DriverState::Parked);
                if active {
                    moved = drain::pull();
                }
            } else if command == Command::CarryOut as u32 {
                ahead::held();
                moved = active && drain::pull();
            } else if command == Command::Check as u32 {
                let asked_anew =
                    gate.driver_state.load(Ordering::SeqCst) != DriverState::Checked as u32;
                if active {
                    if asked_anew {
                        rehearsal::everything();
                        inventory::refresh();
                        drain::look_again();
                    }
                    moved = drain::pull();
                }
                answer::answer();
                say(DriverState::Checked);
            } else if command == Command::Drain as u32 {
                if active {
                    moved = drain::round() | windows::pull();
                }
                if drain::failed() {
                    answer::answer();
                }
                say(DriverState::Draining);
                if !moved && p2p::parked_in_receive() {
                    // Only the real MPI knows whether that is over by now. The thread comes back at once.
                    sleep(bell, ROUND);
                    gate.rounds.fetch_add(1, Ordering::SeqCst);
                    return;
                }
            } else if command == Command::Seal as u32 {
                moved = !active || drain::round() | windows::pull();
                idle = if moved { 0 } else { idle + 1 };
                if !active || sealed(idle) {
                    if gate.driver_state.load(Ordering::SeqCst) != DriverState::Sealed as u32 {
                        local::note_wtime();
                        communicators::for_each_live(|on| persistent::at_still_point(on));
                        file::at_still_point();
                        inventory::refresh();
                    }
                    if drain::failed() || file::failed() {
                        answer::answer();
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
    if gate.mpi_active.load(Ordering::SeqCst) != 0 {
        // After an attempt that was given up, words of others may lie here still. The next listener hears of failures.
        // SAFETY: MPI is active; this is the parked driver thread.
        let _ = unsafe { taken::listen() };
    }
    say(DriverState::Running);
}

/// Whether nothing is left in the lower half that a restart could not begin again.
unsafe fn sealed(idle: u32) -> bool {
    // SAFETY: parked, all other threads stopped. Requests on windows are over after the next round.
    if unsafe { !windows::settle() } {
        return false;
    }
    let requests = match request::pending() {
        Requests::Nothing => true,
        // Finished here, they need not be begun again; but some member may not have begun them at all.
        Requests::Repeatable => idle >= PATIENCE,
        Requests::Unfinished => false,
    };
    // SAFETY: parked, all other threads stopped.
    unsafe {
        requests
            && !drain::still_arriving()
            && !message::still_arriving()
            && !taken::still_telling()
    }
}
