//! The collective clock around every collective operation (section 4 of "Collective Vector Clocks"); the
//! decisions are the clock crate's, the cells and the waiting are here.
//!
//! Nonblocking operations count as begun when they are (section 4.3.1), but bind the other members only
//! when the application has been told that one is over: until then its buffers are as they were, and all
//! who have begun it begin it again after a restart. So the job need not wait for a rank that has yet to
//! begin what others already have pending. Which operations of a communicator are begun again, its
//! members agree upon in the restart (`Object::told`); those whose buffers MPI itself changes on the way
//! (`MPI_IN_PLACE`) bind at once.
//!
//! Without a checkpoint an operation costs one increment and one test more. The agent sets the flag,
//! calls `membarrier`, and only then reads the cells; so no fence is needed here.

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering, compiler_fence};

use stillpoint_clock::group::{Collision, Groups, Registered};
use stillpoint_clock::rank::{self, Begin, Pending, Tell};
use stillpoint_clock::steps::Every;
use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::{ClockCell, DriverState};

use crate::ground::arch;
use crate::ground::crossing::{self, Place, cross, cross_service, gate};
use crate::ground::hooks::HOOKS;
use crate::ground::lock::SpinLock;
use crate::ground::object::Object;
use crate::ground::shared::concurrent;
use crate::operations::clock::{persistent, points};

/// Clocks that one rank can have.
const CAPACITY: usize = 1 << 20;

static CELLS: AtomicPtr<ClockCell> = AtomicPtr::new(core::ptr::null_mut());
static GROUPS: SpinLock<Groups> = SpinLock::new(Groups::new());

/// Maps the table of cells, which never moves. Null when there is no memory for it.
pub fn map_cells() -> *mut ClockCell {
    let cells = arch::map(CAPACITY * size_of::<ClockCell>()).cast();
    CELLS.store(cells, Ordering::Relaxed);
    cells
}

/// A group's cell.
#[inline(always)]
pub fn cell(index: u32) -> &'static ClockCell {
    // SAFETY: indices come from `cell_for`, below the capacity of the table, which is never unmapped.
    unsafe { &*CELLS.load(Ordering::Relaxed).add(index as usize) }
}

/// The cell of the set of these world ranks (ascending, without duplicates; see
/// `stillpoint_clock::group::ascending`), which counts what they do together without a communicator of theirs. An error means
/// that another clock has the same id, or that there are too many; the communicator must not be made.
///
/// # Safety
/// Inside a stub.
pub unsafe fn cell_for(members: &[u32]) -> Result<u32, Collision> {
    // SAFETY: the caller's.
    unsafe { enter(|groups, reuse| groups.register(members, reuse)) }
}

/// The cell of a communicator with that identity and these world ranks; otherwise as [`cell_for`].
///
/// # Safety
/// Inside a stub.
pub unsafe fn cell_of(identity: u128, members: &[u32]) -> Result<u32, Collision> {
    // SAFETY: the caller's.
    unsafe { enter(|groups, reuse| groups.register_communicator(identity, members, reuse)) }
}

/// Looks a clock up; makes it if it is new.
///
/// A cell that was given up has no id. While a checkpoint is pending it is not used again, so that no target that is
/// meant for the communicator before gets into it: the agent writes targets into cells by their ids, and the id
/// was gone before the flag was looked at.
unsafe fn enter(
    register: impl FnOnce(&mut Groups, bool) -> Result<Registered, Collision>,
) -> Result<u32, Collision> {
    let mut groups = GROUPS.lock();
    let registered = register(&mut groups, !crossing::pending())?;
    if !registered.new {
        return Ok(registered.cell);
    }
    if registered.cell as usize >= CAPACITY {
        return Err(Collision {
            ggid: registered.ggid,
        });
    }
    let cell = cell(registered.cell);
    cell.count.clear();
    cell.target.store(0, Ordering::Relaxed);
    cell.ggid.store(registered.ggid, Ordering::SeqCst);
    HOOKS.clock_count.store(groups.cells(), Ordering::SeqCst);
    Ok(registered.cell)
}

/// A communicator is gone, and with it its clock. All members have given it up, or will before the next still point: the
/// clock of the set of members sees to that (see [`bind_all`]).
pub fn retire(index: u32) {
    let cell = cell(index);
    let mut groups = GROUPS.lock();
    let ggid = cell.ggid.swap(0, Ordering::SeqCst);
    cell.target.store(0, Ordering::SeqCst);
    groups.retire(ggid);
}

/// Whether this rank has reached every target that it knows.
pub fn all_reached() -> bool {
    let count = HOOKS.clock_count.load(Ordering::SeqCst);
    rank::all_reached::<Every>((0..count).map(|index| {
        let cell = cell(index);
        (cell.count.seq(), cell.target.load(Ordering::SeqCst))
    }))
}

/// COMMIT_BEGIN: to be called before every collective operation on the group with that cell.
///
/// # Safety
/// Inside a stub, with no lock held.
#[inline(always)]
pub unsafe fn begin(index: u32) {
    let cell = cell(index);
    if concurrent() {
        cell.count.begin_shared();
    } else {
        cell.count.begin();
    }
    compiler_fence(Ordering::SeqCst);
    if crossing::pending() {
        // SAFETY: the caller's.
        unsafe { begin_pending(cell) };
    }
}

/// [`begin`] where one thread calls MPI and no checkpoint is pending. Where one is, nothing has begun, and the answer
/// is false.
#[inline(always)]
pub fn begin_alone(cell: &ClockCell) -> bool {
    cell.count.begin();
    if arch::gate_pending() {
        cell.count.take_back();
        return false;
    }
    true
}

/// A nonblocking operation has begun on a communicator: its numbers there and in the group's clock.
///
/// # Safety
/// Inside a stub; `communicator` must be a live communicator.
#[inline(always)]
pub unsafe fn initiated(communicator: *mut Object) -> (u32, u64) {
    // SAFETY: the caller's communicator.
    unsafe {
        if !concurrent() {
            return initiated_on(communicator, cell((*communicator).clock));
        }
        let begun = cell((*communicator).clock).count.initiate_shared();
        let number = AtomicU32::from_ptr(&raw mut (*communicator).begun);
        (number.fetch_add(1, Ordering::SeqCst) + 1, begun)
    }
}

/// An operation that does not bind yet has begun on a clock: its number there.
pub fn initiated_in(index: u32) -> u64 {
    let cell = cell(index);
    if concurrent() {
        cell.count.initiate_shared()
    } else {
        cell.count.initiate::<Every>()
    }
}

/// The application is about to be told of the end of what was begun on a clock: it binds from now on.
///
/// # Safety
/// Inside a stub.
pub unsafe fn bind_cell(index: u32) {
    // SAFETY: the caller's.
    unsafe { bind(cell(index)) };
}

/// [`initiated`] where one thread calls MPI.
///
/// # Safety
/// As [`initiated`]; the communicator has a cell.
#[inline(always)]
pub unsafe fn initiated_alone(communicator: *mut Object) -> (u32, u64) {
    // SAFETY: the caller's communicator.
    unsafe { initiated_on(communicator, &*(*communicator).cell) }
}

/// [`initiated_alone`] on a communicator with that cell.
#[inline(always)]
unsafe fn initiated_on(communicator: *mut Object, cell: &ClockCell) -> (u32, u64) {
    let begun = cell.count.initiate::<Every>();
    // SAFETY: the caller's communicator, which no other thread uses.
    unsafe {
        (*communicator).begun += 1;
        ((*communicator).begun, begun)
    }
}

/// [`tell`] where one thread calls MPI.
///
/// # Safety
/// As [`tell`]; the communicator has a cell.
#[inline(always)]
pub unsafe fn tell_alone(communicator: *mut Object, number: u32) {
    // SAFETY: the caller's communicator.
    unsafe {
        if (*communicator).told < number {
            (*communicator).told = number;
        }
        let cell = &*(*communicator).cell;
        if let Some(begun) = cell.count.bind()
            && arch::gate_pending()
        {
            tell_pending(cell, begun);
        }
    }
}

/// The application is about to be told that nonblocking operation `number` of a communicator is over: it,
/// and what has begun before, binds from now on.
///
/// # Safety
/// Inside a stub; `communicator` must be a live communicator.
#[inline(always)]
pub unsafe fn tell(communicator: *mut Object, number: u32) {
    // SAFETY: the caller's communicator.
    unsafe {
        let told = AtomicU32::from_ptr(&raw mut (*communicator).told);
        told.fetch_max(number, Ordering::Relaxed);
        bind(cell((*communicator).clock));
    }
}

/// Everything that has begun on a clock binds from now on.
#[inline(always)]
unsafe fn bind(cell: &ClockCell) {
    let news = if concurrent() {
        Some(cell.count.bind_shared())
    } else {
        cell.count.bind()
    };
    compiler_fence(Ordering::SeqCst);
    if let Some(begun) = news
        && crossing::pending()
    {
        // SAFETY: the caller is inside a stub.
        unsafe { tell_pending(cell, begun) };
    }
}

/// What has begun on a communicator binds: to be called before it is given up, because a restart cannot begin anything again
/// there without those who have forgotten it. That it is given up is counted by the clock of the set of its
/// members, which is still there when this rank has forgotten the communicator and others have not.
///
/// # Safety
/// Inside a stub, with no lock held; `communicator` must be a live communicator.
pub unsafe fn bind_all(communicator: *mut Object) {
    // SAFETY: the caller's.
    unsafe {
        bind(cell((*communicator).clock));
        persistent::bind_all(communicator);
    }
}

/// [`tell`] while a checkpoint is pending: the others may have to come after.
#[cold]
unsafe fn tell_pending(cell: &ClockCell, begun: u64) {
    let gate = gate();
    loop {
        let bell = gate.bell.load(Ordering::SeqCst);
        let pending = Pending::from_word(gate.pending.load(Ordering::SeqCst));
        let target = cell.target.load(Ordering::SeqCst);
        match rank::tell::<Every>(pending, begun, target) {
            Tell::Return => return,
            Tell::AwaitTargets => points::sleep(bell, points::SHORT),
            Tell::Raise => break,
        }
    }
    // SAFETY: inside a stub.
    unsafe { raise(cell, begun) };
}

/// Tells the other members of a target that this rank has gone past.
///
/// # Safety
/// Inside a stub.
pub unsafe fn raise(cell: &ClockCell, begun: u64) {
    if cell.target.fetch_max(begun, Ordering::SeqCst) >= begun {
        return;
    }
    let ggid = cell.ggid.load(Ordering::Relaxed);
    // SAFETY: inside a stub.
    unsafe {
        cross_service(|services| {
            if let Some(tell) = services.raise {
                tell(ggid, begun);
            }
        });
    }
}

/// Whether every member has to finish an operation with that number in a clock.
pub fn binding(index: u32, begun: u64) -> bool {
    rank::binds(begun, cell(index).target.load(Ordering::SeqCst))
}

/// [`begin`] while a checkpoint is pending: the decision comes before the increment.
#[cold]
unsafe fn begin_pending(cell: &ClockCell) {
    cell.count.take_back();
    // SAFETY: the caller's thread is inside a stub.
    unsafe {
        let gate = gate();
        let driver = arch::is_driver();
        loop {
            let bell = gate.bell.load(Ordering::SeqCst);
            let seq = cell.count.seq();
            let target = cell.target.load(Ordering::SeqCst);
            let advances = gate.advances.load(Ordering::SeqCst);
            let pending = Pending::from_word(gate.pending.load(Ordering::SeqCst));
            let uses_advance =
                match rank::commit_begin::<Every>(pending, all_reached(), advances, seq, target) {
                    Begin::Go { uses_advance, .. } => uses_advance,
                    Begin::AwaitTargets => {
                        points::sleep(bell, points::SHORT);
                        continue;
                    }
                    Begin::Park => {
                        if !points::at_collective(bell) {
                            continue;
                        }
                        // Let past by an advance that the park point has used up.
                        false
                    }
                };
            if driver {
                gate.driver_state
                    .store(DriverState::Running as u32, Ordering::SeqCst);
            }
            if uses_advance {
                points::use_advance();
            }
            let begun = cell.count.begin_shared();
            if pending != Pending::No {
                raise(cell, begun);
            }
            return;
        }
    }
}

/// Runs a collective operation within a stub of the caller's: no error handler.
///
/// # Safety
/// Inside a stub, no lock held; `clock` a group's cell; `call` does nothing but call the lower half.
pub unsafe fn clocked(clock: u32, call: impl FnOnce(&'static Dispatch) -> i32) -> i32 {
    // SAFETY: the caller's.
    unsafe {
        let before = arch::inside();
        arch::set_inside(Place::Collective as u32);
        begin(clock);
        let code = cross(call);
        arch::set_inside(before);
        code
    }
}
