//! The number of processes that a collective operation on a communicator involves: its arrays of handles are that long.

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::constants::PROC_NULL;

use super::has_clock;
use crate::ground::abi::{self, Handle};
use crate::ground::crossing::cross;
use crate::ground::object::Comm;
use crate::ground::{arch, handle};
use crate::objects::communicator;

/// The number of processes that an all-to-all operation on the communicator involves.
///
/// # Safety
/// Inside a stub; `comm` must be null or a handle, alive or freed.
pub unsafe fn peers(comm: Comm) -> usize {
    // SAFETY: `has_clock` has found `comm` alive, so it has a word; the numbers go into local variables.
    let size = unsafe {
        if !has_clock(comm) {
            return 0;
        }
        ask(|lower, size| {
            let word = abi::word(HandleKind::Communicator, comm);
            let mut inter = 0;
            (lower.comm_test_inter)(word, &mut inter);
            let size = &raw mut size[0];
            if inter == 0 {
                (lower.comm_size)(word, size)
            } else {
                (lower.comm_remote_size)(word, size)
            }
        })[0]
    };
    usize::try_from(size).unwrap_or(0)
}

/// The number of processes in the calling one's group.
///
/// # Safety
/// As [`peers`].
pub unsafe fn members(comm: Comm) -> usize {
    // SAFETY: `comm` is null or a handle, which `place` looks at first.
    usize::try_from(unsafe { place(comm) }.size).unwrap_or(0)
}

/// The calling process's entry in a list with one for each member of its group.
///
/// # Safety
/// As [`peers`]; the list must be null or have that many entries.
pub unsafe fn own(list: *const i32, comm: Comm) -> i32 {
    // SAFETY: the rank is below the number of members, and a list that is not null has an entry for each, by the caller's promise.
    unsafe {
        match usize::try_from(place(comm).rank) {
            Ok(rank) if !list.is_null() && members(comm) > rank => *list.add(rank),
            _ => 0,
        }
    }
}

/// Whether the calling process is the root of a collective operation: `root` is the application's argument.
///
/// # Safety
/// As [`peers`].
pub unsafe fn is_root(root: i32, comm: Comm) -> bool {
    let root = abi::rank_to_neutral(root);
    // SAFETY: `comm` is null or a handle, alive or freed; `place` answers 0 for all but live ones.
    let place = unsafe { place(comm) };
    if place.is_inter {
        root == ROOT
    } else {
        place.size > 0 && place.rank == root
    }
}

/// A handle that is significant `at_root` only, or at the other processes of a rooted operation. Elsewhere it is null, so that the application's value may be
/// anything.
///
/// # Safety
/// On a thread of the application; `comm` must be null or a handle, alive or freed.
#[inline]
pub unsafe fn significant<H: Handle>(
    given: H,
    kind: HandleKind,
    at_root: bool,
    root: i32,
    comm: Comm,
) -> H {
    let root = abi::rank_to_neutral(root);
    // SAFETY: `valid` has found a live communicator before its rank and its body are read.
    let is_for_us = unsafe {
        match root {
            // The root's group of an intercommunicator.
            ROOT => at_root,
            PROC_NULL => false,
            // MPI itself refuses a bad communicator.
            _ if !arch::is_address(comm) || !handle::valid(comm, HandleKind::Communicator) => true,
            _ if !at_root => true,
            _ => (*comm).rank == root && !communicator::is_inter(comm),
        }
    };
    match is_for_us {
        true => given,
        false => H::of(abi::predefined::null_handle(kind)),
    }
}

/// Whether the calling process is one of those that a root sends to or receives from.
///
/// # Safety
/// As [`peers`].
pub unsafe fn is_member(root: i32, comm: Comm) -> bool {
    // SAFETY: `comm` is null or a handle, alive or freed; `place` looks at it before it asks.
    let place = unsafe { place(comm) };
    !place.is_inter || abi::rank_to_neutral(root) >= 0
}

/// The calling process's place in a communicator.
struct Own {
    rank: i32,
    size: i32,
    is_inter: bool,
}

/// # Safety
/// As [`peers`].
unsafe fn place(comm: Comm) -> Own {
    // SAFETY: a communicator that has a clock is alive, so its word is the lower half's; the answers go into local variables.
    let ([rank, size], [is_inter, _]) = unsafe {
        if !has_clock(comm) {
            ([0; 2], [0; 2])
        } else {
            let word = abi::word(HandleKind::Communicator, comm);
            (
                ask(|lower, found| {
                    (lower.comm_rank)(word, &mut found[0]);
                    (lower.comm_size)(word, &mut found[1])
                }),
                ask(|lower, found| (lower.comm_test_inter)(word, &mut found[0])),
            )
        }
    };
    Own {
        rank,
        size,
        is_inter: is_inter != 0,
    }
}

/// The number of neighbours in the communicator's topology that a process receives from.
///
/// # Safety
/// As [`peers`].
pub unsafe fn sources(comm: Comm) -> usize {
    // SAFETY: `comm` is null or a handle, alive or freed, of which `neighbours` looks at live ones only.
    unsafe { neighbours(comm).0 }
}

/// The number of neighbours in the communicator's topology that a process sends to.
///
/// # Safety
/// As [`peers`].
pub unsafe fn destinations(comm: Comm) -> usize {
    // SAFETY: the handle, if not null, leads to an object by the caller's promise; `neighbours` tests whether it is alive.
    unsafe { neighbours(comm).1 }
}

/// Indegree and outdegree.
///
/// # Safety
/// As [`peers`].
unsafe fn neighbours(comm: Comm) -> (usize, usize) {
    // SAFETY: `has_clock` has found `comm` alive, so the lower half knows its word; it writes to local variables only.
    let found = unsafe {
        if !has_clock(comm) {
            return (0, 0);
        }
        ask(|lower, found| {
            let word = abi::word(HandleKind::Communicator, comm);
            let mut topology = 0;
            (lower.topo_test)(word, &mut topology);
            match topology {
                CART => {
                    let mut dimensions = 0;
                    let code = (lower.cartdim_get)(word, &mut dimensions);
                    *found = [2 * dimensions, 2 * dimensions];
                    code
                }
                GRAPH => {
                    let (mut rank, mut degree) = (0, 0);
                    (lower.comm_rank)(word, &mut rank);
                    let code = (lower.graph_neighbors_count)(word, rank, &mut degree);
                    *found = [degree, degree];
                    code
                }
                _ => {
                    let (mut sources, mut destinations, mut weighted) = (0, 0, 0);
                    let code = (lower.dist_graph_neighbors_count)(
                        word,
                        &mut sources,
                        &mut destinations,
                        &mut weighted,
                    );
                    *found = [sources, destinations];
                    code
                }
            }
        })
    };
    (
        usize::try_from(found[0]).unwrap_or(0),
        usize::try_from(found[1]).unwrap_or(0),
    )
}

/// `MPI_ROOT` of the standard's ABI.
const ROOT: i32 = -4;
/// `MPI_CART` and `MPI_GRAPH` of the standard's ABI.
const CART: i32 = 211;
const GRAPH: i32 = 212;

/// Asks the lower half for numbers; zeros if it has none.
unsafe fn ask(question: impl FnOnce(&'static Dispatch, &mut [i32; 2]) -> i32) -> [i32; 2] {
    let mut answer = [0; 2];
    // SAFETY: the callers are inside stubs, their questions call the lower half only.
    let code = unsafe { cross(|lower| question(lower, &mut answer)) };
    if code == 0 { answer } else { [0; 2] }
}
