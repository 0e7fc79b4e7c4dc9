//! The table of clocks' cells, and the clocks' names for people.

use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use stillpoint_clock::group::{Collision, Groups, Registered};
use stillpoint_clock::rank;
use stillpoint_clock::steps::Every;
use stillpoint_wrappers::gate::{CLOCK_NAME, ClockCell, ClockRoom};

use crate::ground::hooks::HOOKS;
use crate::ground::lock::SpinLock;
use crate::ground::object::NOT_COUNTED;
use crate::ground::{arch, crossing};

/// The most clocks that one rank can have, and the fewest if its address space is limited (`RLIMIT_AS`).
const MOST: usize = 1 << 17;
const LEAST: usize = 1 << 10;

/// Clocks that this rank can have: the table takes at most this part of a limited address space.
static CAPACITY: AtomicUsize = AtomicUsize::new(0);
const PART: usize = 16;

fn capacity() -> usize {
    CAPACITY.load(Ordering::Relaxed)
}

static ROOMS: AtomicPtr<ClockRoom> = AtomicPtr::new(core::ptr::null_mut());
static NAMES: AtomicPtr<[u8; CLOCK_NAME]> = AtomicPtr::new(core::ptr::null_mut());
static GROUPS: SpinLock<Groups> = SpinLock::new(Groups::new());

/// Maps the table of clocks, which never moves. Returns null if there is no memory for it.
pub fn map_cells() -> *mut ClockRoom {
    let most = arch::address_space() / PART / size_of::<ClockRoom>();
    let capacity = 1 << most.clamp(LEAST, MOST).ilog2();
    let rooms: *mut ClockRoom = arch::map(capacity * size_of::<ClockRoom>()).cast();
    if !rooms.is_null() {
        CAPACITY.store(capacity, Ordering::Relaxed);
    }
    ROOMS.store(rooms, Ordering::Relaxed);
    rooms
}

/// Maps the table of the clocks' names.
pub fn map_names() -> *mut [u8; CLOCK_NAME] {
    let names = arch::map(capacity() * CLOCK_NAME).cast();
    NAMES.store(names, Ordering::Relaxed);
    names
}

/// Gives a clock its name for people, cut to the room for it.
pub fn call_clock(index: u32, name: &[u8]) {
    let names = NAMES.load(Ordering::Relaxed);
    if names.is_null() || index as usize >= capacity() {
        return;
    }
    let mut kept = [0; CLOCK_NAME];
    let length = name.len().min(CLOCK_NAME);
    kept[..length].copy_from_slice(&name[..length]);
    // SAFETY: within the table. A reader may see a mixture meanwhile; the name is only for people.
    unsafe { names.add(index as usize).write(kept) };
}

/// Notes that a communicator of that name is given up, which the clock counts: see `ClockCell::given_up`.
pub fn note_given_up(index: u32, name: u128) {
    cell(index)
        .given_up
        .fetch_add(name as u64, Ordering::SeqCst);
}

/// A group's cell.
#[inline(always)]
pub fn cell(index: u32) -> &'static ClockCell {
    &room(index).cell
}

/// A clock's cell and log.
#[inline(always)]
pub fn room(index: u32) -> &'static ClockRoom {
    // SAFETY: indices come from `cell_for`, below the capacity of the table, which is never unmapped.
    unsafe { &*ROOMS.load(Ordering::Relaxed).add(index as usize) }
}

/// The index of the clock whose cell has this lower half of its address, or `None` if no clock in use has it.
pub fn index_of(address: u32) -> Option<u32> {
    let distance = address.wrapping_sub(address_of(0)) as usize;
    let index = (distance / size_of::<ClockRoom>()) as u32;
    let there = index < HOOKS.clock_count.load(Ordering::SeqCst) && address_of(index) == address;
    (there && address != (NOT_COUNTED.cell().addr() as u32)).then_some(index)
}

/// The lower half of the address of a clock's cell: `ThreadRecord::inside` holds it for a thread in an operation that can be begun again.
pub fn address_of(index: u32) -> u32 {
    core::ptr::from_ref(cell(index)).addr() as u32
}

/// The cell of the set of these world ranks (ascending, without duplicates; see
/// `stillpoint_clock::group::ascending`). It counts the ranks' common calls without a communicator of theirs. An error means
/// that another clock has the same id, or that there are too many; the communicator must not be made.
///
/// # Safety
/// Inside a stub.
pub unsafe fn cell_for(members: &[u32]) -> Result<u32, Collision> {
    // SAFETY: the caller is inside a stub.
    unsafe { enter(|groups, reuse| groups.register(members, reuse)) }
}

/// The cell of a communicator with that identity and these world ranks; otherwise as [`cell_for`].
///
/// # Safety
/// Inside a stub.
pub unsafe fn cell_of(identity: u128, members: &[u32]) -> Result<u32, Collision> {
    // SAFETY: the caller is inside a stub; the members are only read.
    unsafe { enter(|groups, reuse| groups.register_communicator(identity, members, reuse)) }
}

/// Looks a clock up; makes it if it is new.
///
/// A cell that was given up has no id. While a checkpoint is pending it is not used again, so that no target that is
/// meant for the earlier communicator gets into it: the agent writes targets into cells by their ids, and the id
/// was gone before the flag was looked at.
unsafe fn enter(
    register: impl FnOnce(&mut Groups, bool) -> Result<Registered, Collision>,
) -> Result<u32, Collision> {
    let mut groups = GROUPS.lock();
    let registered = register(&mut groups, !crossing::pending())?;
    if !registered.new {
        return Ok(registered.cell);
    }
    if registered.cell as usize >= capacity() {
        return Err(Collision {
            ggid: registered.ggid,
        });
    }
    let cell = cell(registered.cell);
    let used = cell.count.seq() != 0;
    cell.count.clear();
    cell.target.store(0, Ordering::Relaxed);
    cell.given_up.store(0, Ordering::Relaxed);
    cell.rank.store(-1, Ordering::Relaxed);
    cell.size.store(-1, Ordering::Relaxed);
    for numbers in &room(registered.cell).log.numbers {
        // In a clock that is new there are zeros, which say something of the first operation only.
        for number in &numbers[..if used { numbers.len() } else { 1 }] {
            number.store(u32::MAX, Ordering::Relaxed);
        }
    }
    cell.ggid.store(registered.ggid, Ordering::SeqCst);
    HOOKS.clock_count.store(groups.cells(), Ordering::SeqCst);
    Ok(registered.cell)
}

/// Ends the clock of a communicator that is gone. All members have given the communicator up, or will before the next still point: the
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
